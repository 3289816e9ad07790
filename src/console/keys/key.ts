import type { Tone } from '../targets/target.js';
import { plural } from '../words.js';

/** A key in the answer of `GET /keys`. Times are RFC 3339. */
export interface KeyEntry {
  readonly id: string;
  /** Keys of the config file can only be changed there. */
  readonly source: 'config' | 'managed';
  readonly readOnly: boolean;
  readonly label: string;
  readonly groups: readonly string[];
  readonly limits: KeyLimits | null;
  readonly budget: KeyBudget | null;
  readonly mayRoute: boolean;
  readonly expiresAt: string | null;
  readonly revokedAt?: string | null;
  /** The number of former secrets that still work. */
  readonly formerKeys?: number;
  /** Whether a key of the config file with the same id overrides it. */
  readonly overridden?: boolean;
  readonly revision?: number;
}

export interface KeyLimits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly concurrent: number | null;
}

export interface KeyBudget {
  readonly usd: number;
  readonly per: 'day' | 'week' | 'month';
}

export interface KeyPage {
  readonly keys: readonly KeyEntry[];
  /** Ids of unreadable records. */
  readonly damaged: readonly string[];
  readonly next: string | null;
}

interface KeyState {
  readonly name: 'active' | 'expires soon' | 'expired' | 'revoked' | 'overridden';
  readonly tone: Tone;
  /** Whether its calls are admitted, and it can be rotated. */
  readonly works: boolean;
}

const soonMs = 7 * 86_400_000;

/** @param now Unix milliseconds */
export function keyState({ revokedAt, expiresAt, overridden }: KeyEntry, now: number): KeyState {
  if (typeof revokedAt === 'string') return { name: 'revoked', tone: 'bad', works: false };
  if (overridden === true) return { name: 'overridden', tone: 'idle', works: false };
  if (expiresAt === null) return { name: 'active', tone: 'good', works: true };
  const leftMs = Date.parse(expiresAt) - now;
  if (leftMs <= 0) return { name: 'expired', tone: 'bad', works: false };
  return leftMs < soonMs
    ? { name: 'expires soon', tone: 'warn', works: true }
    : { name: 'active', tone: 'good', works: true };
}

/** Working keys first, otherwise in unchanged order. @param now Unix milliseconds */
export function workingFirst(keys: readonly KeyEntry[], now: number): readonly KeyEntry[] {
  const works = (key: KeyEntry): boolean => keyState(key, now).works;
  return [...keys.filter(works), ...keys.filter((key) => !works(key))];
}

/** Further notes on a key, as text. */
export function keyNotes({ source, mayRoute, formerKeys = 0, overridden }: KeyEntry): readonly string[] {
  return [
    ...(source === 'config' ? ['of the config file: change it there'] : []),
    ...(overridden === true ? ['the config file has a key of this id, which counts instead'] : []),
    ...(mayRoute ? ['may choose targets'] : []),
    ...(formerKeys > 0
      ? [`${plural(formerKeys, 'former key')} still ${formerKeys === 1 ? 'works' : 'work'}`]
      : []),
  ];
}
