import { setTimeout as wait } from 'node:timers/promises';
import type { Bench } from './bench.js';
import { callerAt } from './callers.js';
import type { Contender, Running } from './contenders/contender.js';
import { nginx } from './contenders/nginx.js';
import { startTransfer, type TransferPlan, type TransferResult } from './load/transfer.js';
import { type Shares, shares } from './measure.js';
import { type BenchUpstream, startUpstream } from './upstream-process.js';

export interface TransferWork {
  readonly direction: TransferPlan['direction'];
  /** Numbers of connections, each measured by itself. */
  readonly connections: readonly number[];
  readonly contenders: readonly Contender[];
  /** Gives the path that is asked of a contender that is up. */
  readonly pathOf: (running: Running) => Promise<string>;
}

export interface TransferSample extends TransferResult {
  readonly shares: Shares;
}

/** All samples of one contender with so many connections; `failure` says why there are none, or no more. */
export interface TransferSeries {
  readonly name: string;
  readonly connections: number;
  readonly samples: TransferSample[];
  failure: string | null;
}

/** The bench's contenders, and beside nginx the others that it can be, as its config says. */
export function mediaContenders(bench: Bench, others: readonly Parameters<typeof nginx>[1][]): Contender[] {
  const tool = bench.machine.nginx;
  return bench.contenders.flatMap((contender) =>
    contender.name === 'nginx' && tool ? others.map((other) => nginx(tool, other)) : [contender],
  );
}

/** Interleaved rounds as in `runRounds`: a fresh process each, in which all numbers of connections take their turn. */
export async function runTransfers(bench: Bench, work: TransferWork): Promise<readonly TransferSeries[]> {
  const upstream = await startUpstream({ engine: 'uws', core: bench.cores.upstream });
  const all = work.contenders.map((contender) => ({
    contender,
    series: work.connections.map(
      (connections): TransferSeries => ({ name: contender.name, connections, samples: [], failure: null }),
    ),
  }));
  const { rounds } = bench.options;
  for (let round = 0; round < rounds; round += 1) {
    for (const { contender, series } of round % 2 === 0 ? all : [...all].reverse()) {
      bench.progress(`round ${round + 1} of ${rounds}: ${contender.name}`);
      const open = series.filter(({ failure }) => failure === null);
      try {
        await measureOnce(bench, work, { contender, series: open, upstream });
      } catch (error) {
        for (const one of open) one.failure = error instanceof Error ? error.message : String(error);
      }
    }
  }
  await upstream.process.stop();
  return all.flatMap(({ series }) => series);
}

async function measureOnce(
  bench: Bench,
  work: TransferWork,
  turn: {
    readonly contender: Contender;
    readonly series: readonly TransferSeries[];
    readonly upstream: BenchUpstream;
  },
): Promise<void> {
  if (turn.series.length === 0) return;
  const { cores, options } = bench;
  const running = await startMedia(bench, turn.contender, turn.upstream);
  try {
    const path = await work.pathOf(running);
    for (const { connections, samples } of turn.series) {
      const client = await startTransfer(
        {
          direction: work.direction,
          port: running.port,
          path,
          ...callerAt(0),
          connections,
          warmUpSeconds: 1,
          seconds: options.seconds,
        },
        cores.load,
      );
      await client.warm;
      const parts = { contender: running.process, load: client.process, upstream: turn.upstream.process };
      const measured = await shares(options.seconds, parts, cores);
      samples.push({ ...(await client.result()), shares: measured });
      await client.process.exited;
      // What the client has left behind is let go before the next one comes.
      await wait(200);
    }
  } finally {
    await running.process?.stop();
  }
}

/** Starts a contender in front of the media of the bench's upstream. */
export function startMedia(bench: Bench, contender: Contender, upstream: BenchUpstream): Promise<Running> {
  return contender.start({
    upstreamPort: upstream.port,
    answer: 'media',
    directory: bench.directory,
    core: bench.cores.contender,
  });
}
