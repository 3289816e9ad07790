import type { Bench, WorkReport } from './bench.js';
import { count, median, percent } from './figures.js';
import type { TransferSample, TransferSeries } from './transfers.js';
import { medianShares, verdict } from './verdict.js';

const mega = 1e6;

const medianOf = (series: TransferSeries, read: (sample: TransferSample) => number): number =>
  median(series.samples.map(read));

const rateOf = (series: TransferSeries): number => medianOf(series, (sample) => sample.bytesPerSecond);

/** Returns the contender's CPU time for 10^9 bytes, in seconds; 0 if there is none. */
function cpuPerGigabyte(series: TransferSeries): number {
  return medianOf(series, ({ shares, bytesPerSecond }) =>
    bytesPerSecond > 0 ? (shares.contender * 1e9) / bytesPerSecond : 0,
  );
}

/**
 * nginx is faster with larger buffers than its default, at a cost in memory with slow readers: shown, but not
 * compared with.
 */
const compared = ['nginx', 'nginx (on)', 'nginx (off)'];

/** Returns the nginx that a contender is compared with: the fastest one with the same number of connections. */
function referenceOf(series: TransferSeries, all: readonly TransferSeries[]): TransferSeries | null {
  const candidates = all.filter(
    ({ name, connections, samples }) =>
      compared.includes(name) && connections === series.connections && samples.length > 0,
  );
  return candidates.sort((a, b) => rateOf(b) - rateOf(a))[0] ?? null;
}

/**
 * Makes the table of a work of transfers.
 * @param more sentences before the limits of each series
 */
export function transferReport(
  bench: Pick<Bench, 'cores'>,
  head: { readonly work: string; readonly title: string; readonly more?: readonly string[] },
  all: readonly TransferSeries[],
): WorkReport {
  const rows = all.map((series) => {
    const name = `${series.name}, ${series.connections}`;
    if (series.samples.length === 0) return [name, 'failed', ...Array<string>(5).fill('-')];
    const rates = series.samples.map((sample) => sample.bytesPerSecond / mega);
    const base = referenceOf(series, all);
    const cost = cpuPerGigabyte(series);
    const used = medianShares(series);
    return [
      name,
      count(median(rates)),
      `${count(Math.min(...rates))}-${count(Math.max(...rates))}`,
      base ? `${(rateOf(series) / rateOf(base)).toFixed(2)}x` : '-',
      series.name === 'direct' ? '-' : percent(used.contender),
      `${percent(used.load)} + ${percent(used.upstream)}`,
      cost > 0 ? `${cost.toFixed(2)} s${base ? ` (${(cost / cpuPerGigabyte(base)).toFixed(2)}x)` : ''}` : '-',
    ];
  });
  return {
    work: head.work,
    title: head.title,
    columns: [
      'contender, connections',
      'MB/s',
      'min-max',
      'of nginx',
      'CPU',
      'load + upstream',
      'CPU per GB',
    ],
    rows,
    notes: [
      'The ratios are to the fastest nginx with its own buffer sizes and as many connections.',
      ...(head.more ?? []),
      ...all.flatMap((series) => said(bench, series)),
    ],
    figures: all,
  };
}

function said(bench: Pick<Bench, 'cores'>, series: TransferSeries): string[] {
  const name = `${series.name}, ${series.connections}`;
  return [
    ...series.samples.flatMap(({ errors }, index) =>
      errors.length > 0 ? [`${name}: RUN ${index + 1} HAD ERRORS: ${errors.join(', ')}.`] : [],
    ),
    ...(series.failure === null ? [] : [`${name}: FAILED: ${series.failure}`]),
    // Direct has its own kind of verdict, which is recognised by its name.
    ...verdict({ name: series.name === 'direct' ? 'direct' : name, samples: series.samples }, bench.cores),
  ];
}
