import * as crypto from 'node:crypto';
import type { Key } from '../config/types.js';

/** No key of ours is longer; a longer text is not worth a hash. */
const longestPresented = 512;
const cacheEntries = 4096;

export interface KeyTable {
  /**
   * Finds the key that a caller presents, expired or not: `expiresAt` is for the caller to look at, at every call.
   * @returns null when there is none
   */
  find(presented: string): Key | null;
}

/** `crypto.hash` (Node 20.12) takes half the time of a `Hash` object for texts this short. */
const sha256: (text: string) => string =
  typeof crypto.hash === 'function'
    ? (text) => crypto.hash('sha256', text, 'hex')
    : (text) => crypto.createHash('sha256').update(text).digest('hex');

/**
 * Makes the lookup of presented keys. Only hashes are held at rest; the map is asked with the SHA-256 of what came,
 * which a caller cannot steer toward a stored one, and the match is confirmed in constant time.
 *
 * Callers who were right lately are remembered by the text itself, which spares the hash. Only right texts are: a
 * guess always takes the long way, so the cache cannot be used to test one, nor filled by a stranger. It lives in
 * memory, in a process that sees every presented key anyway, and ends with the table.
 * @param keys by SHA-256, lower-case hex
 */
export function createKeyTable(keys: ReadonlyMap<string, Key>): KeyTable {
  const recent = new Map<string, Key>();

  const find = (presented: string): Key | null => {
    const cached = recent.get(presented);
    if (cached !== undefined) return cached;
    if (presented.length === 0 || presented.length > longestPresented) return null;
    const digest = sha256(presented);
    const key = keys.get(digest);
    if (key === undefined) return null;
    if (!crypto.timingSafeEqual(Buffer.from(digest, 'latin1'), Buffer.from(key.hash, 'latin1'))) return null;
    if (recent.size >= cacheEntries) recent.clear();
    recent.set(presented, key);
    return key;
  };

  return { find };
}
