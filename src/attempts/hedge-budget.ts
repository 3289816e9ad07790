import type { Model } from '../config/types.js';

/** So many calls allow one hedge, so that a slow upstream does not get every call twice. */
const callsPerHedge = 10;
/** Hedges that quiet times may save up for a bad moment. */
const mostSaved = 10;

/**
 * How many calls of each model may be hedged at one worker: one at first, and from then on a tenth of those of late. A
 * model of another config begins anew.
 */
export class HedgeBudgets {
  readonly #saved = new WeakMap<Model, number>();

  /** Notes a call that might be hedged. */
  earn(model: Model): void {
    this.#add(model, 1);
  }

  /** Whether a hedge can be paid now. */
  isFree(model: Model): boolean {
    return this.#savedOf(model) >= callsPerHedge;
  }

  /** Pays for a hedge. To be asked for first: `isFree`. */
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
