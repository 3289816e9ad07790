import type { Admission } from '../limits/admission.js';
import type { Pending } from '../limits/decision.js';
import type { LeaseHolder } from '../limits/holding.js';
import type { Demand } from '../limits/kinds.js';
import { type CallPools, demandsOf } from '../limits/pools.js';
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

  /** Some of its limits are of tokens. */
  get countsTokens(): boolean {
    return this.pools.tokens.length > 0;
  }

  /**
   * Takes the units of all demands at once.
   * @param now by the holder's clock
   * @returns null when the call is let in, and else what it demands, of which its worker has too little
   */
  take(demands: readonly Demand[], now: number): readonly Demand[] | null {
    this.admission = this.#limits.take(demands, this.pools.found, now);
    return this.admission === null ? demands : null;
  }

  /** The same for a call that demands nothing but what is in its pools: of what is set aside for such, where it can. */
  takeAlike(tokens: number, now: number): readonly Demand[] | null {
    const { pools } = this;
    this.#bucket = pools.allotment.take(tokens, now);
    this.#tokens = tokens;
    if (this.#bucket !== -1) return null;
    const demands = this.take(demandsOf(pools, tokens), now);
    if (demands === null) this.#limits.setAside(pools.allotment, tokens, now);
    return demands;
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
    const used = usedTokens(call);
    if (this.#bucket !== -1) {
      const { allotment } = this.pools;
      if (used !== null) allotment.settle(this.#bucket, this.#tokens, used);
      allotment.release();
      return;
    }
    this.pending?.cancel();
    if (admission === null) return;
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
