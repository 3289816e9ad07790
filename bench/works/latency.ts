import type { Bench, Work } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import type { Contender } from '../contenders/contender.js';
import { duration, median, percent } from '../figures.js';
import { type ConstantRateResult, startConstantRate } from '../load/constant-rate.js';
import { type Shares, shares } from '../measure.js';
import { asItComes, probe } from '../probe.js';
import { type BenchUpstream, startUpstream } from '../upstream-process.js';

const rate = 5_000;
const connections = 64;
/** Long enough for V8 to have compiled what the requests run through. */
const warmUpCalls = 30_000;

interface Sample extends ConstantRateResult {
  readonly shares: Shares;
}
interface Series {
  readonly name: string;
  readonly samples: Sample[];
  failure: string | null;
}

/** What each contender adds to the latency of the 1 KB chat at a fixed rate, against direct. */
export const latencyWork: Work = {
  name: 'latency',
  byDefault: true,
  async run(bench) {
    const body = bodyFile(bench.directory, 'latency', chatBody(1024, false));
    const upstream = await startUpstream({ engine: 'uws', core: bench.cores.upstream });
    const all = bench.contenders.map((contender) => ({
      contender,
      series: { name: contender.name, samples: [], failure: null } as Series,
    }));
    for (let round = 0; round < bench.options.rounds; round += 1) {
      for (const { contender, series } of round % 2 === 0 ? all : [...all].reverse()) {
        if (series.failure !== null) continue;
        bench.progress(`latency, round ${round + 1} of ${bench.options.rounds}: ${contender.name}`);
        try {
          series.samples.push(await measureOnce(bench, contender, upstream, body));
        } catch (error) {
          series.failure = error instanceof Error ? error.message : String(error);
        }
      }
    }
    await upstream.process.stop();
    return report(all.map(({ series }) => series));
  },
};

async function measureOnce(
  bench: Bench,
  contender: Contender,
  upstream: BenchUpstream,
  body: string,
): Promise<Sample> {
  const { cores, directory, options } = bench;
  const setup = { upstreamPort: upstream.port, answer: 'json', directory, core: cores.contender };
  const running = await contender.start(setup);
  try {
    await probe(running, asItComes(body));
    const { port, path } = running;
    const callers = { keys: 1, models: 1 };
    const plan = { port, path, callers, bodyFile: body, connections, rate, warmUpCalls };
    const client = await startConstantRate({ ...plan, seconds: options.seconds }, cores.load);
    await client.warm;
    const parts = { contender: running.process, load: client.process, upstream: upstream.process };
    const measured = await shares(options.seconds, parts, cores);
    return { ...(await client.result()), shares: measured };
  } finally {
    await running.process?.stop();
  }
}

function report(all: readonly Series[]) {
  const of = (series: Series | undefined, read: (sample: Sample) => number): number =>
    median(series?.samples.map(read) ?? []);
  const base = all.find((series) => series.name === 'direct');
  const rows = all.map((series) => {
    if (series.samples.length === 0) return [series.name, 'failed', ...Array<string>(8).fill('-')];
    const p50 = of(series, (sample) => sample.fromTurn.p50);
    const p99 = of(series, (sample) => sample.fromTurn.p99);
    const added = (value: number, direct: number): string =>
      series === base || !base ? '-' : duration(value - direct);
    return [
      series.name,
      duration(p50),
      duration(p99),
      added(
        p50,
        of(base, (sample) => sample.fromTurn.p50),
      ),
      added(
        p99,
        of(base, (sample) => sample.fromTurn.p99),
      ),
      duration(of(series, (sample) => sample.fromDue.p50)),
      duration(of(series, (sample) => sample.fromDue.p99)),
      duration(of(series, (sample) => sample.late.p99)),
      percent(of(series, (sample) => sample.shares.contender)),
      percent(of(series, (sample) => sample.shares.load + sample.shares.upstream)),
    ];
  });
  const notes = all.flatMap((series) => [
    ...series.samples.flatMap(({ errors }, index) =>
      errors.length > 0 ? [`${series.name}: RUN ${index + 1} HAD ERRORS: ${errors.join(', ')}.`] : [],
    ),
    ...(series.failure === null ? [] : [`${series.name}: FAILED: ${series.failure}`]),
  ]);
  const disturbed = all.some(
    (series) =>
      of(series, ({ shares: { foreignContender, foreignLoad } }) => foreignContender + foreignLoad) > 0.15,
  );
  if (disturbed)
    notes.push('NOT A QUIET MACHINE: others took part of the cores; the p99 figures are theirs too.');
  notes.push(
    'p50 and p99 count from the client\'s turn for a request and hold any wait for a free connection; "from due" also holds what the client itself overslept, which "client late" shows by itself.',
  );
  return {
    work: 'latency',
    title: `added latency at a fixed ${rate.toLocaleString('en-US')} req/s, 1 KB chat, ${connections} connections`,
    columns: [
      'contender',
      'p50',
      'p99',
      'added p50',
      'added p99',
      'p50 from due',
      'p99 from due',
      'client late p99',
      'CPU',
      'load side',
    ],
    rows,
    notes,
    figures: all,
  };
}
