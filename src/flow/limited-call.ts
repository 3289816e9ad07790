import type { VendorWords } from '../config/types.js';
import type { Dialect } from '../dialects/dialect.js';
import type { Admission } from '../limits/admission.js';
import type { Pending } from '../limits/decision.js';
import type { LeaseHolder } from '../limits/holding.js';
import { type PoolView, tightest } from '../limits/pool-view.js';
import type { CallPools } from '../limits/pools.js';
import { chatRateLines, messagesRateLines, type RateViews } from '../limits/rate-headers.js';
import type { PeriodBudget } from './budget.js';
import type { Call } from './call.js';
import { costOfCall } from './consumption.js';

/** How long the same lines are sent while there is a lot left: to write them takes as long as the limits themselves. */
const plentyMs = 10;
const leastPlenty = 1000;

/** What callers were told last, and for how long it holds. */
interface Told {
  readonly family: Dialect['rateHeaders'];
  readonly lines: string;
  readonly until: number;
}

const told = new WeakMap<CallPools, Told>();

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
  readonly #vendors: VendorWords;

  constructor(limits: LeaseHolder, pools: CallPools, vendors: VendorWords) {
    this.#limits = limits;
    this.pools = pools;
    this.#vendors = vendors;
  }

  /** Header lines that tell how much is left, each with CRLF before it. */
  lines({ rateHeaders }: Dialect): string {
    if (rateHeaders === null) return '';
    const { requests, tokens } = this.pools;
    const { seenAt } = this.#limits;
    const before = told.get(this.pools);
    if (before?.family === rateHeaders && seenAt < before.until) return before.lines;
    const views: RateViews = { requests: this.#view(requests), tokens: this.#view(tokens) };
    const lines =
      rateHeaders === 'chat'
        ? chatRateLines(views)
        : messagesRateLines(views, Date.now(), this.#vendors.vendorc[0] ?? 'vendorc');
    const holdsMs = isPlenty(views.requests) && isPlenty(views.tokens) ? plentyMs : 0;
    told.set(this.pools, { family: rateHeaders, lines, until: seenAt + holdsMs });
    return lines;
  }

  /** Says what was really used and gives the call's place to others. */
  end(call: Call): void {
    const { admission } = this;
    this.pending?.cancel();
    if (admission === null) return;
    const used = usedTokens(call);
    if (used !== null)
      for (const index of this.pools.tokens) {
        const pool = this.pools.pools[index];
        if (pool !== undefined) admission.settle(pool, used);
      }
    if (this.budget !== null) admission.settle(this.budget.pool, costOfCall(call));
    admission.release();
  }

  #view(indexes: readonly number[]): PoolView | null {
    if (indexes.length === 0) return null;
    if (indexes.length === 1) return this.#peek(indexes[0] as number);
    return tightest(indexes.map((index) => this.#peek(index)));
  }

  #peek(index: number): PoolView {
    const pool = this.pools.pools[index];
    if (pool === undefined) throw new Error('there is no such pool');
    return this.#limits.peek(pool);
  }
}

/** Nobody counts on the last unit of what there is a lot of. */
function isPlenty(view: PoolView | null): boolean {
  return view === null || (view.remaining >= leastPlenty && view.remaining * 10 >= view.limit);
}

/** Null where nobody knows: then what was expected stands. */
function usedTokens({ usage, outcome }: Call): number | null {
  if (usage !== null) return usage.input + usage.output;
  return outcome === 'refused' || outcome === 'upstream_error' ? 0 : null;
}
