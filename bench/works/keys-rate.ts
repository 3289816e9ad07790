import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import type { Contender } from '../contenders/contender.js';
import { gateway, unreachedLimits } from '../contenders/gateway.js';
import { count, duration, median, percent, spread } from '../figures.js';
import { type ConstantRatePlan, type ConstantRateResult, startConstantRate } from '../load/constant-rate.js';
import { type Process, residentMb, runningUs, threadUs, workerOf } from '../proc.js';
import { runTurns, type TurnSample, type TurnSeries } from '../turns.js';
import { disturbance, medianShares } from '../verdict.js';
import { large, ordinaryLimits } from './keys.js';

const connections = 64;
/** Requests per second: at one rate the gateway is mostly idle, at the other mostly busy. */
const rates = [5_000, 10_000];
/** Long enough for V8 to compile the path of the calls. Every key has called once by then. */
const leastWarmUpCalls = 30_000;

type Catalogue = ConstantRatePlan['callers'];
const small: Catalogue = { keys: 1, models: 1 };

/** Resident memory of the gateway's processes after the load, in MB. */
interface Memory {
  readonly primaryMb: number;
  readonly workerMb: number;
}

/** CPU time of a call in microseconds: of the worker's main thread, of its other threads, and of the primary. */
interface Parts {
  readonly main: number;
  readonly others: number;
  readonly primary: number;
}

type Result = ConstantRateResult & Memory & { readonly parts: Parts };
type Sample = TurnSample<Result>;
type Series = TurnSeries<number, Result>;

const nameOf = ({ keys, models }: Catalogue): string =>
  keys === 1 ? '1 key, 1 model' : `${count(keys)} keys, ${count(models)} models`;

/**
 * Measures a large catalogue at a constant rate: CPU time and latency of the 1 KB chat with 100,000 limited keys and
 * 5,000 models in turn, compared with 1 of each, and the memory of a key.
 */
export const keysRateWork: Work = {
  name: 'keys-rate',
  byDefault: false,
  async run(bench) {
    const body = bodyFile(bench.directory, 'keys-rate', chatBody(1024, false));
    const all = await runTurns<number, Result>(bench, {
      answer: 'json',
      contenders: [small, large].map((catalogue) => withCatalogue(bench, catalogue)),
      loads: rates,
      prepare: async ({ port, path, process }) => {
        const callers = process?.name === nameOf(large) ? large : small;
        const warmUpCalls = Math.max(leastWarmUpCalls, callers.keys);
        const plan = { port, path, callers, bodyFile: body, connections, warmUpCalls };
        return async (rate) => {
          const whole = { ...plan, rate, seconds: bench.options.seconds };
          const client = await startConstantRate(whole, bench.cores.load);
          const before = client.warm.then(() => partsOf(process));
          const calls = rate * bench.options.seconds;
          return {
            ...client,
            result: async () => {
              const result = await client.result();
              const parts = difference(await before, partsOf(process), calls);
              return { ...result, ...memoryOf(process), parts };
            },
          };
        };
      },
    });
    return report(bench, all);
  },
};

function withCatalogue({ main }: Bench, catalogue: Catalogue): Contender {
  // A single key would reach ordinary limits.
  const limits = catalogue.keys === 1 ? unreachedLimits : ordinaryLimits;
  const one = gateway({ name: nameOf(catalogue), main, logs: false, limits });
  return { name: one.name, start: (setup) => one.start({ ...setup, catalogue }) };
}

function memoryOf(process: Process | null): Memory {
  if (process === null) return { primaryMb: 0, workerMb: 0 };
  return { primaryMb: residentMb(process.pid), workerMb: residentMb(workerOf(process.pid)) };
}

/** Total so far. */
function partsOf(process: Process | null): Parts {
  if (process === null) return { main: 0, others: 0, primary: 0 };
  const worker = workerOf(process.pid);
  const main = threadUs(worker, worker);
  return { main, others: runningUs(worker) - main, primary: runningUs(process.pid) };
}

function difference(before: Parts, after: Parts, calls: number): Parts {
  const of = (name: keyof Parts): number => (after[name] - before[name]) / calls;
  return { main: of('main'), others: of('others'), primary: of('primary') };
}

