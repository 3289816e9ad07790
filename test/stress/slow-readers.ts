import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { startLoad } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { residentMb, watchMemory } from '../support/process-memory.js';
import { onStage, type Stage } from './stage.js';

export interface SlowReadersPlan {
  readonly readers: number;
  readonly bytesPerSecond: number;
  readonly streamMegabytes: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** How long the upstream may have requests open after all clients have left. */
  readonly withinMs: number;
  /** Makes the requests of the readers, in turn, for a stream of this many megabytes. Default: chat requests. */
  readonly requests?: (megabytes: number) => readonly Buffer[];
}

export interface SlowReadersFigures {
  /** Resident memory of the worker after ordinary traffic, before the slow readers. */
  readonly beforeMb: number;
  readonly highestMb: number;
  readonly bytesRead: number;
  /** Readers whose connection ended before they left. */
  readonly cut: number;
  readonly openBeforeLeaving: number;
  /** Requests still open at the upstream that long after all clients have left. */
  readonly openAfterLeaving: number;
  readonly cancelled: number;
  /** Different values of `x-gateway-path` that the readers received. */
  readonly paths: readonly string[];
}

interface Reader {
  readonly socket: Socket;
  /** The first bytes, including the head of the answer. */
  head: string;
  bytes: number;
  cut: boolean;
}

const ordinary = [loadRequest({ does: 'complete' }), loadRequest({ does: 'stream', events: 10, everyMs: 5 })];
const floods = (megabytes: number): readonly Buffer[] => [loadRequest({ does: 'flood', megabytes })];

/** Clients that read much more slowly than the upstream writes, for a while, and then leave. */
export function slowReaders(plan: SlowReadersPlan): Promise<SlowReadersFigures> {
  return onStage({}, async (stage) => {
    const requests = plan.requests ?? floods;
    const warmUp = startLoad({
      port: stage.gateway.port,
      connections: 32,
      requests: [...ordinary, ...requests(1)],
    });
    await pause(plan.warmUpSeconds * 1000);
    await warmUp.stop();
    const beforeMb = residentMb(stage.worker);
    const memory = watchMemory(stage.worker);
    const sent = requests(plan.streamMegabytes);
    const readers = Array.from({ length: plan.readers }, (_, index) =>
      startReader(stage, plan, sent[index % sent.length] as Buffer),
    );
    await pause(plan.seconds * 1000);
    const highestMb = Math.max(...memory.stop());
    const { open } = await stage.upstream.state();
    const cut = readers.filter((reader) => reader.cut).length;
    for (const reader of readers) reader.socket.destroy();
    const left = await stage.upstream.stateWhen((state) => state.open === 0, plan.withinMs);
    return {
      beforeMb,
      highestMb,
      bytesRead: readers.reduce((sum, reader) => sum + reader.bytes, 0),
      cut,
      openBeforeLeaving: open,
      openAfterLeaving: left.open,
      cancelled: left.cancelled.length,
      paths: [...new Set(readers.map(({ head }) => /^x-gateway-path: (.*)$/m.exec(head)?.[1] ?? 'none'))],
    };
  });
}

/** Reads at most one piece a second from the kernel. The rest stays there. */
function startReader(stage: Stage, plan: SlowReadersPlan, request: Buffer): Reader {
  const socket = connect({
    port: stage.gateway.port,
    host: '127.0.0.1',
    onread: {
      buffer: Buffer.alloc(plan.bytesPerSecond),
      callback: (length, piece) => {
        if (reader.bytes === 0) reader.head = Buffer.from(piece).toString('latin1', 0, length);
        reader.bytes += length;
        setTimeout(() => socket.resume(), 1000);
        return false;
      },
    },
  });
  const reader: Reader = { socket, head: '', bytes: 0, cut: false };
  const onCut = (): void => {
    reader.cut = true;
  };
  socket.on('error', onCut);
  socket.on('end', onCut);
  socket.on('close', onCut);
  socket.write(request);
  return reader;
}
