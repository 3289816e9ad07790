import type { Bench } from './bench.js';
import type { Caller } from './callers.js';
import { certificateFiles } from './certificate.js';
import type { Contender, Setup, Wiring } from './contenders/contender.js';
import type { LoadResult } from './load/load.js';
import { type Shares, shares } from './measure.js';
import { asItComes, probe, type Question } from './probe.js';
import { type BenchUpstream, startUpstream } from './upstream-process.js';

const usualWarmUpSeconds = 2;

export interface ThroughputPlan extends Wiring {
  readonly answer: 'json' | 'late' | 'sse' | 'drip';
  readonly engine: 'net' | 'uws';
  readonly bodyFile: string;
  /** Of the requests, beside those that every one has. */
  readonly headers?: Question['headers'] | undefined;
  readonly connections: number;
  /** Before what is measured; two unless given. */
  readonly warmUpSeconds?: number | undefined;
}

/** One who takes part, with what is special about its config. */
export interface Entry {
  readonly name: string;
  readonly contender: Contender;
  readonly catalogue?: Setup['catalogue'];
  readonly callers: readonly Caller[];
  /** What it is asked in place of the plan's body and headers, for an answer that is not the upstream's own. */
  readonly question?: Question & { readonly path?: string };
}

export interface Sample extends LoadResult {
  readonly shares: Shares;
}

/** All samples of one entry; `failure` says why there are none, or no more. */
export interface Series {
  readonly name: string;
  readonly samples: Sample[];
  failure: string | null;
}

/**
 * Interleaved rounds (A B C, C B A, …): each measurement has a fresh process, a probe of its answer, a warm-up and
 * then the run itself.
 * @returns one series for each entry, in their order; an entry that fails drops out and the others go on
 */
export async function runRounds(
  bench: Bench,
  plan: ThroughputPlan,
  entries: readonly Entry[],
): Promise<readonly Series[]> {
  const upstream = await startUpstream({
    engine: plan.engine,
    core: bench.cores.upstream,
    certificate: plan.upstreamTls ? certificateFiles(bench.directory) : null,
  });
  const all = entries.map((entry) => ({
    entry,
    series: { name: entry.name, samples: [], failure: null } as Series,
  }));
  for (let round = 0; round < bench.options.rounds; round += 1) {
    const order = round % 2 === 0 ? all : [...all].reverse();
    for (const { entry, series } of order) {
      if (series.failure !== null) continue;
      bench.progress(`round ${round + 1} of ${bench.options.rounds}: ${entry.name}`);
      try {
        series.samples.push(await measureOnce(bench, plan, entry, upstream));
      } catch (error) {
        series.failure = error instanceof Error ? error.message : String(error);
      }
    }
  }
  await upstream.process.stop();
  return all.map(({ series }) => series);
}

/** Every caller has called once in a warm-up where so many calls are made, as most machines make. */
const callsPerSecond = 10_000;

async function measureOnce(
  bench: Bench,
  plan: ThroughputPlan,
  entry: Entry,
  upstream: BenchUpstream,
): Promise<Sample> {
  const { cores, directory, load, options } = bench;
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
    const question = entry.question ?? asItComes(plan.bodyFile, plan.headers);
    await probe({ ...running, path: entry.question?.path ?? running.path }, question);
    const run = (seconds: number) =>
      load.start({
        port: running.port,
        secure: running.secure,
        path: entry.question?.path ?? running.path,
        bodyFile: question.bodyFile,
        headers: question.headers,
        connections: plan.connections,
        callers: entry.callers,
        seconds,
        core: cores.load,
        directory,
      });
    const usual = options.seconds > 1 ? (plan.warmUpSeconds ?? usualWarmUpSeconds) : 1;
    const warmUp = await run(usual + Math.floor(entry.callers.length / callsPerSecond));
    await warmUp.result;
    await warmUp.process.exited;
    const client = await run(options.seconds);
    const parts = { contender: running.process, load: client.process, upstream: upstream.process };
    const [measured, result] = await Promise.all([shares(options.seconds, parts, cores), client.result]);
    await client.process.exited;
    return { ...result, shares: measured };
  } finally {
    await running.process?.stop();
  }
}
