import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import type { Store } from '../store/store.js';
import { createAnnouncer, retentionMs } from './key-announcements.js';
import type { KeyUpdate, NewKey } from './key-input.js';
import { type FormerKey, type ManagedKey, writeManagedKey } from './managed-key.js';
import { hashKey, newKey } from './secret.js';
import { type FoundKey, foundKey, keyCollection } from './stored-keys.js';

/** Tries of a revocation, which is never refused for a concurrent change; more conflicts in a row mean a fault. */
const maxTries = 20;
/** Most former secrets of a key that still work; the oldest are dropped first. */
const maxFormer = 4;

interface KeyBookOptions {
  /** Whether the config file uses an id. */
  taken(id: string): boolean | Promise<boolean>;
  /** Most records in the store, including those of ended keys; default 100,000. */
  readonly mostKeys?: number;
  /** Returns how long, in milliseconds, what a key owns may be kept; called for each change. */
  readonly ownedMs: () => number;
  /** Unix milliseconds; default the system clock. */
  readonly now?: () => number;
}

/** A key as recorded in the store. Its revision changes with each change. */
export interface BookedKey {
  readonly record: ManagedKey;
  readonly revision: number;
}

/** A new key with its secret, which cannot be shown again. */
export interface IssuedKey {
  readonly key: string;
  readonly record: ManagedKey;
}

export interface KeyPage {
  readonly keys: readonly BookedKey[];
  /** Ids of unreadable records, which are not keys. */
  readonly damaged: readonly string[];
  /** Start of the next page; null at the end. */
  readonly next: string | null;
}

/**
 * The keys in the store, which operators create, change and revoke at run time. Inputs have been checked by
 * `key-input.ts`. Every promise rejects with the store's error while the store is unavailable; whether the change was
 * made is then unknown. It rejects with a {@link GatewayError} `not_found` if there is no such key, and `conflict` if
 * the key's state does not permit the change, or the key was changed concurrently.
 *
 * A change is announced before and after it is made. Followers read an announced key immediately and again some time
 * later, so they also see the change of a process that ended in between.
 */
export class KeyBook {
  readonly #store: Store;
  readonly #taken: KeyBookOptions['taken'];
  readonly #now: () => number;
  readonly #announce: (id: string) => Promise<void>;
  readonly #count: KeyCount;
  readonly #ownedMs: () => number;

  constructor(store: Store, options: KeyBookOptions) {
    this.#store = store;
    this.#taken = (id) => options.taken(id);
    this.#now = options.now ?? Date.now;
    this.#ownedMs = options.ownedMs;
    this.#announce = createAnnouncer(store);
    this.#count = createKeyCount(store, options.mostKeys ?? 100_000);
  }

  async get(id: string): Promise<BookedKey> {
    const { record, revision } = await this.#find(id);
    if (record !== null) return { record, revision };
    throw new GatewayError(
      'not_found',
      'The record of the key cannot be read: a later version of the gateway can, if one has written it. If it is damaged, revoke the key and make another.',
    );
  }

  /**
   * Creates a key. Other processes know it when the promise resolves, or some time later if the store failed after the
   * key was created. An id is free again once the record of its last key is removed.
   */
  async create(input: NewKey): Promise<IssuedKey> {
    const id = input.id ?? `key-${randomBytes(9).toString('hex')}`;
    if (await this.#taken(id)) throw idTaken();
    const key = newKey();
    const record: ManagedKey = {
      id,
      hash: hashOf(key),
      former: [],
      label: input.label,
      groups: input.groups,
      limits: input.limits,
      budget: input.budget,
      mayRoute: input.mayRoute,
      expiresAt: input.expiresAt,
      createdAt: this.#now(),
      revokedAt: null,
    };
    await this.#count.add(async () => {
      await this.#announce(id);
      const value = writeManagedKey(record);
      const ttlMs = this.#retentionMs(record);
      if (!(await this.#store.create(keyCollection, id, value, ttlMs))) throw idTaken();
    });
    await this.#announceIssued(id);
    return { key, record };
  }

  /**
   * Lists keys in no particular order, a page at a time. A key that changes meanwhile may be listed twice.
   * @param cursor `next` of the previous page; null for the first
   * @param limit most keys of the page
   */
  async list(cursor: string | null, limit: number): Promise<KeyPage> {
    const page = await this.#store.list(keyCollection, limit, cursor);
    const keys: BookedKey[] = [];
    const damaged: string[] = [];
    for (const { id, value, revision } of page.records) {
      const { record } = foundKey(id, value, revision);
      if (record === null) damaged.push(id);
      else keys.push({ record, revision });
    }
    return { keys, damaged, next: page.next };
  }

  /**
   * Revokes a key for good; no-op for a revoked key. When the promise resolves, every process that reads the
   * announcements afterwards refuses the key.
   * @returns null for an unreadable record, which is removed
   */
  async revoke(id: string): Promise<BookedKey | null> {
    for (let tries = 0; tries < maxTries; tries++) {
      const { record, revision } = await this.#find(id);
      if (record === null) {
        await this.#announce(id);
        await this.#store.remove(keyCollection, id);
        await this.#announce(id);
        return null;
      }
      if (record.revokedAt !== null) {
        // This may be a retry after the store failed before the announcement.
        await this.#announce(id);
        return { record, revision };
      }
      await this.#announce(id);
      const revoked: ManagedKey = { ...record, former: [], revokedAt: this.#now() };
      if (!(await this.#replace({ record: revoked, revision }))) continue;
      await this.#announce(id);
      return { record: revoked, revision: revision + 1 };
    }
    throw changedMeanwhile();
  }

  /**
   * Replaces a key's secret. The old one works for a grace period, like those of earlier rotations whose grace has not
   * ended, so that a rotation whose answer was lost can be repeated.
   * @param graceMs milliseconds; 0 ends all former secrets immediately
   * @param revision the revision that may be rotated; null for any
   */
  async rotate(id: string, graceMs: number, revision: number | null): Promise<IssuedKey> {
    const key = newKey();
    const { record } = await this.#change(id, revision, (old) => {
      const now = this.#now();
      if (old.expiresAt !== null && old.expiresAt <= now) {
        throw new GatewayError('conflict', 'The key has expired: change its expiry first.');
      }
      return { ...old, hash: hashOf(key), former: graceMs > 0 ? formerOf(old, graceMs, now) : [] };
    });
    await this.#announceIssued(id);
    return { key, record };
  }

  /** @param revision the revision that may be changed; null for any */
  async update(id: string, changes: KeyUpdate, revision: number | null): Promise<BookedKey> {
    const booked = await this.#change(id, revision, (old) => updated(old, changes));
    await this.#announce(id);
    return booked;
  }

  async #find(id: string): Promise<FoundKey> {
    const stored = await this.#store.get(keyCollection, id);
    if (stored === null) throw new GatewayError('not_found', 'There is no key with this id.');
    return foundKey(id, stored.value, stored.revision);
  }

  #retentionMs(record: ManagedKey): number {
    return retentionMs(record, this.#now(), this.#ownedMs());
  }

  #replace({ record, revision }: BookedKey): Promise<boolean> {
    const ttlMs = this.#retentionMs(record);
    return this.#store.replace(keyCollection, record.id, writeManagedKey(record), revision, ttlMs);
  }

