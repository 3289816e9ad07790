import { performance } from 'node:perf_hooks';
import type { Attempt } from '../../attempts/attempts.js';
import { masked } from '../../attempts/secrets.js';
import type { Key, Upstream } from '../../config/types.js';
import { addUsage } from '../../conversation/usage.js';
import { type AttemptFailure, asGatewayError, type FaultPlace, GatewayError, guard } from '../../errors.js';
import {
  acceptSocket,
  type ClientSocket,
  type ClientSocketListener,
  type HeldPart,
  tooBigReason,
} from '../../http/socket.js';
import { Swept } from '../../http/sweep.js';
import type { CallOutcome } from '../../metrics/call-record.js';
import {
  isVendorAccountError,
  keyError,
  vendorAccountErrorOfClose,
} from '../../protocols/error-formats/vendor-account.js';
import { isPiece, mayAskForResponse, mayTellUsage } from '../../protocols/realtime/event-type.js';
import {
  errorEvent,
  judgeEvent,
  type SessionModel,
  vendorAccountErrorOfMessage,
} from '../../protocols/realtime/events.js';
import { OpenUsage, secondsOfEvent, usageOfEvent } from '../../protocols/realtime/usage.js';
import type { SocketFault, UpstreamSocket } from '../../upstream/socket-types.js';
import { closeCode } from '../../wire/close-code.js';
import type { Detached } from '../answer/detached-list.js';
import type { RoutedCall, SessionCall } from '../call.js';
import { account } from '../record/account.js';
import { outcomeOf, refuse } from '../refuse.js';
import type { Services } from '../services.js';
import type { SessionSlot } from '../sockets/session-memory.js';
import type { OpenSession } from '../sockets/sessions.js';
import { budgetSpent, SessionFunds } from './funds.js';

/** Messages that are refused in a second, before the client is taken for one that does not want answers. */
const mostRefusals = 100;
const cancelResponse = Buffer.from('{"type":"response.cancel"}');

/** A call of which both sides become WebSockets. */
export type RealtimeCall = RoutedCall & SessionCall;

/**
 * Two WebSockets as one: what comes from either side goes to the other as it came. A client that does not keep up
 * stops its upstream; a client cannot be stopped, so what waits for a slow upstream is bounded. Whichever side ends, the
 * other is told why.
 */
export class Bridge extends Swept implements ClientSocketListener, OpenSession, Detached {
  readonly #services: Services;
  readonly #call: RealtimeCall;
  readonly #upstream: UpstreamSocket;
  readonly #attempt: Attempt;
  readonly #model: SessionModel;
  readonly #slot: SessionSlot;
  /** What waits for the upstream. */
  readonly #waiting: HeldPart;
  /** What there is of a message of the upstream whose end has not come. */
  readonly #unfinished: HeldPart;
  /** Messages of the client that were not taken since the last sweep. */
  #refusals = 0;
  #client: ClientSocket | null = null;
  /** Null for a session that no budget pays for. */
  readonly #funds: SessionFunds | null;
  readonly #openUsage = new OpenUsage();
  /** A response has ended without telling what it has used. */
  #isEstimated = false;
  /** How the session ends whose client's side has ended, while its upstream is heard to learn what it has used. */
  #leftAs: CallOutcome | null = null;
  /** The upstream was not read for a while, since the client did not read. */
  #hasStalled = false;
  #over = false;

