/** Calls over a WebSocket of an upstream, one after the other: each is a message, and its answer a run of messages. */
import type { SecureProfiles } from './secure.js';
import { openSocket, type SocketListener, type SocketRequest, type UpstreamSocket } from './socket.js';
import { Timed, TimerWheel } from './timers.js';
import type {
  Deadlines,
  ResponseHead,
  UpstreamExchange,
  UpstreamFailure,
  UpstreamFailureReason,
  UpstreamHandler,
} from './types.js';

/** What the messages of an answer mean. */
export interface AnswerManner {
  /** The answer goes on after it, ends with it, or is an error. */
  judge(message: Buffer): 'more' | 'last' | 'error';
  /** An error that came in place of an answer, as the HTTP answer that says the same; its body is JSON. */
  refusal(message: Buffer): { readonly status: number; readonly body: Buffer };
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
export class SocketTurns implements SocketListener {
  readonly #request: SocketRequest;
  readonly #profiles: SecureProfiles;
  readonly #manner: AnswerManner;
  #socket: UpstreamSocket | null = null;
  #isOpen = false;
  /** Calls answered on the open socket. */
  #served = 0;
  #turn: Turn | null = null;

  constructor(request: SocketRequest, profiles: SecureProfiles, manner: AnswerManner) {
    this.#request = request;
    this.#profiles = profiles;
    this.#manner = manner;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Sends a call; the one before has ended. Nothing of the handler is called before this returns.
   * @param onNoSocket is called in place of the handler when the upstream knows no WebSocket there
   */
  send(
    message: Buffer,
    deadlines: Deadlines,
    handler: UpstreamHandler,
    onNoSocket: () => void,
  ): UpstreamExchange {
    const turn = new Turn(this, message, deadlines, handler, onNoSocket);
    this.#turn = turn;
    if (this.#isOpen) this.#transmit(turn);
    else this.#connect();
    return turn;
  }

  /** Gives up what is under way, and the connection. */
  close(): void {
    this.#turn?.end();
    this.#turn = null;
    this.#socket?.close(1000, '');
    this.#gone();
  }

  /** The answer under way is not wanted any more: an upstream has no other way to hear of it. */
  abandon(): void {
    this.#turn = null;
    this.#socket?.terminate();
    this.#gone();
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  onOpen(): void {
    this.#isOpen = true;
    if (this.#turn !== null) this.#transmit(this.#turn);
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    const turn = this.#turn;
    // What comes between two answers belongs to none.
    if (turn === null) return;
    if (isBinary) {
      this.fail('malformed_answer', 'a binary message');
      return;
    }
    const meaning = this.#manner.judge(data);
    if (meaning === 'error' && !turn.headSeen) {
      const { status, body } = this.#manner.refusal(data);
      this.#release();
      turn.answer(new TurnHead(status, 'application/json', body.length), body);
      return;
    }
    turn.take(data);
    if (meaning !== 'more') {
      this.#release();
      turn.complete();
    }
  }

  onReadEnd(): void {
    this.#turn?.flush();
  }

  onDrained(): void {}

  onRefused(head: ResponseHead, body: Buffer): void {
    const turn = this.#turn;
    this.#turn = null;
    this.#gone();
    if (turn === null) return;
    if (knowsNone(head.status)) turn.giveBack();
    else turn.answer(head, body);
  }

  onFailed(failure: UpstreamFailure): void {
    const turn = this.#turn;
    this.#turn = null;
    this.#gone();
    turn?.fail(failure);
  }

  onClosed(code: number): void {
    const turn = this.#turn;
    const isStale = this.#served > 0 && turn !== null && !turn.headSeen && !turn.retried;
    this.#gone();
    if (turn === null) return;
    if (isStale) {
      // Closed when the call was on its way: it was never looked at.
      turn.retried = true;
      this.#connect();
      return;
    }
    this.#turn = null;
    const reason = turn.headSeen ? 'truncated' : 'reset';
    turn.fail({ reason, detail: `closed with ${code}`, bytesSent: true, headSeen: turn.headSeen });
  }

  fail(reason: UpstreamFailureReason, detail: string): void {
    const turn = this.#turn;
    this.abandon();
    turn?.fail({ reason, detail, bytesSent: turn.sentAt > 0, headSeen: turn.headSeen });
  }

  #connect(): void {
    this.#socket = openSocket(this.#request, this.#profiles, this);
  }

  #transmit(turn: Turn): void {
    this.#socket?.send(turn.message, false);
    turn.sent();
  }

  /** The answer is there: the next call may come. */
  #release(): void {
    this.#turn = null;
    this.#served++;
  }

  #gone(): void {
    this.#socket = null;
    this.#isOpen = false;
    this.#served = 0;
  }
}

/** One call on its way. */
class Turn extends Timed implements UpstreamExchange {
  sentAt = 0;
  bodyReleased = true;
  headSeen = false;
  retried = false;
  readonly message: Buffer;
  readonly #owner: SocketTurns;
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
    owner: SocketTurns,
    message: Buffer,
    deadlines: Deadlines,
    handler: UpstreamHandler,
    onNoSocket: () => void,
  ) {
    super();
    this.#owner = owner;
    this.message = message;
    this.#deadlines = deadlines;
    this.#handler = handler;
    this.#onNoSocket = onNoSocket;
    this.#totalAt = performance.now() + deadlines.totalMs;
    wheel.set(this, this.#totalAt);
  }

  sent(): void {
    this.sentAt = performance.now();
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

  fail(failure: UpstreamFailure): void {
    if (this.end()) this.#handler.onFailure(failure);
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

  expire(now: number): void {
    if (now >= this.#totalAt) this.#owner.fail('total_timeout', 'the whole request took too long');
    else if (this.headSeen) this.#owner.fail('idle_timeout', 'the answer stalled');
    else this.#owner.fail('first_byte_timeout', 'no answer in time');
  }

  #wait(ms: number): void {
    wheel.set(this, Math.min(this.#totalAt, performance.now() + ms));
  }
}

class TurnHead implements ResponseHead {
  readonly fields: readonly string[];
  readonly status: number;
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
}

const streamHead = new TurnHead(200, 'text/event-stream', -1);

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
