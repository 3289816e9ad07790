import type { HttpResponse } from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import { guard, handFault, surfaceFault } from '../errors.js';
import { isBodyless } from '../wire/head.js';
import type { AnswerHead, ChunkReceiver, ClientLink, LinkOwner } from './client-link.js';
import { SizedAnswer, type SizedState } from './sized.js';

/** What is to be written at the end of the turn of the event loop. */
interface TurnSink {
  /** Is to be written now. @param bytes what was added for it; valid only until this returns */
  writeHeld(bytes: Buffer): void;
}

/** Larger pieces leave at once: to copy them costs more than is gained. */
export const mostHeldBytes = 4096;
/** Room for the pieces of one turn; what does not fit ends the turn's batch early. */
const batchBytes = 128 * 1024;

/**
 * Small answers and small pieces of streamed ones, which leave when the event loop has dealt with what came in. Reading
 * all that has come and then writing all of it costs less than doing both for each: the clients' side is woken once for
 * many of them, and each half stays in the processor's caches (measured with 300 streams: 7 % of the CPU time of an event).
 */
export class TurnWrites {
  readonly #batch = Buffer.allocUnsafeSlow(batchBytes);
  #used = 0;
  readonly #sinks: TurnSink[] = [];
  /** Where the piece of each begins. */
  readonly #starts: number[] = [];
  /** The first that is still to be written: a sink may end others, and with that flush, while it is. */
  #next = 0;
  #armed = false;

  /** Writes out what waits where a piece of so many bytes, at most `mostHeldBytes`, has no room beside it. */
  makeRoom(bytes: number): void {
    if (this.#used + bytes > batchBytes) this.flush();
  }

  /** Copies a piece for which `makeRoom` was called just before. @param size of it in bytes */
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

  /** Writes out what waits. */
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

/** Whole answers up to this size leave in one go: they fit into any socket's buffer. */
const directBytes = 16 * 1024;
/**
 * uWS closes a connection that has been idle for 8 to 12 s without a word. A client that is told a shorter time does
 * not send its next request into that close: undici obeys the line, and so do Node's agents that have a timeout.
 */
const keepAliveLine = '\r\nkeep-alive: timeout=7';
const closeLine = '\r\nconnection: close';
const blank = Buffer.from('\n');
/** Header lines of answers behind which white space means nothing. */
const isText = /\r\ncontent-type:\s*(?:text\/event-stream|application\/json)/i;
const isEncoded = /\r\ncontent-encoding:/i;
const noop = (): void => {};
/** Code and reason as a status line has them, by code. */
const statusLines: string[] = [];
for (const [code, reason] of Object.entries(STATUS_CODES)) statusLines[Number(code)] = `${code} ${reason}`;

/**
 * The client of an HTTP request, and the one place that knows uWS's rules: the response is never touched after an
 * abort or an end, everything is written inside `cork`, and what uWS buffers stays bounded.
 */
export class UwsResponse implements ClientLink, TurnSink {
  readonly #response: HttpResponse;
  readonly #atOnce: AtOnce;
  readonly #turnWrites: TurnWrites;
  /** Some of what was given waits for the end of the turn. */
  #isHeld = false;
  /** uWS has found `close` in the request, by its length, and closes after the answer without the line that says so. */
  readonly #isToldToClose: boolean;
  #owner: LinkOwner | null = null;
  /** Of a streamed answer until it has left, and of a whole one that waits for the end of the turn. */
  #head: AnswerHead | null = null;
  #blocked = false;
  /** The backlog inside uWS may not be empty: see `#writeBounded`. */
  #backlog = false;
  /** What waits here, a piece for each write. */
  #pending: Buffer[] | null = null;
  #ending = false;
  /** It ends with its connection. */
  #isTruncated = false;
  /** Header lines of a streamed answer. */
  #lines = '';
  /** An answer of known length that does not leave in one go. */
  #sized: SizedAnswer | null = null;

  /** @param connection the header of that name of the request */
  constructor(response: HttpResponse, atOnce: AtOnce, turnWrites: TurnWrites, connection: string) {
    this.#response = response;
    this.#isToldToClose = connection.length === 'close'.length;
    this.#atOnce = atOnce;
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
    const atOnce = this.#atOnce;
    this.#response.onData((chunk, isLast) => {
      atOnce.isReading = true;
      try {
        if (atOnce.isTooSmall(chunk.byteLength)) receiver.onShredded();
        else receiver.onChunk(chunk, isLast);
      } catch (fault) {
        if (owner === null) throw fault;
        handFault(owner, 'request', fault);
      } finally {
        atOnce.isReading = false;
      }
    });
  }

  pause(): void {
    this.#response.pause();
  }

  /**
   * Starts uWS's timer of ten seconds anew, and a stopped socket again. `resume` does both; it polls for what a `pause`
   * has seen last, of any socket that had as much or as little waiting, so it is never called without one. `pause`
   * stops the timer. A timer that runs when all of a body has come is stopped by uWS, one that is started later is not.
   */
  rearm(): void {
    this.#response.pause();
    this.#response.resume();
  }

