import { performance } from 'node:perf_hooks';
import type { AttemptPlan } from '../../attempts/attempts.js';
import { type AttemptOwner, RelayedAttempt } from '../../attempts/relayed-attempt.js';
import type { Target } from '../../config/types.js';
import { GatewayError, guard } from '../../errors.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import { isVendorAccountError } from '../../protocols/error-formats/vendor-account.js';
import type { UpstreamExchange } from '../../upstream/types.js';
import { type AnswerTaker, HeldAnswer, heldBackOf } from '../answer/held.js';
import { type Call, deadlinesLeft, type RoutedCall } from '../call.js';
import { keepMemory, takeMemory } from '../memory-budget.js';
import { noteFailed, noteGivenUp } from '../record/consumption.js';
import type { Services } from '../services.js';
import { mediaToFetch } from './fetch-media.js';
import {
  decodeCall,
  hasOtherForm,
  type Prepared,
  postAttempt,
  prepareNative,
  prepareTranslated,
  writtenBytes,
} from './prepare.js';

/** The part of a forwarded call (`Forwarding`) that a second attempt beside its first needs. */
interface HedgedCall extends AttemptOwner {
  readonly services: Services;
  readonly call: RoutedCall;
  readonly endpoint: Endpoint;
  readonly plan: AttemptPlan;
  /** Its `awaited` is cancelled when the client disconnects. */
  readonly relay: AnswerTaker & { awaited: UpstreamExchange | null };
  /** Makes the attempt the only one of the call from now on. */
  adopt(attempt: RelayedAttempt): void;
  /** Starts the time limit for the first event of the target's stream. */
  awaitFirstToken(target: Target): void;
}

/**
 * A call that may get a second attempt beside its first. If the first has not answered in time, the call is sent to a second
 * target as well, and the first good answer of either is used. Until then, this object represents both to the client's side.
 */
