import { performance } from 'node:perf_hooks';
import type { Attempt } from '../../attempts/attempts.js';
import type { Key, Price } from '../../config/types.js';
import { addUsage, isPlausible, type Usage } from '../../conversation/usage.js';
import { asGatewayError, type FaultPlace, GatewayError, guard } from '../../errors.js';
import {
  acceptSocket,
  type ClientSocket,
  type ClientSocketListener,
  type HeldPart,
  tooBigReason,
} from '../../http/socket.js';
import { SweepMember } from '../../http/sweep.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import { isVendorAccountError, keyError } from '../../protocols/error-formats/vendor-account.js';
import { asksForResponse, isPiece, mayHaveUsage, ServerEvent } from '../../protocols/realtime/event-type.js';
import {
  clientEventId,
  errorEvent,
  judgeEvent,
  type SessionModel,
  vendorAccountErrorOfMessage,
} from '../../protocols/realtime/events.js';
import { Transcribers } from '../../protocols/realtime/transcribers.js';
import {
  expectedSeconds,
  expectedTokens,
  OpenUsage,
  secondsOfEvent,
  usageOfEvent,
} from '../../protocols/realtime/usage.js';
import type { SocketFault, UpstreamSocket } from '../../upstream/socket-types.js';
import { costOf, costsNothing, hasTokenRate } from '../../usage/cost.js';
import { OPEN_BRACE } from '../../wire/bytes.js';
import { closeCode } from '../../wire/close-code.js';
import type { Detached } from '../answer/detached-list.js';
import type { RoutedCall, SessionCall } from '../call.js';
import { innerModel, pricedModel } from '../inner-model.js';
import { account } from '../record/account.js';
import { noteImplausible, noteOtherModel } from '../record/consumption.js';
import { outcomeOf, refuse } from '../refuse.js';
import type { Services } from '../services.js';
import type { SessionSlot } from '../sockets/session-memory.js';
import type { OpenSession } from '../sockets/sessions.js';
import { budgetSpent, otherUnpaid, type PaidSession, SessionFunds } from './funds.js';
import { endOfClose, endOfFault, failureOf } from './upstream-end.js';

/** Refused messages per second at which the session is ended. */
const maxRefusals = 100;
/** Memory of a message that waits, beside its bytes. */
const messageBytes = 256;
const cancelResponse = Buffer.from('{"type":"response.cancel"}');

interface ClientMessage {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

/** A call whose two sides become WebSockets. */
export type RealtimeCall = RoutedCall & SessionCall;

/**
 * Joins two WebSockets: messages of either side go to the other unchanged. A slow client pauses its upstream. A client
 * cannot be paused, so the bytes waiting for a slow upstream are bounded. When one side ends, the other gets the reason.
 */
export class Bridge extends SweepMember implements ClientSocketListener, OpenSession, Detached, PaidSession {
  readonly #services: Services;
  readonly #call: RealtimeCall;
  readonly #upstream: UpstreamSocket;
  readonly #attempt: Attempt;
  readonly #model: SessionModel;
  readonly #slot: SessionSlot;
  /** Bytes that wait for the upstream, or for a reservation. */
  readonly #waiting: HeldPart;
  /** Messages that wait until it is known whether a budget pays for the response that the first one asks for. */
  #held: ClientMessage[] = [];
  #heldBytes = 0;
  /** Bytes of an upstream message whose end has not arrived. */
  readonly #unfinished: HeldPart;
  /** Messages of the client refused since the last sweep. */
  #refusals = 0;
  /** Error events sent to the client. */
  #errors = 0;
  #client: ClientSocket | null = null;
  /** Null for a session without a budget. */
  readonly #funds: SessionFunds | null;
  readonly #openUsage = new OpenUsage();
  readonly #transcribers = new Transcribers();
  /** Whether a response has ended without reporting its usage. */
  #isEstimated = false;
  /** Outcome of a session whose client's side has ended while the upstream is read on for its usage; null before that. */
  #leftAs: CallOutcome | null = null;
  /** Whether the upstream is paused because the client does not read, and whether it ever was. */
  #isPaused = false;
  #hasStalled = false;
  #over = false;

