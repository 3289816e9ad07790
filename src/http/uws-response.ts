import type { HttpResponse } from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import { guard, handFault, surfaceFault } from '../errors.js';
import { isBodyless } from '../wire/head.js';
import type { AnswerHead, ChunkReceiver, ClientLink, LinkOwner } from './client-link.js';
import { SizedAnswer, type SizedState } from './sized.js';

/** Something to write at the end of the turn of the event loop. */
interface TurnSink {
  /** Writes it. @param bytes what was added for it; valid only until this returns */
  writeHeld(bytes: Buffer): void;
}

/** Larger pieces are written immediately, since copying them costs more than it saves. */
export const mostHeldBytes = 4096;
/** Size of the buffer for the pieces of one turn. A piece that does not fit flushes it early. */
const batchBytes = 128 * 1024;

/**
 * Collects small responses and small pieces of streams, and writes them at the end of the turn of the event loop.
 * Reading all input and then writing all output costs less than alternating: clients wake up once for many pieces, and
 * each half stays in the processor's caches (measured with 300 streams: 7 % of the CPU time of an event).
 */
export class TurnWrites {
  readonly #batch = Buffer.allocUnsafeSlow(batchBytes);
  #used = 0;
  readonly #sinks: TurnSink[] = [];
  /** Offset of each piece. */
  readonly #starts: number[] = [];
  /** Index of the next piece to write. Writing one may end other responses, and thereby flush again. */
  #next = 0;
  #armed = false;

  /** Flushes if a piece of this size, at most `mostHeldBytes`, does not fit. */
  makeRoom(bytes: number): void {
    if (this.#used + bytes > batchBytes) this.flush();
  }

  /** Copies a piece for which `makeRoom` was called immediately before. @param size bytes of the piece */
  add(sink: TurnSink, bytes: Buffer | string, size: number): void {
    const sinks = this.#sinks;
    const last = sinks.length - 1;
    if (last < this.#next || sinks[last] !== sink) {
      sinks.push(sink);
      this.#starts.push(this.#used);
    }
    if (typeof bytes === 'string') this.#batch.write(bytes, this.#used);
    else this.#batch.set(bytes, this.#used);
    this.#used += size;
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(this.#onTurnEnd);
  }

  /** Writes all pieces. */
  flush(): void {
    const sinks = this.#sinks;
    const starts = this.#starts;
    while (this.#next < sinks.length) {
      const at = this.#next++;
      const end = at + 1 < sinks.length ? starts[at + 1] : this.#used;
      (sinks[at] as TurnSink).writeHeld(this.#batch.subarray(starts[at] as number, end));
    }
    sinks.length = 0;
    starts.length = 0;
    this.#next = 0;
    this.#used = 0;
  }

  readonly #onTurnEnd = (): void => {
    this.#armed = false;
    this.flush();
  };
}

/** Whole responses up to this size are written at once, since they fit into any socket's buffer. */
const directBytes = 16 * 1024;
/**
 * uWS silently closes a connection that has been idle for 8 to 12 s. A client that knows a shorter time does not send
 * its next request into that close: undici honours this header, and so do Node's agents with a timeout.
 */
const keepAliveLine = '\r\nkeep-alive: timeout=7';
const closeLine = '\r\nconnection: close';
const blank = Buffer.from('\n');
/** Content types of responses after which white space has no meaning. */
const isText = /\r\ncontent-type:\s*(?:text\/event-stream|application\/json)/i;
const isEncoded = /\r\ncontent-encoding:/i;
const noop = (): void => {};
/** Status code with its reason phrase, by code. */
const statusLines: string[] = [];
for (const [code, reason] of Object.entries(STATUS_CODES)) statusLines[Number(code)] = `${code} ${reason}`;

/**
 * The response to an HTTP request. This is the only place that knows uWS's rules: the response object is never touched
 * after an abort or its end, everything is written inside `cork`, and what uWS buffers stays bounded.
 */
export class UwsResponse implements ClientLink, TurnSink {
  readonly #response: HttpResponse;
  readonly #turnBounds: TurnBounds;
  readonly #turnWrites: TurnWrites;
  /** Something waits for the end of the turn. */
  #isHeld = false;
  /**
   * uWS has seen `connection: close` in the request, and closes after the response without sending that header itself.
   */
  readonly #isToldToClose: boolean;
  #owner: LinkOwner | null = null;
  /** Head of a streamed response until it is sent, or of a whole one that waits for the end of the turn. */
  #head: AnswerHead | null = null;
  #blocked = false;
  /** The backlog inside uWS may not be empty: see `#writeBounded`. */
  #backlog = false;
  /** Pieces that wait here, one for each write. */
  #pending: Buffer[] | null = null;
  #ending = false;
  /** The response ends by closing its connection. */
  #isTruncated = false;
  /** Header lines of a streamed response. */
  #lines = '';
  /** A response of known length that is not written at once. */
  #sized: SizedAnswer | null = null;

  constructor(
    response: HttpResponse,
    turnBounds: TurnBounds,
    turnWrites: TurnWrites,
    isToldToClose: boolean,
  ) {
    this.#response = response;
    this.#isToldToClose = isToldToClose;
    this.#turnBounds = turnBounds;
    this.#turnWrites = turnWrites;
  }

  attach(owner: LinkOwner): void {
    this.#owner = owner;
    this.#response.onAborted(() => {
      try {
        this.#onAborted();
      } catch (fault) {
        handFault(owner, 'request', fault);
      }
    });
  }

