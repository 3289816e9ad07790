import * as crypto from 'node:crypto';
import type { Key, KeysByName } from '../config/types.js';
import { shardOfEnd, WideMap } from '../wire/wide-map.js';
import type { KeyEntry, KeyResolver, ManagedKeySet } from './key-set.js';

/** No key of ours is longer; a longer text is not worth a hash. */
const longestPresented = 512;
/**
 * Callers that are remembered in each of two generations: 12 MB when one is full. As many as there may be managed keys, so
 * that none of them is hashed again when all take turns.
 */
const recentCallers = 100_000;

export interface KeyTable {
  /**
   * Finds the key that a caller presents, expired or not: `expiresAt` is for the caller to look at, at every call.
   * @returns null when there is none
   */
  find(presented: string): Key | null;
  /** False while managed keys are not known yet: a key that is not found may be there all the same. */
  readonly isComplete: boolean;
  /**
   * What a key is here that was found earlier, in this table or in one before it: its hash and its id are the same, and
   * all else is as it is now. Expired or not, as with `find`.
   * @returns null when there is no such key any more
   */
  current(key: Key): Key | null;
}

/** Managed keys, and what their groups mean in the config that the table belongs to. */
interface ManagedKeys {
  readonly set: ManagedKeySet;
  readonly resolve: KeyResolver;
  /** Ids of the keys of the config, where somebody has them already. */
  readonly configIds?: { has(id: string): boolean };
}

/** A key that was presented lately. */
interface Recent {
  readonly key: Key;
  /** Null for one of the config file, which stays as long as the table. */
  readonly entry: KeyEntry | null;
}

/** Keys by the text that was presented. Who has not called since the other half of those remembered did is forgotten. */
class RecentCallers {
  #young = noCallers();
  #old = noCallers();

  get(presented: string): Recent | undefined {
    const young = this.#young.get(presented);
    if (young !== undefined) return young;
    const old = this.#old.get(presented);
    if (old !== undefined) this.set(presented, old);
    return old;
  }

  set(presented: string, found: Recent): void {
    if (this.#young.size >= recentCallers) {
      this.#old = this.#young;
      this.#young = noCallers();
    }
    this.#young.set(ownText(presented), found);
  }

  delete(presented: string): void {
    this.#young.delete(presented);
    this.#old.delete(presented);
  }
}

function noCallers(): WideMap<Recent> {
  return new WideMap(shardOfEnd);
}

/** A copy: a part of a header's value would keep the whole of it in memory. */
function ownText(presented: string): string {
  return Buffer.from(presented).toString();
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
 *
 * A change of the managed keys holds from the very next lookup on: what was remembered of them is asked whether it is
 * still there. Where a managed key has the id or the hash of a key of the config file, the one of the file counts.
 * @param keys by SHA-256, lower-case hex
 * @param managed those that come and go while the table is in use; null for none
 */
export function createKeyTable(keys: KeysByName, managed: ManagedKeys | null = null): KeyTable {
  const recent = new RecentCallers();
  const ids = managed?.configIds ?? new Set([...keys.values()].map(({ id }) => id));
  /** So that a key stays the same object however often it is looked up. */
  const resolved = new WeakMap<KeyEntry, Key>();

  const findManaged = (digest: string): Recent | null => {
    const entry = managed?.set.find(digest) ?? null;
    if (managed === null || entry === null || ids.has(entry.key.id)) return null;
    let key = resolved.get(entry);
    if (key === undefined) {
      key = managed.resolve(entry);
      resolved.set(entry, key);
    }
    return { key, entry };
  };

  const find = (presented: string): Key | null => {
    const cached = recent.get(presented);
    if (cached !== undefined) {
      if (cached.entry === null || cached.entry.isLive) return cached.key;
      recent.delete(presented);
    }
    if (presented.length === 0 || presented.length > longestPresented) return null;
    const digest = sha256(presented);
    const configured = keys.get(digest);
    const found = configured === undefined ? findManaged(digest) : { key: configured, entry: null };
    if (found === null) return null;
    const { key } = found;
    if (!crypto.timingSafeEqual(Buffer.from(digest, 'latin1'), Buffer.from(key.hash, 'latin1'))) return null;
    recent.set(presented, found);
    return key;
  };

  return {
    find,
    get isComplete() {
      return managed === null || managed.set.isComplete;
    },
    current: ({ id, hash }) => {
      const now = keys.get(hash) ?? findManaged(hash)?.key ?? null;
      return now?.id === id ? now : null;
    },
  };
}
