import type { RateFamily, VendorWords } from '../config/types.js';
import { inOnePiece } from '../wire/head.js';
import type { LeaseHolder } from './lease-holder.js';
import type { Pool, PoolView } from './pool.js';

/** What an answer tells of its caller's limits; null where there is none. */
interface RateViews {
  readonly requests: PoolView | null;
  readonly tokens: PoolView | null;
}

/** Header lines as the SDKs of the chat family read them, each with CRLF before it; empty where nothing is limited. */
export function chatRateLines({ requests, tokens }: RateViews): string {
  return chatLines(chatWords.requests, requests) + chatLines(chatWords.tokens, tokens);
}

/** What stands around the numbers of the chat family's lines: every answer under limits has them. */
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
 * Header lines as the SDKs of the messages family read them, each with CRLF before it; empty where nothing is limited.
 * @param unixMs the present
 * @param vendor first word of the names
 */
export function messagesRateLines({ requests, tokens }: RateViews, unixMs: number, vendor: string): string {
  return (
    messagesLines(`${vendor}-ratelimit-requests`, requests, unixMs) +
    messagesLines(`${vendor}-ratelimit-tokens`, tokens, unixMs)
  );
}

/** First word of the names of the messages family. */
export function rateWord({ vendorc }: VendorWords): string {
  return vendorc[0] ?? 'vendorc';
}

/** Names of all headers that tell of limits, in the words of each family. @param vendor as above */
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

/** From here on fractions of a second are of no use to anybody, and take time to write. */
const wholeSecondsMs = 10_000;

/** A duration as `1h0m0s`, `6m0s`, `1.25s` or `20ms`: never shorter than it is. */
export function durationText(ms: number): string {
  if (ms > wholeSecondsMs) return wholeSecondsText(Math.ceil(ms / 1000));
  const whole = Math.max(0, Math.ceil(ms));
  if (whole === 0) return '0s';
  return whole < 1000 ? `${whole}ms` : `${whole / 1000}s`;
}

/** Windows are full again within a minute. */
const secondsTexts = Array.from({ length: 60 }, (_, seconds) => `${seconds}s`);

function wholeSecondsText(whole: number): string {
  if (whole < 60) return secondsTexts[whole] as string;
  const minutes = Math.floor(whole / 60);
  const seconds = secondsTexts[whole % 60];
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/** RFC 3339 in UTC, in whole seconds: never earlier than it is. */
function timeText(unixMs: number): string {
  return new Date(Math.ceil(unixMs / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}

const linesOf: Readonly<Record<RateFamily, (views: RateViews, vendor: string) => string>> = {
  chat: chatRateLines,
  messages: (views, vendor) => messagesRateLines(views, Date.now(), vendor),
};

/** There is a lot for so many calls, at a thousand tokens each, where it is a tenth of the limit too. */
const callsOfPlenty = 1000;
const tokensOfPlenty = callsOfPlenty * 1000;

/** What the callers that fall under the same limits are told of them. */
export class RateLines {
  readonly #requests: Pools;
  readonly #tokens: Pools;
  #family: RateFamily | null = null;
  /** At which tick of the holder they were told last, and what is told again until its end; null where it is not. */
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
   * What `text` has returned since the holder last ticked, while there is a lot left and many ask: to write it anew takes
   * as long as the limits themselves.
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
      requests: tightest(this.#requests, holder),
      tokens: tightest(this.#tokens, holder),
    };
    const lines = linesOf[family](views, vendor);
    const isPlentiful = isPlenty(views.requests, callsOfPlenty) && isPlenty(views.tokens, tokensOfPlenty);
    // The texts of thousands of keys that are each asked once in a while would only take up memory.
    const isKept = isPlentiful && this.#tick === holder.ticks && this.#family === family;
    this.#family = family;
    this.#tick = holder.ticks;
    // In one piece: every answer would walk again over all that it was put together of.
    this.#text = isKept ? inOnePiece(lines) : null;
    return this.#text ?? lines;
  }
}

/** Of a hundred thousand keys nearly each has one limit of a kind, or none: a list of it would take as much memory again. */
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

/** @returns null where there is none */
function tightest(pools: Pools, holder: Pick<LeaseHolder, 'peek'>): PoolView | null {
  if (pools === null) return null;
  if (isOne(pools)) return holder.peek(pools);
  let found: PoolView | null = null;
  for (const pool of pools) found = tighter(found, holder.peek(pool));
  return found;
}

/** Nobody counts on the last unit of what there is a lot of. */
function isPlenty(view: PoolView | null, least: number): boolean {
  return view === null || (view.remaining >= least && view.remaining * 10 >= view.limit);
}

/** The view of which the least share remains: what a caller meets first. The first of two with the same. */
export function tighter(one: PoolView | null, other: PoolView): PoolView {
  return one === null || other.remaining * one.limit < one.remaining * other.limit ? other : one;
}
