import { announcedSince } from './key-announcements.js';
import type { FoundKey, KeyFeed } from './key-feed.js';
import type { KeyChange, ManagedKey } from './managed-key.js';

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
  /** Is told every change, the first time with `whole`. When it throws, everything is told again at the next look. */
  readonly onKeys: (change: KeyChange) => void;
  /** Is told once when looks begin to fail, with the error, and once, with null, when they work again. */
  readonly onFault?: (error: unknown) => void;
  /** Is told once of records that cannot be read: they are no keys. */
  readonly onDamaged?: (ids: readonly string[]) => void;
}

export interface KeyWatch {
  /** The keys that are not revoked, as they were at the last look: what `onKeys` was told, taken together. */
  active(): readonly ManagedKey[];
  /**
   * Looks at once.
   * @returns a promise that resolves when every change that was announced before the call is known here and was told;
   * it rejects when that look failed
   */
  refresh(): Promise<void>;
  /** Ends the watch. Nobody is told anything from then on; resolves when nothing is under way any more. */
  stop(): Promise<void>;
}

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
export function watchKeys(feed: KeyFeed, options: KeyWatchOptions): KeyWatch {
  const { everyMs = 250, secondLookMs = 30_000, wholeEveryMs = 3_600_000 } = options;
  const known = new Map<string, FoundKey>();
  /** Undefined before the first look. */
  let position: string | null | undefined;
  let wholeAt = Number.NEGATIVE_INFINITY;
  /** Ids and when they are due, the first one first. */
  const secondLooks = new Map<string, number>();
  let isUntold = true;
  let isFaulty = false;
  let isStopped = false;

  const tell = (change: KeyChange): void => {
    if (isStopped || (!change.whole && change.put.length === 0 && change.removed.length === 0)) return;
    isUntold = true;
    options.onKeys(change);
    isUntold = false;
  };

  const active = (): readonly ManagedKey[] =>
    [...known.values()].flatMap(({ record }) => (record !== null && record.revokedAt === null ? record : []));

  /** Takes over what was found under these ids. */
  const learn = (ids: Iterable<string>, found: ReadonlyMap<string, FoundKey>): void => {
    const put: ManagedKey[] = [];
    const removed: string[] = [];
    const damaged: string[] = [];
    for (const id of ids) {
      const old = known.get(id);
      const now = merge(old, found.get(id));
      if (now === old) continue;
      if (now === undefined) known.delete(id);
      else known.set(id, now);
      if (now?.record === null) damaged.push(id);
      if (isActive(now)) put.push(now.record);
      else if (isActive(old)) removed.push(id);
    }
    tell(isUntold ? { whole: true, put: active(), removed: [] } : { whole: false, put, removed });
    if (damaged.length > 0 && !isStopped) options.onDamaged?.(damaged);
  };

  const readAll = async (): Promise<void> => {
    const seen = new Set<string>();
    const found = new Map<string, FoundKey>();
    let from: string | null = null;
    do {
      const page = await feed.page(from, (id, revision) => known.get(id)?.revision === revision);
      for (const id of page.ids) seen.add(id);
      for (const [id, one] of page.fresh) found.set(id, one);
      from = page.next;
      if (isStopped) return;
    } while (from !== null);
    // A record can be on no page while its time changes: only its own absence says that it is gone.
    const missing = [...known.keys()].filter((id) => !seen.has(id));
    for (const [id, one] of await feed.read(missing)) found.set(id, one);
    learn([...found.keys(), ...missing], found);
  };

  const readSome = async (announced: ReadonlySet<string>, now: number): Promise<void> => {
    const due: string[] = [];
    for (const [id, at] of secondLooks) {
      if (at > now) break;
      due.push(id);
    }
    const ids = new Set([...due, ...announced]);
    if (ids.size > 0 || isUntold) learn(ids, await feed.read(ids));
    for (const id of due) secondLooks.delete(id);
    for (const id of announced) {
      secondLooks.delete(id);
      secondLooks.set(id, now + secondLookMs);
    }
    if (secondLooks.size > mostSecondLooks) {
      secondLooks.clear();
      wholeAt = Math.min(wholeAt, now + secondLookMs);
    }
  };

  const look = async (): Promise<void> => {
    const announcements = await feed.announcements();
    const now = performance.now();
    const isUnchanged = announcements.position === position;
    const announced =
      position === undefined || now >= wholeAt
        ? null
        : isUnchanged
          ? new Set<string>()
          : announcedSince(announcements, position);
    if (announced === null) {
      await readAll();
      secondLooks.clear();
      wholeAt = now + (isUnchanged ? wholeEveryMs : secondLookMs);
    } else {
      await readSome(announced, now);
    }
    position = announcements.position;
  };

  const lookAndReport = async (): Promise<void> => {
    if (isStopped) return;
    try {
      await look();
    } catch (error) {
      if (!isFaulty && !isStopped) options.onFault?.(error);
      isFaulty = true;
      throw error;
    }
    if (isFaulty && !isStopped) options.onFault?.(null);
    isFaulty = false;
  };

  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  const refresh = (): Promise<void> => {
    if (next !== null) return next;
    const looking = last.then(() => {
      next = null;
      return lookAndReport();
    });
    next = looking;
    last = looking.catch(() => undefined);
    return looking;
  };

  let timer: NodeJS.Timeout | null = null;
  const run = (): void => {
    void refresh()
      .catch(() => undefined)
      .then(() => {
        if (!isStopped) timer = setTimeout(run, everyMs).unref();
      });
  };
  run();

  return {
    active,
    refresh,
    async stop() {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      await last;
    },
  };
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
