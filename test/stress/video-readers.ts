import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { patternBytes } from '../../src/simulator/media/file.js';
import { seenWithin } from '../support/eventually.js';
import { type Growth, makeVideo, onMediaStage, origins, warmUp, watched } from './media-stage.js';
import { BodyReader, contentRequest } from './tasks-media.js';

interface VideoReadersPlan {
  readonly readers: number;
  readonly bytes: number;
  readonly bytesPerSecond: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
}

interface VideoReadersFigures extends Growth {
  readonly bytesRead: number;
  /** Readers that received any bytes. */
  readonly served: number;
  /** Readers that received a wrong byte, and those whose connection ended. */
  readonly wrong: number;
  readonly cut: number;
  /** Requests open at the upstream before the readers leave, and soon after. */
  readonly openBeforeLeaving: number;
  readonly openAfterLeaving: number;
}

interface Reader {
  readonly socket: Socket;
  readonly body: BodyReader;
  wrong: boolean;
  cut: boolean;
}

const leaveMs = 5000;
/** Pieces that a reader takes from the kernel in a second. */
const piecesPerSecond = 8;

/** Clients that read one large video much more slowly than it arrives, half of them through its URL. */
export function videoReaders(plan: VideoReadersPlan): Promise<VideoReadersFigures> {
  return onMediaStage(async (stage) => {
    await warmUp(stage, plan.warmUpSeconds);
    const ids = await Promise.all(origins.map((origin) => makeVideo(stage, origin, plan.bytes)));
    const { port } = stage.gateway;
    const open = (): number => stage.simulator.state().openRequests;
    const { result, growth } = await watched(stage, async () => {
      const readers = Array.from({ length: plan.readers }, (_, index) =>
        startReader(port, ids[index % ids.length] ?? '', plan.bytesPerSecond / piecesPerSecond),
      );
      await pause(plan.seconds * 1000);
      const openBeforeLeaving = open();
      const cut = readers.filter((reader) => reader.cut).length;
      for (const { socket } of readers) socket.destroy();
      await seenWithin(open, { fits: (count) => count === 0, withinMs: leaveMs, everyMs: 10 });
      return {
        bytesRead: readers.reduce((sum, { body }) => sum + body.bytes, 0),
        served: readers.filter(({ body }) => body.status === 200 && body.bytes > 0).length,
        wrong: readers.filter(({ wrong }) => wrong).length,
        cut,
        openBeforeLeaving,
        openAfterLeaving: open(),
      };
    });
    return { ...growth, ...result };
  });
}

/** Reads at most one piece at a time from the kernel. The rest stays there. */
function startReader(port: number, id: string, pieceBytes: number): Reader {
  const buffer = Buffer.alloc(pieceBytes);
  const socket = connect({
    port,
    host: '127.0.0.1',
    onread: {
      buffer,
      callback: (length) => {
        body.push(buffer.subarray(0, length));
        setTimeout(() => socket.resume(), 1000 / piecesPerSecond);
        return false;
      },
    },
  });
  let at = 0;
  const body = new BodyReader((bytes) => {
    if (!isPattern(bytes, at)) reader.wrong = true;
    at += bytes.length;
  });
  const reader: Reader = { socket, body, wrong: false, cut: false };
  const onCut = (): void => {
    reader.cut = true;
  };
  for (const event of ['error', 'end', 'close']) socket.on(event, onCut);
  socket.write(contentRequest(id));
  return reader;
}

/** Whether bytes are those of the pattern at a position. */
function isPattern(bytes: Buffer, from: number): boolean {
  let at = 0;
  for (const piece of patternBytes({ from, to: from + bytes.length })) {
    if (!bytes.subarray(at, at + piece.length).equals(piece)) return false;
    at += piece.length;
  }
  return true;
}
