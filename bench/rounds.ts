import type { Bench } from './bench.js';
import type { Caller } from './callers.js';
import { certificateFiles } from './certificate.js';
import type { Contender, Running, Setup, Wiring } from './contenders/contender.js';
import type { LoadClient, LoadResult } from './load/load.js';
import { type Shares, shares } from './measure.js';
import { asItComes, probe, type Question } from './probe.js';
import { type BenchUpstream, startUpstream } from './upstream-process.js';

const usualWarmUpSeconds = 2;

export interface ThroughputPlan extends Wiring {
  readonly answer: 'json' | 'late' | 'sse' | 'drip';
  readonly engine: 'net' | 'uws';
  readonly bodyFile: string;
  /** Headers of the requests, in addition to those that every request has. */
  readonly headers?: Question['headers'] | undefined;
  readonly connections: number;
  /** Seconds before the measurement; default two. */
  readonly warmUpSeconds?: number | undefined;
}

/** A contender that takes part, and how its config or requests differ. */
export interface Entry {
  readonly name: string;
  readonly contender: Contender;
  readonly catalogue?: Setup['catalogue'];
  readonly callers: readonly Caller[];
  /** Its body and headers, in place of the plan's, for an answer that is not the upstream's own. */
  readonly question?: Question & { readonly path?: string };
  /** Name of the entry that this one is compared with in pairs, round by round. */
  readonly pairedWith?: string;
}

interface Sample extends LoadResult {
  readonly shares: Shares;
}

/** All samples of one entry. `failure` says why there are none, or no more. */
export interface Series {
  readonly name: string;
  readonly pairedWith: string | null;
  readonly samples: Sample[];
  failure: string | null;
}

/**
 * Runs interleaved rounds (A B C, C B A, …). Each measurement has a fresh process, a probe of its answer, a warm-up
 * and then the run itself. With `--warm`, an entry's process stays for all rounds, and is probed and warmed up once.
 * @returns one series for each entry, in their order. An entry that fails drops out, and the others continue
 */
export async function runRounds(
  bench: Bench,
  plan: ThroughputPlan,
  entries: readonly Entry[],
): Promise<readonly Series[]> {
  const { rounds, warm } = bench.options;
  const upstream = await startUpstream({
    engine: plan.engine,
    core: bench.cores.upstream,
    certificate: plan.upstreamTls ? certificateFiles(bench.directory) : null,
  });
  const all = entries.map((entry) => ({
    entry,
    series: { name: entry.name, pairedWith: entry.pairedWith ?? null, samples: [], failure: null } as Series,
  }));
  const kept = new Map<Entry, Running>();
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? all : [...all].reverse();
    for (const { entry, series } of order) {
      if (series.failure !== null) continue;
      bench.progress(`round ${round + 1} of ${rounds}: ${entry.name}`);
      try {
        const running = kept.get(entry) ?? (await startWarm(bench, plan, entry, upstream));
        if (warm) kept.set(entry, running);
        series.samples.push(await measureOnce(bench, plan, { entry, running, upstream }));
        if (!warm) await running.process?.stop();
      } catch (error) {
        series.failure = error instanceof Error ? error.message : String(error);
      }
    }
  }
  for (const { process } of kept.values()) await process?.stop();
  await upstream.process.stop();
  return all.map(({ series }) => series);
}

/** Calls in a warm-up after which every caller has called once; most machines make that many. */
const callsPerSecond = 10_000;

/** Starts a fresh process of an entry, probes its answer, and warms it up until V8 has compiled most of it. */
async function startWarm(
  bench: Bench,
  plan: ThroughputPlan,
  entry: Entry,
  upstream: BenchUpstream,
): Promise<Running> {
  const { cores, directory, options } = bench;
  const running = await entry.contender.start({
    upstreamPort: upstream.port,
    answer: plan.answer,
    directory,
    core: cores.contender,
    catalogue: entry.catalogue,
    clientTls: plan.clientTls,
    upstreamTls: plan.upstreamTls,
    accessLog: plan.accessLog,
  });
  try {
    await probe({ ...running, path: entry.question?.path ?? running.path }, questionOf(plan, entry));
    const usual = options.seconds > 1 || options.warm ? (plan.warmUpSeconds ?? usualWarmUpSeconds) : 1;
    const seconds = usual + Math.floor(entry.callers.length / callsPerSecond);
    const client = await startClient(bench, plan, { entry, running, seconds });
    await client.result;
    await client.process.exited;
    return running;
  } catch (error) {
    await running.process?.stop();
    throw error;
  }
}

async function measureOnce(
  bench: Bench,
  plan: ThroughputPlan,
  turn: { readonly entry: Entry; readonly running: Running; readonly upstream: BenchUpstream },
): Promise<Sample> {
  const { entry, running, upstream } = turn;
  const { seconds } = bench.options;
  try {
    const client = await startClient(bench, plan, { entry, running, seconds });
    const parts = { contender: running.process, load: client.process, upstream: upstream.process };
    const [measured, result] = await Promise.all([shares(seconds, parts, bench.cores), client.result]);
    await client.process.exited;
    return { ...result, shares: measured };
  } catch (error) {
    await running.process?.stop();
    throw error;
  }
}

const questionOf = (plan: ThroughputPlan, { question }: Entry): NonNullable<Entry['question']> =>
  question ?? asItComes(plan.bodyFile, plan.headers);

function startClient(
  { cores, directory, load }: Bench,
  plan: ThroughputPlan,
  run: { readonly entry: Entry; readonly running: Running; readonly seconds: number },
): ReturnType<LoadClient['start']> {
  const { entry, running, seconds } = run;
  const { bodyFile, headers, path } = questionOf(plan, entry);
  return load.start({
    port: running.port,
    secure: running.secure,
    path: path ?? running.path,
    bodyFile,
    headers: { ...headers, ...running.headers },
    connections: plan.connections,
    callers: entry.callers,
    seconds,
    core: cores.load,
    directory,
  });
}
