import { setTimeout as wait } from 'node:timers/promises';
import type { Bench } from './bench.js';
import { certificateFiles } from './certificate.js';
import type { Contender, Running, Wiring } from './contenders/contender.js';
import type { WarmingClient } from './load/script.js';
import { type Shares, shares } from './measure.js';
import { type BenchUpstream, startUpstream } from './upstream-process.js';

/** A work whose client keeps its connections open, and does its own warm-up. */
interface Turns<Load, Result> {
  /** The answer of the bench's upstream, see `Setup`. */
  readonly answer: string;
  readonly wiring?: Wiring;
  readonly contenders: readonly Contender[];
  /** Each is measured separately. */
  readonly loads: readonly Load[];
  /** Whether to skip a load that says nothing about a contender. */
  readonly skips?: (contender: Contender, load: Load) => boolean;
  /** Called for a running contender. Returns a function that starts the client of a load. */
  readonly prepare: (running: Running) => Promise<(load: Load) => Promise<WarmingClient<Result>>>;
}

export type TurnSample<Result> = Result & { readonly shares: Shares };

/** All samples of one contender under one load. `failure` says why there are none, or no more. */
export interface TurnSeries<Load, Result> {
  readonly name: string;
  readonly load: Load;
  readonly samples: TurnSample<Result>[];
  failure: string | null;
}

/** Runs interleaved rounds as in `runRounds`: a fresh process in each, in which all loads take turns. */
export async function runTurns<Load, Result>(
  bench: Bench,
  turns: Turns<Load, Result>,
): Promise<readonly TurnSeries<Load, Result>[]> {
  const upstream = await startUpstream({
    engine: 'uws',
    core: bench.cores.upstream,
    certificate: turns.wiring?.upstreamTls ? certificateFiles(bench.directory) : null,
  });
  const all = turns.contenders.map((contender) => ({
    contender,
    series: turns.loads
      .filter((load) => !turns.skips?.(contender, load))
      .map((load): TurnSeries<Load, Result> => ({ name: contender.name, load, samples: [], failure: null })),
  }));
  const { rounds } = bench.options;
  for (let round = 0; round < rounds; round += 1) {
    for (const { contender, series } of round % 2 === 0 ? all : [...all].reverse()) {
      bench.progress(`round ${round + 1} of ${rounds}: ${contender.name}`);
      const open = series.filter(({ failure }) => failure === null);
      try {
        await measureOnce(bench, turns, { contender, series: open, upstream });
      } catch (error) {
        for (const one of open) one.failure = error instanceof Error ? error.message : String(error);
      }
    }
  }
  await upstream.process.stop();
  return all.flatMap(({ series }) => series);
}

async function measureOnce<Load, Result>(
  bench: Bench,
  { answer, wiring, prepare }: Turns<Load, Result>,
  turn: {
    readonly contender: Contender;
    readonly series: readonly TurnSeries<Load, Result>[];
    readonly upstream: BenchUpstream;
  },
): Promise<void> {
  if (turn.series.length === 0) return;
  const { cores, directory, options } = bench;
  const { contender, upstream } = turn;
  const setup = { upstreamPort: upstream.port, answer, directory, core: cores.contender, ...wiring };
  const running = await contender.start(setup);
  try {
    const start = await prepare(running);
    for (const { load, samples } of turn.series) {
      const client = await start(load);
      await client.warm;
      const parts = { contender: running.process, load: client.process, upstream: upstream.process };
      const measured = await shares(options.seconds, parts, cores);
      samples.push({ ...(await client.result()), shares: measured });
      await client.process.exited;
      // Time to release what the client has left, before the next client starts.
      await wait(200);
    }
  } finally {
    await running.process?.stop();
  }
}
