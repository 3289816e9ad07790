import { performance } from 'node:perf_hooks';
import type { Store } from '../store/store.js';
import { inSlices, nextSlice, type Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import { type Announcements, announcedSince, readAnnouncements } from './key-announcements.js';
import type { KeyChange, ManagedKey } from './managed-key.js';
import { type FoundKey, readKeyPage, readKeys } from './stored-keys.js';

export interface KeyWatchOptions {
  /** Milliseconds between two looks; default 250. */
  readonly everyMs?: number;
  /**
   * Milliseconds after which an announced key is read again: its change may have been in flight at the first read, and
   * its process may have ended before the second announcement. Default 30 s, longer than any call of the store.
   */
  readonly secondLookMs?: number;
  /** Milliseconds after which all keys are read again, changed or not; default one hour. */
  readonly wholeEveryMs?: number;
  /**
   * Called with every change: first with `whole`, and with many keys in parts. If it throws, all keys are reported
   * again at the next look, in one change.
   */
  readonly onKeys: (change: KeyChange) => void;
  /** Called once with the error when looks begin to fail, and once with null when they succeed again. */
  readonly onFault: (error: unknown) => void;
  /** Called with revoked keys that are no longer revoked in the store, as after a restore. They stay revoked here. */
  readonly onRevived: (ids: readonly string[]) => void;
  /** Called once per unreadable record; such records are not keys. */
  readonly onDamaged: (ids: readonly string[]) => void;
}

/** The record that a look found under an id; undefined for none. */
type Found = readonly [id: string, found: FoundKey | undefined];

/** Most keys of one change, which is sent to the processes that serve calls. */
const maxPerChange = 32;
/** Most revoked keys without a record that are remembered; the latest are kept. */
const maxGone = 10_000;
/** Most announced keys that are scheduled for a second read. */
const maxSecondLooks = 10_000;

/**
 * Follows the keys of a store. Each look reads the announcements and the keys that they name, or all keys if the
 * announcements do not go back far enough. While the store is unavailable, the known keys stay; the next successful look
 * continues from the last one.
 *
 * Looks never overlap, and each reads the announcements before the keys, so a key is never older than announced. A key
 * seen as revoked stays revoked, even if its store was reset to an earlier state.
 */
export class KeyWatch {
  readonly #store: Store;
  readonly #options: KeyWatchOptions;
  readonly #everyMs: number;
  readonly #secondLookMs: number;
  readonly #wholeEveryMs: number;
  readonly #known = new WideMap<FoundKey>();
  /** The number of these that are not revoked. */
  #active = 0;
  /** Revoked keys without a record: during a restore of the database, records may be missing for a moment. */
  readonly #gone = new Map<string, FoundKey>();
  /** Undefined before the first look. */
  #position: string | null | undefined;
  #wholeAt = Number.NEGATIVE_INFINITY;
  /** Ids and their due times, earliest first. */
  readonly #secondLooks = new Map<string, number>();
  #isUntold = true;
  /** Whether only a part of the first look's keys has been reported. */
  #isPart = false;
  #isFaulty = false;
  #isStopped = false;
  /** Settles when every requested look has ended. */
  #last: Promise<void> = Promise.resolve();
  /** A look that has not begun, which further requests share. */
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(store: Store, options: KeyWatchOptions) {
    const { everyMs = 250, secondLookMs = 30_000, wholeEveryMs = 3_600_000 } = options;
    this.#store = store;
    this.#options = options;
    this.#everyMs = everyMs;
    this.#secondLookMs = secondLookMs;
    this.#wholeEveryMs = wholeEveryMs;
    this.#run();
  }

  /** Looks now, and then `everyMs` after the end of each look. */
  #run(): void {
    void this.refresh()
      .catch(() => undefined)
      .then(() => {
        if (!this.#isStopped) this.#timer = setTimeout(() => this.#run(), this.#everyMs).unref();
      });
  }

  /** The keys not revoked at the last look: the sum of what `onKeys` received. */
  active(): readonly ManagedKey[] {
    return [...this.#known.values()].flatMap((found) => (isActive(found) ? found.record : []));
  }

  /** The number of these keys. */
  count(): number {
    return this.#active;
  }

  /** False until all keys of the first look were reported. */
  get isWhole(): boolean {
    return !this.#isUntold && !this.#isPart;
  }

  /** The ids of all known keys, revoked or not. Changes during the iteration are safe. */
  ids(): IterableIterator<string> {
    return this.#known.keys();
  }

  /** One of `active`, or null. */
  find(id: string): ManagedKey | null {
    const found = this.#known.get(id);
    return isActive(found) ? found.record : null;
  }

  /**
   * Looks immediately.
   * @returns a promise that resolves when every change announced before the call is known here and was reported; it
   * rejects if that look fails
   */
  refresh(): Promise<void> {
    if (this.#next !== null) return this.#next;
    const looking = this.#last.then(() => {
      this.#next = null;
      return this.#lookAndReport();
    });
    this.#next = looking;
    this.#last = looking.catch(() => undefined);
    return looking;
  }

  /** Ends the watch. No callback follows; resolves when no look is in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#last;
  }

  async #lookAndReport(): Promise<void> {
    if (this.#isStopped) return;
    try {
      await this.#look();
    } catch (error) {
      if (!this.#isFaulty && !this.#isStopped) this.#options.onFault(error);
      this.#isFaulty = true;
      throw error;
    }
    if (this.#isFaulty && !this.#isStopped) this.#options.onFault(null);
    this.#isFaulty = false;
  }

  async #look(): Promise<void> {
    const announcements = await readAnnouncements(this.#store);
    const now = performance.now();
    const announced = this.#announcedNow(announcements, now);
    if (announced === null) {
      await this.#readAll();
      this.#secondLooks.clear();
      const isUnchanged = announcements.position === this.#position;
      this.#wholeAt = now + (isUnchanged ? this.#wholeEveryMs : this.#secondLookMs);
    } else {
      await this.#readSome(announced, now);
    }
    this.#position = announcements.position;
  }

  /** @returns the ids announced since the last look, or null if all keys have to be read */
  #announcedNow(announcements: Announcements, now: number): ReadonlySet<string> | null {
    const position = this.#position;
    if (position === undefined || now >= this.#wholeAt) return null;
    return announcements.position === position ? new Set() : announcedSince(announcements, position);
  }

  async #readAll(): Promise<void> {
    const known = this.#known;
    const isFirst = known.size === 0;
    const seen = new WideMap<true>();
    const found: Found[] = [];
    let from: string | null = null;
    do {
      const page = await readKeyPage(
        this.#store,
        from,
        (id, revision) => known.get(id)?.revision === revision,
      );
      if (!isFirst) for (const id of page.ids) seen.set(id, true);
      found.push(...page.fresh);
      from = page.next;
      if (this.#isStopped) return;
    } while (from !== null);
    // A record whose time changes may be on no page; only reading it by its id shows that it is gone.
    const missing = await inSlices(missingSteps(known.keys(), seen));
    const records = await readKeys(this.#store, missing);
    for (const id of missing) found.push([id, records.get(id)]);
    await this.#applyAll(found);
  }

  async #readSome(announced: ReadonlySet<string>, now: number): Promise<void> {
    const due: string[] = [];
    for (const [id, at] of this.#secondLooks) {
      if (at > now) break;
      due.push(id);
    }
    const ids = new Set([...due, ...announced]);
    if (ids.size > 0 || this.#isUntold) {
      const records = await readKeys(this.#store, ids);
      await this.#applyAll(Array.from(ids, (id) => [id, records.get(id)]));
    }
    for (const id of due) this.#secondLooks.delete(id);
    for (const id of announced) {
      this.#secondLooks.delete(id);
      this.#secondLooks.set(id, now + this.#secondLookMs);
    }
    if (this.#secondLooks.size > maxSecondLooks) {
      this.#secondLooks.clear();
      this.#wholeAt = Math.min(this.#wholeAt, now + this.#secondLookMs);
    }
  }

  /** Applies the found records in parts, or all in one change if an earlier report failed. */
  async #applyAll(found: readonly Found[]): Promise<void> {
    const isAgain = this.#isUntold && this.#known.size > 0;
    if (isAgain || found.length <= maxPerChange) {
      this.#apply(new Map(found), false);
      return;
    }
    const isFirst = this.#isUntold;
    for (let from = 0; from < found.length && !this.#isStopped; from += maxPerChange) {
      await nextSlice();
      const isLast = from + maxPerChange >= found.length;
      this.#apply(new Map(found.slice(from, from + maxPerChange)), isFirst && !isLast);
    }
  }

  /** Applies found records. @param more whether further parts follow */
  #apply(found: ReadonlyMap<string, FoundKey | undefined>, more: boolean): void {
    const put: ManagedKey[] = [];
    const removed: string[] = [];
    const damaged: string[] = [];
    const revived: string[] = [];
    for (const [id, one] of found) {
      const old = this.#known.get(id);
      const now = merge(old ?? this.#gone.get(id), one);
      if (now === old) continue;
      if (now === undefined) this.#forget(id, old);
      else this.#known.set(id, now);
      this.#active += Number(isActive(now)) - Number(isActive(old));
      if (isActive(one) && !isActive(now)) revived.push(id);
      if (now?.record === null) damaged.push(id);
      if (isActive(now)) put.push(now.record);
      else if (isActive(old)) removed.push(id);
    }
    this.#report(
      this.#isUntold
        ? { whole: true, put: this.active(), removed: [], more }
        : { whole: false, put, removed, more },
    );
    if (this.#isStopped) return;
    if (damaged.length > 0) this.#options.onDamaged(damaged);
    if (revived.length > 0) this.#options.onRevived(revived);
  }

  #forget(id: string, old: FoundKey | undefined): void {
    this.#known.delete(id);
    if (old?.record == null || old.record.revokedAt === null) return;
    this.#gone.set(id, old);
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > maxGone && oldest !== undefined) this.#gone.delete(oldest);
  }

  #report(change: KeyChange): void {
    const { whole, put, removed, more } = change;
    const isEnd = this.#isPart && !more;
    if (this.#isStopped || (!whole && !isEnd && put.length === 0 && removed.length === 0)) return;
    this.#isUntold = true;
    this.#options.onKeys(change);
    this.#isUntold = false;
    this.#isPart = more;
  }
}

function* missingSteps(ids: Iterable<string>, seen: { has(id: string): boolean }): Steps<string[]> {
  const missing: string[] = [];
  for (const id of ids) {
    if (!seen.has(id)) missing.push(id);
    yield;
  }
  return missing;
}

function isActive(found: FoundKey | undefined): found is FoundKey & { readonly record: ManagedKey } {
  return found !== undefined && found.record !== null && found.record.revokedAt === null;
}

/** @returns `old` itself if nothing changed */
function merge(old: FoundKey | undefined, found: FoundKey | undefined): FoundKey | undefined {
  if (old === undefined || found === undefined) return found;
  if (old.revision === found.revision) return old;
  const isSame = old.record !== null && old.record.createdAt === found.record?.createdAt;
  const isBack = isSame && old.record.revokedAt !== null && found.record.revokedAt === null;
  // The revision is updated all the same; otherwise the record would be read again at every look.
  return isBack ? { revision: found.revision, record: old.record } : found;
}
