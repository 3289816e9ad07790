import { performance } from 'node:perf_hooks';
import type { AttemptOwner, RelayedAttempt } from '../attempts/attempts.js';
import type { Target } from '../config/types.js';
import type { FaultPlace, GatewayError } from '../errors.js';
import type { Endpoint } from '../protocols/endpoint.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import { EventRuns } from '../wire/sse.js';
import { answerError, type BegunStream, endedUnbegun, isEventStream, lastEvent } from './answer-phase.js';
import type { Call } from './call.js';
import { mediaToFetch } from './fetch-media.js';
import { keepMemory, takeMemory } from './memory-budget.js';
import {
  decodeCall,
  hasOtherForm,
  type Prepared,
  prepareNative,
  prepareTranslated,
  writtenBytes,
} from './prepare.js';
import type { Relay } from './relay.js';
import type { Services } from './services.js';

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
export function prepareHedge(
  services: Services,
  call: Call,
  endpoint: Endpoint,
  target: Target,
): Prepared | null {
  if (target.native.has(endpoint.protocol)) {
    if (services.lacking.has(target, endpoint, performance.now())) return null;
    if (hasOtherForm(endpoint, target)) return prepareAnew(services, call, endpoint, target);
    const prepared = prepareNative(services, call, { endpoint, target, key: null });
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
    return prepareNative(services, call, { endpoint, target, key: null });
  } catch (fault) {
    keepMemory(services, call, before);
    throw fault;
  }
}

/** More than this is not held back: what begins so is taken for an answer. */
const mostHeld = 64 * 1024;

/**
 * Stands between an attempt and the relay while there may be two attempts of a call that is a stream: keeps an answer
 * back until its first event tells that it is one.
 */
export class HeldStream implements UpstreamHandler {
  /** To be set before anything comes. */
  attempt: RelayedAttempt | null = null;
  readonly #owner: AttemptOwner;
  readonly #relay: Relay;
  readonly #transform: AnswerTransform;
  readonly #runs: EventRuns;
  #head: ResponseHead | null = null;
  /** `waiting` for a head -> `held` -> `passed`, or `lost`. */
  #state: 'waiting' | 'held' | 'passed' | 'lost' = 'waiting';

  constructor(owner: AttemptOwner, relay: Relay, transform: AnswerTransform) {
    this.#owner = owner;
    this.#relay = relay;
    this.#transform = transform;
    this.#runs = new EventRuns(transform.eventBytes);
  }

  onHead(head: ResponseHead): void {
    const refusal = answerError(head, true);
    if (refusal === null && head.status < 400 && isEventStream(head)) {
      this.#head = head;
      this.#state = 'held';
      if (this.attempt !== null) this.attempt.held = { head, runs: this.#runs };
      // What is not called a stream may be handed on all the same, where there is no better one.
    } else if (head.status >= 400 || !this.#isLost(refusal)) {
      this.#choose(head.status < 400 && refusal === null);
      this.#relay.onHead(head);
    }
  }

  onData(chunk: Buffer): boolean {
    if (this.#state === 'lost') return true;
    if (this.#state !== 'held') return this.#relay.onData(chunk);
    const run = this.#runs.push(chunk);
    if (run === null) return this.#runs.held <= mostHeld || this.#pass(null, 'silence', true);
    const verdict = this.#runs.overlong ? 'meaningful' : this.#transform.judge(run);
    if (verdict === 'silence') return true;
    if (verdict !== 'meaningful' && this.#isLost(verdict)) return true;
    return this.#pass(run, verdict, verdict === 'meaningful');
  }

  onEnd(): void {
    if (this.#state === 'held') {
      const run = lastEvent(this.#runs);
      const verdict = run === null ? 'silence' : this.#transform.judge(run);
      if (verdict !== 'meaningful' && this.#isLost(verdict === 'silence' ? endedUnbegun() : verdict)) return;
      this.#pass(run, verdict, verdict === 'meaningful');
    }
    if (this.#state === 'passed') this.#relay.onEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#state !== 'lost') this.#relay.onFailure(failure);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#relay.onFault(where, fault);
  }

  #isLost(error: GatewayError | null): boolean {
    if (this.attempt === null || !this.#owner.giveUpForOther(this.attempt, error)) return false;
    this.#state = 'lost';
    return true;
  }

  /** @param isAnswer what is no answer is handed on when no other attempt is left, and has overtaken none */
  #choose(isAnswer: boolean): void {
    this.#state = 'passed';
    if (this.attempt !== null) this.attempt.held = null;
    if (isAnswer && this.attempt !== null) this.#owner.onStreamBegun(this.attempt);
  }

  #pass(run: Buffer | null, verdict: BegunStream['verdict'], isAnswer: boolean): boolean {
    const head = this.#head;
    if (head === null) throw new Error('a stream without a head');
    this.#choose(isAnswer);
    return this.#relay.onBegun({ head, runs: this.#runs, run, verdict });
  }
}
