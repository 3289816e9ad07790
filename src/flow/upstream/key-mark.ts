import { createHash } from 'node:crypto';
import type { Upstream } from '../../config/types.js';

/** One of an upstream's keys, or null where it has none. */
function anyKey({ apiKeys }: Upstream): string | null {
  return apiKeys[Math.floor(Math.random() * apiKeys.length)] ?? null;
}

/** So many keys have their marks at hand: more than a usual config has, whose calls ask for them. */
const mostMarks = 1024;
const marks = new Map<string, string>();

/** A name for a key that tells it from the upstream's others and says nothing about it. */
export function keyMark(apiKey: string | null): string | null {
  if (apiKey === null) return null;
  const known = marks.get(apiKey);
  if (known !== undefined) return known;
  const mark = createHash('sha256').update(apiKey).digest('hex').slice(0, 16);
  // Of the keys of configs that are gone none stays for long.
  if (marks.size >= mostMarks) marks.clear();
  marks.set(apiKey, mark);
  return mark;
}

/** The key with a mark, or any other where it is gone: another key of the account may do as well. */
export function markedKey(upstream: Upstream, mark: string | null): string | null {
  return upstream.apiKeys.find((key) => keyMark(key) === mark) ?? anyKey(upstream);
}
