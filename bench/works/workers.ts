import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, Work, WorkReport } from '../bench.js';
import { bodyFile, chatBody } from '../bodies.js';
import { callerAt } from '../callers.js';
import type { Contender, Running } from '../contenders/contender.js';
import { count, median, percent } from '../figures.js';
import { asItComes, probe } from '../probe.js';
import { childrenOf, cpuMs, heldConnections, processTree } from '../proc.js';
import { startUpstream } from '../upstream-process.js';

const workerCounts = [1, 2, 4];
const connectionCounts = [8, 64, 512];
/** Connections of each worker while throughput is measured. */
const connectionsPerWorker = 64;
const warmUpSeconds = 3;
/** A load whose connections are counted, and the time of the count. */
const spreadSeconds = 2;
const countAfterMs = 1_000;

/** One run with a number of workers. */
interface Throughput {
  readonly requestsPerSecond: number;
  /** The contender's microseconds for a request. */
  readonly cpuUs: number;
  /** Share of one core. */
  readonly load: number;
  readonly errors: readonly string[];
}

/** Numbers of connections of each worker. */
interface Spread {
  readonly connections: number;
  readonly held: readonly number[];
}

interface Series {
  readonly name: string;
  readonly workers: number;
  /** Whether each worker had its own core: throughput is measured only then. */
  readonly hasCores: boolean;
  readonly runs: Throughput[];
  readonly spreads: Spread[];
  failure: string | null;
}

/**
 * Measures several workers: whether each serves as much as a single one, and how connections are distributed. Each
 * worker has its own core while throughput is measured; the distribution of connections does not depend on cores.
 */
export const workersWork: Work = {
  name: 'workers',
  byDefault: false,
  async run(bench) {
    const cores = freeCores(bench);
    const contenders = bench.contenders.filter(({ name }) => ['gateway', 'against', 'nginx'].includes(name));
    const all = contenders.flatMap((contender) =>
      workerCounts.map((workers) => ({
        contender,
        series: {
          name: contender.name,
          workers,
          hasCores: workers <= cores.length,
          runs: [],
          spreads: [],
          failure: null,
        } as Series,
      })),
    );
    const body = bodyFile(bench.directory, 'workers', chatBody(1024, false));
    for (let round = 0; round < bench.options.rounds; round += 1) {
      for (const { contender, series } of round % 2 === 0 ? all : [...all].reverse()) {
        if (series.failure !== null) continue;
        bench.progress(`workers, round ${round + 1}: ${series.name} with ${series.workers}`);
        try {
          await runOnce(bench, { contender, series, body, cores: cores.slice(0, series.workers) });
        } catch (error) {
          series.failure = error instanceof Error ? error.message : String(error);
        }
      }
    }
    return report(
      bench,
      all.map(({ series }) => series),
    );
  },
};

/** Cores of neither the load client nor the upstream. */
function freeCores({ machine, cores }: Bench): number[] {
  if (cores.contender === null) return [];
  return Array.from({ length: machine.cores }, (_, core) => core).filter(
    (core) => core !== cores.load && core !== cores.upstream,
  );
}

async function runOnce(
  bench: Bench,
  turn: {
    readonly contender: Contender;
    readonly series: Series;
    readonly body: string;
    readonly cores: readonly number[];
  },
): Promise<void> {
  const { contender, series, body, cores } = turn;
  const { directory } = bench;
  const upstream = await startUpstream({ engine: 'uws', core: bench.cores.upstream });
  const core = bench.cores.contender === null ? null : cores;
  const { workers } = series;
  const running = await contender.start({
    upstreamPort: upstream.port,
    answer: 'json',
    directory,
    core,
    workers,
  });
  try {
    await probe(running, asItComes(body));
    if (series.hasCores) {
      const connections = connectionsPerWorker * workers;
      await (await startLoad(bench, running, { body, connections, seconds: warmUpSeconds })).result;
      series.runs.push(await measure(bench, running, { body, connections }));
    }
    if (workers === 1) return;
    for (const connections of connectionCounts)
      series.spreads.push({
        connections,
        held: await spread(bench, running, { body, connections, workers }),
      });
  } finally {
    await running.process?.stop();
    await upstream.process.stop();
  }
}

function startLoad(
  bench: Bench,
  { port, path, secure }: Running,
  load: { readonly body: string; readonly connections: number; readonly seconds: number },
): ReturnType<Bench['load']['start']> {
  return bench.load.start({
    port,
    secure,
    path,
    bodyFile: load.body,
    connections: load.connections,
    seconds: load.seconds,
    core: bench.cores.load,
    directory: bench.directory,
    callers: [callerAt(0)],
    headers: {},
  });
}

