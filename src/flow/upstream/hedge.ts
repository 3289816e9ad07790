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

/** A call on its way to its targets (`Forwarding`), as far as a second attempt beside its first is concerned. */
interface HedgedCall extends AttemptOwner {
  readonly services: Services;
  readonly call: RoutedCall;
  readonly endpoint: Endpoint;
  readonly plan: AttemptPlan;
  /** Its `awaited` is what a client that leaves cancels. */
  readonly relay: AnswerTaker & { awaited: UpstreamExchange | null };
  /** What becomes of the attempt is what becomes of the call from now on. */
  adopt(attempt: RelayedAttempt): void;
  /** A stream of the target has a time for its first event. */
  awaitFirstToken(target: Target): void;
}

/**
 * A call that may get a second attempt beside its first: where the first has not answered in time, a second target is
 * asked as well, and the first good answer of either is the call's. Until then it stands for both toward the client's side.
 */
export class Hedge implements UpstreamExchange {
  readonly #hedged: HedgedCall;
  #first: RelayedAttempt;
  #second: RelayedAttempt | null = null;
  /** One goes on alone, and stands for the first as well. */
  #isOver = false;
  readonly #timer: NodeJS.Timeout;

  /**
   * @param first sent just now
   * @param ms milliseconds until the second target is asked
   */
  constructor(hedged: HedgedCall, first: RelayedAttempt, ms: number) {
    this.#hedged = hedged;
    this.#first = first;
    hedged.relay.awaited = this;
    hedged.services.hedges.earn(hedged.call.model);
    this.#holdBack(first);
    this.#timer = setTimeout(
      guard('timer', hedged.call, () => this.#askSecond()),
      ms,
    );
  }

  get sentAt(): number {
    return this.#first.sentAt;
  }

  get bodyReleased(): boolean {
    return this.#first.bodyReleased;
  }

  /** Neither is stopped: of streams their beginnings are read, and no more. */
  resume(): void {}

  cancel(): void {
    clearTimeout(this.#timer);
    this.#first.cancel();
    this.#second?.cancel();
  }

  /** An attempt answers well: the other one is given up. */
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
   * An attempt is of no use any more: it has failed, its answer is an error, or nothing has come of it in time.
   * @returns true where the other one is under way: the call goes on with that
   */
  switchToOther(attempt: RelayedAttempt): boolean {
    if (this.#isOver) return false;
    const other = this.#endWithout(attempt);
    if (other !== null) {
      noteFailed(this.#hedged.call, attempt);
      this.#adopt(other);
      this.#hedged.awaitFirstToken(other.target);
    }
    // No second one was sent: this one's answer may be handed on, and waits for the client by itself from now on.
    else this.#hedged.relay.awaited = attempt;
    return other !== null;
  }

  /** As `AnswerChooser` of `answer/held` has it. */
  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean {
    if (!this.switchToOther(attempt)) return false;
    if (error !== null) attempt.unusable(error);
    if (isVendorAccountError(error)) attempt.report(error);
    attempt.cancel();
    return true;
  }

  /** The client has left before anything of an answer passed: one goes on alone. */
  onClientLeft(): void {
    const first = this.#first;
    const second = this.#second;
    // The one that is further from an answer: of two that are as far, the second.
    const hindmost = second === null || progressOf(second) > progressOf(first) ? first : second;
    if (this.giveUpForOther(hindmost, null)) noteGivenUp(this.#hedged.call, hindmost);
  }

  /** The lost attempt is let go of, with what was held back of it: a stream may last for long. */
  #adopt(attempt: RelayedAttempt): void {
    this.#first = attempt;
    if (attempt !== this.#second) this.#second = null;
    this.#hedged.adopt(attempt);
  }

  /** @returns the other attempt, or null where there is none */
  #endWithout(attempt: RelayedAttempt): RelayedAttempt | null {
    this.#isOver = true;
    clearTimeout(this.#timer);
    return attempt === this.#first ? this.#second : this.#first;
  }

  #holdBack(attempt: RelayedAttempt): void {
    const { call, relay } = this.#hedged;
    attempt.handler = new HeldAnswer(this, relay, attempt, call.validated?.stream === true);
  }

  #askSecond(): void {
    const { services, call, endpoint, plan } = this.#hedged;
    const { hedges } = services;
    const { next } = plan;
    if (!hedges.isFree(call.model) || next === null) return;
    try {
      const prepared = prepareHedge(services, call, endpoint, next);
      // Only what is sent moves the call on: it may fail over to a target that was not asked as a second one.
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
      // The first is still under way.
      this.#second?.withdraw();
      this.#second = null;
      if (!(fault instanceof GatewayError)) services.reportFault('timer', fault, call);
    }
  }
}

/** How far an attempt is of whose answer nothing was handed on. One whose error is still coming is less far than a silent one. */
function progressOf(attempt: RelayedAttempt): number {
  if (attempt.isErrorComing) return 0;
  return heldBackOf(attempt) === null ? 1 : 2;
}

/** Whether a call may go to two targets at once: its body is at hand, and it is known whether its answer is a stream. */
export function mayHedge(
  { body, upload, socketCall, validated, retries }: Call,
  endpoint: Endpoint,
): boolean {
  const isHeld = body !== null && upload === null && socketCall === null;
  return isHeld && retries === 0 && !(validated?.stream && endpoint.streamsUnasked);
}

/**
 * Prepares a call for a second target beside the first.
 * @returns null for what takes more than sending it, or may be sent once only
 * @throws {GatewayError} for what the target's protocol cannot say, and when there is no room for it
 */
function prepareHedge(services: Services, call: Call, endpoint: Endpoint, target: Target): Prepared | null {
  if (target.native.has(endpoint.protocol)) {
    if (services.lacking.has(target, endpoint, performance.now())) return null;
    if (hasOtherForm(endpoint, target)) return prepareAnew(services, call, endpoint, target);
    const prepared = prepareNative(services, call, { endpoint, target, apiKey: null });
    // What the first target would not keep, this one might.
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

/** The body in another form is about as long as the one that came, for which room is found before the work. */
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
