import { performance } from 'node:perf_hooks';
import type { Store } from '../store/store.js';
import { inSlices, nextSlice, type Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import { type Announcements, announcedSince, readAnnouncements } from './key-announcements.js';
import type { KeyChange, ManagedKey } from './managed-key.js';
import { type FoundKey, readKeyPage, readKeys } from './stored-keys.js';

export interface KeyWatchOptions {
  /** Milliseconds between two looks; 250 unless said otherwise. */
  readonly everyMs?: number;
  /**
   * What was announced is read again so long after: its change may have been under way, and its process may have ended
   * before it could say that it was done. 30 s unless said otherwise; longer than a call of the store can take.
   */
  readonly secondLookMs?: number;
  /** Milliseconds after which everything is read anew, changed or not; an hour unless said otherwise. */
  readonly wholeEveryMs?: number;
  /**
   * Is told every change, the first time with `whole`, and a part of many keys at a time. When it throws, everything is told
   * again at the next look, in one change.
   */
  readonly onKeys: (change: KeyChange) => void;
  /** Is told once when looks begin to fail, with the error, and once, with null, when they work again. */
  readonly onFault?: (error: unknown) => void;
  /** Is told of keys that are not revoked in the store any more, as after a restore. They stay revoked here. */
  readonly onRevived?: (ids: readonly string[]) => void;
  /** Is told once of records that cannot be read: they are no keys. */
  readonly onDamaged?: (ids: readonly string[]) => void;
}

/** What a look has found under an id; undefined for nothing. */
type Found = readonly [id: string, found: FoundKey | undefined];

/** Keys that are taken over and told of at once: processes that serve calls hear of them. */
const mostTogether = 32;
/** Revoked keys whose records are gone are remembered up to so many, the latest. */
const mostGone = 10_000;
/** More announced keys than these are not looked at again one by one. */
const mostSecondLooks = 10_000;

/**
 * Follows the keys of a store: looks at the announcements, and reads the keys that these name, or all of them when the
 * announcements do not go back far enough. When the store cannot be reached, what is known stays, and nothing is lost:
 * the next look that works goes on from the last that did.
 *
 * Looks never overlap, and each reads the announcements before the keys, so a key is never older than announced. A key
 * that was seen as revoked stays so, even if its store went back in time.
 */
export class KeyWatch {
  readonly #store: Store;
  readonly #options: KeyWatchOptions;
  readonly #everyMs: number;
  readonly #secondLookMs: number;
  readonly #wholeEveryMs: number;
  readonly #known = new WideMap<FoundKey>();
  /** Revoked keys without a record: while a database is restored there may be none for a moment. */
  readonly #gone = new Map<string, FoundKey>();
  /** Undefined before the first look. */
  #position: string | null | undefined;
  #wholeAt = Number.NEGATIVE_INFINITY;
  /** Ids and when they are due, the first one first. */
  readonly #secondLooks = new Map<string, number>();
  #isUntold = true;
  /** What has been told is a part of all that was there at the first look. */
  #isPart = false;
  #isFaulty = false;
  #isStopped = false;
  /** Over when every look that was asked for is. */
  #last: Promise<void> = Promise.resolve();
  /** A look that has not begun: whoever asks for one meanwhile gets this one. */
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

  /** Looks now, and from then on `everyMs` after each look has ended. */
  #run(): void {
    void this.refresh()
      .catch(() => undefined)
      .then(() => {
        if (!this.#isStopped) this.#timer = setTimeout(() => this.#run(), this.#everyMs).unref();
      });
  }

  /** The keys that are not revoked, as they were at the last look: what `onKeys` was told, taken together. */
  active(): readonly ManagedKey[] {
    return [...this.#known.values()].flatMap((found) => (isActive(found) ? found.record : []));
  }

  /** How many these are. */
  count(): number {
    let count = 0;
    for (const found of this.#known.values()) if (isActive(found)) count++;
    return count;
  }

  /** False until all that was there at the first look has been told. */
  get isWhole(): boolean {
    return !this.#isUntold && !this.#isPart;
  }

  /** The ids of all that are known, revoked or not. */
  ids(): readonly string[] {
    return [...this.#known.keys()];
  }

  /** One of `active`, or null. */
  find(id: string): ManagedKey | null {
    const found = this.#known.get(id);
    return isActive(found) ? found.record : null;
  }

  /**
   * Looks at once.
   * @returns a promise that resolves when every change that was announced before the call is known here and was told;
   * it rejects when that look failed
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

  /** Ends the watch. Nobody is told anything from then on; resolves when nothing is under way any more. */
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
      if (!this.#isFaulty && !this.#isStopped) this.#options.onFault?.(error);
      this.#isFaulty = true;
      throw error;
    }
    if (this.#isFaulty && !this.#isStopped) this.#options.onFault?.(null);
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

  /** @returns the ids that were announced since the last look, or null when everything is to be read */
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
    // A record can be on no page while its time changes: only its own absence says that it is gone.
    const missing = await inSlices(missingSteps(known.keys(), seen));
    const records = await readKeys(this.#store, missing);
    for (const id of missing) found.push([id, records.get(id)]);
    await this.#learnAll(found);
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
      await this.#learnAll(Array.from(ids, (id) => [id, records.get(id)]));
    }
    for (const id of due) this.#secondLooks.delete(id);
    for (const id of announced) {
      this.#secondLooks.delete(id);
      this.#secondLooks.set(id, now + this.#secondLookMs);
    }
    if (this.#secondLooks.size > mostSecondLooks) {
      this.#secondLooks.clear();
      this.#wholeAt = Math.min(this.#wholeAt, now + this.#secondLookMs);
    }
  }

  /** Takes over what was found: some at a time, but for what is told again since somebody has failed to hear it. */
  async #learnAll(found: readonly Found[]): Promise<void> {
    const isAgain = this.#isUntold && this.#known.size > 0;
    if (isAgain || found.length <= mostTogether) {
      this.#learn(new Map(found), false);
      return;
    }
    const isFirst = this.#isUntold;
    for (let from = 0; from < found.length && !this.#isStopped; from += mostTogether) {
      await nextSlice();
      const isLast = from + mostTogether >= found.length;
      this.#learn(new Map(found.slice(from, from + mostTogether)), isFirst && !isLast);
    }
  }

  /** Takes over what was found. @param more other parts of all that was found follow */
  #learn(found: ReadonlyMap<string, FoundKey | undefined>, more: boolean): void {
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
      if (isActive(one) && !isActive(now)) revived.push(id);
      if (now?.record === null) damaged.push(id);
      if (isActive(now)) put.push(now.record);
      else if (isActive(old)) removed.push(id);
    }
    this.#tell(
      this.#isUntold
        ? { whole: true, put: this.active(), removed: [], more }
        : { whole: false, put, removed, more },
    );
    if (this.#isStopped) return;
    if (damaged.length > 0) this.#options.onDamaged?.(damaged);
    if (revived.length > 0) this.#options.onRevived?.(revived);
  }

  #forget(id: string, old: FoundKey | undefined): void {
    this.#known.delete(id);
    if (old?.record == null || old.record.revokedAt === null) return;
    this.#gone.set(id, old);
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > mostGone && oldest !== undefined) this.#gone.delete(oldest);
  }

  #tell(change: KeyChange): void {
    const { whole, put, removed, more = false } = change;
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

/** @returns `old` itself when nothing is new */
function merge(old: FoundKey | undefined, found: FoundKey | undefined): FoundKey | undefined {
  if (old === undefined || found === undefined) return found;
  if (old.revision === found.revision) return old;
  const isSame = old.record !== null && old.record.createdAt === found.record?.createdAt;
  const isBack = isSame && old.record?.revokedAt !== null && found.record?.revokedAt === null;
  // The revision is taken all the same, else it would be read again and again.
  return isBack ? { revision: found.revision, record: old.record } : found;
}
