import type { AttemptOwner, RelayedAttempt } from '../attempts/attempts.js';
import type { FaultPlace, GatewayError } from '../errors.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import { EventRuns } from '../wire/sse.js';
import { answerError, type BegunStream, endedUnbegun, isEventStream, lastEvent } from './answer-phase.js';
import type { Relay } from './relay.js';

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
    if (this.attempt === null || !this.#owner.loses(this.attempt, error)) return false;
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
