import type { RelayedAttempt } from '../attempts/relayed-attempt.js';
import type { FaultPlace, GatewayError } from '../errors.js';
import type { ResponseHead, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import { EventRuns } from '../wire/sse.js';
import { answerError, type BegunStream, endedUnbegun, isEventStream, lastEvent } from './answer-phase.js';

/** More than this is not held back: what begins so is taken for an answer. */
const mostHeld = 64 * 1024;

/** Goes on with one of two attempts at streams. */
interface StreamChooser {
  /** Its first event has come: it will be handed on. */
  onAnswered(attempt: RelayedAttempt): void;
  /**
   * It is of no use.
   * @param error why; null where that of the other would only be better
   * @returns true when it was given up for the other, which is under way
   */
  giveUpForOther(attempt: RelayedAttempt, error: GatewayError | null): boolean;
}

/** Takes the answer that was chosen. */
export interface StreamTaker extends UpstreamHandler {
  /** In place of `onHead`, for a stream whose beginning was judged. */
  onBegun(begun: BegunStream): boolean;
}

/**
 * Stands between an attempt and the relay while there may be two attempts of a call that is a stream: keeps an answer
 * back until its first event tells that it is one.
 */
export class HeldStream implements UpstreamHandler {
  readonly #chooser: StreamChooser;
  readonly #relay: StreamTaker;
  readonly #attempt: RelayedAttempt;
  readonly #runs: EventRuns;
  #head: ResponseHead | null = null;
  /** `waiting` for a head -> `held` -> `passed`, or `lost`. */
  #state: 'waiting' | 'held' | 'passed' | 'lost' = 'waiting';

  constructor(chooser: StreamChooser, relay: StreamTaker, attempt: RelayedAttempt) {
    this.#chooser = chooser;
    this.#relay = relay;
    this.#attempt = attempt;
    this.#runs = new EventRuns(attempt.transform.eventBytes);
  }

  onHead(head: ResponseHead): void {
    const refusal = answerError(head, true);
    if (refusal === null && head.status < 400 && isEventStream(head)) {
      this.#head = head;
      this.#state = 'held';
      this.#attempt.heldBack = { head, runs: this.#runs };
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
    const verdict = this.#runs.overlong ? 'meaningful' : this.#attempt.transform.judge(run);
    if (verdict === 'silence') return true;
    if (verdict !== 'meaningful' && this.#isLost(verdict)) return true;
    return this.#pass(run, verdict, verdict === 'meaningful');
  }

  onEnd(): void {
    if (this.#state === 'held') {
      const run = lastEvent(this.#runs);
      const verdict = run === null ? 'silence' : this.#attempt.transform.judge(run);
      if (verdict !== 'meaningful' && this.#isLost(verdict === 'silence' ? endedUnbegun() : verdict)) return;
      this.#pass(run, verdict, verdict === 'meaningful');
    }
    if (this.#state === 'passed') this.#relay.onEnd();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#state !== 'lost') this.#relay.onFailure(failure);
  }

  onFault(where: FaultPlace, fault: unknown): void {
    this.#relay.onFault?.(where, fault);
  }

  #isLost(error: GatewayError | null): boolean {
    if (!this.#chooser.giveUpForOther(this.#attempt, error)) return false;
    this.#state = 'lost';
    return true;
  }

  /** @param isAnswer what is no answer is handed on when no other attempt is left, and has overtaken none */
  #choose(isAnswer: boolean): void {
    this.#state = 'passed';
    this.#attempt.heldBack = null;
    if (isAnswer) this.#chooser.onAnswered(this.#attempt);
  }

  #pass(run: Buffer | null, verdict: BegunStream['verdict'], isAnswer: boolean): boolean {
    const head = this.#head;
    if (head === null) throw new Error('a stream without a head');
    this.#choose(isAnswer);
    return this.#relay.onBegun({ head, runs: this.#runs, run, verdict });
  }
}
