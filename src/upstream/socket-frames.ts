/** Writes frames to upstreams (RFC 6455 section 5.2): data frames in batches, control frames one by one. */
import { randomFillSync } from 'node:crypto';
import type { Socket } from 'node:net';
import { type Guarded, handFault } from '../errors.js';

/** The connection that frames are written to. */
export interface FrameSink extends Guarded {
  readonly raw: Socket;
  /** False once the socket closes: no data frame may follow a close frame. */
  readonly takesFrames: boolean;
  /** Number of bytes of this sink in the batch. */
  batched: number;
}

interface FrameWriter {
  /** Copies a message into a frame, which is sent now or at the end of the turn. */
  write(sink: FrameSink, data: Uint8Array, isBinary: boolean): void;
  /** Sends the frames that wait. */
  flush(): void;
}

/** Size of the buffer for the small frames of one turn of the event loop. When it is full, the batch is sent early. */
const batchBytes = 64 * 1024;
/** Messages above this size get a buffer of their own, since a shared write would gain little. */
const shareLimit = 16 * 1024;
const maxHeadBytes = 14;
/** Below this length, masking by words costs more than masking by bytes. */
const minWordBytes = 16;
const textHead = 0x81;
const binaryHead = 0x82;
const controlHeads = { close: 0x88, ping: 0x89, pong: 0x8a };
const masked = 0x80;

/**
 * Creates a writer that sends the frames of a turn together, with one write for each run of frames of the same socket.
 * This happens at the end of the turn, not in the next tick: ticks run after the callback of each message of a client.
 */
export function createFrameWriter(): FrameWriter {
  const sinks: FrameSink[] = [];
  const starts: number[] = [];
  let batch = Buffer.allocUnsafeSlow(batchBytes);
  let words = new Int32Array(batch.buffer);
  let used = 0;
  /**
   * True when a socket whose data the system has not fully accepted may still read from the batch, which is not reused.
   */
  let kept = false;
  let armed = false;

  const flush = (): void => {
    const count = sinks.length;
    for (let i = 0; i < count; i++) {
      const sink = sinks[i] as FrameSink;
      sink.batched = 0;
      if (!sink.takesFrames) continue;
      try {
        sink.raw.write(batch.subarray(starts[i] as number, i + 1 < count ? starts[i + 1] : used));
      } catch (fault) {
        handFault(sink, 'upstream', fault);
      }
      kept ||= sink.raw.writableLength > 0;
    }
    sinks.length = 0;
    starts.length = 0;
    if (!kept) used = 0;
  };
  const renew = (): void => {
    batch = Buffer.allocUnsafeSlow(batchBytes);
    words = new Int32Array(batch.buffer);
    used = 0;
    kept = false;
  };
  const onTurnEnd = (): void => {
    armed = false;
    flush();
  };

  return {
    write(sink, data, isBinary) {
      const head = isBinary ? binaryHead : textHead;
      const size = data.length + maxHeadBytes;
      if (data.length > shareLimit) {
        if (sink.batched > 0) flush();
        const own = Buffer.allocUnsafeSlow((size + 3) & ~3);
        const end = putFrame(own, new Int32Array(own.buffer), 0, head, data);
        sink.raw.write(own.subarray(0, end));
        return;
      }
      if (used + size > batchBytes) {
        flush();
        if (kept) renew();
      }
      if (sinks[sinks.length - 1] !== sink) {
        sinks.push(sink);
        starts.push(used);
      }
      const end = putFrame(batch, words, used, head, data);
      sink.batched += end - used;
      used = end;
      if (armed) return;
      armed = true;
      setImmediate(onTurnEnd);
    },
    flush,
  };
}

/**
 * Creates a control frame.
 * @param payload at most 125 bytes
 */
export function controlFrame(kind: 'close' | 'ping' | 'pong', payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafeSlow((maxHeadBytes + payload.length + 3) & ~3);
  return frame.subarray(0, putFrame(frame, new Int32Array(frame.buffer), 0, controlHeads[kind], payload));
}

const maskPool = Buffer.alloc(8 * 1024);
let maskAt = maskPool.length;
/** The mask of the current frame, rotated to be aligned with words. */
const turned = Buffer.allocUnsafeSlow(4);
const turnedWord = new Int32Array(turned.buffer);

/**
 * Writes a whole frame.
 * @param words the same memory, which must start at offset 0 of its `ArrayBuffer`
 * @returns the offset of the frame's end
 */
function putFrame(target: Buffer, words: Int32Array, start: number, head: number, data: Uint8Array): number {
  const length = data.length;
  let at = start;
  target[at++] = head;
  if (length < 126) {
    target[at++] = masked | length;
  } else if (length < 0x10000) {
    target[at++] = masked | 126;
    at = target.writeUInt16BE(length, at);
  } else {
    target[at++] = masked | 127;
    target[at++] = 0;
    target[at++] = 0;
    at = target.writeUIntBE(length, at, 6);
  }
  // The author of the message must not be able to predict the mask (RFC 6455 section 10.3).
  if (maskAt === maskPool.length) {
    randomFillSync(maskPool);
    maskAt = 0;
  }
  const mask = at;
  for (let i = 0; i < 4; i++) target[at++] = maskPool[maskAt++] as number;
  target.set(data, at);
  const end = at + length;
  if (length < minWordBytes) {
    maskBytes(target, mask, at, at, end);
    return end;
  }
  const firstWord = (at + 3) >> 2;
  const lastWord = end >> 2;
  const aligned = firstWord << 2;
  maskBytes(target, mask, at, at, aligned);
  for (let i = 0; i < 4; i++) turned[i] = target[mask + ((aligned - at + i) & 3)] as number;
  const word = turnedWord[0] as number;
  for (let i = firstWord; i < lastWord; i++) words[i] = (words[i] as number) ^ word;
  maskBytes(target, mask, at, lastWord << 2, end);
  return end;
}

/** Masks `[from, end)` of the payload that begins at `payload`. */
function maskBytes(target: Buffer, mask: number, payload: number, from: number, end: number): void {
  for (let i = from; i < end; i++) {
    target[i] = (target[i] as number) ^ (target[mask + ((i - payload) & 3)] as number);
  }
}
