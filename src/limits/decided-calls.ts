import type { Decision } from './decision.js';
import type { Waiting } from './waiting-line.js';

/** Calls that are decided and not told. */
export class DecidedCalls {
  readonly #calls: Waiting[] = [];
  #isTelling = false;

  add(waiting: Waiting, decision: Decision): void {
    waiting.decision = decision;
    this.#calls.push(waiting);
  }

  /** Tells all of them. What is decided because of that is told by the same call. */
  tell(): void {
    if (this.#isTelling || this.#calls.length === 0) return;
    this.#isTelling = true;
    try {
      for (let waiting = this.#calls.shift(); waiting !== undefined; waiting = this.#calls.shift()) {
        const { decision, isOver } = waiting;
        if (isOver || decision === null) continue;
        waiting.isOver = true;
        waiting.onDecided(decision);
      }
    } finally {
      this.#isTelling = false;
    }
  }
}
