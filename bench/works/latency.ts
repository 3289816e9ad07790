import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Running } from '../contenders/contender.js';
import { count, duration, median, percent } from '../figures.js';
import { type ConstantRateResult, startConstantRate } from '../load/constant-rate.js';
import { asItComes, probe } from '../probe.js';
import { runTurns, type TurnSample, type TurnSeries } from '../turns.js';
import { medianShares } from '../verdict.js';

const connections = 64;
/** Long enough for V8 to compile the path of the requests. */
const warmUpCalls = 30_000;

/** A rate that is the same for all, or a share of the contender's own capacity. */
type Load = { readonly perSecond: number } | { readonly ofCapacity: number };

const loads: readonly Load[] = [
  { perSecond: 5_000 },
  { ofCapacity: 0.3 },
  { ofCapacity: 0.6 },
  { ofCapacity: 0.9 },
];
/** Seconds from the start to the measurement of its capacity. */
const capacityWarmUpSeconds = 3;
/** The most that the client sends in a second: its one core is full soon above that. */
const mostPerSecond = 30_000;

type Result = ConstantRateResult & {
  /** Requests that were sent in a second. */
  readonly rate: number;
  /** Requests per second of the same process under full load. */
  readonly capacity: number;
};
type Sample = TurnSample<Result>;
type Series = TurnSeries<Load, Result>;

/**
 * Measures the latency that each contender adds to the 1 KB chat: at a fixed rate (compared with direct), and at
 * shares of its own capacity; with an access log, and with limits and the ledger in the gateway.
 */
export const latencyWork: Work = {
  name: 'latency',
  byDefault: true,
  async run(bench) {
    const body = bodyFile(bench.directory, 'latency', chatBody(1024, false));
    const all = await runTurns<Load, Result>(bench, {
      answer: 'json',
      wiring: { accessLog: true, limits: true },
      contenders: bench.contenders,
      loads,
      // The load client limits it.
      skips: ({ name }, load) => name === 'direct' && 'ofCapacity' in load,
      prepare: async (running) => {
        await probe(running, asItComes(body));
        const capacity = running.process ? await capacityOf(bench, running, body) : 0;
        const plan = { port: running.port, path: running.path, bodyFile: body, connections, warmUpCalls };
        return async (load) => {
          const asked = 'perSecond' in load ? load.perSecond : Math.round(capacity * load.ofCapacity);
          const rate = Math.min(asked, mostPerSecond);
          const timing = { callers: { keys: 1, models: 1 }, rate, seconds: bench.options.seconds };
          const client = await startConstantRate({ ...plan, ...timing }, bench.cores.load);
          return { ...client, result: async () => ({ ...(await client.result()), rate, capacity }) };
        };
      },
    });
    return report(all);
  },
};

/** Returns the requests per second of a warm contender under full load. */
async function capacityOf(bench: Bench, { port, path, secure }: Running, body: string): Promise<number> {
  const ask = async (seconds: number): Promise<number> => {
    const client = await bench.load.start({
      port,
      secure,
      path,
      bodyFile: body,
      connections,
      seconds,
      core: bench.cores.load,
      directory: bench.directory,
      callers: [callerAt(0)],
      headers: {},
    });
    const { requestsPerSecond, errors } = await client.result;
    await client.process.exited;
    if (errors.length > 0) throw new Error(`its capacity cannot be told: ${errors.join(', ')}`);
    return requestsPerSecond;
  };
  await ask(capacityWarmUpSeconds);
  return ask(bench.options.seconds);
}

const nameOf = ({ name, load }: Series): string =>
  `${name}, ${'perSecond' in load ? `${count(load.perSecond)}/s` : percent(load.ofCapacity)}`;

const of = (series: Series | undefined, read: (sample: Sample) => number): number =>
  median(series?.samples.map(read) ?? []);

function report(all: readonly Series[]): WorkReport {
  const direct = all.find(({ name, load }) => name === 'direct' && 'perSecond' in load);
  const rows = all.map((series) => {
    if (series.samples.length === 0) return [nameOf(series), 'failed', ...Array<string>(11).fill('-')];
    const isCompared = series !== direct && direct !== undefined && 'perSecond' in series.load;
    const added = (name: 'p50' | 'p99'): string =>
      isCompared
        ? duration(
            of(series, ({ fromTurn }) => fromTurn[name]) - of(direct, ({ fromTurn }) => fromTurn[name]),
          )
        : '-';
    return [
      nameOf(series),
      count(of(series, ({ rate }) => rate)),
      ...(['p50', 'p90', 'p99', 'p999'] as const).map((name) =>
        duration(of(series, ({ fromTurn }) => fromTurn[name])),
      ),
      added('p50'),
      added('p99'),
      duration(of(series, ({ fromDue }) => fromDue.p50)),
      duration(of(series, ({ fromDue }) => fromDue.p99)),
      duration(of(series, ({ late }) => late.p99)),
      percent(of(series, ({ shares }) => shares.contender)),
      percent(of(series, ({ shares }) => shares.load + shares.upstream)),
    ];
  });
  return {
    work: 'latency',
    title: `latency at a fixed rate and at shares of capacity, 1 KB chat, ${connections} connections, logs and limits on`,
    columns: [
      'contender, load',
      'req/s',
      'p50',
      'p90',
      'p99',
      'p99.9',
      'added p50',
      'added p99',
      'p50 from due',
      'p99 from due',
      'client late p99',
      'CPU',
      'load side',
    ],
    rows,
    notes: [
      ...all.flatMap(problems),
      'Latencies count from the client\'s turn for a request and hold any wait for a free connection; "from due" also holds what the client itself overslept, which "client late" shows by itself.',
    ],
    figures: all,
  };
}

function problems(series: Series): string[] {
  const name = nameOf(series);
  if (series.samples.length === 0)
    return series.failure === null ? [] : [`${name}: FAILED: ${series.failure}`];
  const { load, upstream, foreignContender, foreignLoad } = medianShares(series);
  const wanted =
    'ofCapacity' in series.load ? of(series, ({ capacity }) => capacity) * series.load.ofCapacity : 0;
  return [
    ...series.samples.flatMap(({ errors }, index) =>
      errors.length > 0 ? [`${name}: RUN ${index + 1} HAD ERRORS: ${errors.join(', ')}.`] : [],
    ),
    ...(series.failure === null ? [] : [`${name}: FAILED: ${series.failure}`]),
    ...(wanted > mostPerSecond
      ? [
          `${name}: SCALED DOWN from ${count(wanted)} to ${count(mostPerSecond)} req/s, the most that the client asks.`,
        ]
      : []),
    ...(load + upstream >= 0.94 ? [`${name}: THE LOAD SIDE'S CORE IS FULL: the latencies are its own.`] : []),
    ...(foreignContender + foreignLoad > 0.15
      ? [`${name}: NOT A QUIET MACHINE: others took part of the cores; the latencies are theirs too.`]
      : []),
  ];
}
