import type { Store } from './store.js';

/** Concurrent changes of a record collide. More collisions in a row than this mean that something is wrong. */
const mostTries = 30;
const longestPauseMs = 20;

/** A record, and how long it is kept after a change. */
interface RecordPlace {
  readonly collection: string;
  readonly id: string;
  readonly ttlMs: number;
}

/**
 * Changes a record that other processes may change concurrently. Reads it, and writes the new value if the record has
 * not changed since. Otherwise retries after a random pause.
 * @param change makes the new value from the current one, or from null if there is none. Returns null to leave the
 * record unchanged. May be called several times
 * @returns false if other processes were first in all tries
 * @throws what the store throws
 */
export async function changeRecord(
  store: Pick<Store, 'get' | 'create' | 'replace'>,
  { collection, id, ttlMs }: RecordPlace,
  change: (value: string | null) => string | null,
): Promise<boolean> {
  for (let tries = 0; tries < mostTries; tries++) {
    const record = await store.get(collection, id);
    const value = change(record?.value ?? null);
    if (value === null) return true;
    const isDone =
      record === null
        ? await store.create(collection, id, value, ttlMs)
        : await store.replace(collection, id, value, record.revision, ttlMs);
    if (isDone) return true;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(tries, longestPauseMs)));
  }
  return false;
}
