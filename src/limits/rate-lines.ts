import type { LeaseHolder } from './holding.js';
import type { Pool } from './kinds.js';
import { type PoolView, tightest } from './pool-view.js';
import { chatRateLines, messagesRateLines, type RateViews } from './rate-headers.js';

/** How long the same lines are sent while there is a lot left: to write them takes as long as the limits themselves. */
const plentyMs = 100;
/** There is a lot for so many calls, at a thousand tokens each, where it is a tenth of the limit too. */
const callsOfPlenty = 1000;
const tokensOfPlenty = callsOfPlenty * 1000;

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
   * @param isRefused what is told is why
   */
  text(
    family: RateFamily,
    vendor: string,
    holder: Pick<LeaseHolder, 'peek' | 'seenAt'>,
    isRefused: boolean,
  ): string {
    const { seenAt } = holder;
    if (this.#family === family && seenAt < this.#until && !isRefused) return this.#text;
    const views: RateViews = {
      requests: viewOf(this.#requests, holder),
      tokens: viewOf(this.#tokens, holder),
    };
    const lines = family === 'chat' ? chatRateLines(views) : messagesRateLines(views, Date.now(), vendor);
    const isToldAgain = isPlenty(views.requests, callsOfPlenty) && isPlenty(views.tokens, tokensOfPlenty);
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
function isPlenty(view: PoolView | null, least: number): boolean {
  return view === null || (view.remaining >= least && view.remaining * 10 >= view.limit);
}
