import { performance } from 'node:perf_hooks';
import type { ConversationSettings, Key } from '../../config/types.js';
import type { KeptRecord } from '../../conversation/kept-turns.js';
import type { OwnedRecords } from '../../store/owned.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';

const hourMs = 3_600_000;
/** Notes of a worker that may be on their way: while the disk stalls, they wait in memory and in the store's queue. */
const mostNotes = 1024;
/** The operator hears of a failing store no more often. */
const toldEveryMs = 60_000;

/** Whose records a call may read, and makes. */
export function ownerOf(key: Key): string {
  return key.id;
}

/** Writes records of a key for as long, and as many, as the config says. @returns whether they were kept */
export function keepOwned(
  owned: OwnedRecords,
  key: Key,
  records: readonly KeptRecord[],
  { hours, keyBytes, bytes }: ConversationSettings,
): Promise<boolean> {
  return owned.keep(ownerOf(key), records, hours * hourMs, { owner: keyBytes, all: bytes });
}

/** Lets records that a turn of a key needs live on as long as one that is kept now. */
export function renewOwned(
  owned: OwnedRecords,
  key: Key,
  ids: readonly string[],
  { hours }: ConversationSettings,
): Promise<void> {
  return owned.renew(ownerOf(key), ids, hours * hourMs);
}

/** Writes records of an answer that waits for nothing: what cannot be written soon is dropped. */
export function noteRecords(services: Services, call: Call, records: readonly KeptRecord[]): void {
  const { owned, keeping } = services;
  const { conversations } = call.running.snapshot;
  if (records.length === 0 || owned === null || conversations === null || call.key === null) return;
  if (keeping.notes >= mostNotes) return;
  keeping.notes += 1;
  keepOwned(owned, call.key, records, conversations).then(
    () => {
      keeping.notes -= 1;
    },
    (fault: unknown) => {
      keeping.notes -= 1;
      tellStoreFault(services, fault);
    },
  );
}

/** Tells the operator that the store fails conversations, and not for each of the calls that go on without it. */
export function tellStoreFault({ keeping, reportFault }: Services, fault: unknown): void {
  const now = performance.now();
  if (now < keeping.tellFrom) return;
  keeping.tellFrom = now + toldEveryMs;
  reportFault('promise', new Error('The store of conversations fails.', { cause: fault }), null);
}