  /** @param attempt the attempt that opened the upstream's side; it ends with the session */
  constructor(services: Services, call: RealtimeCall, upstream: UpstreamSocket, attempt: Attempt) {
    super();
    this.#services = services;
    this.#call = call;
    this.#upstream = upstream;
    this.#attempt = attempt;
    const { model, upstream: asked } = call.target;
    this.#model = {
      model: call.model.name,
      upstreamModel: model,
      allowed: asked.allowMembers,
      transcribeBy: (name, at) => this.#transcriptionModel(name, at),
    };
    const { slot } = call;
    this.#slot = slot;
    this.#waiting = slot.part();
    this.#unfinished = slot.part();
    const { budgets, admission } = call.limits ?? { budgets: [], admission: null };
    const pools = budgets.map(({ pool }) => pool);
    this.#funds =
      pools.length === 0 || admission === null
        ? null
        : new SessionFunds(services, call, pools, admission, this);
  }

  /**
   * Upgrades the client's connection.
   * @param protocol the agreed subprotocol; empty for none
   */
  begin(protocol: string): void {
    this.#services.sweepList.add(this);
    this.#call.isServed = true;
    const open = (): ClientSocket | null => acceptSocket(this.#call.exchange, protocol, this, this.#slot);
    const accept = guard('socket', this, open, null);
    const client = accept();
    if (client === null) this.#end('client_gone', closeCode.goingAway, '');
    else if (!this.#over) this.#client = client;
    // The key may have been revoked while the upstream's side was being opened.
    if (!this.#over) this.#services.sessions.add(this, this.#services.running);
  }

  get key(): Key {
    return this.#call.key;
  }

  get keyId(): string {
    return this.#call.key.id;
  }

  get client(): ClientSocket | null {
    return this.#client;
  }

  get modelName(): string {
    return this.#call.model.name;
  }

  /** Called with a message of the client. */
  onMessage(data: Buffer, isBinary: boolean): void {
    if (!this.#takesMessages) return;
    const { exchange, running } = this.#call;
    exchange.bytesIn += data.length;
    if (this.#waitingBytes > running.snapshot.sockets.waitingBytes) this.#cutUpstream();
    else if (this.#held.length > 0) this.#holdBack(data, isBinary);
    else this.#take(data, isBinary);
  }

  get #waitingBytes(): number {
    return this.#upstream.waitingBytes + this.#heldBytes;
  }

  #take(data: Buffer, isBinary: boolean): void {
    const event = judgeEvent(data, isBinary, this.#model);
    if (event instanceof GatewayError) this.#refuseEvent(event, data);
    else if (asksForResponse(event, isBinary)) this.#ask(event, isBinary);
    else this.#send(event, isBinary);
  }

  #ask(event: Buffer, isBinary: boolean): void {
    const isPaid = this.#funds === null ? true : this.#funds.reserve(this.#openUsage.inFlight);
    if (isPaid === null) this.#holdBack(event, isBinary);
    else this.#askPaid(event, isBinary, isPaid);
  }

  #askPaid(event: Buffer, isBinary: boolean, isPaid: boolean): void {
    if (!isPaid) {
      this.#services.reportLimit('budget');
      this.#refuseEvent(otherUnpaid, event);
      return;
    }
    this.#openUsage.ask(clientEventId(event));
    this.#send(event, isBinary);
  }

  #holdBack(data: Buffer, isBinary: boolean): void {
    this.#held.push({ data: Buffer.from(data), isBinary });
    this.#heldBytes += data.length + messageBytes;
    if (!this.#waiting.hold(this.#waitingBytes)) this.#cutUpstream();
  }

  /** Called when it is known whether a budget pays for the response that the first held message asks for. */
  onReserved(isPaid: boolean): void {
    const [asked, ...later] = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    // Before the messages are sent: no drain follows for what the upstream's side keeps of them for this turn alone.
    this.#waiting.hold(this.#waitingBytes);
    if (asked !== undefined && this.#takesMessages) this.#askPaid(asked.data, asked.isBinary, isPaid);
    for (const { data, isBinary } of later) {
      if (!this.#takesMessages) return;
      if (this.#held.length > 0) this.#holdBack(data, isBinary);
      else this.#take(data, isBinary);
    }
  }

  get #takesMessages(): boolean {
    return !this.#over && this.#leftAs === null;
  }

  #refuseEvent(error: GatewayError, event: Buffer): void {
    if (++this.#refusals > maxRefusals) {
      this.#call.error = tooMany;
      this.#client?.refuse(tooMany.message);
    } else this.#tell(error, clientEventId(event) ?? null);
  }

  /** @param refused id of the client's event that is refused; null for none */
  #tell(error: GatewayError, refused: string | null): void {
    this.#client?.send(errorEvent(error, `${this.#call.exchange.id}_${++this.#errors}`, refused));
  }

  #send(event: Buffer, isBinary: boolean): void {
    if (!this.#upstream.send(event, isBinary) && !this.#waiting.hold(this.#waitingBytes)) this.#cutUpstream();
  }

  /** Judged by the config of the moment. A key that has been removed since is one of a session that is about to end. */
  #transcriptionModel(name: string, at: string): string | GatewayError {
    const { key, target } = this.#call;
    const { snapshot, keys } = this.#services.running;
    return innerModel(name, at, 'transcribe the input', {
      snapshot,
      key: keys.current(key) ?? key,
      upstream: target.upstream,
    });
  }

  /** Terminates the upstream: a close frame would queue behind the waiting bytes, which would stay in memory as long. */
  #cutUpstream(): void {
    this.#upstream.terminate();
    this.#refuse(tooSlow, closeCode.tryLater, false);
  }

  /** Called when the upstream has taken waiting bytes. */
  onUpstreamDrained(): void {
    this.#waiting.hold(this.#waitingBytes);
  }

  onBlocked(): void {
    this.#hasStalled = true;
    this.#isPaused = true;
    if (!this.#over) this.#upstream.pause();
  }

  /** Called when the client has taken all waiting bytes. */
  onDrained(): void {
    this.#isPaused = false;
    if (!this.#over) this.#upstream.resume();
  }

  /** Called when the client's side has ended. */
  onClosed(code: number, reason: string): void {
    this.#client = null;
    // The gateway closed it, and reads the upstream on.
    if (this.#leftAs !== null) return;
    if (reason === tooBigReason) this.#call.error = tooBig(this.#call.running.snapshot.sockets.messageBytes);
    const isOrderly = code !== closeCode.broken;
    this.#slot.isCut = !isOrderly;
    const outcome = this.#call.error !== null ? 'refused' : isOrderly ? 'complete' : 'client_gone';
    if (!this.#readOn(outcome)) this.#end(outcome, isOrderly ? code : closeCode.goingAway, reason);
  }

  /**
   * Called when the client's side ends before the usage is known. Cancels the response in progress and reads the upstream
   * on for its usage.
   * @returns false if no response is in progress, or the upstream may not be read on; the session ends then
   */
  #readOn(outcome: CallOutcome): boolean {
    if (this.#over || !this.#openUsage.isOpen) return false;
    if (this.#call.target.upstream.onLeave === 'cancel' || !this.#services.detached.hasRoom(this.keyId))
      return false;
    this.#leftAs = outcome;
    this.#call.leftAt = performance.now();
    this.#services.detached.add(this);
    this.#call.limits?.freeSlots();
    this.#isPaused = false;
    this.#upstream.resume();
    if (this.#openUsage.mayMakeResponse) this.#upstream.send(cancelResponse, false);
    return true;
  }

  /** Stops reading an upstream whose client has disconnected. */
  stop(): void {
    if (this.#leftAs !== null) this.#end(this.#leftAs, closeCode.goingAway, '');
  }

  /** Called with a message of the upstream. */
  onUpstreamMessage(data: Buffer, isBinary: boolean): void {
    const client = this.#client;
    if (client === null && (this.#leftAs === null || this.#over)) return;
    const call = this.#call;
    if (call.answeredAt === 0) call.answeredAt = performance.now();
    const { secrets } = call.target.upstream;
    // Some servers send their events in binary frames.
    const mayBeEvent = !isBinary || data[0] === OPEN_BRACE;
    const isHarmless = mayBeEvent && isPiece(data);
    const failure = isHarmless
      ? keyError(data, secrets)
      : vendorAccountErrorOfMessage(data, isBinary, secrets);
    if (failure !== null) {
      this.#refuseFor(failure, closeCode.internal);
      return;
    }
    if (isHarmless) this.#openUsage.noteDelta(data);
    else if (mayBeEvent) this.#recordUsage(data);
    if (client === null) {
      if (!this.#openUsage.isOpen) this.stop();
      return;
    }
    call.exchange.bytesOut += data.length;
    client.gather(data, isBinary);
  }

  #recordUsage(bytes: Buffer): void {
    const call = this.#call;
    if (!mayHaveUsage(bytes)) {
      this.#openUsage.noteDelta(bytes);
      this.#funds?.release(this.#openUsage.inFlight);
      return;
    }
    const event = new ServerEvent(bytes);
    if (this.#openUsage.tellsAgain(event)) return;
    this.#transcribers.note(event);
    const reported = usageOfEvent(event);
    const usage = reported !== null && isPlausible(reported, call.model.tokens, 0) ? reported : null;
    const isImplausible = reported !== usage;
    const told = noteImplausible(call, isImplausible ? reported : null, secondsOfEvent(event));
    const isUnreported = usage === null && (isImplausible || told === 0);
    const estimated = this.#openUsage.note(event, usage, isUnreported);
    const { inFlight } = this.#openUsage;
    if (estimated !== null) this.#isEstimated = true;
    let used = usage ?? estimated;
    const counted = reported === null ? told : 0;
    if (used === null && counted === 0) {
      this.#funds?.release(inFlight);
      return;
    }
    const other = this.#otherModel(event, used, counted);
    const price = other === null ? (call.model.price ?? call.target.cost) : other.price;
    if (used === null && isOfTokens(price)) {
      used = expectedTokens(event, counted);
      this.#isEstimated = true;
    }
    const seconds = secondsAt(price, event, used, counted);
    if (other !== null) noteOtherModel(call, other.model, { target: other.target, usage: used, seconds });
    else {
      if (used !== null) call.usage = addUsage(call.usage, used);
      call.mediaSeconds += seconds;
    }
    this.#funds?.pay(inFlight);
    this.#funds?.release(inFlight);
  }

  /**
   * Returns the model with a price for what is counted that has made the transcript in an event; null for any other event.
   * Where the session's model costs nothing, no budget was asked for it, and its transcripts cost nothing.
   */
  #otherModel(event: ServerEvent, usage: Usage | null, counted: number): ReturnType<typeof pricedModel> {
    const { key, model, target, running } = this.#call;
    const name = this.#transcribers.of(event);
    // Another model of the config may have the same name at the upstream.
    if (name === null || name === target.model) return null;
    if (model.price === null || costsNothing(model.price)) return null;
    const other = pricedModel(name, { snapshot: running.snapshot, key, upstream: target.upstream });
    if (other === null || costsNothing(other.price)) return other;
    const seconds = secondsAt(other.price, event, usage, counted);
    return costOf(other.price, { usage, seconds, units: 1 }) > 0 ? other : null;
  }

  /** Adds the usage of a response in progress, which nobody will report: as much as was shown of it. */
  #addOpenUsage(): void {
    const { usage } = this.#call;
    const { isOpen, shown } = this.#openUsage;
    if (!isOpen) {
      if (usage !== null && this.#isEstimated) this.#call.usage = { ...usage, estimated: true };
      return;
    }
    const used = shown === null ? usage : addUsage(usage, shown);
    if (used !== null) this.#call.usage = { ...used, partial: true };
  }

  /** Called after a read of the upstream's socket; its messages are valid only until here. */
  onUpstreamReadEnd(): void {
    this.#client?.flush();
    if (this.#funds?.isSpent) this.onSpent();
  }

  /** Called when a budget has too little left for another response. */
  onSpent(): void {
    this.#refuse(budgetSpent, closeCode.policy, true);
  }

  /** Counts the bytes that the upstream's side keeps. @returns false if they do not fit; that side ends then */
  holdOfUpstream(bytes: number): boolean {
    return this.#unfinished.hold(bytes);
  }

  /** Called when the upstream's side has ended. @param fault see `SocketListener.onClosed` */
  onUpstreamClosed(code: number, reason: Buffer, fault: SocketFault | null): void {
    if (this.#over) return;
    const { upstream } = this.#call.target;
    const words = reason.toString('utf8');
    const end =
      fault === null
        ? endOfClose(code, words, this.#openUsage.hasResponse, upstream)
        : endOfFault(code, fault);
    const failure = failureOf(end, this.#hasStalled);
    if (failure !== null) this.#attempt.failed(failure, true);
    if (end.error !== null && end.code !== null) {
      this.#refuseFor(end.error, end.code);
      return;
    }
    // After the client has disconnected, the outcome is already decided.
    if (this.#leftAs === null) this.#call.error = end.error;
    this.#end(this.#leftAs ?? (end.error === null ? 'complete' : 'upstream_error'), null, '');
    this.#closeClient(code, words);
  }

  override onSweep(now: number): void {
    const { sockets, timeouts } = this.#call.running.snapshot;
    const { sessionMs, idleMs } = sockets;
    this.#refusals = 0;
    this.#openUsage.forgetIgnored(now, timeouts.firstByteMs, !this.#isPaused);
    this.#funds?.release(this.#openUsage.inFlight);
    if (now - this.#call.startedAt > sessionMs) this.#refuse(expired, closeCode.goingAway, true);
    else this.#client?.check(now, idleMs);
  }

  /** No-op: only the two sides know when a session is over. */
  drain(): void {}

  shutDown(): void {
    this.#end('incomplete', closeCode.goingAway, '');
    this.#closeClient(closeCode.restart, 'The gateway restarts.');
  }

  expel(error: GatewayError): void {
    this.#refuse(error, closeCode.policy, true);
  }

  /** Ends the session with an error of the upstream, which may be about our account. */
  #refuseFor(error: GatewayError, code: number): void {
    if (isVendorAccountError(error)) this.#attempt.accountRefused(error);
    this.#refuse(error, code, false);
  }

  /** Ends a session whose state may be inconsistent after a fault, and tells its client. */
  override onFault(where: FaultPlace, fault: unknown): void {
    this.#services.reportFault(where, fault, this.#call);
    if (this.#over) return;
    const error = asGatewayError(fault);
    try {
      this.#call.error = error;
      // The request may not be upgraded yet.
      if (this.#call.exchange.alive) refuse(this.#services, this.#call, error);
      this.#tell(error, null);
    } finally {
      this.#end('refused', closeCode.goingAway, '');
      this.#closeClient(closeCode.internal, error.message);
    }
  }

  /**
   * Ends the client's side with an error of the gateway's own. No-op for a client's side that has ended.
   * @param mayReadOn whether the upstream is not at fault, and so may be read on for its usage; else its side ends, too
   */
  #refuse(error: GatewayError, code: number, mayReadOn: boolean): void {
    if (this.#over) return;
    if (this.#leftAs !== null) {
      if (!mayReadOn) this.stop();
      return;
    }
    this.#call.error = error;
    if (error.limit !== null) this.#services.reportLimit(error.limit);
    this.#tell(error, null);
    const outcome = outcomeOf(error);
    if (!mayReadOn || !this.#readOn(outcome)) this.#end(outcome, closeCode.goingAway, '');
    this.#closeClient(code, error.message);
  }

  /** Called last, since uWS reports the end of the socket synchronously. */
  #closeClient(code: number, reason: string): void {
    const client = this.#client;
    this.#client = null;
    client?.close(code, reason);
  }

  /** @param code close code for the upstream, or null if its side has ended already */
  #end(outcome: CallOutcome, code: number | null, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    const services = this.#services;
    services.sweepList.remove(this);
    services.sessions.remove(this);
    services.detached.remove(this);
    try {
      if (code !== null) this.#upstream.close(code, reason);
      this.#slot.leftBytes = this.#upstream.waitingBytes;
      this.#attempt.succeeded();
    } finally {
      this.#addOpenUsage();
      this.#funds?.end();
      account(services, this.#call, outcome);
    }
  }
}

/**
 * Returns the seconds of what an event reports: those that it counts, or an estimate where a transcript that counts none would
 * cost nothing.
 */
function secondsAt(price: Price | null, event: ServerEvent, usage: Usage | null, counted: number): number {
  if (counted > 0 || price === null || price.rates.perSecond === 0 || hasTokenRate(price.rates))
    return counted;
  return expectedSeconds(event, usage);
}

/** Whether seconds cost nothing where tokens do. */
function isOfTokens(price: Price | null): boolean {
  return price !== null && price.rates.perSecond === 0 && hasTokenRate(price.rates);
}

// Created once, so that a flood of them costs no stack traces.
const tooSlow = new GatewayError('overloaded', 'The upstream reads more slowly than the client sends.');
const tooMany = new GatewayError('invalid_request', 'Too many invalid messages.');
const expired = new GatewayError('invalid_request', 'The session has reached its maximum duration.');

function tooBig(bytes: number): GatewayError {
  return new GatewayError('request_too_large', `A message may have ${bytes} bytes at most.`);
}
