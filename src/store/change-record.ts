import type { Store } from './store.js';

/** Those who change one record collide; more in a row than this means that something is wrong. */
const mostTries = 30;
const longestPauseMs = 20;

/** A record, and how long it is kept from its next change on. */
interface RecordPlace {
  readonly collection: string;
  readonly id: string;
  readonly ttlMs: number;
}

/**
 * Changes a record that other processes may change at the same time: reads it, and writes the new value if it is still
 * the same then; else all over again, after a random pause.
 * @param change makes the new value of the one that is there, null where there is none; it gives null to leave it so, and
 * may be called several times
 * @returns false when the others were first each time
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
