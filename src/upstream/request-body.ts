/** A request body that is written while it still arrives: its framing, its copies, and its upstream's backpressure. */
import { writeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { HeadLines } from '../wire/head.js';
import { headText } from '../wire/head.js';
import type { RequestBodySink, RequestBodySource, UpstreamRequest } from './types.js';

/** What is copied at once has at least room for so many bytes, and at most: what comes in one piece leaves in one. */
const leastStaged = 64 * 1024;
const mostCopied = 512 * 1024;
/** Room for the size of a chunk and the line ends around its data. */
const framingBytes = 16;
const mostStaged = mostCopied + framingBytes;

const lastChunk = '0\r\n\r\n';

/** The connection that a body is written to. */
export interface RequestBodyOwner {
  readonly socket: Socket;
  /** What is written to the socket is encrypted first. */
  readonly secure: boolean;
  /** What the body waits for may have changed. */
  onBodyProgress(): void;
  /** The source does not keep to the rules: what it wrote last was not sent. */
  onBodyMistake(detail: string): void;
  /** The source has thrown. */
  onBodyThrown(fault: unknown): void;
}

type WriteDone = (error?: Error | null) => void;

/** `pieces` (what was there before) -> `open` (the source writes) -> `ended` -> `closed` */
export class RequestBody implements RequestBodySink {
  /** The upstream has not taken what was written: nothing more may be, but for one write that was on its way. */
  isBlocked = false;
  readonly #owner: RequestBodyOwner;
  readonly #socket: Socket;
  /** The socket's descriptor, where what is written reaches the system as it is; else -1. */
  readonly #fd: number;
  readonly #source: RequestBodySource;
  readonly #head: HeadLines;
  readonly #pieces: readonly Buffer[];
  readonly #chunked: boolean;
  /** Bytes of the announced length that are still to come. */
  #remaining: number;
  #state: 'pieces' | 'open' | 'ended' | 'closed' = 'pieces';
  #nextPiece = 0;
  /** One write has come since the body is blocked. */
  #overrun = false;
  /** A write has failed: nothing more is sent, but an answer may still be read. */
  #failed = false;
  #staging: Buffer | null = null;
  /** Bytes of the staging buffer that the socket may still read from. */
  #staged = 0;
  /** What of the staging buffer the system did not take, and the socket has not been handed yet. */
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

  /** All of it was written, and the socket keeps up. */
  get isWritten(): boolean {
    return this.#state === 'ended' && !this.isBlocked;
  }

  /** All of it was handed to the socket, which may not have written it yet. */
  get isHandedOver(): boolean {
    return this.#state === 'ended' && !this.#failed;
  }

  /** Writes the head with its framing, then what is there of the body. The connection must not have been used before. */
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

  /** The exchange is over: nothing is called or sent any more, and the socket is as it was. */
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

  /** Writes the pieces that were there before, then asks the source. */
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

  /** Counts bytes in. @returns false when there should be none, and the exchange has been failed for it */
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
   * Keeps what the system did not take to the end of the turn: it may take it when more comes in the same turn, and what
   * the socket has been handed can only leave in a later one.
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
    // The socket did not ask to be waited for: no `drain` will come.
    if (!this.#socket.writableNeedDrain) this.#onDrain();
  };

  /** Leaves to the socket what was kept. */
  #handOver(): void {
    const unsent = this.#unsent;
    if (unsent === null || this.#failed) return;
    this.#unsent = null;
    this.#send(unsent);
  }

  /** What is written next may reach the system as it is. */
  #isDirect(): boolean {
    return this.#fd >= 0 && this.#socket.writableLength === 0 && this.#socket.writable;
  }

  /**
   * Hands to the system what it takes at once, without a copy: must be called only where `#isDirect`. A stream's own write
   * may keep a part of what it is given, which here is memory of uWS (measured in two pairs of runs: 26 % of the CPU time
   * of one upload, 9 % where there are eight at once).
   * @returns how many bytes of it
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

  /** Gives a buffer with room after `#staged`: the last one, where the socket does not read from that room. */
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
    // The upstream has ended its side, and the socket therefore its own.
    if (!socket.writable) this.#fail();
    else if (!socket.write(bytes, 'latin1')) this.isBlocked = true;
  }

  #fail(): void {
    this.#failed = true;
    this.isBlocked = true;
  }

  /**
   * An upstream that refuses a body answers, and closes while it is still being sent. The first write that fails would
   * make the socket destroy itself, and the answer that waits to be read with it. So a failed write is never reported
   * to the stream: it stays unfinished, and the reading goes on until the upstream's end.
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

/** @returns the descriptor of a connected socket, or -1 where the system has none */
function descriptorOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return -1;
  return typeof handle.fd === 'number' ? handle.fd : -1;
}

/** The system takes no more for now. */
const isFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EAGAIN';
