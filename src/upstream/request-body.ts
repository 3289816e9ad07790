/** Writes a request body while it is still arriving: framing, copies, and backpressure of the upstream. */
import { writeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { type HeadLines, headText } from '../wire/head.js';
import type { RequestBodySink, RequestBodySource, UpstreamRequest } from './types.js';

/** Bounds on the size of the staging buffer, so that data that arrives in one piece is sent in one piece. */
const leastStaged = 64 * 1024;
const mostCopied = 512 * 1024;
/** Room for the size of a chunk and the line ends around its data. */
const framingBytes = 16;
const mostStaged = mostCopied + framingBytes;

const lastChunk = '0\r\n\r\n';

/** The connection that a body is written to. */
export interface RequestBodyOwner {
  readonly socket: Socket;
  /** True when writes are encrypted before they are sent. */
  readonly secure: boolean;
  /** Called when what the body waits for may have changed. */
  onBodyProgress(): void;
  /** Called when the source has broken the rules of `RequestBodySink`. Its last write was not sent. */
  onBodyMistake(detail: string): void;
  /** Called when the source has thrown. */
  onBodyThrown(fault: unknown): void;
}

type WriteDone = (error?: Error | null) => void;

/** States: `pieces` (initial pieces are written) -> `open` (the source writes) -> `ended` -> `closed` */
export class RequestBody implements RequestBodySink {
  /**
   * True while the upstream has not accepted what was written. One more write is allowed, which was already on its way.
   */
  isBlocked = false;
  readonly #owner: RequestBodyOwner;
  readonly #socket: Socket;
  /** The socket's descriptor if the body is written to the system unchanged; else -1. */
  readonly #fd: number;
  readonly #source: RequestBodySource;
  readonly #head: HeadLines;
  readonly #pieces: readonly Buffer[];
  readonly #chunked: boolean;
  /** Bytes of the announced length that have not been written. */
  #remaining: number;
  #state: 'pieces' | 'open' | 'ended' | 'closed' = 'pieces';
  #nextPiece = 0;
  /** True when one write has followed since the body was blocked. */
  #overrun = false;
  /** True once a write has failed: nothing more is sent, but an answer may still be read. */
  #failed = false;
  #staging: Buffer | null = null;
  /** Number of bytes of the staging buffer that the socket may still read from. */
  #staged = 0;
  /** The part of the staging buffer that the system has not accepted and that the socket has not been given yet. */
  #unsent: Buffer | null = null;
  #handsOver = false;
  #writeDone: WriteDone | null = null;

  constructor(owner: RequestBodyOwner, request: UpstreamRequest, source: RequestBodySource) {
    const { length } = source;
    this.#owner = owner;
    this.#socket = owner.socket;
    this.#source = source;
    this.#head = headText(request.head);
    this.#pieces = request.body;
    this.#chunked = length === -1;
    this.#fd = owner.secure || this.#chunked ? -1 : descriptorOf(owner.socket);
    this.#remaining = this.#chunked ? Number.POSITIVE_INFINITY : length;
  }

  /** True when the whole body was written, and the socket keeps up. */
  get isWritten(): boolean {
    return this.#state === 'ended' && !this.isBlocked;
  }

  /** True when the whole body was handed to the socket, which may not have written it yet. */
  get isHandedOver(): boolean {
    return this.#state === 'ended' && !this.#failed;
  }

  /** Writes the head with its framing, then the initial pieces. The connection must not have been used before. */
  start(): void {
    this.#outliveWriteFailures();
    this.#socket.on('drain', this.#onDrain);
    const framing = this.#chunked ? 'transfer-encoding: chunked' : `content-length: ${this.#remaining}`;
    this.#send(`${this.#head}${framing}\r\n\r\n`);
    this.#goOn();
  }

  write(chunk: Buffer): boolean {
    if (this.#state === 'closed') return true;
    if (this.#failed) return false;
    if (chunk.length === 0) return !this.isBlocked;
    if (this.#overrun) return this.#refuse('more of the request body came than was asked for');
    if (!this.#isExpected(chunk)) return true;
    this.#overrun = this.isBlocked;
    this.#put(chunk);
    if (this.isBlocked) this.#owner.onBodyProgress();
    return !this.isBlocked;
  }

  flush(): void {
    const unsent = this.#unsent;
    if (unsent === null || this.#failed || !this.#isDirect()) return;
    const taken = this.#writeThrough(unsent);
    this.#unsent = taken < unsent.length ? unsent.subarray(taken) : null;
    if (this.#unsent === null) this.#onDrain();
  }

  end(): void {
    if (this.#state !== 'open') return;
    if (!this.#chunked && this.#remaining > 0) {
      this.#refuse(`the request body ended ${this.#remaining} bytes too early`);
      return;
    }
    this.#state = 'ended';
    this.#handOver();
    if (this.#chunked && !this.#failed) this.#send(lastChunk);
    this.#owner.onBodyProgress();
  }

  /** Called at the end of the exchange. Nothing is called or sent after this, and the socket's methods are restored. */
  close(): void {
    this.#state = 'closed';
    this.#staging = null;
    this.#unsent = null;
    this.#socket.off('drain', this.#onDrain);
    Reflect.deleteProperty(this.#socket, '_write');
    Reflect.deleteProperty(this.#socket, '_writev');
  }

  readonly #onDrain = (): void => {
    if (!this.isBlocked || this.#failed) return;
    this.isBlocked = false;
    this.#overrun = false;
    this.#goOn();
  };

  /** Writes the initial pieces, then has the source continue. */
  #goOn(): void {
    try {
      if (this.#state === 'pieces') this.#writePieces();
      else if (this.#state === 'open') this.#source.onDrain();
      this.#owner.onBodyProgress();
    } catch (error) {
      this.#owner.onBodyThrown(error);
    }
  }

  #writePieces(): void {
    while (!this.isBlocked) {
      const piece = this.#pieces[this.#nextPiece];
      if (piece === undefined) break;
      this.#nextPiece++;
      if (!this.#isExpected(piece)) return;
      this.#put(piece);
    }
    if (this.isBlocked) return;
    this.#state = 'open';
    this.#source.onOpen(this);
  }

  /** Counts bytes. @returns false when they exceed the announced length, for which the exchange has failed */
  #isExpected(chunk: Buffer): boolean {
    if (this.#state === 'ended' || chunk.length > this.#remaining) {
      this.#refuse('the request body is longer than announced');
      return false;
    }
    this.#remaining -= chunk.length;
    return true;
  }

  #refuse(detail: string): true {
    this.#owner.onBodyMistake(detail);
    return true;
  }

  #put(chunk: Buffer): void {
    this.#handOver();
    let at = 0;
    if (this.#isDirect()) {
      at = this.#writeThrough(chunk);
      if (this.#failed || at === chunk.length) return;
      if (chunk.length - at <= mostCopied) {
        this.#hold(chunk.subarray(at));
        return;
      }
    }
    for (; at < chunk.length && !this.#failed; at += mostCopied) {
      this.#copy(chunk, at, Math.min(chunk.length, at + mostCopied));
    }
  }

  /**
   * Holds what the system did not accept until the end of the turn. The system may accept it when more arrives in the
   * same turn, whereas data that was handed to the socket is sent in a later turn.
   */
  #hold(rest: Buffer): void {
    const staging = this.#room(rest.length);
    this.#staged = rest.copy(staging);
    this.#unsent = staging.subarray(0, rest.length);
    this.isBlocked = true;
    if (this.#handsOver) return;
    this.#handsOver = true;
    setImmediate(this.#onTurnEnd);
  }

  readonly #onTurnEnd = (): void => {
    this.#handsOver = false;
    if (this.#state === 'closed') return;
    this.#handOver();
    // The socket did not signal backpressure, so no `drain` will follow.
    if (!this.#socket.writableNeedDrain) this.#onDrain();
  };

  /** Hands to the socket what was held. */
  #handOver(): void {
    const unsent = this.#unsent;
    if (unsent === null || this.#failed) return;
    this.#unsent = null;
    this.#send(unsent);
  }

  /** Whether the next write may go to the system directly. */
  #isDirect(): boolean {
    return this.#fd >= 0 && this.#socket.writableLength === 0 && this.#socket.writable;
  }

  /**
   * Writes to the system without a copy as much as it accepts immediately. Requires `#isDirect`. A stream's own `write`
   * may retain a part of the chunk, which is memory of uWS here and would have to be copied. Measured in two pairs of
   * runs, that costs 26 % of the CPU time of one upload, and 9 % with eight concurrent ones.
   * @returns the number of bytes written
   */
  #writeThrough(chunk: Buffer): number {
    try {
      return writeSync(this.#fd, chunk);
    } catch (error) {
      if (!isFull(error)) this.#fail();
      return 0;
    }
  }

  #copy(chunk: Buffer, start: number, end: number): void {
    const staging = this.#room(end - start + framingBytes);
    const from = this.#staged;
    let at = from;
    if (this.#chunked) at += staging.write(`${(end - start).toString(16)}\r\n`, at, 'latin1');
    at += chunk.copy(staging, at, start, end);
    if (this.#chunked) at += staging.write('\r\n', at, 'latin1');
    this.#staged = at;
    this.#send(staging.subarray(from, at));
  }

  /** Returns a buffer with room after `#staged`: the last one, if the socket does not read from that part. */
  #room(bytes: number): Buffer {
    if (this.#socket.writableLength === 0) this.#staged = 0;
    const last = this.#staging;
    if (last !== null && last.length - this.#staged >= bytes) return last;
    const size = Math.min(
      mostStaged,
      Math.max(last?.length ?? leastStaged, 2 ** Math.ceil(Math.log2(bytes))),
    );
    this.#staging = Buffer.allocUnsafeSlow(size);
    this.#staged = 0;
    return this.#staging;
  }

  #send(bytes: Buffer | string): void {
    const socket = this.#socket;
    // Not writable: the upstream has ended its side, and the socket therefore its own.
    if (!socket.writable) this.#fail();
    else if (!socket.write(bytes, 'latin1')) this.isBlocked = true;
  }

  #fail(): void {
    this.#failed = true;
    this.isBlocked = true;
  }

  /**
   * Keeps the socket readable after a failed write. An upstream that refuses a body answers, and closes while the body
   * is still being sent. On the first failed write, the socket would destroy itself together with the unread answer.
   * Therefore a failed write is never reported to the stream: it stays unfinished, and reading continues until the
   * upstream's end.
   */
  #outliveWriteFailures(): void {
    const socket = this.#socket;
    const { _write: write, _writev: writev } = socket;
    socket._write = (data, encoding, done) => {
      this.#writeDone = done;
      write.call(socket, data, encoding, this.#onWritten);
    };
    if (writev === undefined) return;
    socket._writev = (pieces, done) => {
      this.#writeDone = done;
      writev.call(socket, pieces, this.#onWritten);
    };
  }

  readonly #onWritten: WriteDone = (error) => {
    const done = this.#writeDone;
    if (!error || this.#state === 'closed') {
      done?.(error);
      return;
    }
    this.#fail();
    this.#owner.onBodyProgress();
  };
}

/** @returns the descriptor of a connected socket, or -1 on systems without one */
function descriptorOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return -1;
  return typeof handle.fd === 'number' ? handle.fd : -1;
}

/** Whether the system accepts no more for now. */
const isFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EAGAIN';
