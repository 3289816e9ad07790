import * as crypto from 'node:crypto';
import type { Key, KeysByName } from '../config/types.js';
import { shardOfEnd, WideMap } from '../wire/wide-map.js';
import type { KeyEntry, KeyResolver, ManagedKeySet } from './key-set.js';

/** The gateway's keys are never longer; a longer text is not hashed. */
const longestPresented = 512;
/**
 * Callers remembered in each of two generations; 12 MB when one is full. Equals the bound of managed keys, so that none
 * is hashed again when all keys take turns.
 */
const recentCallers = 100_000;

export interface KeyTable {
  /**
   * Finds the key that a caller presents, expired or not. The user of the table checks `expiresAt` at every call.
   * @returns null if there is none
   */
  find(presented: string): Key | null;
  /** False while managed keys are still being loaded: a key that is not found may exist. */
  readonly isComplete: boolean;
  /**
   * Returns the current state of a key found earlier, in this table or a previous one: same hash and id, all else
   * current. Expired or not, as with `find`.
   * @returns null if the key no longer exists
   */
  current(key: Key): Key | null;
}

/** Managed keys, and the meaning of their groups in the table's config. */
interface ManagedKeys {
  readonly set: ManagedKeySet;
  readonly resolve: KeyResolver;
  /** Ids of the config's keys. */
  readonly configIds: { has(id: string): boolean };
}

/** A recently presented key. */
interface Recent {
  readonly key: Key;
  /** Null for a key of the config file, which lives as long as the table. */
  readonly entry: KeyEntry | null;
}

/** Keys by the presented text, in two generations. A caller is forgotten after a whole generation without a call. */
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

/** Copies a text: a slice of a header value would keep the whole value in memory. */
function ownText(presented: string): string {
  return Buffer.from(presented).toString();
}

/** `crypto.hash` (Node 20.12) takes half the time of a `Hash` object for texts this short. */
const sha256: (text: string) => string =
  typeof crypto.hash === 'function'
    ? (text) => crypto.hash('sha256', text, 'hex')
    : (text) => crypto.createHash('sha256').update(text).digest('hex');

/**
 * Creates the lookup of presented keys. Only hashes are stored. The map is queried with the SHA-256 of the presented
 * text, which a caller cannot steer toward a stored one, and a match is confirmed in constant time.
 *
 * Recent valid callers are remembered by the text itself, which saves the hash. Only valid texts are: a guess always
 * takes the slow path, so the cache cannot be used to test guesses, nor be filled by strangers. It lives in memory, in
 * a process that sees every presented key anyway, and ends with the table.
 *
 * A change of the managed keys takes effect with the next lookup: a remembered entry is checked for whether it still
 * exists. If a managed key has the id or hash of a key of the config file, the key of the file wins.
 * @param keys keys of the config by SHA-256, lower-case hex
 * @param managed keys that change while the table is in use
 */
export function createKeyTable(keys: KeysByName, managed: ManagedKeys): KeyTable {
  const recent = new RecentCallers();
  /** Keeps a key the same object across lookups. */
  const resolved = new WeakMap<KeyEntry, Key>();

  const findManaged = (digest: string): Recent | null => {
    const entry = managed.set.find(digest);
    if (entry === null || managed.configIds.has(entry.key.id)) return null;
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
      return managed.set.isComplete;
    },
    current: ({ id, hash }) => {
      const now = keys.get(hash) ?? findManaged(hash)?.key ?? null;
      return now?.id === id ? now : null;
    },
  };
}