async function measure(
  bench: Bench,
  running: Running,
  load: { readonly body: string; readonly connections: number },
): Promise<Throughput> {
  const { seconds } = bench.options;
  const tree = processTree(running.process?.pid ?? 0);
  const before = cpuMs(tree);
  const client = await startLoad(bench, running, { ...load, seconds });
  const loadBefore = cpuMs([client.process.pid]);
  const startedAt = performance.now();
  await wait(seconds * 1000 - 150);
  const used = cpuMs([client.process.pid]) - loadBefore;
  const span = performance.now() - startedAt;
  const { requestsPerSecond, errors } = await client.result;
  const cpuUs = ((cpuMs(tree) - before) * 1000) / Math.max(1, requestsPerSecond * seconds);
  return { requestsPerSecond, cpuUs, load: used / span, errors };
}

/** Returns how many of the connections each worker has, the fewest first. */
async function spread(
  bench: Bench,
  running: Running,
  load: { readonly body: string; readonly connections: number; readonly workers: number },
): Promise<number[]> {
  const client = await startLoad(bench, running, { ...load, seconds: spreadSeconds });
  await wait(countAfterMs);
  const held = childrenOf(running.process?.pid ?? 0).map((pid) => heldConnections(pid, running.port));
  await client.result;
  await client.process.exited;
  // A child without connections is not a worker, such as nginx's cache manager.
  return held.sort((a, b) => a - b).slice(-load.workers);
}

function report(bench: Bench, all: readonly Series[]): WorkReport {
  const rows = all.map((series) => {
    const { name, workers, runs } = series;
    const label = `${name}, ${workers}`;
    const spreads = connectionCounts.map((connections) => spreadText(series, connections));
    if (runs.length === 0) return [label, ...Array<string>(5).fill('-'), ...spreads];
    const each = (of: Series | undefined): number =>
      median(of?.runs.map(({ requestsPerSecond }) => requestsPerSecond / of.workers) ?? []);
    const alone = all.find((other) => other.name === name && other.workers === 1);
    return [
      label,
      count(median(runs.map(({ requestsPerSecond }) => requestsPerSecond))),
      count(each(series)),
      each(alone) > 0 ? percent(each(series) / each(alone)) : '-',
      `${median(runs.map(({ cpuUs }) => cpuUs)).toFixed(1)} µs`,
      percent(median(runs.map(({ load }) => load))),
      ...spreads,
    ];
  });
  return {
    work: 'workers',
    title: `1 KB chat with 1, 2 and 4 workers, ${connectionsPerWorker} connections for each, and where connections go`,
    columns: [
      'contender, workers',
      'req/s',
      'each',
      'of one alone',
      'CPU per request',
      'load client',
      ...connectionCounts.map((connections) => `of ${connections} connections`),
    ],
    rows,
    notes: [
      ...all.flatMap((series) => problems(bench, series)),
      'Under "of N connections" stand those that the worker with the fewest and the one with the most held, of all rounds, and how many were left without any.',
    ],
    figures: all,
  };
}

/** Formats the fewest and the most connections of a worker, and the number of workers without any. */
function spreadText({ spreads }: Series, connections: number): string {
  const held = spreads.filter((one) => one.connections === connections).flatMap((one) => one.held);
  if (held.length === 0) return '-';
  const idle = held.filter((each) => each === 0).length;
  return `${Math.min(...held)}-${Math.max(...held)}${idle > 0 ? `, ${idle} of ${held.length} none` : ''}`;
}

function problems(bench: Bench, { name, workers, hasCores, runs, failure }: Series): string[] {
  const label = `${name}, ${workers}`;
  return [
    ...(failure === null ? [] : [`${label}: FAILED: ${failure}`]),
    ...(hasCores
      ? []
      : [
          `${label}: NO THROUGHPUT: ${workers} workers want as many cores beside the load side's; this machine has ${bench.machine.cores}.`,
        ]),
    ...runs.flatMap(({ errors }, index) =>
      errors.length > 0 ? [`${label}: RUN ${index + 1} HAD ERRORS: ${errors.join(', ')}.`] : [],
    ),
    ...(median(runs.map(({ load }) => load)) >= 0.94
      ? [`${label}: the load client's core is full: this is its limit.`]
      : []),
  ];
}
