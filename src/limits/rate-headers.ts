import type { RateFamily, VendorWords } from '../config/types.js';
import { inOnePiece } from '../wire/head.js';
import type { LeaseHolder } from './lease-holder.js';
import type { Pool, PoolView } from './pool.js';

/** What an answer reports of its caller's limits. Null if there is no limit. */
interface RateViews {
  readonly requests: PoolView | null;
  readonly tokens: PoolView | null;
}

/** Writes header lines as the SDKs of the chat family read them, each preceded by CRLF. Empty without limits. */
export function chatRateLines({ requests, tokens }: RateViews): string {
  return chatLines(chatWords.requests, requests) + chatLines(chatWords.tokens, tokens);
}

/** Constant parts of the chat family's lines, which every answer under limits has. */
interface ChatWords {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

const chatWords = { requests: chatWordsOf('requests'), tokens: chatWordsOf('tokens') };

function chatWordsOf(unit: string): ChatWords {
  return {
    limit: `\r\nx-ratelimit-limit-${unit}: `,
    remaining: `\r\nx-ratelimit-remaining-${unit}: `,
    reset: `\r\nx-ratelimit-reset-${unit}: `,
  };
}

/**
 * Writes header lines as the SDKs of the messages family read them, each preceded by CRLF. Empty without limits.
 * @param unixMs the current time
 * @param vendor first word of the names
 */
export function messagesRateLines({ requests, tokens }: RateViews, unixMs: number, vendor: string): string {
  return (
    messagesLines(`${vendor}-ratelimit-requests`, requests, unixMs) +
    messagesLines(`${vendor}-ratelimit-tokens`, tokens, unixMs)
  );
}

/** Returns the first word of the messages family's names. */
export function rateWord({ vendorc }: VendorWords): string {
  return vendorc[0] ?? 'vendorc';
}

/**
 * Lists the names of all headers that report limits, in each family's words.
 * @param vendor as above
 */
export function rateHeaderNames(vendor: string): readonly string[] {
  const parts = ['limit', 'remaining', 'reset'];
  return ['requests', 'tokens'].flatMap((unit) => [
    ...parts.map((part) => `x-ratelimit-${part}-${unit}`),
    ...parts.map((part) => `${vendor}-ratelimit-${unit}-${part}`),
  ]);
}

function chatLines(words: ChatWords, view: PoolView | null): string {
  if (view === null) return '';
  const { limit, remaining, resetMs } = view;
  return words.limit + limit + words.remaining + remaining + words.reset + durationText(resetMs);
}

function messagesLines(name: string, view: PoolView | null, unixMs: number): string {
  if (view === null) return '';
  const { limit, remaining, resetMs } = view;
  return (
    `\r\n${name}-limit: ${limit}` +
    `\r\n${name}-remaining: ${remaining}` +
    `\r\n${name}-reset: ${timeText(unixMs + resetMs)}`
  );
}

/** Above this, durations are in whole seconds: fractions are of no use, and take time to write. */
const wholeSecondsMs = 10_000;

/** Writes a duration as `1h0m0s`, `6m0s`, `1.25s` or `20ms`, rounded up. */
export function durationText(ms: number): string {
  if (ms > wholeSecondsMs) return wholeSecondsText(Math.ceil(ms / 1000));
  const whole = Math.max(0, Math.ceil(ms));
  if (whole === 0) return '0s';
  return whole < 1000 ? `${whole}ms` : `${whole / 1000}s`;
}

/** Texts of the durations below a minute, within which windows are full again. */
const secondsTexts = Array.from({ length: 60 }, (_, seconds) => `${seconds}s`);

function wholeSecondsText(whole: number): string {
  if (whole < 60) return secondsTexts[whole] as string;
  const minutes = Math.floor(whole / 60);
  const seconds = secondsTexts[whole % 60];
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/** Writes a time in RFC 3339 in UTC, rounded up to whole seconds. */
function timeText(unixMs: number): string {
  return new Date(Math.ceil(unixMs / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}

const linesOf: Readonly<Record<RateFamily, (views: RateViews, vendor: string) => string>> = {
  chat: chatRateLines,
  messages: (views, vendor) => messagesRateLines(views, Date.now(), vendor),
};

/**
 * Least number of remaining calls, of a thousand tokens each, that counts as plenty if it is also a tenth of the limit.
 */
const callsOfPlenty = 1000;
const tokensOfPlenty = callsOfPlenty * 1000;

/** Writes the rate-limit headers for callers under the same limits. */
export class RateLines {
  readonly #requests: Pools;
  readonly #tokens: Pools;
  #family: RateFamily | null = null;
  /** The holder's tick of the last text, and the text if it may be used again until the tick's end. */
  #tick = -1;
  #text: string | null = null;

  constructor(requests: readonly Pool[], tokens: readonly Pool[]) {
    this.#requests = poolsOf(requests);
    this.#tokens = poolsOf(tokens);
  }

  /** Limits of requests, then of tokens. */
  get pools(): readonly Pool[] {
    return [...listOf(this.#requests), ...this.tokens];
  }

  /** Limits of tokens. */
  get tokens(): readonly Pool[] {
    return listOf(this.#tokens);
  }

  /**
   * Returns the last result of `text` in this tick if plenty remains and many calls read it. Writing it anew takes as
   * long as checking the limits.
   * @param ticks of the holder
   */
  lately(family: RateFamily, ticks: number): string | null {
    return this.#tick === ticks && this.#family === family ? this.#text : null;
  }

  /**
   * Writes header lines, each preceded by CRLF. Empty if neither requests nor tokens are limited.
   * @param vendor first word of the messages family's names
   */
  text(family: RateFamily, vendor: string, holder: Pick<LeaseHolder, 'peek' | 'ticks'>): string {
    const views: RateViews = {
      requests: tightest(this.#requests, holder),
      tokens: tightest(this.#tokens, holder),
    };
    const lines = linesOf[family](views, vendor);
    const isPlentiful = isPlenty(views.requests, callsOfPlenty) && isPlenty(views.tokens, tokensOfPlenty);
    // Not for keys with few calls: the texts of thousands of them would only take up memory.
    const isKept = isPlentiful && this.#tick === holder.ticks && this.#family === family;
    this.#family = family;
    this.#tick = holder.ticks;
    // Flattened, since otherwise every answer would walk again through all parts of the concatenation.
    this.#text = isKept ? inOnePiece(lines) : null;
    return this.#text ?? lines;
  }
}

/**
 * A single pool is stored without a list. Nearly all of a hundred thousand keys have at most one limit of a kind, and
 * lists would double the memory.
 */
type Pools = Pool | readonly Pool[] | null;

function poolsOf(pools: readonly Pool[]): Pools {
  return pools.length > 1 ? pools : (pools[0] ?? null);
}

function isOne(pools: Pool | readonly Pool[]): pools is Pool {
  return 'name' in pools;
}

function listOf(pools: Pools): readonly Pool[] {
  if (pools === null) return [];
  return isOne(pools) ? [pools] : pools;
}

/** @returns null if there are no pools */
function tightest(pools: Pools, holder: Pick<LeaseHolder, 'peek'>): PoolView | null {
  if (pools === null) return null;
  if (isOne(pools)) return holder.peek(pools);
  let found: PoolView | null = null;
  for (const pool of pools) found = scarcer(found, holder.peek(pool));
  return found;
}

/** Whether so much remains that exact numbers do not matter. */
function isPlenty(view: PoolView | null, least: number): boolean {
  return view === null || (view.remaining >= least && view.remaining * 10 >= view.limit);
}

/** Returns the view with the smaller remaining part, which a caller exhausts first. If they are equal, the first. */
export function scarcer(one: PoolView | null, other: PoolView): PoolView {
  return one === null || other.remaining * one.limit < one.remaining * other.limit ? other : one;
}
