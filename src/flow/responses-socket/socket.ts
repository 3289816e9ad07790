import { performance } from 'node:perf_hooks';
import type { Key } from '../../config/types.js';
import { asGatewayError, type FaultPlace, GatewayError, guard } from '../../errors.js';
import type { Exchange } from '../../http/exchange.js';
import { type MessageClient, type MessageWords, serveMessage } from '../../http/message-response.js';
import { RequestHead } from '../../http/request-head.js';
import {
  acceptSocket,
  type ClientSocket,
  type ClientSocketListener,
  type HeldPart,
} from '../../http/socket.js';
import { SweepMember } from '../../http/sweep.js';
import {
  joinItems,
  madeResponse,
  readConversation,
  readMessage,
} from '../../protocols/responses/socket-message.js';
import { closeCode } from '../../wire/close-code.js';
import { messageIdOf } from '../../wire/head.js';
import { invalidJson } from '../../wire/json-fault.js';
import type { SessionCall } from '../call.js';
import { account } from '../record/account.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { full } from '../sockets/session-memory.js';
import { leaving, type OpenSession } from '../sockets/sessions.js';
import { type SocketCall, UpstreamSession } from './upstream-session.js';

const nothing = Buffer.alloc(0);

/**
 * The newest response of a socket with the conversation before it. A client continues from it by its id alone, even if
 * the upstream that made it no longer knows it.
 */
export class ResponseHistory {
  readonly #room: HeldPart;
  readonly #most: number;
  #id: string | null = null;
  #items: Buffer = nothing;
  /** The items to which the running call's answer is added; null if it need not be kept. */
  #running: string | null = null;
  #isStored = true;

  /**
   * @param room counts the kept bytes
   * @param most most bytes to keep
   */
  constructor(room: HeldPart, most: number) {
    this.#room = room;
    this.#most = most;
  }

