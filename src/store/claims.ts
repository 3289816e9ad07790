import { nameKey } from './record-format.js';
import type { Bytes } from './records.js';
import { expiryOf } from './revision.js';

/** Claims of one name are for about as long, and for minutes at most. */
export const mostAheadMs = 5 * 60 * 1000;

/**
 * Takes a name for a while. Belongs into a write transaction. One that is held for longer beyond what is wanted than
 * `mostAheadMs` was taken before the clock was set back, and is free.
 * @returns false while somebody has it
 */
export function claimName(claims: Bytes, name: string, ttlMs: number): boolean {
  const key = nameKey(name);
  const now = Date.now();
  const held = claims.get(key);
  const left = held === undefined ? 0 : held.readDoubleBE() - now;
  if (left > 0 && left <= ttlMs + mostAheadMs) return false;
  const until = Buffer.alloc(8);
  until.writeDoubleBE(expiryOf(ttlMs, now));
  void claims.put(key, until);
  return true;
}

/**
 * Removes claims that have expired. Belongs into a write transaction.
 * @param after key behind which it begins, or null
 * @param most how many claims are looked at
 * @returns the last key that was looked at, or null when there are no more
 */
export function sweepClaims(claims: Bytes, after: Buffer | null, most: number): Buffer | null {
  const now = Date.now();
  const start = after ?? Buffer.from([0]);
  let last: Buffer | null = null;
  for (const { key, value } of [...claims.getRange({ start, limit: most })]) {
    if (value.readDoubleBE() <= now) void claims.remove(key);
    last = key;
  }
  return last === null || (after !== null && last.equals(after)) ? null : last;
}
