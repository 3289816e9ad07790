import type { KeptRecord } from '../../conversation/kept-turns.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';
import { ownerOf } from './owner.js';
import { tellStoreFault } from './tell-fault.js';

/** Of all calls of a worker: what waits for a disk that stalls is in memory, and takes places in the store's queue. */
const mostUnderWay = 1024;
const hourMs = 3_600_000;

/** Writes records of an answer that waits for nothing: what cannot be written soon is dropped. */
export function noteRecords(services: Services, call: Call, records: readonly KeptRecord[]): void {
  const { owned, keeping } = services;
  const settings = call.running.snapshot.conversations;
  if (owned === null || settings === null || call.key === null || records.length === 0) return;
  if (keeping.notes >= mostUnderWay) return;
  keeping.notes += 1;
  const most = { owner: settings.keyBytes, all: settings.bytes };
  owned.keep(ownerOf(call.key), records, settings.hours * hourMs, most).then(
    () => {
      keeping.notes -= 1;
    },
    (fault: unknown) => {
      keeping.notes -= 1;
      tellStoreFault(services, fault);
    },
  );
}