const costOf = ({ load: rate, samples }: Series): number[] =>
  samples.map(({ shares }) => (shares.contender * 1e6) / rate);
const medianOf = ({ samples }: Series, read: (sample: Sample) => number): number => median(samples.map(read));

function report({ cores }: Bench, all: readonly Series[]): WorkReport {
  const rows = all.map((series) => {
    const { name, load: rate, samples } = series;
    if (samples.length === 0) return [name, count(rate), 'failed', ...Array<string>(11).fill('-')];
    const base = all.find((other) => other.name === nameOf(small) && other.load === rate);
    const used = medianShares(series);
    const p99s = samples.map(({ fromTurn }) => fromTurn.p99);
    const of = (read: (of: Series) => number): string =>
      base && base.samples.length > 0 ? `${(read(series) / read(base)).toFixed(2)}x` : '-';
    return [
      name,
      count(rate),
      `${median(costOf(series)).toFixed(2)} µs`,
      spread(costOf(series)),
      of((each) => median(costOf(each))),
      (['main', 'others', 'primary'] as const)
        .map((part) => medianOf(series, ({ parts }) => parts[part]).toFixed(1))
        .join(' + '),
      duration(medianOf(series, ({ fromTurn }) => fromTurn.p50)),
      duration(medianOf(series, ({ fromTurn }) => fromTurn.p90)),
      duration(median(p99s)),
      `${duration(Math.min(...p99s))}-${duration(Math.max(...p99s))}`,
      of((each) => medianOf(each, ({ fromTurn }) => fromTurn.p99)),
      duration(medianOf(series, ({ fromTurn }) => fromTurn.p999)),
      percent(used.contender),
      `${percent(used.load)} + ${percent(used.upstream)}`,
    ];
  });
  return {
    work: 'keys-rate',
    title: `1 KB chat at fixed rates, ${connections} connections, small and large catalogue under limits`,
    columns: [
      'catalogue',
      'req/s',
      'CPU per request',
      'min-max',
      'of one key',
      'main thread, others, primary',
      'p50',
      'p90',
      'p99',
      'min-max',
      'of one key',
      'p99.9',
      'CPU',
      'load + upstream',
    ],
    rows,
    notes: [
      ...memoryNotes(all),
      ...all.flatMap((series) => problems(series, cores)),
      `Every key has called once, and ${count(leastWarmUpCalls)} calls were made, before what is measured; latencies count from the client's turn for a request.`,
    ],
    figures: all,
  };
}

/** Returns the memory of a key in each process, from the difference between the two catalogues. */
function memoryNotes(all: readonly Series[]): string[] {
  const samplesOf = (catalogue: Catalogue): readonly Sample[] =>
    all.filter(({ name }) => name === nameOf(catalogue)).flatMap(({ samples }) => samples);
  const [one, many] = [samplesOf(small), samplesOf(large)];
  if (one.length === 0 || many.length === 0) return [];
  const perKey = (read: (memory: Memory) => number): string =>
    count(((median(many.map(read)) - median(one.map(read))) * 1024 * 1024) / large.keys);
  return [
    `Memory of a key, with its share of the models: ${perKey(({ workerMb }) => workerMb)} bytes in a worker, ` +
      `${perKey(({ primaryMb }) => primaryMb)} in the primary.`,
  ];
}

function problems(series: Series, cores: Bench['cores']): string[] {
  const name = `${series.name}, ${count(series.load)} req/s`;
  const { load, upstream } = medianShares(series);
  const isFull = cores.load === cores.upstream && cores.load !== null && load + upstream >= 0.94;
  return [
    ...series.samples.flatMap(({ errors }, index) =>
      errors.length > 0 ? [`${name}: RUN ${index + 1} HAD ERRORS: ${errors.join(', ')}.`] : [],
    ),
    ...(series.failure === null ? [] : [`${name}: FAILED: ${series.failure}`]),
    ...(isFull ? [`${name}: THE LOAD SIDE'S CORE IS FULL: the p99 is its own.`] : []),
    ...disturbance(name, medianShares(series)),
  ];
}