export class Hedge implements UpstreamExchange {
  readonly #hedged: HedgedCall;
  #first: RelayedAttempt;
  #second: RelayedAttempt | null = null;
  /** One attempt continues alone, and this object represents it. */
  #isOver = false;
  /** Until the call is sent to the second target, or is known not to be. */
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param first sent just now
   * @param ms milliseconds until the call is sent to the second target
   */
  constructor(hedged: HedgedCall, first: RelayedAttempt, ms: number) {
    this.#hedged = hedged;
    this.#first = first;
    hedged.relay.awaited = this;
    hedged.services.hedges.earn(hedged.call.model);
    this.#holdBack(first);
    const late = guard('timer', hedged.call, () => {
      if (this.#timer === timer) this.#askSecond();
    });
    // After a blocked event loop, the first answer may be waiting. It is read before the immediate runs.
    const timer = setTimeout(() => setImmediate(late), ms);
    this.#timer = timer;
  }

  get sentAt(): number {
    return this.#first.sentAt;
  }

  get isWritten(): boolean {
    return this.#first.isWritten;
  }

  get bodyReleased(): boolean {
    return this.#first.bodyReleased;
  }

  /** Two attempts are in flight. */
  get isOfTwo(): boolean {
    return !this.#isOver && this.#second !== null;
  }

  /** Neither attempt is paused: only the beginnings of their streams are read. */
  resume(): void {}

  cancel(): void {
    this.#stopTimer();
    this.#first.cancel();
    this.#second?.cancel();
  }

  /** Chooses an attempt with a good answer, and cancels the other one. */
  choose(attempt: RelayedAttempt): void {
    const { services, call } = this.#hedged;
    if (attempt === this.#second) services.recorder.count('gateway_hedges_total', 1, call.model.name, 'won');
    if (this.#isOver) return;
    const other = this.#endWithout(attempt);
    if (other !== null) {
      noteGivenUp(call, other);
      other.cancel();
    }
    this.#adopt(attempt);
  }

  /**
   * Called when an attempt is useless: it has failed, its answer is an error, or nothing has arrived in time.
   * @returns true if the other one is in flight, with which the call continues
   */
  switchToOther(attempt: RelayedAttempt): boolean {
    if (this.#isOver) return false;
    const other = this.#endWithout(attempt);
    if (other !== null) {
      noteFailed(this.#hedged.call, attempt);
      this.#adopt(other);
      this.#hedged.awaitFirstToken(other.target);
    }
    // No second attempt was sent. This answer may be relayed, and its attempt waits for the client on its own from now on.
    else this.#hedged.relay.awaited = attempt;
    return other !== null;
  }

  /** As in `AnswerChooser` of `answer/held`. */
  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean {
    if (!this.switchToOther(attempt)) return false;
    if (error !== null) attempt.unusable(error);
    if (isVendorAccountError(error)) attempt.report(error);
    attempt.cancel();
    return true;
  }

  /** Called when the client has disconnected before any part of an answer was relayed. One attempt continues alone. */
  onClientLeft(): void {
    const first = this.#first;
    const second = this.#second;
    // Cancels the one that is further from an answer, or the second if both are as far.
    const hindmost = second === null || progressOf(second) > progressOf(first) ? first : second;
    if (this.giveUpForOther(hindmost, null)) noteGivenUp(this.#hedged.call, hindmost);
  }

  /** Drops the other attempt with what was held back of it, since a stream may last long. */
  #adopt(attempt: RelayedAttempt): void {
    this.#first = attempt;
    if (attempt !== this.#second) this.#second = null;
    this.#hedged.adopt(attempt);
  }

  /** @returns the other attempt, or null if there is none */
  #endWithout(attempt: RelayedAttempt): RelayedAttempt | null {
    this.#isOver = true;
    this.#stopTimer();
    return attempt === this.#first ? this.#second : this.#first;
  }

  #holdBack(attempt: RelayedAttempt): void {
    const { call, relay } = this.#hedged;
    attempt.handler = new HeldAnswer(this, relay, attempt, call.validated?.stream === true);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #askSecond(): void {
    const { services, call, endpoint, plan } = this.#hedged;
    const { hedges } = services;
    const { next } = plan;
    if (!hedges.hasRoom(call.model) || next === null) return;
    try {
      const prepared = prepareHedge(services, call, endpoint, next);
      // Only an attempt that is sent changes the call's plan: the call may still fail over to a target that was skipped
      // here.
      if (prepared === null) return;
      plan.goTo(next);
      const second = new RelayedAttempt(services, plan, this.#hedged, this.#hedged.relay, prepared);
      this.#second = second;
      this.#holdBack(second);
      second.exchange = postAttempt(services, call, second, prepared, deadlinesLeft(call));
      call.retries++;
      hedges.spend(call.model);
      services.recorder.count('gateway_hedges_total', 1, call.model.name, 'sent');
    } catch (fault) {
      // The first is still in flight.
      this.#second?.withdraw();
      this.#second = null;
      if (!(fault instanceof GatewayError)) services.reportFault('timer', fault, call);
    }
  }
}

/**
 * Returns how far an attempt has progressed whose answer was not relayed. One whose error is arriving counts as less than a
 * silent one.
 */
function progressOf(attempt: RelayedAttempt): number {
  if (attempt.isErrorComing) return 0;
  return heldBackOf(attempt) === null ? 1 : 2;
}

/**
 * Whether a call may be sent to two targets concurrently: its body is in memory, and it is known whether its answer is a
 * stream.
 */
export function mayHedge(
  { body, upload, socketCall, validated, retries }: Call,
  endpoint: Endpoint,
): boolean {
  const isHeld = body !== null && upload === null && socketCall === null;
  return isHeld && retries === 0 && !(validated?.stream && endpoint.streamsUnasked);
}

/**
 * Prepares a call for a second target beside the first.
 * @returns null for a call that takes more than sending it, or may be sent only once
 * @throws {GatewayError} for what the target's protocol cannot express, and if there is no memory for it
 */
function prepareHedge(services: Services, call: Call, endpoint: Endpoint, target: Target): Prepared | null {
  if (target.native.has(endpoint.protocol)) {
    if (services.lacking.has(target, endpoint, performance.now())) return null;
    if (hasOtherForm(endpoint, target)) return prepareAnew(services, call, endpoint, target);
    const prepared = prepareNative(services, call, { endpoint, target, apiKey: null });
    // The second target might store what the first would not.
    return prepared.hasEffects(prepared.body) ? null : prepared;
  }
  const { translation } = endpoint;
  if (translation === null || translation.answerHere !== null) return null;
  const request = decodeCall(call, translation);
  if (mediaToFetch(request, target, translation).length > 0) return null;
  const prepared = prepareTranslated(call, translation, target, request);
  takeMemory(services, call, writtenBytes(prepared));
  return prepared;
}

/** The body in another form is about as long as the original. Memory for it is taken before the work. */
function prepareAnew(services: Services, call: Call, endpoint: Endpoint, target: Target): Prepared {
  const before = call.heldBytes;
  takeMemory(services, call, call.body?.length ?? 0);
  try {
    return prepareNative(services, call, { endpoint, target, apiKey: null });
  } catch (fault) {
    keepMemory(services, call, before);
    throw fault;
  }
}
