import type { Store } from '../store/store.js';
import { type ManagedKey, readManagedKey } from './managed-key.js';

/** Collection of the store. Existing stores contain this name. */
export const keyCollection = 'managed-keys';

/** Records read concurrently. */
const maxConcurrent = 100;
/** Records of a page, which is parsed in one step. */
const pageSize = 200;

/** A record of the store: the key, or null if it is unreadable. */
export interface FoundKey {
  readonly revision: number;
  readonly record: ManagedKey | null;
}

/** One page of all records. */
interface FoundPage {
  /** Ids of all records of the page. */
  readonly ids: readonly string[];
  /** The records among them that the reader does not know yet. */
  readonly fresh: readonly (readonly [id: string, found: FoundKey])[];
  /** Start of the next page; null at the end. */
  readonly next: string | null;
}

/**
 * Reads the records of ids; missing ones are left out.
 * @throws the store's error
 */
export async function readKeys(
  store: Pick<Store, 'get'>,
  ids: Iterable<string>,
): Promise<ReadonlyMap<string, FoundKey>> {
  const all = [...ids];
  const found = new Map<string, FoundKey>();
  for (let at = 0; at < all.length; at += maxConcurrent) {
    await Promise.all(
      all.slice(at, at + maxConcurrent).map(async (id) => {
        const stored = await store.get(keyCollection, id);
        if (stored !== null) found.set(id, foundKey(id, stored.value, stored.revision));
      }),
    );
  }
  return found;
}

/**
 * Reads one page of all records. A record whose time changes between pages may be on two pages, or on none.
 * @param from `next` of the previous page; null for the first
 * @param isKnown whether the reader already has a record in this revision
 * @throws the store's error
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

/** Parses a record. One under another id than its own counts as damaged. */
export function foundKey(id: string, value: string, revision: number): FoundKey {
  const record = readManagedKey(value);
  return { revision, record: record?.id === id ? record : null };
}