  /** Changes a key. The caller makes the announcement after the change. */
  async #change(
    id: string,
    expected: number | null,
    edit: (record: ManagedKey) => ManagedKey,
  ): Promise<BookedKey> {
    const { record, revision } = await this.get(id);
    if (record.revokedAt !== null) throw new GatewayError('conflict', 'The key is revoked.');
    if (expected !== null && expected !== revision) throw changedMeanwhile();
    const changed = edit(record);
    await this.#announce(id);
    if (!(await this.#replace({ record: changed, revision }))) throw changedMeanwhile();
    return { record: changed, revision: revision + 1 };
  }

  /**
   * Announces a new secret. A failure is ignored: the caller must get the secret even if other processes learn of it
   * later.
   */
  #announceIssued(id: string): Promise<void> {
    return this.#announce(id).catch(() => undefined);
  }
}

/** Applies changes. An undefined field stays unchanged, so that a record never lacks a field. */
function updated(old: ManagedKey, changes: KeyUpdate): ManagedKey {
  return {
    ...old,
    label: changes.label ?? old.label,
    groups: changes.groups ?? old.groups,
    limits: changes.limits === undefined ? old.limits : changes.limits,
    budget: changes.budget === undefined ? old.budget : changes.budget,
    mayRoute: changes.mayRoute ?? old.mayRoute,
    expiresAt: changes.expiresAt === undefined ? old.expiresAt : changes.expiresAt,
  };
}

function formerOf({ hash, former }: ManagedKey, graceMs: number, now: number): readonly FormerKey[] {
  const before = former.filter(({ until }) => until > now);
  return [{ hash, until: now + graceMs }, ...before].slice(0, maxFormer);
}

function hashOf(key: string): string {
  return hashKey(key).slice('sha256:'.length);
}

function idTaken(): GatewayError {
  return new GatewayError('conflict', 'A key with this id already exists.', { param: 'id' });
}

function changedMeanwhile(): GatewayError {
  return new GatewayError('conflict', 'The key has changed in the meantime: read it again.');
}

const recountMs = 60_000;
const pageSize = 1000;

/** Bounds the number of keys. */
interface KeyCount {
  /**
   * Runs `make`, which creates a key.
   * @throws {GatewayError} `conflict` when the bound is reached; whatever `make` throws
   */
  add(make: () => Promise<void>): Promise<void>;
}

/**
 * Counts the keys of a store once the last count is a minute old, and adds this process's new keys in between. The
 * bound is exact for one process; several may exceed it by what the others create within a minute.
 */
function createKeyCount(store: Store, most: number): KeyCount {
  let counted: Promise<number> | null = null;
  let countedAt = Number.NEGATIVE_INFINITY;
  /** Keys created since the count began. */
  let made = 0;
  let making = 0;

  const count = (): Promise<number> => {
    if (counted !== null && performance.now() - countedAt < recountMs) return counted;
    countedAt = performance.now();
    made = 0;
    const counting = countRecords(store);
    counted = counting;
    counting.catch(() => {
      if (counted === counting) counted = null;
    });
    return counting;
  };

  return {
    async add(make) {
      if ((await count()) + made + making >= most) {
        throw new GatewayError('conflict', `There are ${most} keys already, and there can be no more.`);
      }
      making++;
      try {
        await make();
        made++;
      } finally {
        making--;
      }
    },
  };
}

async function countRecords(store: Store): Promise<number> {
  let total = 0;
  let from: string | null = null;
  do {
    const page = await store.list(keyCollection, pageSize, from);
    total += page.records.length;
    from = page.next;
  } while (from !== null);
  return total;
}
