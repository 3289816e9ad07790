import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import type { Store } from '../store/store.js';
import { createAnnouncer, retentionMs } from './key-announcements.js';
import type { KeyUpdate, NewKey } from './key-input.js';
import { type FormerKey, type ManagedKey, writeManagedKey } from './managed-key.js';
import { hashKey, newKey } from './secret.js';
import { type FoundKey, foundKey, keyCollection } from './stored-keys.js';

/** Revocations are never refused because somebody changed the key meanwhile; so often in a row, something is wrong. */
const mostTries = 20;
const mostListed = 1000;
/** Former keys of one key that work at a time; the oldest ones go first. */
const mostFormer = 4;

interface KeyBookOptions {
  /** True for an id that the config file has given away. */
  taken(id: string): boolean | Promise<boolean>;
  /** Records in the store, of ended keys, too; 100,000 unless said otherwise. */
  readonly mostKeys?: number;
  /** Unix milliseconds; the clock of the system unless said otherwise. */
  readonly now?: () => number;
}

/** A key as it stands in the store. Its revision changes with each change. */
export interface BookedKey {
  readonly record: ManagedKey;
  readonly revision: number;
}

/** A key that was just made: nobody can show it again. */
export interface IssuedKey {
  readonly key: string;
  readonly record: ManagedKey;
}

export interface KeyPage {
  readonly keys: readonly BookedKey[];
  /** Ids of records that cannot be read, which are no keys to anybody. */
  readonly damaged: readonly string[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/**
 * The keys in the store, which operators make, change and revoke at run time. Inputs are taken as checked by `key-input.ts`.
 * Every promise rejects with the store's error when it cannot be reached, and then nobody knows whether the change was
 * made; with a {@link GatewayError} `not_found` where there is no such key, and `conflict` where the state of the key
 * does not allow what is asked, or somebody else changed it meanwhile.
 * A change is announced before and after it is made. Who follows the keys reads what is announced at once and again
 * some time later, and so sees also the change of a process that ended in between.
 */
export class KeyBook {
  readonly #store: Store;
  readonly #taken: KeyBookOptions['taken'];
  readonly #now: () => number;
  readonly #announce: (id: string) => Promise<void>;
  readonly #count: KeyCount;

  constructor(store: Store, options: KeyBookOptions) {
    this.#store = store;
    this.#taken = (id) => options.taken(id);
    this.#now = options.now ?? Date.now;
    this.#announce = createAnnouncer(store);
    this.#count = createKeyCount(store, options.mostKeys ?? 100_000);
  }

  async get(id: string): Promise<BookedKey> {
    const { record, revision } = await this.#find(id);
    if (record !== null) return { record, revision };
    throw new GatewayError('not_found', 'The record of the key cannot be read: revoke it and make another.');
  }

  /**
   * Makes a key. Others know it when the promise resolves, or, when the store was lost after it was made, some time
   * later. An id is free again when its last key is forgotten.
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
      const ttlMs = retentionMs(record, this.#now());
      if (!(await this.#store.create(keyCollection, id, value, ttlMs))) throw idTaken();
    });
    await this.#announceIssued(id);
    return { key, record };
  }

  /**
   * Lists keys, in no order that means anything, a page at a time. What changes meanwhile may come twice.
   * @param cursor `next` of the page before; null for the first one
   * @param limit keys on the page; 100 unless said otherwise, 1000 at most
   */
  async list(cursor: string | null, limit = 100): Promise<KeyPage> {
    const page = await this.#store.list(keyCollection, Math.min(Math.max(limit, 1), mostListed), cursor);
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
   * Revokes a key for good; again is nothing. When the promise resolves, everybody who looks at the announcements from
   * then on refuses the key.
   * @returns null for a record that could not be read: it is removed
   */
  async revoke(id: string): Promise<BookedKey | null> {
    for (let tries = 0; tries < mostTries; tries++) {
      const { record, revision } = await this.#find(id);
      if (record === null) {
        await this.#announce(id);
        await this.#store.remove(keyCollection, id);
        await this.#announce(id);
        return null;
      }
      if (record.revokedAt !== null) {
        // Whoever asks again may have been told that the store was lost before others heard of it.
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
   * Puts a new key in the place of the old one, which works on for a while, as do those of rotations before whose
   * grace has not ended: so a rotation whose answer was lost can be done again.
   * @param graceMs milliseconds; 0 ends all of them at once
   * @param revision the only one that may be rotated; null for whichever it has
   */
  async rotate(id: string, graceMs: number, revision: number | null = null): Promise<IssuedKey> {
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

  /** @param revision the only one that may be changed; null for whichever it has */
  async update(id: string, changes: KeyUpdate, revision: number | null = null): Promise<BookedKey> {
    const booked = await this.#change(id, revision, (old) => updated(old, changes));
    await this.#announce(id);
    return booked;
  }

  async #find(id: string): Promise<FoundKey> {
    const stored = await this.#store.get(keyCollection, id);
    if (stored === null) throw new GatewayError('not_found', 'There is no key with this id.');
    return foundKey(id, stored.value, stored.revision);
  }

  #replace({ record, revision }: BookedKey): Promise<boolean> {
    const ttlMs = retentionMs(record, this.#now());
    return this.#store.replace(keyCollection, record.id, writeManagedKey(record), revision, ttlMs);
  }

  /** Not announced yet that it is done. */
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

  /** Whoever is shown a key must not lose it because others hear of it later. */
  #announceIssued(id: string): Promise<void> {
    return this.#announce(id).catch(() => undefined);
  }
}

/** What is undefined in the changes stays as it is, and so a record never lacks a field. */
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
  return [{ hash, until: now + graceMs }, ...before].slice(0, mostFormer);
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

/** Bounds how many keys there are. */
interface KeyCount {
  /**
   * Does what makes one more key.
   * @throws {GatewayError} `conflict` when there are as many as there may be; whatever `make` throws
   */
  add(make: () => Promise<void>): Promise<void>;
}

/**
 * Counts the keys of a store when the last count is a minute old, and adds those of this process in between. So the
 * bound holds for one process, and several may pass it by what the others make within a minute.
 */
function createKeyCount(store: Store, most: number): KeyCount {
  let counted: Promise<number> | null = null;
  let countedAt = Number.NEGATIVE_INFINITY;
  /** Made since the count began. */
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
