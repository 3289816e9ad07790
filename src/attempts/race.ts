import type { GatewayPath } from '../flow/call.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import type { UpstreamExchange } from '../upstream/client.js';
import type { RelayedAttempt } from './relayed-attempt.js';

/** An attempt, and what the call takes over from the one that answers it. */
export interface Runner {
  readonly attempt: RelayedAttempt;
  readonly transform: AnswerTransform;
  readonly path: GatewayPath;
}

/**
 * A call whose first attempt has not answered in time is sent to a second target as well (a hedge), and whoever answers
 * it first has it. Until then it stands for both toward the client's side.
 */
export class Race implements UpstreamExchange {
  readonly #first: Runner;
  readonly #timer: NodeJS.Timeout;
  #second: Runner | null = null;

  /**
   * @param ms milliseconds until `hedge` is called, which begins the second attempt, or gives null
   */
  constructor(first: Runner, ms: number, hedge: () => Runner | null) {
    this.#first = first;
    this.#timer = setTimeout(() => {
      this.#second = hedge();
    }, ms);
  }

  get sentAt(): number {
    return this.#first.attempt.sentAt;
  }

  get bodyReleased(): boolean {
    return this.#first.attempt.bodyReleased;
  }

  /** Nothing is read of either yet. */
  resume(): void {}

  cancel(): void {
    clearTimeout(this.#timer);
    this.#first.attempt.cancel();
    this.#second?.attempt.cancel();
  }

  /** Ends the race: an attempt has failed. @returns the other one, which goes on, or null where there is none */
  without(attempt: RelayedAttempt): Runner | null {
    clearTimeout(this.#timer);
    return this.#isFirst(attempt) ? this.#second : this.#first;
  }

  /** Ends the race: an attempt answers well, and the other one is given up. @returns the winner */
  wonBy(attempt: RelayedAttempt): Runner {
    const loser = this.without(attempt);
    loser?.attempt.leave();
    loser?.attempt.cancel();
    return this.#isFirst(attempt) ? this.#first : (this.#second as Runner);
  }

  #isFirst(attempt: RelayedAttempt): boolean {
    return attempt === this.#first.attempt;
  }
}
