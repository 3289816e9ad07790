import type { Store } from '../store/store.js';
import { type ManagedKey, readManagedKey } from './managed-key.js';

/** Collection of the store. Its name is in every store that is in use. */
export const keyCollection = 'managed-keys';

/** Records that are read at once. */
const mostAtOnce = 100;
/** A page is parsed in one piece. */
const pageSize = 200;

/** A record of the store: the key, or null when it cannot be read. */
export interface FoundKey {
  readonly revision: number;
  readonly record: ManagedKey | null;
}

/** One page of all records. */
interface FoundPage {
  /** Ids of all records of the page. */
  readonly ids: readonly string[];
  /** The records among them that the reader did not know yet. */
  readonly fresh: readonly (readonly [id: string, found: FoundKey])[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/**
 * Reads the records of ids, without those that are not there.
 * @throws what the store throws
 */
export async function readKeys(
  store: Pick<Store, 'get'>,
  ids: Iterable<string>,
): Promise<ReadonlyMap<string, FoundKey>> {
  const all = [...ids];
  const found = new Map<string, FoundKey>();
  for (let at = 0; at < all.length; at += mostAtOnce) {
    await Promise.all(
      all.slice(at, at + mostAtOnce).map(async (id) => {
        const stored = await store.get(keyCollection, id);
        if (stored !== null) found.set(id, foundKey(id, stored.value, stored.revision));
      }),
    );
  }
  return found;
}

/**
 * Reads one page of all records. A record whose time changes while pages are read may be on two of them, or on none.
 * @param from `next` of the page before; null for the first one
 * @param isKnown true for a record that need not be told again
 * @throws what the store throws
 */
export async function readKeyPage(
  store: Pick<Store, 'list'>,
  from: string | null,
  isKnown: (id: string, revision: number) => boolean,
): Promise<FoundPage> {
  const { records, next } = await store.list(keyCollection, pageSize, from);
  const fresh = records
    .filter(({ id, revision }) => !isKnown(id, revision))
    .map(({ id, value, revision }) => [id, foundKey(id, value, revision)] as const);
  return { ids: records.map(({ id }) => id), fresh, next };
}

/** A record under an id that is not its own is as damaged as one that cannot be parsed. */
export function foundKey(id: string, value: string, revision: number): FoundKey {
  const record = readManagedKey(value);
  return { revision, record: record?.id === id ? record : null };
}