  read(receiver: ChunkReceiver): void {
    const owner = this.#owner;
    const turnBounds = this.#turnBounds;
    this.#response.onData((chunk, isLast) => {
      turnBounds.isReading = true;
      try {
        if (turnBounds.isTooSmall(chunk.byteLength)) receiver.onShredded();
        else receiver.onChunk(chunk, isLast);
      } catch (fault) {
        if (owner === null) throw fault;
        handFault(owner, 'request', fault);
      } finally {
        turnBounds.isReading = false;
      }
    });
  }

  pause(): void {
    this.#response.pause();
  }

  /**
   * Restarts uWS's timer of ten seconds, and reading from a paused socket. `resume` does both. It polls for the events
   * that the last `pause` has seen, possibly of another socket, so it is never called without a `pause` before. `pause`
   * stops the timer. uWS stops a timer that runs when a body is complete, but not one that is started later.
   */
  rearm(): void {
    this.#response.pause();
    this.#response.resume();
  }

  respond(head: AnswerHead, body: string | Buffer): boolean {
    const size = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const isLast = this.#turnBounds.isTooMany();
    if (size > directBytes && !isLast)
      return this.#respondLarge(head, typeof body === 'string' ? Buffer.from(body) : body);
    // uWS itself batches responses that are written while their socket is read.
    if (size <= mostHeldBytes && !this.#turnBounds.isReading) {
      this.#turnWrites.makeRoom(size);
      this.#head = head;
      this.#turnWrites.add(this, body, size);
      this.#finish();
    } else this.#endWith(() => this.#writeWhole(head, body, head.closes || isLast));
    return true;
  }

  /** @param closes write `connection: close`, unless uWS does so itself */
  #writeWhole({ status, lines }: AnswerHead, body: string | Buffer, closes: boolean): void {
    if (!closes) this.#writeHead(status, lines + keepAliveLine);
    else this.#writeHead(status, this.#isToldToClose ? lines + closeLine : lines);
    this.#response.end(body, closes);
  }

  /** Keeps what the socket does not take here, since uWS gives an ended response only ten seconds to drain. */
  #respondLarge(head: AnswerHead, body: Buffer): boolean {
    const response = this.#response;
    let done = false;
    response.cork(() => {
      this.#writeHead(head.status, connectionLines(head));
      done = response.tryEnd(body, body.length)[1];
    });
    if (done) {
      this.#finish();
      return true;
    }
    this.#sized = new SizedAnswer(response, body.length);
    this.#sized.queue(body);
    this.#blocked = true;
    this.#hearWritable();
    return false;
  }

  respondEmpty(head: AnswerHead, contentLength: number | null): void {
    const { status } = head;
    const closes = this.#turnBounds.isTooMany() || head.closes;
    // uWS waits for as many bytes as the length that it is told, and closes only after a response with one. A
    // connection that has to end is therefore closed here, once the head is sent.
    const length = contentLength === null ? '' : `\r\ncontent-length: ${contentLength}`;
    const lines = head.lines + length;
    if (closes) {
      this.#response.cork(() => this.#writeHead(status, `${lines}${closeLine}\r\n`));
      setImmediate(() => this.abort());
      return;
    }
    this.#endWith(() => {
      this.#writeHead(status, lines + keepAliveLine);
      this.#response.endWithoutBody();
    });
  }

  /**
   * Writes `connection: close` into the head during a drain. uWS would write it into the body at the end of a stream.
   */
  begin(head: AnswerHead, contentLength: number): void {
    this.#head = head;
    this.#lines = head.lines;
    if (contentLength >= 0) this.#sized = new SizedAnswer(this.#response, contentLength);
    this.#hearWritable();
  }

  write(chunk: Buffer): boolean {
    if (this.#sized !== null) return this.#writeSized(this.#sized, chunk);
    const isSmall = chunk.length <= mostHeldBytes;
    // First, since the client may not take what is held.
    if (isSmall) this.#turnWrites.makeRoom(chunk.length);
    else this.#releaseHeld();
    if (this.#pending !== null) {
      this.#pending.push(Buffer.from(chunk));
      return false;
    }
    if (isSmall && this.#head === null && !this.#blocked) {
      this.#isHeld = true;
      this.#turnWrites.add(this, chunk, chunk.length);
      return true;
    }
    return this.#writeNow(chunk);
  }

  writeHeld(bytes: Buffer): void {
    const owner = this.#owner;
    this.#isHeld = false;
    if (owner === null) {
      this.#writeHeldWhole(bytes);
      return;
    }
    try {
      if (!this.#writeNow(bytes)) owner.onBlocked();
    } catch (fault) {
      handFault(owner, 'request', fault);
    }
  }

  /** Writes a whole response, unless its client has disconnected. Its owner is no longer involved. */
  #writeHeldWhole(body: Buffer): void {
    const head = this.#head;
    if (head === null) return;
    this.#head = null;
    try {
      this.#response.cork(() => this.#writeWhole(head, body, head.closes));
    } catch (fault) {
      this.#response.close();
      surfaceFault(fault);
    }
  }

  /** Writes what waits for the end of the turn. */
  #releaseHeld(): void {
    if (this.#isHeld) this.#turnWrites.flush();
  }

  #writeNow(chunk: Buffer): boolean {
    let flowing = true;
    this.#response.cork(() => {
      if (this.#head !== null) this.#writeBegun(this.#head);
      flowing = this.#writeBounded(chunk);
    });
    if (!flowing) this.#blocked = true;
    return flowing;
  }

  end(): void {
    this.#releaseHeld();
    // uWS drops what an ended response has not drained after ten seconds, so only a drained one is ended.
    if (this.#blocked) {
      this.#ending = true;
      return;
    }
    const head = this.#head;
    this.#endWith(() => {
      if (head !== null) this.#writeBegun(head);
      if (head !== null && isBodyless(head.status)) this.#response.endWithoutBody();
      else this.#response.end();
    });
  }

  /**
   * Writes one byte of white space, which has no meaning between events. uWS drops its buffer when it closes a
   * connection, and only a write reports whether anything is still buffered.
   */
  endTruncated(): boolean {
    this.#releaseHeld();
    this.#isTruncated = true;
    if (this.#blocked || !this.#writeNow(blank)) return false;
    this.abort();
    return true;
  }

  abort(): void {
    this.#releaseHeld();
    if (this.#owner === null) return;
    this.#finish();
    this.#response.close();
  }

  /** Writes the last part. Closes the connection if that throws, since the response has no owner any more. */
  #endWith(write: () => void): void {
    this.#finish();
    try {
      this.#response.cork(write);
    } catch (fault) {
      this.#response.close();
      throw fault;
    }
  }

  #writeBegun(head: AnswerHead): void {
    this.#head = null;
    this.#writeHead(head.status, connectionLines(head));
  }

  #writeHead(status: number, lines: string): void {
    // uWS writes 200 by default.
    if (status !== 200) this.#response.writeStatus(statusLines[status] ?? String(status));
    this.#response.writeHeader('x-request-id', lines);
  }

  /**
   * uWS buffers what the socket does not take, and a write reports only whether anything is left. After a stall, one
   * byte is therefore written first. While that meets a backlog, the rest of the chunk waits here, and never more than
   * one chunk.
   */
  #writeBounded(chunk: Buffer): boolean {
    const response = this.#response;
    if (this.#backlog) {
      if (!response.write(chunk.subarray(0, 1))) {
        this.#pending = chunk.length > 1 ? [Buffer.from(chunk.subarray(1))] : null;
        return false;
      }
      this.#backlog = false;
      if (chunk.length === 1) return true;
      chunk = chunk.subarray(1);
    }
    if (response.write(chunk)) return true;
    this.#backlog = true;
    return false;
  }

  #writeSized(sized: SizedAnswer, chunk: Buffer): boolean {
    const head = this.#head;
    const state = sized.write(chunk, head === null ? null : () => this.#writeBegun(head));
    if (state === 'complete') this.#finish();
    else if (state === 'waiting') this.#blocked = true;
    return state !== 'waiting';
  }

  #hearWritable(): void {
    const owner = this.#owner;
    if (owner !== null)
      this.#response.onWritable(guard('request', owner, () => this.#onWritable(owner), true));
  }

  #onWritable(owner: LinkOwner): boolean {
    if (this.#owner === null) return true;
    if (this.#sized !== null && this.#blocked) return this.#onSizedWritable(owner, this.#sized.flush());
    // An empty cork flushes the backlog, which uWS does not do on its own with this handler set.
    this.#response.cork(noop);
    if (!this.#blocked) return true;
    const pending = this.#pending;
    if (pending !== null) {
      this.#pending = null;
      const [first] = pending;
      const bytes = pending.length === 1 && first !== undefined ? first : Buffer.concat(pending);
      let flowing = true;
      this.#response.cork(() => {
        flowing = this.#writeBounded(bytes);
      });
      if (!flowing) {
        owner.onProgress();
        return true;
      }
    }
    this.#blocked = false;
    if (this.#ending && this.#mayKeepSome() && !this.#writeNow(blank)) owner.onProgress();
    else if (this.#ending) this.end();
    else if (this.#isTruncated) this.endTruncated();
    else owner.onDrained();
    return true;
  }

  /**
   * uWS may still buffer a part of the last piece, which only another write reports. For events and JSON this writes
   * one byte of white space, which has no meaning there. Other responses end without this check.
   */
  #mayKeepSome(): boolean {
    return this.#backlog && isText.test(this.#lines) && !isEncoded.test(this.#lines);
  }

  #onSizedWritable(owner: LinkOwner, state: SizedState): boolean {
    if (state === 'waiting') {
      owner.onProgress();
      return false;
    }
    this.#blocked = false;
    if (state === 'complete') this.#finish(!this.#ending);
    else owner.onDrained();
    return true;
  }

  #onAborted(): void {
    const owner = this.#owner;
    this.#owner = null;
    this.#head = null;
    this.#pending = null;
    this.#sized = null;
    owner?.onGone();
  }

  #finish(isDrained = false): void {
    const owner = this.#owner;
    this.#owner = null;
    this.#pending = null;
    this.#sized = null;
    owner?.onEnded(isDrained);
  }
}

