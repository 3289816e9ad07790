import { createHash } from 'node:crypto';
import type { Upstream } from '../../config/types.js';

/** Returns one of an upstream's keys, or null if it has none. */
function anyKey({ apiKeys }: Upstream): string | null {
  return apiKeys[Math.floor(Math.random() * apiKeys.length)] ?? null;
}

/** How many keys have their marks cached. It is more than the keys of a usual config. */
const mostMarks = 1024;
const marks = new Map<string, string>();

/** Returns a name that distinguishes a key from the upstream's others and reveals nothing about it. */
export function keyMark(apiKey: string | null): string | null {
  if (apiKey === null) return null;
  const known = marks.get(apiKey);
  if (known !== undefined) return known;
  const mark = createHash('sha256').update(apiKey).digest('hex').slice(0, 16);
  // Clearing also drops the keys of configs that are gone.
  if (marks.size >= mostMarks) marks.clear();
  marks.set(apiKey, mark);
  return mark;
}

/** Returns the key with a mark, or any other if it is gone: another key of the same account may work as well. */
export function markedKey(upstream: Upstream, mark: string | null): string | null {
  return upstream.apiKeys.find((key) => keyMark(key) === mark) ?? anyKey(upstream);
}
