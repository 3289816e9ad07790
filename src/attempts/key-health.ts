import type { RoutingSettings } from '../config/types.js';
import { hashText, keyScore } from './affinity.js';
import { type FailedOutcome, longestRetryAfterMs, restMs } from './outcome.js';

/** Lower is better. */
const well = 0;
const resting = 1;
const barred = 2;
/** Beyond any span of time that a config may set. */
const mostDoublings = 31;

/** The state of a key for operators, who know it by its place in the config. */
export interface KeyStatus {
  /** Milliseconds until it may be used again, or is as good as the others; 0 when it is now. */
  readonly waitMs: number;
}

/**
 * How the keys of an upstream that has several fare at one target. One that is refused is left alone for a time, and
 * the others go on: what an upstream says of one of its accounts is nothing against itself.
 */
export class KeyHealth {
  readonly #hashes: readonly number[];
  /** It is not used until then, where any other can be. */
  readonly #barredUntil: Float64Array;
  /** It is better left alone until then. */
  readonly #restUntil: Float64Array;
  /** How often in a row it was told that it is not accepted. */
  readonly #rejections: Uint8Array;

  /** @param apiKeys two or more */
  constructor(apiKeys: readonly string[]) {
    this.#hashes = apiKeys.map((apiKey) => hashText(0, apiKey));
    this.#barredUntil = new Float64Array(apiKeys.length).fill(Number.NEGATIVE_INFINITY);
    this.#restUntil = new Float64Array(apiKeys.length).fill(Number.NEGATIVE_INFINITY);
    this.#rejections = new Uint8Array(apiKeys.length);
  }

  get count(): number {
    return this.#hashes.length;
  }

  /**
   * Chooses the key for a call. One that is well comes before one that rests, and any before those that are barred, of
   * which the one that may be used soonest is the best of a bad lot.
   * @param affinity hash of the call: calls that begin alike get the same key as long as it is well; null for any
   * @param random gives numbers in [0, 1)
   * @returns its index
   */
  choose(affinity: number | null, random: () => number, now: number): number {
    let chosen = 0;
    let bestRank = Number.POSITIVE_INFINITY;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let key = 0; key < this.#hashes.length; key++) {
      const rank = this.#rank(key, now);
      if (rank > bestRank) continue;
      let score = affinity === null ? random() : keyScore(affinity, this.#hashes[key] as number);
      if (rank === barred) score = -(this.#barredUntil[key] as number);
      if (rank === bestRank && score <= bestScore) continue;
      chosen = key;
      bestRank = rank;
      bestScore = score;
    }
    return chosen;
  }

  /** Whether any of them is well. */
  hasWell(now: number): boolean {
    return this.#hasRank(well, now);
  }

  /** Whether any of them may be used now. */
  mayTake(now: number): boolean {
    return this.#hasRank(resting, now);
  }

  /** The earliest time at which one of them may be used: now, or later. */
  earliest(now: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const until of this.#barredUntil) if (until < earliest) earliest = until;
    return Math.max(now, earliest);
  }

  /** A call with it was not refused for its sake. */
  accepted(key: number): void {
    this.#rejections[key] = 0;
  }

  /**
   * A call with it was refused for its sake: it is barred for as long as the upstream asks, when it is not accepted for
   * as long as an ill target would be, and else it rests.
   */
  refused(key: number, now: number, { kind, retryAfterMs }: FailedOutcome, settings: RoutingSettings): void {
    if (retryAfterMs !== null && retryAfterMs > 0)
      this.#bar(key, now + Math.min(retryAfterMs, longestRetryAfterMs));
    else if (kind === 'rateLimited') this.#rest(key, now + restMs);
    else if (kind === 'doubted') this.#rest(key, now + settings.openMs);
    else if (now >= (this.#barredUntil[key] as number)) {
      // Calls that were under way together are one refusal.
      const before = this.#rejections[key] as number;
      this.#rejections[key] = Math.min(before + 1, mostDoublings);
      this.#bar(key, now + Math.min(settings.openMs * 2 ** before, settings.maxOpenMs));
    }
  }

  status(now: number): KeyStatus[] {
    return this.#hashes.map((_hash, key) => {
      const until = Math.max(this.#barredUntil[key] as number, this.#restUntil[key] as number);
      return { waitMs: Math.max(0, until - now) };
    });
  }

  #bar(key: number, until: number): void {
    this.#barredUntil[key] = Math.max(this.#barredUntil[key] as number, until);
  }

  #rest(key: number, until: number): void {
    this.#restUntil[key] = Math.max(this.#restUntil[key] as number, until);
  }

  #hasRank(most: number, now: number): boolean {
    for (let key = 0; key < this.#hashes.length; key++) if (this.#rank(key, now) <= most) return true;
    return false;
  }

  #rank(key: number, now: number): number {
    if (now < (this.#barredUntil[key] as number)) return barred;
    return now < (this.#restUntil[key] as number) ? resting : well;
  }
}