  /**
   * Begins a call.
   * @param isKnown whether the upstream of this call knows the newest response
   * @returns the body to send: unchanged, or with the whole conversation
   */
  begin(body: Buffer, isKnown: boolean): { readonly body: Buffer; readonly previousId: string | null } {
    this.#running = null;
    const message = readConversation(body);
    if (message === null) return { body, previousId: null };
    const isKept = message.previousId !== null && message.previousId === this.#id;
    const before = isKept ? this.#items.toString('utf8') : '';
    const all = joinItems(before, message.items);
    // A conversation whose beginning is missing is not kept.
    if ((message.previousId === null || isKept) && all.length <= this.#most) this.#running = all;
    this.#isStored = message.store !== false;
    if (!isKept || isKnown) return { body, previousId: message.previousId };
    return { body: message.withItems(all), previousId: null };
  }

  /** Sets the whole input of the running call, which continues a response that was not kept here. */
  resume(items: string): void {
    if (items.length <= this.#most) this.#running = items;
  }

  /**
   * Called with every event of the running call's answer.
   * @param isUpstreams whether an upstream of the protocol made it, which keeps stored responses itself
   */
  onEvent(event: string, isUpstreams: boolean): void {
    const before = this.#running;
    if (before === null || (this.#isStored && isUpstreams)) return;
    const made = madeResponse(event);
    if (made !== null) this.#keep(made.id, Buffer.from(joinItems(before, made.items)));
  }

  clear(): void {
    this.#room.hold(0);
    this.#id = null;
    this.#items = nothing;
    this.#running = null;
  }

  #keep(id: string, items: Buffer): void {
    this.clear();
    if (items.length > this.#most || !this.#room.hold(items.length)) return;
    this.#id = id;
    this.#items = items;
  }
}

type ServeMessage = (services: Services, exchange: Exchange, socketCall: SocketCall) => void;

const path = '/v1/responses';
/** Most messages that wait for the call before them. */
const maxWaiting = 8;
/** Refused messages per second at which the session is ended. */
const maxRefusals = 100;

/**
 * A client's WebSocket for responses, one at a time. Each of its messages is served like a POST with the same body, under
 * the key and limits in force at that moment. The events of the stream are sent as messages.
 */
export class ResponsesSocket extends SweepMember implements ClientSocketListener, OpenSession {
  readonly #services: Services;
  readonly #call: SessionCall;
  readonly #serve: ServeMessage;
  readonly #upstreamSession: UpstreamSession;
  readonly #history: ResponseHistory;
  /** Messages that wait, and events whose end has not arrived. */
  readonly #queued: HeldPart;
  readonly #gathered: HeldPart;
  /** What made the newest response. */
  #madeBy: SocketCall['madeBy'] = 'request';
  #client: ClientSocket | null = null;
  #running: MessageClient | null = null;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #count = 0;
  #draining = false;
  #over = false;
  /** Messages refused since the last sweep. */
  #refusals = 0;

  /** @param serve serves the request made from a message */
  constructor(services: Services, call: SessionCall, serve: ServeMessage) {
    super();
    this.#services = services;
    this.#call = call;
    this.#serve = serve;
    const { slot } = call;
    this.#upstreamSession = new UpstreamSession(services.dialer, slot.part());
    this.#queued = slot.part();
    this.#gathered = slot.part();
    this.#history = new ResponseHistory(slot.part(), call.running.snapshot.sockets.historyBytes);
  }

  begin(): void {
    this.#services.sweepList.add(this);
    const open = (): ClientSocket | null => acceptSocket(this.#call.exchange, '', this, this.#call.slot);
    const accept = guard('socket', this, open, null);
    const client = accept();
    if (client === null) this.#end();
    else if (!this.#over) {
      this.#client = client;
      this.#services.sessions.add(this, this.#services.running);
    }
  }

  get key(): Key {
    return this.#call.key;
  }

  get client(): ClientSocket | null {
    return this.#client;
  }

  /** Null: each of its calls names its own model. */
  get modelName(): null {
    return null;
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    const { exchange } = this.#call;
    exchange.bytesIn += data.length;
    if (isBinary) this.#refuse(binary);
    else if (this.#isIdle && this.#waiting.length === 0) this.#start(data);
    else this.#keep(data);
  }

  /** Whether no call is in flight, and the client has taken the last answer. */
  get #isIdle(): boolean {
    return this.#running === null && this.#client?.isBlocked !== true;
  }

  #keep(data: Buffer): void {
    const { waitingBytes } = this.#call.running.snapshot.sockets;
    const bytes = this.#waitingBytes + data.length;
    if (this.#waiting.length >= maxWaiting || bytes > waitingBytes || !this.#queued.hold(bytes)) {
      const { memory } = this.#services.sessions;
      this.#refuse(memory.isFullBy(data.length) ? full : tooManyWaiting);
      return;
    }
    this.#waitingBytes = bytes;
    this.#waiting.push(Buffer.from(data));
  }

  onBlocked(): void {}

  onDrained(): void {
    if (this.#running === null) this.#scheduleNext();
    else this.#running.drained();
  }

  onClosed(code: number): void {
    this.#client = null;
    this.#call.slot.isCut = code === closeCode.broken;
    this.#running?.leave();
    this.#end();
  }

  override onSweep(now: number): void {
    this.#refusals = 0;
    if (this.#running === null && this.#isTooOld(now)) this.#endByAge();
    else this.#client?.check(now, this.#call.running.snapshot.sockets.idleMs);
  }

  #isTooOld(now: number): boolean {
    return now - this.#call.startedAt > this.#call.running.snapshot.sockets.sessionMs;
  }

  #endByAge(): void {
    this.#refuseWaiting(tooOld);
    this.#close(closeCode.goingAway, tooOld.message);
  }

  drain(): void {
    this.#draining = true;
    if (this.#running === null) this.shutDown();
  }

  shutDown(): void {
    this.#refuseWaiting(leaving);
    this.#close(closeCode.restart, 'The gateway restarts.');
  }

  expel(error: GatewayError): void {
    this.#refuse(error);
    this.#close(closeCode.policy, error.message);
  }

  #start(message: Buffer): void {
    const client = this.#client;
    const { offer, head, id } = this.#call.exchange;
    if (client === null || offer === null) return;
    let isOpened = false;
    const socketCall: SocketCall = {
      upstreamSession: this.#upstreamSession,
      open: (bytes) => {
        const body = this.#open(socketCall, bytes);
        isOpened = true;
        return body;
      },
      isWarmUp: false,
      steering: [],
      previousId: null,
      onRecalled: (items) => this.#history.resume(items),
      madeBy: 'gateway',
    };
    const messageId = messageIdOf(id, ++this.#count);
    let served: Exchange | null = null;
    let isOver = false;
    const request = {
      method: 'POST',
      path,
      head: headOf(head, message.length),
      id: messageId,
      body: message,
    };
    const running = serveMessage(client, offer, request, {
      words,
      serve: (exchange) => {
        served = exchange;
        this.#serve(this.#services, exchange, socketCall);
      },
      onEvent: (event) => this.#history.onEvent(event, socketCall.madeBy !== 'gateway'),
      hold: (bytes) => this.#gathered.hold(bytes),
      onEnd: () => {
        this.#gathered.hold(0);
        isOver = true;
        // A message that was refused unread changes nothing of the conversation.
        if (isOpened) this.#madeBy = socketCall.madeBy;
        this.#onCallEnd(served?.status ?? 0);
      },
    });
    if (!isOver) this.#running = running;
  }

  #open(socketCall: SocketCall, message: Buffer): Buffer {
    const asked = readMessage(message);
    if (asked instanceof GatewayError) throw asked;
    const isKnown = this.#madeBy === 'session' && this.#upstreamSession.isOpen;
    const { body, previousId } = this.#begun(message, asked.body, isKnown);
    socketCall.isWarmUp = asked.isWarmUp;
    socketCall.steering = asked.steering;
    socketCall.previousId = previousId;
    return body;
  }

  /** @throws {GatewayError} for a message that is not JSON, with the position in the message, not in the body made of it */
  #begun(message: Buffer, body: Buffer, isKnown: boolean): ReturnType<ResponseHistory['begin']> {
    try {
      return this.#history.begin(body, isKnown);
    } catch (fault) {
      throw fault instanceof GatewayError ? invalidJson(message) : fault;
    }
  }

  /** Ends a session whose state may be inconsistent after a fault. */
  override onFault(where: FaultPlace, fault: unknown): void {
    this.#services.reportFault(where, fault, this.#call);
    if (this.#over) return;
    const error = asGatewayError(fault);
    this.#call.error = error;
    const [client, running] = [this.#client, this.#running];
    this.#client = null;
    this.#running = null;
    try {
      // The request may not be upgraded yet.
      if (this.#call.exchange.alive) refuse(this.#services, this.#call, error);
      this.#end();
    } finally {
      running?.leave();
      client?.close(closeCode.internal, 'internal error');
    }
  }

  /** @param status of the answer, or 0 */
  #onCallEnd(status: number): void {
    this.#running = null;
    if (status >= 400) this.#countRefusal();
    if (this.#client !== null) this.#scheduleNext();
  }

  /** Serves the next waiting message once the client has taken the last answer; otherwise unread answers would pile up. */
  #scheduleNext(): void {
    // Not synchronously within the end of the previous call, which is still to be accounted.
    const startNext = (): void => {
      if (this.#client === null || !this.#isIdle) return;
      const next = this.#waiting[0];
      if (this.#draining) this.shutDown();
      else if (next === undefined) return;
      else if (this.#isTooOld(performance.now())) this.#endByAge();
      else this.#takeQueued(next);
    };
    setImmediate(guard('socket', this, startNext));
  }

  /** Starts the first waiting message, or defers it to a later turn if its key has used enough of this one. */
  #takeQueued(message: Buffer): void {
    const { slot } = this.#call;
    const now = performance.now();
    if (slot.arrived(message.length, now)) {
      this.#waiting.shift();
      this.#waitingBytes -= message.length;
      this.#queued.hold(this.#waitingBytes);
      this.#start(message);
      slot.took(performance.now() - now);
    }
    if (this.#running === null) this.#scheduleNext();
  }

  /** Refuses the messages that wait, when the session ends before they are served. */
  #refuseWaiting(error: GatewayError): void {
    const waiting = this.#waiting.length;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#queued.hold(0);
    for (let left = waiting; left > 0; left--)
      this.#refuse(error, messageIdOf(this.#call.exchange.id, ++this.#count));
  }

  /** @param id of the message, or of the whole session */
  #refuse(error: GatewayError, id = this.#call.exchange.id): void {
    const { errorFormat } = this.#call;
    if (error.limit !== null) this.#services.reportLimit(error.limit);
    if (!this.#countRefusal()) return;
    const headers: Record<string, string> = { 'x-request-id': id };
    if (error.retryAfter !== null) headers['retry-after'] = String(error.retryAfter);
    this.#client?.send(words.whole(error.status, errorFormat.errorBody(error, id), headers));
  }

  /** @returns false if there were so many that the session has ended */
  #countRefusal(): boolean {
    if (++this.#refusals <= maxRefusals) return true;
    this.#client?.refuse('Too many refused messages.');
    return false;
  }

  #close(code: number, reason: string): void {
    this.#client?.close(code, reason);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#services.sessions.remove(this);
    this.#services.sweepList.remove(this);
    this.#waiting = [];
    try {
      this.#upstreamSession.close();
      this.#history.clear();
    } finally {
      account(this.#services, this.#call, this.#call.error === null ? 'complete' : 'incomplete');
    }
  }
}

/** The head of a message's request: the client's headers of the upgrade. */
function headOf(upgrade: RequestHead, length: number): RequestHead {
  const head = new RequestHead();
  head.authorization = upgrade.authorization;
  head.azureKey = upgrade.azureKey;
  head.host = upgrade.host;
  head.peer = upgrade.peer;
  head.forwardedFor = upgrade.forwardedFor;
  head.openaiBeta = upgrade.openaiBeta;
  head.forwarded = upgrade.forwarded;
  head.passed = upgrade.passed;
  head.sharedLines = upgrade.sharedLines;
  head.openaiLines = upgrade.openaiLines;
  head.anthropicLines = upgrade.anthropicLines;
  head.googleLines = upgrade.googleLines;
  head.contentType = 'application/json';
  head.contentLength = length;
  return head;
}

const words: MessageWords = {
  whole: (status, body, headers) => {
    const isObject = body.startsWith('{') && body.endsWith('}');
    if (status < 400 && isObject)
      return `{"type":"response.completed","sequence_number":0,"response":${body}}`;
    const start = JSON.stringify({ type: 'error', status, headers }).slice(0, -1);
    if (isObject && body.length > 2) return `${start},${body.slice(1)}`;
    const error = { message: body.slice(0, 1000), type: 'server_error', code: null, param: null };
    return `${start},"error":${JSON.stringify(error)}}`;
  },
  cut: JSON.stringify({
    type: 'error',
    status: 502,
    error: {
      message: 'The answer could not be brought to its end.',
      type: 'server_error',
      code: 'upstream_error',
      param: null,
    },
  }),
};

const binary = new GatewayError('invalid_request', 'Binary messages are not supported: send JSON text.');
const tooOld = new GatewayError('overloaded', 'The session has reached its maximum duration.', {
  retryAfter: 1,
});
const tooManyWaiting = new GatewayError(
  'rate_limit_exceeded',
  'Too many requests wait for the response in progress: wait for it to end before you send more.',
  { retryAfter: 1, limit: 'waiting_messages' },
);
