import type { Bench, WorkReport } from './bench.js';
import { count, duration, median, pairedDifference, percent, spread } from './figures.js';
import type { Series } from './rounds.js';
import { medianShares, verdict } from './verdict.js';

/** The unit of a throughput: requests, or the events of streamed answers. */
export interface Unit {
  readonly name: 'req/s' | 'events/s';
  readonly perRequest: number;
}

/** Returns the median rate of a series in its unit; 0 if it failed. */
const medianRate = (series: Series, unit: Unit): number =>
  median(series.samples.map((sample) => sample.requestsPerSecond * unit.perRequest));

/** Returns the contender's CPU time for one unit, in microseconds; 0 if there is none. */
export const cpuPerUnit = (series: Series, unit: Unit): number => median(costsOf(series, unit));

function costsOf(series: Series, unit: Unit): number[] {
  return series.samples.map((sample) =>
    sample.requestsPerSecond > 0
      ? (sample.shares.contender * 1e6) / (sample.requestsPerSecond * unit.perRequest)
      : 0,
  );
}

/**
 * Makes the table of a throughput work.
 * @param reference name of the series that the others are compared with
 */
export function throughputReport(
  bench: Bench,
  head: { readonly work: string; readonly title: string; readonly unit: Unit; readonly reference: string },
  all: readonly Series[],
): WorkReport {
  const { unit, reference } = head;
  const base = all.find((series) => series.name === reference && series.samples.length > 0) ?? null;
  const baseRate = base ? medianRate(base, unit) : 0;
  const baseCost = base ? cpuPerUnit(base, unit) : 0;
  const rows = all.map((series) => {
    if (series.samples.length === 0) return [series.name, 'failed', ...Array<string>(9).fill('-')];
    const rates = series.samples.map((sample) => sample.requestsPerSecond * unit.perRequest);
    const cost = cpuPerUnit(series, unit);
    const used = medianShares(series);
    return [
      series.name,
      ...(cost > 0 ? [`${cost.toFixed(2)} µs`, spread(costsOf(series, unit))] : ['-', '-']),
      cost > 0 && baseCost > 0 ? `${(baseCost / cost).toFixed(2)}x` : '-',
      count(median(rates)),
      `${count(Math.min(...rates))}-${count(Math.max(...rates))}`,
      duration(median(series.samples.map((sample) => sample.p50Us))),
      duration(median(series.samples.map((sample) => sample.p99Us))),
      baseRate > 0 ? `${(median(rates) / baseRate).toFixed(2)}x` : '-',
      series.name === 'direct' ? '-' : percent(used.contender),
      `${percent(used.load)} + ${percent(used.upstream)}`,
    ];
  });
  const notes = all.flatMap((series) => [
    ...problems(series),
    ...paired(series, all, unit),
    ...verdict(series, bench.cores),
  ]);
  return {
    work: head.work,
    title: head.title,
    columns: [
      'contender',
      unit.name === 'req/s' ? 'CPU per request' : 'CPU per event',
      'min-max',
      `of ${reference} by CPU`,
      unit.name,
      'min-max',
      'p50',
      'p99',
      `of ${reference} by rate`,
      'CPU',
      'load + upstream',
    ],
    rows,
    notes,
    figures: all,
  };
}

/** Returns how much more CPU time a unit of a series took than its partner's, by the pairs of the rounds. */
function paired(series: Series, all: readonly Series[], unit: Unit): string[] {
  const partner = all.find(({ name }) => name === series.pairedWith);
  if (partner === undefined) return [];
  const pairs = Math.min(series.samples.length, partner.samples.length);
  const difference = pairedDifference(
    costsOf(series, unit).slice(0, pairs),
    costsOf(partner, unit).slice(0, pairs),
  );
  if (difference === null) return [];
  const { low, middle, high } = difference;
  return [
    `${series.name}: ${signed(middle)} (95 %: ${signed(low)} to ${signed(high)}) of the CPU time of ${partner.name}, by ${pairs} pairs.`,
  ];
}

const signed = (share: number): string => `${share < 0 ? '' : '+'}${(share * 100).toFixed(1)} %`;

/** Reports the errors of a series prominently: its figures must not be used. */
function problems(series: Series): string[] {
  const said = series.samples.flatMap((sample, index) =>
    sample.errors.length > 0
      ? [`${series.name}: RUN ${index + 1} HAD ERRORS: ${sample.errors.join(', ')}.`]
      : [],
  );
  if (series.failure !== null) said.push(`${series.name}: FAILED: ${series.failure}`);
  return said;
}