  /** @param attempt the attempt that has opened the upstream's side; it ends with the session */
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
    };
    const { slot } = call;
    this.#slot = slot;
    this.#waiting = slot.part();
    this.#unfinished = slot.part();
    const { budgets, admission } = call.limited ?? { budgets: [], admission: null };
    const pools = budgets.map(({ pool }) => pool);
    this.#funds =
      pools.length === 0 || admission === null
        ? null
        : new SessionFunds(services, call, pools, admission, () => this.#endUnpaid());
  }

  /**
   * Gives the client its side.
   * @param protocol the subprotocol to agree on; empty for none
   */
  begin(protocol: string): void {
    this.#services.sweepList.add(this);
    this.#call.isServed = true;
    const open = (): ClientSocket | null => acceptSocket(this.#call.exchange, protocol, this, this.#slot);
    const accept = guard('socket', this, open, null);
    const client = accept();
    if (client === null) this.#end('client_gone', closeCode.goingAway, '');
    else if (!this.#over) this.#client = client;
    // Its key may have been revoked while the upstream's side was opened.
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

  /** A message of the client. */
  onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#over || this.#leftAs !== null) return;
    const { exchange, running } = this.#call;
    exchange.bytesIn += data.length;
    const upstream = this.#upstream;
    if (upstream.waitingBytes > running.snapshot.sockets.waitingBytes) {
      this.#cutUpstream();
      return;
    }
    const event = judgeEvent(data, isBinary, this.#model);
    if (event instanceof GatewayError) {
      if (++this.#refusals > mostRefusals) {
        this.#call.error = tooMany;
        this.#client?.refuse(tooMany.message);
      } else this.#client?.send(errorEvent(event, exchange.id), false);
      return;
    }
    if (mayAskForResponse(event, isBinary)) this.#openUsage.ask();
    if (!upstream.send(event, isBinary) && !this.#waiting.hold(upstream.waitingBytes)) this.#cutUpstream();
  }

  /** A close frame would stand behind all that waits, and that would stay in memory for as long. */
  #cutUpstream(): void {
    this.#upstream.terminate();
    this.#refuse(tooSlow, closeCode.tryLater, false);
  }

  /** The upstream has taken what waited for it. */
  onUpstreamDrained(): void {
    this.#waiting.hold(this.#upstream.waitingBytes);
  }

  onBlocked(): void {
    this.#hasStalled = true;
    if (!this.#over) this.#upstream.pause();
  }

  /** The client has taken what waited for it. */
  onDrained(): void {
    if (!this.#over) this.#upstream.resume();
  }

  /** The client's side has ended. */
  onClosed(code: number, reason: string): void {
    this.#client = null;
    // The gateway has ended it, and hears the upstream on.
    if (this.#leftAs !== null) return;
    if (reason === tooBigReason) this.#call.error = tooBig(this.#call.running.snapshot.sockets.messageBytes);
    const isOrderly = code !== closeCode.broken;
    this.#slot.isCut = !isOrderly;
    const outcome = this.#call.error !== null ? 'refused' : isOrderly ? 'complete' : 'client_gone';
    if (!this.#hearOn(outcome)) this.#end(outcome, isOrderly ? code : closeCode.goingAway, reason);
  }

  /**
   * The client's side ends before it was told what it has used: the upstream is to end what it makes, and to tell.
   * @returns false where nothing is open, or nobody may hear the upstream any more: the session ends then
   */
  #hearOn(outcome: CallOutcome): boolean {
    if (this.#over || !this.#openUsage.isOpen) return false;
    if (this.#call.target.upstream.onLeave === 'cancel' || !this.#services.detached.hasRoom(this.keyId))
      return false;
    this.#leftAs = outcome;
    this.#call.leftAt = performance.now();
    this.#services.detached.add(this);
    this.#call.limited?.freeSlots();
    this.#upstream.resume();
    if (this.#openUsage.mayMakeResponse) this.#upstream.send(cancelResponse, false);
    return true;
  }

  /** Hears no more of an upstream whose client has left. */
  stop(): void {
    if (this.#leftAs !== null) this.#end(this.#leftAs, closeCode.goingAway, '');
  }

  /** A message of the upstream. */
  onUpstreamMessage(data: Buffer, isBinary: boolean): void {
    const client = this.#client;
    if (client === null && (this.#leftAs === null || this.#over)) return;
    const call = this.#call;
    if (call.answeredAt === 0) call.answeredAt = performance.now();
    const { secrets } = call.target.upstream;
    const isHarmless = !isBinary && isPiece(data);
    const failure = isHarmless
      ? keyError(data, secrets)
      : vendorAccountErrorOfMessage(data, isBinary, secrets);
    if (failure !== null) {
      this.#refuseFor(failure, closeCode.internal);
      return;
    }
    if (isHarmless) this.#openUsage.noteDelta(data);
    else if (!isBinary) this.#noteUsage(data);
    if (client === null) {
      if (!this.#openUsage.isOpen) this.stop();
      return;
    }
    call.exchange.bytesOut += data.length;
    client.gather(data, isBinary);
  }

  #noteUsage(event: Buffer): void {
    const call = this.#call;
    if (!mayTellUsage(event)) {
      this.#openUsage.noteDelta(event);
      return;
    }
    if (this.#openUsage.tellsAgain(event)) return;
    const usage = usageOfEvent(event);
    const untold = this.#openUsage.note(event, usage);
    if (untold !== null) this.#isEstimated = true;
    const used = usage ?? untold;
    if (used !== null) call.usage = addUsage(call.usage, used);
    const seconds = usage === null ? secondsOfEvent(event) : 0;
    call.mediaSeconds += seconds;
    if (used !== null || seconds > 0) this.#funds?.pay();
  }

  /** What is still being made is told by nobody any more: it counts as far as it was shown. */
  #noteOpenUsage(): void {
    const { usage } = this.#call;
    const { isOpen, shown } = this.#openUsage;
    if (!isOpen) {
      if (usage !== null && this.#isEstimated) this.#call.usage = { ...usage, estimated: true };
      return;
    }
    const used = shown === null ? usage : addUsage(usage, shown);
    if (used !== null) this.#call.usage = { ...used, partial: true };
  }

  /** The upstream's messages are valid until here. */
  onUpstreamReadEnd(): void {
    this.#client?.flush();
    if (this.#funds?.isSpent) this.#endUnpaid();
  }

  #endUnpaid(): void {
    this.#refuse(budgetSpent, closeCode.policy, true);
  }

  /** What the upstream's side keeps. @returns false when there is no room for so much: that side ends then */
  holdOfUpstream(bytes: number): boolean {
    return this.#unfinished.hold(bytes);
  }

  /** The upstream's side has ended. @param fault see `SocketListener.onClosed` */
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
    // Whose client has left ends as it was to end then.
    if (this.#leftAs === null) this.#call.error = end.error;
    this.#end(this.#leftAs ?? (end.error === null ? 'complete' : 'upstream_error'), null, '');
    this.#closeClient(code, words);
  }

  override onSweep(now: number): void {
    const { sessionMs, idleMs } = this.#call.running.snapshot.sockets;
    this.#refusals = 0;
    if (now - this.#call.startedAt > sessionMs) this.#refuse(expired, closeCode.goingAway, true);
    else this.#client?.check(now, idleMs);
  }

  /** Only its two sides know when a session is over. */
  drain(): void {}

  shutDown(): void {
    this.#end('incomplete', closeCode.goingAway, '');
    this.#closeClient(closeCode.restart, 'The gateway restarts.');
  }

  expel(error: GatewayError): void {
    this.#refuse(error, closeCode.policy, true);
  }

  /** The upstream speaks of our account there, or tells of it: a session can not go on without it. */
  #refuseFor(error: GatewayError, code: number): void {
    if (isVendorAccountError(error)) this.#attempt.accountRefused(error);
    this.#refuse(error, code, false);
  }

  /** A session whose state may not be what it says is ended, and its client told so. */
  override onFault(where: FaultPlace, fault: unknown): void {
    this.#services.reportFault(where, fault, this.#call);
    if (this.#over) return;
    const error = asGatewayError(fault);
    try {
      this.#call.error = error;
      // Its request may not have become a socket yet.
      if (this.#call.exchange.alive) refuse(this.#services, this.#call, error);
      this.#client?.send(errorEvent(error, this.#call.exchange.id), false);
    } finally {
      this.#end('refused', closeCode.goingAway, '');
      this.#closeClient(closeCode.internal, error.message);
    }
  }

  /**
   * Ends the client's side with an error of the gateway's own; one that has ended stays as it is.
   * @param mayHearOn the upstream has done nothing wrong, and bills what it was asked for: else its side ends, too
   */
  #refuse(error: GatewayError, code: number, mayHearOn: boolean): void {
    if (this.#over) return;
    if (this.#leftAs !== null) {
      if (!mayHearOn) this.stop();
      return;
    }
    const { exchange } = this.#call;
    this.#call.error = error;
    if (error.limit !== null) this.#services.reportLimit(error.limit);
    this.#client?.send(errorEvent(error, exchange.id), false);
    const outcome = outcomeOf(error);
    if (!mayHearOn || !this.#hearOn(outcome)) this.#end(outcome, closeCode.goingAway, '');
    this.#closeClient(code, error.message);
  }

  /** After what ends the session or hears on, since uWS tells at once that the socket has ended. */
  #closeClient(code: number, reason: string): void {
    const client = this.#client;
    this.#client = null;
    client?.close(code, reason);
  }

  /** @param code for the upstream, or null when its side has ended already */
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
      this.#noteOpenUsage();
      this.#funds?.end();
      account(services, this.#call, outcome);
    }
  }
}

// Made once: a flood of them pays for no stack traces.
const tooSlow = new GatewayError('overloaded', 'The upstream reads more slowly than the client sends.');
const tooMany = new GatewayError('invalid_request', 'Too many invalid messages.');
const expired = new GatewayError('invalid_request', 'The session has reached its maximum duration.');

function tooBig(bytes: number): GatewayError {
  return new GatewayError('request_too_large', `A message may have ${bytes} bytes at most.`);
}

/** What it means that an upstream's side of a session has ended. */
interface UpstreamEnd {
  /** How the attempt has failed; null where it has not, or where the error says it as one about our account. */
  readonly failure: AttemptFailure | null;
  /** Null for an orderly end. */
  readonly error: GatewayError | null;
  /** With which the client is told the error; null where it gets the upstream's own code and reason. */
  readonly code: number | null;
}

const orderly: ReadonlySet<number> = new Set([closeCode.normal, closeCode.noCode, closeCode.goingAway]);
/** They say that the server cannot go on. What any other says may be the doing of the client. */
const ofServer: ReadonlySet<number> = new Set([
  closeCode.protocolError,
  closeCode.internal,
  closeCode.restart,
  closeCode.tryLater,
  closeCode.badGateway,
]);

/** How an upstream ends a session of which it hears nothing. */
const ofSilence: ReadonlySet<AttemptFailure> = new Set(['truncated', 'reset', 'idle_timeout']);

/**
 * How an attempt has failed by the end of a session; null for what may be the client's doing.
 * @param hasStalled the client has let its messages wait, and with them the upstream's pings
 */
function failureOf({ failure }: UpstreamEnd, hasStalled: boolean): AttemptFailure | null {
  return failure !== null && hasStalled && ofSilence.has(failure) ? null : failure;
}

/**
 * Judges a close frame of an upstream.
 * @param isWithin a response is under way, of which the rest will not come
 */
function endOfClose(code: number, reason: string, isWithin: boolean, upstream: Upstream): UpstreamEnd {
  const told = vendorAccountErrorOfClose(code, reason, upstream.secrets);
  if (isVendorAccountError(told)) return { failure: null, error: told, code: closeCode.internal };
  const isCut = isWithin && code === closeCode.goingAway;
  if (orderly.has(code) && !isCut && told === null) return { failure: null, error: null, code: null };
  const cause = reason === '' ? `close ${code}` : `close ${code}: ${masked(reason, upstream)}`;
  return {
    failure: isCut || ofServer.has(code) ? 'truncated' : null,
    error: new GatewayError('upstream_error', told?.message ?? 'The upstream closed the session.', { cause }),
    code: told === null ? null : closeCode.internal,
  };
}

/** Judges an end without a close frame of the upstream. @param sent the code that tells of it */
function endOfFault(sent: number, { reason, detail }: SocketFault): UpstreamEnd {
  const isBroken = sent === closeCode.broken;
  const failed = (error: GatewayError, code: number | null): UpstreamEnd => ({
    failure: reason,
    error,
    code,
  });
  if (reason === 'no_room') return failed(noRoom, closeCode.tryLater);
  const cause = `${reason}: ${detail}`;
  if (!isBroken) return failed(new GatewayError('upstream_error', null, { cause }), null);
  const error =
    reason === 'idle_timeout'
      ? new GatewayError('upstream_timeout', 'The upstream no longer responds.', { cause })
      : new GatewayError('upstream_error', 'The connection to the upstream was lost.', { cause });
  return failed(error, closeCode.internal);
}

// Made once: a flood of them pays for no stack traces.
const noRoom = new GatewayError(
  'overloaded',
  "There is no memory for the upstream's message: the WebSockets of this key hold as much as they may.",
  { cause: 'no_room: a message found no room' },
);
