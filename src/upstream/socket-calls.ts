/** Calls over a WebSocket of an upstream, one after the other: each is a message, and its answer a run of messages. */
import { performance } from 'node:perf_hooks';
import { type FaultPlace, guard, surfaceFault, type UpstreamFailureReason } from '../errors.js';
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

/** What the messages of an answer mean. */
interface SocketStreamRules {
  /** The answer goes on after it, ends with it, or is an error. */
  judge(message: Buffer): 'more' | 'last' | 'error';
  /** An error that came in place of an answer, as the HTTP answer that says the same; its body is JSON. */
  refusal(message: Buffer): { readonly status: number; readonly body: Buffer };
}

/** Who has the calls made. */
export interface SocketOwner extends SocketStreamRules {
  /** As in `SocketListener`. */
  hold(bytes: number): boolean;
}

const wheel = new TimerWheel();
const eventBegin = Buffer.from('data: ');
const eventEnd = Buffer.from('\n\n');
const lf = 0x0a;
const cr = 0x0d;

/**
 * The socket is opened with the first call, and opened again where it has been closed since. The answer of a call is
 * told as a stream of server-sent events would be, each of which has the data of one message.
 */
export class SocketCalls implements SocketListener {
  readonly #request: SocketRequest;
  readonly #dialer: Dialer;
  readonly #owner: SocketOwner;
  #socket: UpstreamSocket | null = null;
  #isOpen = false;
  /** Calls answered on the open socket. */
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
   * Sends a call; the one before has ended. Nothing of the handler is called before this returns.
   * @param hasEffects as in `UpstreamRequest`, of the message
   * @param onNoSocket is called in place of the handler when the upstream knows no WebSocket there
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

  /** Gives up what is under way, and the connection. */
  close(): void {
    this.#exchange?.end();
    this.#exchange = null;
    // A close frame would stand behind what the upstream has not taken of a call that nobody wants any more.
    if ((this.#socket?.waitingBytes ?? 0) > 0) this.#socket?.terminate();
    else this.#socket?.close(closeCode.normal, '');
    this.#gone();
  }

  /** The answer under way is not wanted any more: an upstream has no other way to hear of it. */
  abandon(): void {
    this.#exchange = null;
    this.#socket?.terminate();
    this.#gone();
  }

  /** The same, unless the answer under way is another exchange's by now. */
  abandonIf(exchange: SocketExchange): void {
    if (this.#exchange === exchange) this.abandon();
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
    // What comes between two answers belongs to none.
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
    // It knew one before, and has had the call.
    else if (exchange.sentAt > 0) exchange.break('reset', 'no socket any more');
    else exchange.giveBack();
  }

  onFailed(failure: UpstreamFailure): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#gone();
    // What has been sent is the message, not the upgrade.
    exchange?.break(failure.reason, failure.detail);
  }

  /** What its handler throws an exchange hears of itself: this is about the socket. */
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
      // Closed when the call was on its way: it was never looked at.
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

  /** The answer is there: the next call may come. */
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

/** One call on its way. */
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
  #paused = false;
  /** What the running read has brought. */
  #gathered: Buffer[] = [];
  /** All of the answer has come, and its end waits for `resume`. */
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

  sent(): void {
    if (this.sentAt === 0) this.sentAt = performance.now();
    this.#wait(this.#deadlines.firstByteMs);
  }

  /** A message of the answer, which stays valid until `flush`. */
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
      // For what follows the answer; this call holds nothing up any more.
      this.#owner.resume();
    } else if (this.end()) this.#handler.onEnd();
  }

  /** An answer that is no stream. */
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

  /** Whether it may be sent again after its socket has closed without a message of an answer. */
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

  /** @returns false when it had ended before */
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
    if (this.end() && isUnderWay) this.#owner.abandon();
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    if (this.end()) this.#owner.abandonIf(this);
    if (this.#handler.onFault === undefined) surfaceFault(fault);
    else this.#handler.onFault(where, fault);
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

/** A handler whose exceptions end its own exchange, and not the one that is served at that moment. */
function guardHandler(handler: UpstreamHandler, owner: SocketExchange): UpstreamHandler {
  return {
    onHead: guard('upstream', owner, (head: ResponseHead) => handler.onHead(head)),
    onData: guard('upstream', owner, (chunk: Buffer) => handler.onData(chunk), true),
    onEnd: guard('upstream', owner, () => handler.onEnd()),
    onFailure: guard('upstream', owner, (failure: UpstreamFailure) => handler.onFailure(failure)),
    ...(handler.onFault !== undefined && {
      onFault: (where: FaultPlace, fault: unknown) => handler.onFault?.(where, fault),
    }),
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

/** What servers say that know no WebSocket at a path: to be asked by POST. */
function knowsNone(status: number): boolean {
  return (
    status < 400 || status === 400 || status === 404 || status === 405 || status === 426 || status === 501
  );
}

/** A line break would end the event: in JSON it is white space, as a line of its own is in an event's data. */
function withoutBreaks(message: Buffer): Buffer {
  if (!message.includes(lf) && !message.includes(cr)) return message;
  const text = message.toString('utf8').replace(/[\r\n]/g, ' ');
  return Buffer.from(text);
}
