import type { Bench } from './bench.js';
import { callerAt } from './callers.js';
import type { Contender, Running } from './contenders/contender.js';
import { nginx } from './contenders/nginx.js';
import { startTransfer, type TransferPlan, type TransferResult } from './load/transfer.js';
import { runTurns, type TurnSample } from './turns.js';
import type { BenchUpstream } from './upstream-process.js';

interface TransferWork {
  readonly direction: TransferPlan['direction'];
  /** Numbers of connections, each measured separately. */
  readonly connections: readonly number[];
  readonly contenders: readonly Contender[];
  /** Returns the path that is requested of a running contender. */
  readonly pathOf: (running: Running) => Promise<string>;
}

export type TransferSample = TurnSample<TransferResult>;

/** All samples of one contender with a number of connections. `failure` says why there are none, or no more. */
export interface TransferSeries {
  readonly name: string;
  readonly connections: number;
  readonly samples: readonly TransferSample[];
  readonly failure: string | null;
}

/** Returns the bench's contenders, with the other configurations of nginx. */
export function mediaContenders(bench: Bench, others: readonly Parameters<typeof nginx>[1][]): Contender[] {
  const tool = bench.machine.nginx;
  return bench.contenders.flatMap((contender) =>
    contender.name === 'nginx' && tool ? others.map((other) => nginx(tool, other)) : [contender],
  );
}

/** Runs interleaved rounds like `runTurns`. Each number of connections is a load. */
export async function runTransfers(bench: Bench, work: TransferWork): Promise<readonly TransferSeries[]> {
  const all = await runTurns<number, TransferResult>(bench, {
    answer: 'media',
    contenders: work.contenders,
    loads: work.connections,
    prepare: async (running) => {
      const path = await work.pathOf(running);
      const { direction } = work;
      const timing = { warmUpSeconds: 1, seconds: bench.options.seconds };
      return (connections) =>
        startTransfer(
          { direction, port: running.port, path, ...callerAt(0), connections, ...timing },
          bench.cores.load,
        );
    },
  });
  return all.map(({ load, ...series }) => ({ ...series, connections: load }));
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
