import { randomBytes } from 'node:crypto';
import { GatewayError } from '../errors.js';
import { changeRecord, type Store } from '../store/store.js';
import { parseObject } from '../wire/json.js';
import type { ManagedKey } from './managed-key.js';

/**
 * The recently changed keys: one small record that every process reads often. Each announcement has a random mark, by
 * which a reader remembers its position. A counter would not do: a store that lost its latest changes would assign the
 * same numbers again to other changes.
 */
export interface Announcements {
  /** The mark of the newest announcement; null before the first. */
  readonly position: string | null;
  readonly changes: readonly Announcement[];
}

/** A mark with the ids that changed; null if they are too many. */
type Announcement = readonly [mark: string, ids: readonly string[] | null];

/** Collection of the store. Existing stores contain this name. */
export const announcementCollection = 'key-changes';
const recordId = 'latest';

/** Most ids in the record, since it is read several times a second. */
const maxIds = 256;

/** Reads the recent announcements. An unreadable record counts as none. */
export async function readAnnouncements(store: Store): Promise<Announcements> {
  const record = await store.get(announcementCollection, recordId);
  return parseAnnouncements(record?.value ?? '');
}

/**
 * @param position position of an earlier read
 * @returns the ids announced after it, or null if the announcements no longer go back to it
 */
export function announcedSince(
  { changes }: Announcements,
  position: string | null,
): ReadonlySet<string> | null {
  const at = changes.findIndex(([mark]) => mark === position);
  if (at === -1) return null;
  const ids = new Set<string>();
  for (const [, each] of changes.slice(at + 1)) {
    if (each === null) return null;
    for (const id of each) ids.add(id);
  }
  return ids;
}

/**
 * Creates the function that announces a key. Announcements of one process are batched while the store is busy, so that
 * conflicts at the record occur only between processes.
 * @returns a function whose promise resolves once the announcement is in the store. It rejects with the store's error, or
 * with a {@link GatewayError} `overloaded` if too many processes announce concurrently
 */
export function createAnnouncer(store: Store): (id: string) => Promise<void> {
  let next: { readonly ids: Set<string>; readonly written: Promise<void> } | null = null;
  let last: Promise<void> = Promise.resolve();

  return (id) => {
    if (next === null) {
      const ids = new Set<string>();
      const written = last.then(() => {
        next = null;
        return announce(store, [...ids]);
      });
      next = { ids, written };
      last = written.catch(() => undefined);
    }
    next.ids.add(id);
    return next.written;
  };
}

async function announce(store: Store, ids: readonly string[]): Promise<void> {
  const change: Announcement = [randomBytes(9).toString('base64url'), ids.length > maxIds ? null : ids];
  const place = { collection: announcementCollection, id: recordId, ttlMs: foreverMs };
  const isDone = await changeRecord(store, place, (text) => {
    const { changes } = parseAnnouncements(text ?? '');
    return JSON.stringify({ version: 1, changes: newest([...changes, change]) });
  });
  if (isDone) return;
  throw new GatewayError(
    'overloaded',
    'Too many keys are being changed at the same time: try again shortly.',
  );
}

/** The newest announcements within the bound of ids, and the last one in any case. */
function newest(changes: readonly Announcement[]): readonly Announcement[] {
  let held = 0;
  let from = changes.length;
  while (from > 0) {
    const [, ids] = changes[from - 1] as Announcement;
    held += ids?.length ?? 1;
    if (held > maxIds && from < changes.length) break;
    from--;
  }
  return changes.slice(from);
}

function parseAnnouncements(text: string): Announcements {
  const value = parseObject(text);
  const changes = value?.version === 1 && Array.isArray(value.changes) ? value.changes : [];
  if (!changes.every(isAnnouncement)) return { position: null, changes: [] };
  return { position: changes.at(-1)?.[0] ?? null, changes };
}

function isAnnouncement(value: unknown): value is Announcement {
  if (!Array.isArray(value)) return false;
  const [mark, ids]: unknown[] = value;
  if (typeof mark !== 'string') return false;
  return ids === null || (Array.isArray(ids) && ids.every((id) => typeof id === 'string'));
}

/** The life of a record without an end, in a store where every record has one: a hundred years. */
export const foreverMs = 100 * 365 * 24 * 60 * 60 * 1000;

/** How long a revoked or expired key is at least shown to operators, and its id stays taken. */
const endedMs = 30 * 24 * 60 * 60 * 1000;

/**
 * The remaining life of a key's record in milliseconds.
 * @param now Unix milliseconds
 * @param ownedMs how long the key's conversations and tasks may be kept: they belong to its id, so until then no other key
 * may have it
 */
export function retentionMs({ expiresAt, revokedAt }: ManagedKey, now: number, ownedMs: number): number {
  const end = Math.min(expiresAt ?? Number.POSITIVE_INFINITY, revokedAt ?? Number.POSITIVE_INFINITY);
  if (end === Number.POSITIVE_INFINITY) return foreverMs;
  return Math.max(1, end + Math.max(endedMs, ownedMs) - now);
}