  respond(head: AnswerHead, body: string | Buffer): boolean {
    const size = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    const isLast = this.#atOnce.isTooMany();
    if (size > directBytes && !isLast)
      return this.#respondLarge(head, typeof body === 'string' ? Buffer.from(body) : body);
    // What is answered while its socket is read leaves with others of the same socket as it is.
    if (size <= mostHeldBytes && !this.#atOnce.isReading) {
      this.#turnWrites.makeRoom(size);
      this.#head = head;
      this.#turnWrites.add(this, body, size);
      this.#finish();
    } else this.#endWith(() => this.#writeWhole(head, body, head.closes || isLast));
    return true;
  }

  /** @param closes uWS writes the line of it itself, but where it was told to close */
  #writeWhole({ status, lines }: AnswerHead, body: string | Buffer, closes: boolean): void {
    if (!closes) this.#writeHead(status, lines + keepAliveLine);
    else this.#writeHead(status, this.#isToldToClose ? lines + closeLine : lines);
    this.#response.end(body, closes);
  }

  /** uWS gives what waits of an ended response ten seconds to drain: what the socket does not take waits with us. */
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
    const closes = this.#atOnce.isTooMany() || head.closes;
    // uWS waits for the bytes of a length that it is told. And it closes only after an answer with one, so a connection
    // that is not to go on is cut, as soon as the head has left.
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

  /** In a drain the head asks the client to close: at the end of a stream uWS would write that line into the body. */
  begin(head: AnswerHead, contentLength: number): void {
    this.#head = head;
    this.#lines = head.lines;
    if (contentLength >= 0) this.#sized = new SizedAnswer(this.#response, contentLength);
    this.#hearWritable();
  }

  write(chunk: Buffer): boolean {
    if (this.#sized !== null) return this.#writeSized(this.#sized, chunk);
    const isSmall = chunk.length <= mostHeldBytes;
    // Before all else, since the client may not take what is held.
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

  /** Writes a whole answer, unless its client has left meanwhile. Its owner has nothing to do with it any more. */
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
    // uWS gives an ended response ten seconds to drain and then drops the rest: end only what has drained.
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
   * uWS drops what it still buffers when it closes a connection, and tells of that only by the next write: so one byte
   * more is written, of white space, which means nothing in any framing of events.
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

  /** Nobody has the response any more when its last part is written: where that throws, its connection is cut. */
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
    // 200 is what uWS writes by itself.
    if (status !== 200) this.#response.writeStatus(statusLines[status] ?? String(status));
    this.#response.writeHeader('x-request-id', lines);
  }

  /**
   * uWS buffers what the socket does not take and says, by a write, only whether anything is left. So after a stall one
   * byte is written first: while it meets a backlog, the rest of the chunk waits here, and that is never more than one.
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
    // An empty cork flushes the backlog; with this handler set uWS does not flush by itself.
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
   * uWS may still keep some of the piece that was written last, and only another byte tells: one of white space, which
   * means nothing behind the events of a stream or behind JSON. What is of any other kind ends without being asked.
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

/** Answers in one turn of the event loop after which connections are ended: some milliseconds of work. */
const mostAtOnce = 200;
/** Of a body, smaller pieces than this are counted: clients send larger ones, but for the last. */
const smallPiece = 64;
/** So many of them in one turn, of all bodies, are taken: a tenth of a second of work. */
const mostSmallPieces = 200_000;

/**
 * The answers that a server gives while it still reads the request: refusals, the lists of models. uWS hands over all
 * requests that one read of a socket has brought before anything else gets its turn, thousands where their client did
 * not wait for answers, of hundreds of sockets. Each of the first is answered, and after those each connection is ended
 * with its next answer, with which uWS drops what is behind it. An answer that has to wait for anything needs no count:
 * uWS cuts a connection on which the next request comes before it.
 *
 * The pieces of bodies are counted for the same reason: uWS hands over each chunk by itself, and one read of a socket
 * may bring a hundred thousand of one byte.
 */
export class AtOnce {
  /** What a client has sent is being handed over. */
  isReading = false;
  #answers = 0;
  #smallPieces = 0;

  /** Counts an answer. @returns whether its connection is to end with it */
  isTooMany(): boolean {
    if (!this.isReading) return false;
    if (this.#answers++ === 0)
      setImmediate(() => {
        this.#answers = 0;
      });
    return this.#answers > mostAtOnce;
  }

  /** Counts a piece of a body. @returns whether its body is to be refused, with all that is behind it */
  isTooSmall(bytes: number): boolean {
    if (bytes >= smallPiece) return false;
    if (this.#smallPieces++ === 0)
      setImmediate(() => {
        this.#smallPieces = 0;
      });
    return this.#smallPieces > mostSmallPieces;
  }
}
