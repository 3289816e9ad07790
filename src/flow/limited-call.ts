import type { Dialect } from '../dialects/dialect.js';
import type { Admission } from '../limits/admission.js';
import type { Pending } from '../limits/decision.js';
import type { LeaseHolder } from '../limits/holding.js';
import type { CallPools } from '../limits/pools.js';
import type { PeriodBudget } from './budget.js';
import type { Call } from './call.js';
import { costOfCall } from './consumption.js';

/** A call that falls under limits: what it holds of them, and what its client is told of them. */
export class LimitedCall {
  /** Null until it is let in. */
  admission: Admission | null = null;
  /** While it waits to be. */
  pending: Pending | null = null;
  readonly pools: CallPools;
  /** Null for a key without one, and for a model that costs nothing. */
  budget: PeriodBudget | null = null;
  readonly #limits: LeaseHolder;

  constructor(limits: LeaseHolder, pools: CallPools) {
    this.#limits = limits;
    this.pools = pools;
  }

  /**
   * Header lines that tell how much is left, each with CRLF before it.
   * @param vendor first word of their names, where the dialect has it in them
   */
  lines({ rateHeaders }: Dialect, vendor: string): string {
    if (rateHeaders === null) return '';
    return this.pools.rateLines.text(rateHeaders, vendor, this.#limits, this.admission === null);
  }

  /** Says what was really used and gives the call's place to others. */
  end(call: Call): void {
    const { admission } = this;
    this.pending?.cancel();
    if (admission === null) return;
    const used = usedTokens(call);
    if (used !== null) for (const index of this.pools.tokens) admission.settleAt(index, used);
    if (this.budget !== null) admission.settle(this.budget.pool, costOfCall(call));
    admission.release();
  }
}

/** Null where nobody knows: then what was expected stands. */
function usedTokens({ usage, outcome }: Call): number | null {
  if (usage !== null) return usage.input + usage.output;
  return outcome === 'refused' || outcome === 'upstream_error' ? 0 : null;
}
