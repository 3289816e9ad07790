import type { LeaseHolder } from './holding.js';
import type { Pool } from './kinds.js';
import { type PoolView, tightest } from './pool-view.js';
import { chatRateLines, messagesRateLines, type RateViews } from './rate-headers.js';

/** There is a lot for so many calls, at a thousand tokens each, where it is a tenth of the limit too. */
const callsOfPlenty = 1000;
const tokensOfPlenty = callsOfPlenty * 1000;

/** Whose SDKs read the lines. */
export type RateFamily = 'chat' | 'messages';

/** What the callers that fall under the same limits are told of them. */
export class RateLines {
  readonly #requests: readonly Pool[];
  readonly #tokens: readonly Pool[];
  /** What was told last, and at which tick of the holder, until whose end it is told again; -1 where it is not. */
  #family: RateFamily | null = null;
  #text = '';
  #tick = -1;

  constructor(requests: readonly Pool[], tokens: readonly Pool[]) {
    this.#requests = requests;
    this.#tokens = tokens;
  }

  /**
   * What `text` has returned since the holder last ticked, while there is a lot left: to write it anew takes as long as
   * the limits themselves.
   * @param ticks of the holder
   */
  lately(family: RateFamily, ticks: number): string | null {
    return this.#tick === ticks && this.#family === family ? this.#text : null;
  }

  /**
   * Header lines, each with CRLF before it; empty where neither requests nor tokens are limited.
   * @param vendor first word of the names of the messages family
   */
  text(family: RateFamily, vendor: string, holder: Pick<LeaseHolder, 'peek' | 'ticks'>): string {
    const views: RateViews = {
      requests: viewOf(this.#requests, holder),
      tokens: viewOf(this.#tokens, holder),
    };
    const lines = family === 'chat' ? chatRateLines(views) : messagesRateLines(views, Date.now(), vendor);
    const isToldAgain = isPlenty(views.requests, callsOfPlenty) && isPlenty(views.tokens, tokensOfPlenty);
    this.#family = family;
    // In one piece: every answer would walk again over all that it was put together of.
    this.#text = isToldAgain ? Buffer.from(lines, 'latin1').toString('latin1') : lines;
    this.#tick = isToldAgain ? holder.ticks : -1;
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
