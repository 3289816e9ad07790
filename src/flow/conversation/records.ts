import { performance } from 'node:perf_hooks';
import type { ConversationSettings, Key } from '../../config/types.js';
import type { KeptRecord } from '../../conversation/kept-turns.js';
import { GatewayError } from '../../errors.js';
import type { OwnedRecords } from '../../store/owned.js';
import { hourMs } from '../../usage/budget.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';

/** Most notes of a worker in flight: while the disk stalls, they wait in memory and in the store's queue. */
const maxNotes = 1024;
/** Minimum interval between log lines about a failing store, which may fail every other call. */
const toldEveryMs = 60_000;

/** Writes records of a key, within the time and number that the config permits. @returns whether they were kept */
export function keepOwned(
  owned: OwnedRecords,
  key: Key,
  records: readonly KeptRecord[],
  { hours, keyBytes, bytes }: ConversationSettings,
): Promise<boolean> {
  return owned.keep(key.id, records, hours * hourMs, { owner: keyBytes, all: bytes });
}

/** Extends the life of records that a key's turn needs to that of a record kept now. */
export function renewOwned(
  owned: OwnedRecords,
  key: Key,
  ids: readonly string[],
  { hours }: ConversationSettings,
): Promise<void> {
  return owned.renew(key.id, ids, hours * hourMs);
}

/** Writes records that no answer waits for; those that cannot be written soon are dropped. */
export function writeInBackground(services: Services, call: Call, records: readonly KeptRecord[]): void {
  const { owned, keeping } = services;
  const { conversations } = call.running.snapshot;
  if (records.length === 0 || owned === null || conversations === null || call.key === null) return;
  if (keeping.notes >= maxNotes) return;
  keeping.notes += 1;
  keepOwned(owned, call.key, records, conversations).then(
    () => {
      keeping.notes -= 1;
      noteStoreWorks(services);
    },
    (fault: unknown) => {
      keeping.notes -= 1;
      noteStoreFault(services, fault);
    },
  );
}

/** Notes that the store fails conversations, and logs it once until it works again. */
export function noteStoreFault({ keeping, reportKeeping }: Services, fault: unknown): void {
  const now = performance.now();
  if (keeping.isFailing || now < keeping.silentUntil) return;
  keeping.isFailing = true;
  keeping.silentUntil = now + toldEveryMs;
  reportKeeping(fault);
}

/** Notes that the store has kept or found something, and logs it after a failure. */
export function noteStoreWorks({ keeping, reportKeeping }: Services): void {
  if (!keeping.isFailing) return;
  keeping.isFailing = false;
  reportKeeping(null);
}

/** Returns the error of a call that cannot proceed without the store. @param fault why it has to */
export function unavailable(fault: unknown): GatewayError {
  if (fault instanceof GatewayError) return fault;
  return new GatewayError('store_unavailable', null, { retryAfter: 1, cause: fault });
}
