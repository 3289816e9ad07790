import type { Test } from 'tap';
import { type ErrorKind, GatewayError } from '../../src/errors.js';
import type { Store, StoredPage } from '../../src/store/store.js';
import { random } from '../support/seed.js';

/** A call of a fake store; `id` is empty where there is none. */
export interface FakeCall {
  readonly name: 'get' | 'create' | 'replace' | 'remove' | 'list' | 'claim' | 'sweep';
  readonly collection: string;
  readonly id: string;
}

interface FakeStoreOptions {
  /** Data that several stores share. */
  readonly data?: FakeData;
  /** May wait, or throw what the call is then to reject with: before it is done, so that nothing was changed. */
  readonly before?: (call: FakeCall) => Promise<void> | void;
  /** The same once it is done: its caller does not learn of it. */
  readonly after?: (call: FakeCall) => Promise<void> | void;
  /** Unix milliseconds; the clock of the system unless said otherwise. */
  readonly now?: () => number;
}

interface FakeRecord {
  value: string;
  revision: number;
  expiresAt: number;
}

export interface FakeData {
  readonly collections: Map<string, Map<string, FakeRecord>>;
  readonly claims: Map<string, number>;
}

export function fakeData(): FakeData {
  return { collections: new Map(), claims: new Map() };
}

/** What a store rejects with that cannot be reached. */
export function lost(): GatewayError {
  return new GatewayError('store_unavailable', null, { retryAfter: 1 });
}

/** Holds that a call is refused, and how. */
export async function refused(
  t: Test,
  call: Promise<unknown>,
  how: { readonly kind: ErrorKind; readonly param?: string; readonly message?: RegExp },
  why = 'refused as it should be',
): Promise<void> {
  const error: unknown = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  t.ok(error instanceof GatewayError);
  t.match(error, how, why);
}

/**
 * A store in memory that keeps to the letter of its contract, and uses what that leaves open: first revisions by lot,
 * pages shorter than asked for, records that change their place in a list when their expiry does.
 */
export function fakeStore(options: FakeStoreOptions = {}): Store {
  const { data = fakeData(), now = Date.now } = options;
  let isClosed = false;

  const call = async <T>(
    name: FakeCall['name'],
    collection: string,
    id: string,
    work: () => T,
  ): Promise<T> => {
    if (isClosed) throw lost();
    await options.before?.({ name, collection, id });
    const result = work();
    await options.after?.({ name, collection, id });
    return result;
  };
  const recordsOf = (collection: string): Map<string, FakeRecord> => {
    const records = data.collections.get(collection) ?? new Map<string, FakeRecord>();
    data.collections.set(collection, records);
    return records;
  };
  const live = (collection: string, id: string): FakeRecord | null => {
    const record = recordsOf(collection).get(id);
    return record !== undefined && record.expiresAt > now() ? record : null;
  };

  return {
    kind: 'embedded',
    get: (collection, id) =>
      call('get', collection, id, () => {
        const record = live(collection, id);
        return record === null ? null : { value: record.value, revision: record.revision };
      }),
    create: (collection, id, value, ttlMs) =>
      call('create', collection, id, () => {
        if (live(collection, id) !== null) return false;
        const revision = 1 + Math.floor(random() * 2 ** 47);
        recordsOf(collection).set(id, { value, revision, expiresAt: now() + ttlMs });
        return true;
      }),
    replace: (collection, id, value, revision, ttlMs) =>
      call('replace', collection, id, () => {
        if (live(collection, id)?.revision !== revision) return false;
        recordsOf(collection).set(id, { value, revision: revision + 1, expiresAt: now() + ttlMs });
        return true;
      }),
    remove: (collection, id) => call('remove', collection, id, () => void recordsOf(collection).delete(id)),
    list: (collection, limit, from) =>
      call('list', collection, '', (): StoredPage => {
        const [fromExpiry, fromId] = from === null ? [0, ''] : (JSON.parse(from) as [number, string]);
        const rest = [...recordsOf(collection)]
          .filter(([, { expiresAt }]) => expiresAt > now())
          .sort(([a, { expiresAt: x }], [b, { expiresAt: y }]) => x - y || (a < b ? -1 : 1))
          .filter(
            ([id, { expiresAt }]) => expiresAt > fromExpiry || (expiresAt === fromExpiry && id > fromId),
          );
        const taken = rest.slice(0, Math.max(1, from === null ? limit : limit >> 1));
        const last = taken.at(-1);
        const next = last === undefined || taken.length === rest.length ? null : [last[1].expiresAt, last[0]];
        return {
          records: taken.map(([id, { value, revision, expiresAt }]) => ({
            id,
            value,
            revision,
            leftMs: expiresAt - now(),
          })),
          next: next === null ? null : JSON.stringify(next),
        };
      }),
    claim: (name, ttlMs) =>
      call('claim', '', name, () => {
        if ((data.claims.get(name) ?? 0) > now()) return false;
        data.claims.set(name, now() + ttlMs);
        return true;
      }),
    sweep: () =>
      call('sweep', '', '', () => {
        for (const records of data.collections.values()) {
          for (const [id, { expiresAt }] of records) if (expiresAt <= now()) records.delete(id);
        }
      }),
    async close() {
      isClosed = true;
    },
  };
}
