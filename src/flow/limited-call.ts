import type { Dialect } from '../dialects/dialect.js';
import type { Admission } from '../limits/admission.js';
import type { Pending } from '../limits/decision.js';
import type { LeaseHolder } from '../limits/lease-holder.js';
import { type PoolView, tightest } from '../limits/pool-view.js';
import type { CallPools } from '../limits/pools.js';
import { chatRateLines, messagesRateLines, type RateViews } from '../limits/rate-headers.js';
import type { Call } from './call.js';

/** A call that falls under limits: what it holds of them, and what its client is told of them. */
export class LimitedCall {
  /** Null until it is let in. */
  admission: Admission | null = null;
  /** While it waits to be. */
  pending: Pending | null = null;
  readonly #limits: LeaseHolder;
  readonly #pools: CallPools;
  /** First word of the headers of the messages family. */
  readonly #vendor: string;

  constructor(limits: LeaseHolder, pools: CallPools, vendor: string) {
    this.#limits = limits;
    this.#pools = pools;
    this.#vendor = vendor;
  }

  /** Header lines that tell how much is left, each with CRLF before it. */
  lines({ rateHeaders }: Dialect): string {
    if (rateHeaders === null) return '';
    const { requests, tokens } = this.#pools;
    const views: RateViews = { requests: this.#view(requests), tokens: this.#view(tokens) };
    return rateHeaders === 'chat' ? chatRateLines(views) : messagesRateLines(views, Date.now(), this.#vendor);
  }

  /** Says what was really used and gives the call's place to others. */
  end(call: Call): void {
    const { admission } = this;
    this.pending?.cancel();
    if (admission === null) return;
    const used = usedTokens(call);
    if (used !== null)
      for (const index of this.#pools.tokens) {
        const pool = this.#pools.pools[index];
        if (pool !== undefined) admission.settle(pool, used);
      }
    admission.release();
  }

  #view(indexes: readonly number[]): PoolView | null {
    if (indexes.length === 1) return this.#peek(indexes[0] as number);
    return tightest(indexes.map((index) => this.#peek(index)));
  }

  #peek(index: number): PoolView {
    const pool = this.#pools.pools[index];
    if (pool === undefined) throw new Error('there is no such pool');
    return this.#limits.peek(pool);
  }
}

/** Null where nobody knows: then what was expected stands. */
function usedTokens({ usage, outcome }: Call): number | null {
  if (usage !== null) return usage.input + usage.output;
  return outcome === 'refused' || outcome === 'upstream_error' ? 0 : null;
}
