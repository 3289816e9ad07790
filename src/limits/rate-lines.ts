import type { LeaseHolder } from './holding.js';
import type { Pool } from './kinds.js';
import { type PoolView, tightest } from './pool-view.js';
import { chatRateLines, messagesRateLines, type RateViews } from './rate-headers.js';

/** How long the same lines are sent while there is a lot left: to write them takes as long as the limits themselves. */
const plentyMs = 100;
const leastPlenty = 1000;

/** Whose SDKs read the lines. */
export type RateFamily = 'chat' | 'messages';

/** What the callers that fall under the same limits are told of them. */
export class RateLines {
  readonly #requests: readonly Pool[];
  readonly #tokens: readonly Pool[];
  /** What was told last, and until when (by the holder's clock) it is told again. */
  #family: RateFamily | null = null;
  #text = '';
  #until = 0;

  constructor(requests: readonly Pool[], tokens: readonly Pool[]) {
    this.#requests = requests;
    this.#tokens = tokens;
  }

  /**
   * Header lines, each with CRLF before it; empty where neither requests nor tokens are limited.
   * @param vendor first word of the names of the messages family
   */
  text(family: RateFamily, vendor: string, holder: Pick<LeaseHolder, 'peek' | 'seenAt'>): string {
    const { seenAt } = holder;
    if (this.#family === family && seenAt < this.#until) return this.#text;
    const views: RateViews = {
      requests: viewOf(this.#requests, holder),
      tokens: viewOf(this.#tokens, holder),
    };
    const lines = family === 'chat' ? chatRateLines(views) : messagesRateLines(views, Date.now(), vendor);
    const isToldAgain = isPlenty(views.requests) && isPlenty(views.tokens);
    this.#family = family;
    // In one piece: every answer would walk again over all that it was put together of.
    this.#text = isToldAgain ? Buffer.from(lines, 'latin1').toString('latin1') : lines;
    this.#until = isToldAgain ? seenAt + plentyMs : 0;
    return this.#text;
  }
}

function viewOf(pools: readonly Pool[], holder: Pick<LeaseHolder, 'peek'>): PoolView | null {
  if (pools.length === 1) return holder.peek(pools[0] as Pool);
  return tightest(pools.map((pool) => holder.peek(pool)));
}

/** Nobody counts on the last unit of what there is a lot of. */
function isPlenty(view: PoolView | null): boolean {
  return view === null || (view.remaining >= leastPlenty && view.remaining * 10 >= view.limit);
}
