/**
 * Sends calls over an upstream's WebSocket, one at a time. A call is a message, and its answer a series of messages.
 */
import { performance } from 'node:perf_hooks';
import { type FaultPlace, guard, surfaceFault, type UpstreamFailureReason } from '../errors.js';
import { CR, LF } from '../wire/bytes.js';
import { closeCode } from '../wire/close-code.js';
import type { Dialer } from './dial.js';
import { openSocket } from './socket.js';
import type { SocketFault, SocketListener, SocketRequest, UpstreamSocket } from './socket-types.js';
import { Timed, TimerWheel } from './timers.js';
import {
  type Deadlines,
  type ResponseHead,
  resendableMs,
  type UpstreamExchange,
  type UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
} from './types.js';

/** Interprets the messages of an answer. */
interface SocketStreamRules {
  /** Whether the answer continues after the message, ends with it, or is an error. */
  judge(message: Buffer): 'more' | 'last' | 'error';
  /** Converts an error that arrived instead of an answer to the equivalent HTTP answer, whose body is JSON. */
  refusal(message: Buffer): { readonly status: number; readonly body: Buffer };
}

/** The owner of the calls. */
export interface SocketOwner extends SocketStreamRules {
  /** As in `SocketListener`. */
  hold(bytes: number): boolean;
}

const wheel = new TimerWheel();
const eventBegin = Buffer.from('data: ');
const eventEnd = Buffer.from('\n\n');

/**
 * The socket is opened with the first call, and opened again if it has been closed since. The answer of a call is
 * passed to its handler as a stream of server-sent events, each with the data of one message.
 */
export class SocketCalls implements SocketListener {
  readonly #request: SocketRequest;
  readonly #dialer: Dialer;
  readonly #owner: SocketOwner;
  #socket: UpstreamSocket | null = null;
  #isOpen = false;
  /** Number of calls answered on the open socket. */
  #served = 0;
  #exchange: SocketExchange | null = null;

  constructor(request: SocketRequest, dialer: Dialer, owner: SocketOwner) {
    this.#request = request;
    this.#dialer = dialer;
    this.#owner = owner;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Sends a call. The previous one must have ended. The handler is not called before this returns.
   * @param hasEffects as in `UpstreamRequest`, for the message
   * @param onNoSocket called instead of the handler if the upstream offers no WebSocket at this path
   */
  send(
    message: Buffer,
    hasEffects: UpstreamRequest['hasEffects'],
    deadlines: Deadlines,
    handler: UpstreamHandler,
    onNoSocket: () => void,
  ): UpstreamExchange {
    const exchange = new SocketExchange(this, message, hasEffects, deadlines, handler, onNoSocket);
    this.#exchange = exchange;
    if (this.#isOpen) this.#transmit(exchange);
    else this.#connect();
    return exchange;
  }

  /** Drops the call in flight, and closes the connection. */
  close(): void {
    this.#exchange?.end();
    this.#exchange = null;
    // A close frame would wait behind bytes of a dropped call that the upstream has not accepted.
    if (this.waitingBytes > 0) this.#socket?.terminate();
    else this.#socket?.close(closeCode.normal, '');
    this.#gone();
  }

  /** Drops the answer in flight. Closing the connection is the only way to notify the upstream. */
  abandon(): void {
    this.#exchange = null;
    this.#socket?.terminate();
    this.#gone();
  }

  /** Does the same if the answer in flight still belongs to this exchange. */
  abandonIf(exchange: SocketExchange): void {
    if (this.#exchange === exchange) this.abandon();
  }

  /** Bytes that the system has not taken. */
  get waitingBytes(): number {
    return this.#socket?.waitingBytes ?? 0;
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  onOpen(): void {
    this.#isOpen = true;
    if (this.#exchange !== null) this.#transmit(this.#exchange);
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    const exchange = this.#exchange;
    // A message between two answers belongs to neither.
    if (exchange === null) return;
    if (isBinary) {
      this.fail('malformed_answer', 'a binary message');
      return;
    }
    const meaning = this.#owner.judge(data);
    if (meaning === 'error' && !exchange.headSeen) {
      const { status, body } = this.#owner.refusal(data);
      this.#release();
      exchange.answer(new MessageHead(status, 'application/json', body.length), body);
      return;
    }
    exchange.take(data);
    if (meaning !== 'more') {
      this.#release();
      exchange.complete();
    }
  }

  onReadEnd(): void {
    this.#exchange?.flush();
  }

  onDrained(): void {}

  hold(bytes: number): boolean {
    return this.#owner.hold(bytes);
  }

  onDeclined(head: ResponseHead, body: Buffer): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#gone();
    if (exchange === null) return;
    if (!knowsNone(head.status)) exchange.answer(head, body);
    // The upstream offered a WebSocket before, and has received the call.
    else if (exchange.sentAt > 0) exchange.break('reset', 'no socket any more');
    else exchange.giveBack();
  }

  onFailed(failure: UpstreamFailure): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#gone();
    // `bytesSent` refers to the message here, not to the upgrade.
    exchange?.break(failure.reason, failure.detail);
  }

  /** Handles exceptions of the socket's own code. Those of a handler are reported to its exchange. */
  onFault(where: FaultPlace, fault: unknown): void {
    const exchange = this.#exchange;
    this.abandon();
    if (exchange === null) surfaceFault(fault);
    else exchange.onFault(where, fault);
  }

  onClosed(code: number, _reason: Buffer, fault: SocketFault | null): void {
    const exchange = this.#exchange;
    const isEnd = fault === null || fault.reason === 'reset';
    const isUnseen = this.#served > 0 && exchange !== null && !exchange.headSeen;
    const isStale = isUnseen && (isEnd || fault.reason === 'idle_timeout') && exchange.mayResend();
    this.#gone();
    if (exchange === null) return;
    if (isStale) {
      // The socket closed while the call was on its way: the call was never processed.
      exchange.retried = true;
      this.#connect();
      return;
    }
    this.#exchange = null;
    const cut = exchange.headSeen ? 'truncated' : 'reset';
    exchange.break(isEnd ? cut : fault.reason, fault?.detail ?? `closed with ${code}`);
  }

  fail(reason: UpstreamFailureReason, detail: string): void {
    const exchange = this.#exchange;
    this.abandon();
    exchange?.break(reason, detail);
  }

  #connect(): void {
    this.#socket = openSocket(this.#request, this.#dialer, this);
  }

  #transmit(exchange: SocketExchange): void {
    this.#socket?.send(exchange.message, false);
    exchange.sent();
  }

  /** Called when the answer is complete, and the next call may be sent. */
  #release(): void {
    this.#exchange = null;
    this.#served++;
  }

