import type { Model } from '../config/types.js';

/** So many calls allow one hedge, so that a slow upstream does not get every call twice. */
const callsPerHedge = 10;
/** Hedges that quiet times may save up for a bad moment. */
const mostSaved = 10;

/** How many calls of one model may be hedged: one at first, and from then on a tenth of those of late. */
export class HedgeBudget {
  #saved = callsPerHedge;

  /** Notes a call that might be hedged. */
  earn(): void {
    if (this.#saved < mostSaved * callsPerHedge) this.#saved++;
  }

  /** Whether a hedge can be paid now. */
  get isFree(): boolean {
    return this.#saved >= callsPerHedge;
  }

  /** Pays for a hedge. To be asked for first: `isFree`. */
  spend(): void {
    this.#saved -= callsPerHedge;
  }
}

/** The budgets of all models at one worker. A model of another config begins anew. */
export class HedgeBudgets {
  readonly #byModel = new WeakMap<Model, HedgeBudget>();

  of(model: Model): HedgeBudget {
    const known = this.#byModel.get(model);
    if (known !== undefined) return known;
    const made = new HedgeBudget();
    this.#byModel.set(model, made);
    return made;
  }
}
