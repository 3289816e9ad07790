import type { Model } from '../config/types.js';

/** Number of calls that allow one hedge, so that a slow upstream does not get every call twice. */
const callsPerHedge = 10;
/** Hedges that may be saved up while few are needed. */
const mostSaved = 10;

/**
 * Limits how many calls of each model are hedged at one worker: one at first, and then a tenth of the recent ones. A model
 * of another config starts anew.
 */
export class HedgeBudgets {
  readonly #saved = new WeakMap<Model, number>();

  /** Counts a call that might be hedged. */
  earn(model: Model): void {
    this.#add(model, 1);
  }

  /** Whether the budget allows a hedge now. */
  hasRoom(model: Model): boolean {
    return this.#savedOf(model) >= callsPerHedge;
  }

  /** Takes a hedge from the budget. Call `hasRoom` first. */
  spend(model: Model): void {
    this.#add(model, -callsPerHedge);
  }

  #savedOf(model: Model): number {
    return this.#saved.get(model) ?? callsPerHedge;
  }

  #add(model: Model, calls: number): void {
    this.#saved.set(model, Math.min(mostSaved * callsPerHedge, this.#savedOf(model) + calls));
  }
}