function connectionLines({ lines, closes }: AnswerHead): string {
  return lines + (closes ? closeLine : keepAliveLine);
}

/** Responses in one turn of the event loop after which connections are closed: a few milliseconds of work. */
const mostAtOnce = 200;
/** Pieces of bodies below this size are counted. Clients send larger ones, except for the last. */
const smallPiece = 64;
/** Most small pieces of all bodies in one turn: a tenth of a second of work. */
const mostSmallPieces = 200_000;

/**
 * Bounds the responses that a server sends while it still reads, such as refusals and model lists. uWS delivers all
 * requests of one read before anything else runs: thousands, if a client pipelines without waiting, and on hundreds of
 * sockets. The first are answered. Beyond the bound, each connection is closed with its next response, and uWS drops
 * the requests behind it. Responses that wait for anything need no bound, since uWS closes a connection on which the
 * next request arrives before the response.
 *
 * Pieces of bodies are counted for the same reason: uWS delivers each chunk separately, and one read may contain a
 * hundred thousand chunks of one byte.
 */
export class TurnBounds {
  /** uWS is delivering what a client has sent. */
  isReading = false;
  #answers = 0;
  #smallPieces = 0;

  /** Counts a response. @returns whether to close its connection */
  isTooMany(): boolean {
    if (!this.isReading) return false;
    if (this.#answers++ === 0)
      setImmediate(() => {
        this.#answers = 0;
      });
    return this.#answers > mostAtOnce;
  }

  /** Counts a piece of a body. @returns whether to refuse its body, and everything behind it */
  isTooSmall(bytes: number): boolean {
    if (bytes >= smallPiece) return false;
    if (this.#smallPieces++ === 0)
      setImmediate(() => {
        this.#smallPieces = 0;
      });
    return this.#smallPieces > mostSmallPieces;
  }
}
