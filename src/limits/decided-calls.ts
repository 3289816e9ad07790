import type { Decision } from './decision.js';
import type { Waiting } from './waiting-line.js';

/** Calls that are decided and not told yet: whoever is told may call the holder at once, which is in order first. */
export class DecidedCalls {
  readonly #decided: Waiting[] = [];
  #isTelling = false;

  add(waiting: Waiting, decision: Decision): void {
    waiting.decision = decision;
    this.#decided.push(waiting);
  }

  /** Tells all of them, with those that are added meanwhile. */
  tell(): void {
    if (this.#isTelling || this.#decided.length === 0) return;
    this.#isTelling = true;
    try {
      for (let waiting = this.#decided.shift(); waiting !== undefined; waiting = this.#decided.shift()) {
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
