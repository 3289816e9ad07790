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
  /** Of a call that was let in by what was set aside: the bucket of its units, and tokens; the bucket is else -1. */
  #bucket = -1;
  #tokens = 0;

  constructor(limits: LeaseHolder, pools: CallPools) {
    this.#limits = limits;
    this.pools = pools;
  }

  /**
   * Lets the call in where enough is set aside for it.
   * @param now by the holder's clock
   */
  enter(tokens: number, now: number): boolean {
    this.#bucket = this.pools.allotment.take(tokens, now);
    this.#tokens = tokens;
    return this.#bucket !== -1;
  }

  /** Header lines that tell how much is left, each with CRLF before it. Whoever is refused is told what is left now. */
  lines({ dialect, running }: Call): string {
    const { rateHeaders } = dialect;
    if (rateHeaders === null) return '';
    const { rateLines } = this.pools;
    const isAdmitted = this.#bucket !== -1 || this.admission !== null;
    const told = isAdmitted ? rateLines.lately(rateHeaders, this.#limits.ticks) : null;
    if (told !== null) return told;
    return rateLines.text(rateHeaders, running.snapshot.vendors.vendorc[0] ?? 'vendorc', this.#limits);
  }

  /** Says what was really used and gives the call's place to others. */
  end(call: Call): void {
    const { admission } = this;
    if (this.#bucket !== -1) {
      this.#endSetAside(call);
      return;
    }
    this.pending?.cancel();
    if (admission === null) return;
    const used = usedTokens(call);
    if (used !== null) for (const index of this.pools.tokens) admission.settleAt(index, used);
    if (this.budget !== null) admission.settle(this.budget.pool, costOfCall(call));
    admission.release();
  }

  #endSetAside(call: Call): void {
    const { allotment } = this.pools;
    const used = usedTokens(call);
    if (used !== null) allotment.settle(this.#bucket, this.#tokens, used);
    allotment.release();
  }
}

/** Null where nobody knows: then what was expected stands. */
function usedTokens({ usage, outcome }: Call): number | null {
  if (usage !== null) return usage.input + usage.output;
  return outcome === 'refused' || outcome === 'upstream_error' ? 0 : null;
}
