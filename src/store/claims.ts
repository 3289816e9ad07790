import { expiryOf, nameKey } from './record-format.js';
import type { Bytes } from './records.js';

/** Claims of the same name have similar times, of minutes at most. */
export const mostAheadMs = 5 * 60 * 1000;

/**
 * Claims a name for a while. Must be called within a write transaction. A claim that lasts more than `mostAheadMs`
 * longer than the requested one was made before the clock was set back. It counts as free.
 * @returns false if the name is claimed
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
 * Removes expired claims. Must be called within a write transaction.
 * @param after key after which to begin, or null
 * @param most maximum number of claims to look at
 * @returns the last key that was looked at, or null if there are no more
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
