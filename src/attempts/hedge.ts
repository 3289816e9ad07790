import type { Call, GatewayPath } from '../flow/call.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { UpstreamExchange } from '../upstream/client.js';
import type { RelayedAttempt } from './attempts.js';

/** An attempt, and what the call takes over from the one that answers it. */
export interface HedgedAttempt {
  readonly attempt: RelayedAttempt;
  readonly transform: AnswerTransform;
  readonly gatewayPath: GatewayPath;
  readonly leftOut: Call['leftOut'];
}

/**
 * Two attempts of one call: where the first has not answered in time, a second target is asked as well, and the first
 * good answer of either is the call's. Until then it stands for both toward the client's side.
 */
export class Hedge implements UpstreamExchange {
  readonly #first: HedgedAttempt;
  readonly #timer: NodeJS.Timeout;
  #second: HedgedAttempt | null = null;

  /**
   * @param ms milliseconds until `begin` is called, which begins the second attempt, or gives null
   */
  constructor(first: HedgedAttempt, ms: number, begin: () => HedgedAttempt | null) {
    this.#first = first;
    this.#timer = setTimeout(() => {
      this.#second = begin();
    }, ms);
  }

  get sentAt(): number {
    return this.#first.attempt.sentAt;
  }

  get bodyReleased(): boolean {
    return this.#first.attempt.bodyReleased;
  }

  /** Neither is stopped: of streams their beginnings are read, and no more. */
  resume(): void {}

  /** The attempt that is further from an answer: of two that are as far, the second. */
  get hindmost(): HedgedAttempt {
    const first = this.#first;
    const second = this.#second;
    return second === null || progressOf(second) > progressOf(first) ? first : second;
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#first.attempt.cancel();
    this.#second?.attempt.cancel();
  }

  /** An attempt has failed, which ends the hedge. @returns the other one, which goes on, or null where there is none */
  without(attempt: RelayedAttempt): HedgedAttempt | null {
    clearTimeout(this.#timer);
    return this.#isFirst(attempt) ? this.#second : this.#first;
  }

  /** An attempt answers well, which ends the hedge: the other one is given up. @returns the one that answers */
  answeredBy(attempt: RelayedAttempt): HedgedAttempt {
    const other = this.without(attempt);
    other?.attempt.leave();
    other?.attempt.cancel();
    return this.#second === null || this.#isFirst(attempt) ? this.#first : this.#second;
  }

  #isFirst(attempt: RelayedAttempt): boolean {
    return attempt === this.#first.attempt;
  }
}

/** How far an attempt is that no answer of has been handed on: an error whose end has not come is behind silence. */
function progressOf({ attempt }: HedgedAttempt): number {
  if (attempt.isErrorComing) return 0;
  return attempt.held === null ? 1 : 2;
}