  #gone(): void {
    this.#socket = null;
    this.#isOpen = false;
    this.#served = 0;
  }
}

/** One call in flight. */
class SocketExchange extends Timed implements UpstreamExchange {
  sentAt = 0;
  bodyReleased = true;
  headSeen = false;
  retried = false;
  readonly message: Buffer;
  readonly #owner: SocketCalls;
  readonly #hasEffects: UpstreamRequest['hasEffects'];
  readonly #deadlines: Deadlines;
  readonly #totalAt: number;
  readonly #handler: UpstreamHandler;
  readonly #onNoSocket: () => void;
  #over = false;
  #wasWritten = false;
  #paused = false;
  /** Events of the current read. */
  #gathered: Buffer[] = [];
  /** True when the answer has arrived completely, but its end waits for `resume`. */
  #ending = false;

  constructor(
    owner: SocketCalls,
    message: Buffer,
    hasEffects: UpstreamRequest['hasEffects'],
    deadlines: Deadlines,
    handler: UpstreamHandler,
    onNoSocket: () => void,
  ) {
    super();
    this.#owner = owner;
    this.message = message;
    this.#hasEffects = hasEffects;
    this.#deadlines = deadlines;
    this.#handler = guardHandler(handler, this);
    this.#onNoSocket = guard('upstream', this, onNoSocket);
    this.#totalAt = performance.now() + deadlines.totalMs;
    wheel.set(this, this.#totalAt);
  }

  get isWritten(): boolean {
    return this.#over ? this.#wasWritten : this.sentAt > 0 && this.#owner.waitingBytes === 0;
  }

  sent(): void {
    if (this.sentAt === 0) this.sentAt = performance.now();
    this.#wait(this.#deadlines.firstByteMs);
  }

  /** Takes a message of the answer, which must stay valid until `flush`. */
  take(message: Buffer): void {
    if (this.#over) return;
    if (!this.headSeen) {
      this.headSeen = true;
      this.#handler.onHead(streamHead);
    }
    this.#gathered.push(eventBegin, withoutBreaks(message), eventEnd);
  }

  flush(): void {
    if (this.#over || this.#gathered.length === 0) return;
    const events = Buffer.concat(this.#gathered);
    this.#gathered = [];
    this.#wait(this.#deadlines.idleMs);
    if (this.#handler.onData(events) || this.#over) return;
    this.#paused = true;
    this.#owner.pause();
    wheel.set(this, this.#totalAt);
  }

  complete(): void {
    this.flush();
    if (this.#paused) {
      this.#ending = true;
      // The socket continues to read for the next answer: this call no longer delays it.
      this.#owner.resume();
    } else if (this.end()) this.#handler.onEnd();
  }

  /** Takes an answer that is not a stream. */
  answer(head: ResponseHead, body: Buffer): void {
    if (this.#over) return;
    this.headSeen = true;
    this.#handler.onHead(head);
    if (this.#over) return;
    this.#paused = !this.#handler.onData(body);
    if (this.#paused) this.#ending = true;
    else if (this.end()) this.#handler.onEnd();
  }

  giveBack(): void {
    if (this.end()) this.#onNoSocket();
  }

  /** Whether the call may be resent after its socket has closed without a message of an answer. */
  mayResend(): boolean {
    return !this.retried && this.#sentMs() < resendableMs && !this.#hasEffects([this.message]);
  }

  break(reason: UpstreamFailureReason, detail: string): void {
    const { sentAt, headSeen } = this;
    const failure = { reason, detail, bytesSent: sentAt > 0, headSeen, sentMs: this.#sentMs() };
    if (this.end()) this.#handler.onFailure(failure);
  }

  #sentMs(): number {
    return this.sentAt === 0 ? 0 : performance.now() - this.sentAt;
  }

  /** @returns false if the exchange had already ended */
  end(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#gathered = [];
    wheel.clear(this);
    return true;
  }

  resume(): void {
    if (this.#over || !this.#paused) return;
    this.#paused = false;
    if (this.#ending) {
      if (this.end()) this.#handler.onEnd();
      return;
    }
    this.#wait(this.#deadlines.idleMs);
    this.#owner.resume();
  }

  cancel(): void {
    const isUnderWay = !this.#ending;
    this.#wasWritten = this.isWritten;
    if (this.end() && isUnderWay) this.#owner.abandon();
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    if (this.end()) this.#owner.abandonIf(this);
    this.#handler.onFault(where, fault);
  }

  expire(now: number): void {
    if (now >= this.#totalAt) this.#owner.fail('total_timeout', 'the whole request took too long');
    else if (this.headSeen) this.#owner.fail('idle_timeout', 'the answer stalled');
    else this.#owner.fail('first_byte_timeout', 'no answer in time');
  }

  #wait(ms: number): void {
    wheel.set(this, Math.min(this.#totalAt, performance.now() + ms));
  }
}

/** Wraps a handler so that its exceptions end its own exchange, not the one that is in flight at that moment. */
function guardHandler(handler: UpstreamHandler, owner: SocketExchange): UpstreamHandler {
  return {
    onHead: guard('upstream', owner, (head: ResponseHead) => handler.onHead(head)),
    onData: guard('upstream', owner, (chunk: Buffer) => handler.onData(chunk), true),
    onEnd: guard('upstream', owner, () => handler.onEnd()),
    onFailure: guard('upstream', owner, (failure: UpstreamFailure) => handler.onFailure(failure)),
    onFault: (where, fault) => handler.onFault(where, fault),
  };
}

class MessageHead implements ResponseHead {
  readonly fields: readonly string[];
  readonly status: number;
  readonly contentCoding = null;
  readonly contentType: string;
  readonly contentLength: number;

  constructor(status: number, contentType: string, contentLength: number) {
    this.status = status;
    this.contentType = contentType;
    this.contentLength = contentLength;
    this.fields = ['content-type', contentType];
  }

  get(name: string): string | null {
    return name === 'content-type' ? this.contentType : null;
  }

  mayHave(): boolean {
    return false;
  }
}

const streamHead = new MessageHead(200, 'text/event-stream', -1);

/** Whether a status means that the server offers no WebSocket at the path, so that the call is sent by POST. */
function knowsNone(status: number): boolean {
  return (
    status < 400 || status === 400 || status === 404 || status === 405 || status === 426 || status === 501
  );
}

/** Replaces line breaks, which would end the event's line, by spaces: both are white space in JSON. */
function withoutBreaks(message: Buffer): Buffer {
  if (!message.includes(LF) && !message.includes(CR)) return message;
  const text = message.toString('utf8').replace(/[\r\n]/g, ' ');
  return Buffer.from(text);
}
