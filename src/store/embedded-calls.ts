import type { OwnedRecords } from './owned.js';
import type { Ledger, LedgerBatch, LedgerSums, ListOrder, Store, StoredPage } from './store.js';

/** Data with which the thread of an embedded store is started. */
export interface EmbeddedThreadData {
  /** Absolute path of the folder of the data. */
  readonly folder: string;
  readonly exitState: ExitState;
}

/** The functions of an interface, without promises. */
type Unpromised<Contract> = {
  [Name in keyof Contract]: Contract[Name] extends (...asked: infer Asked) => Promise<infer Result>
    ? (...asked: Asked) => Result
    : never;
};

/** Functions of the thread of an embedded store: those of the store, with the differences below. */
interface EmbeddedFunctions
  extends Unpromised<
    Pick<Store, 'get' | 'create' | 'replace' | 'remove' | 'claim'> &
      Pick<Ledger, 'readLines' | 'readSums'> &
      OwnedRecords
  > {
  list(collection: string, limit: number, from: string | null, order: ListOrder): StoredPage;
  /**
   * @param ids of the sums, as JSON in UTF-8. Transferring ten thousand strings one by one blocks a worker for ten
   * milliseconds
   */
  append(
    ledger: string,
    batch: Omit<LedgerBatch, 'sums'>,
    sums: Omit<LedgerSums, 'ids'>,
    ids: Uint8Array,
  ): boolean;
  /** @returns true if there is more to sweep */
  sweep(): boolean;
  close(): void;
}

export type EmbeddedName = keyof EmbeddedFunctions;

/** Arguments and result of a function. */
export type Asked<Name extends EmbeddedName> = Readonly<Parameters<EmbeddedFunctions[Name]>>;
export type EmbeddedResult<Name extends EmbeddedName = EmbeddedName> = ReturnType<EmbeddedFunctions[Name]>;

/** A call to the thread. */
export type NumberedCall = {
  [Name in EmbeddedName]: { readonly number: number; readonly name: Name; readonly asked: Asked<Name> };
}[EmbeddedName];

/** A reply of the thread. Several are sent together. */
export type EmbeddedAnswer =
  | { readonly number: number; readonly result: EmbeddedResult }
  | { readonly number: number; readonly failure: string };

/**
 * Synchronizes a process that exits with the thread of its embedded store. A thread that is terminated within a
 * transaction never ends: lmdb-js 3.5.6 then waits for a lock that the thread itself holds
 * (`EnvWrap::cleanupStrayTxns`), and the process waits for the thread. So the exiting process lets the thread finish
 * first, and the thread starts nothing more.
 */
type ExitState = Int32Array<SharedArrayBuffer>;

/** Indexes in the state. Each value is 0 or 1. */
const working = 0;
const exiting = 1;

/** Longest wait of an exiting process. If the disk takes longer, the process does not exit and has to be killed. */
const longestWaitMs = 5000;

export function createExitState(): ExitState {
  return new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
}

/** Called by the process when it exits. Waits until the thread does no work. */
export function awaitWork(state: ExitState): void {
  Atomics.store(state, exiting, 1);
  Atomics.wait(state, working, 1, longestWaitMs);
}

/**
 * Called by the thread for work that opens a database or has a transaction. Blocks the thread forever if the process
 * exits.
 */
export function doWork<T>(state: ExitState, work: () => T): T {
  Atomics.store(state, working, 1);
  if (Atomics.load(state, exiting) === 1) {
    stopWork(state);
    Atomics.wait(state, exiting, 1);
  }
  try {
    return work();
  } finally {
    stopWork(state);
  }
}

function stopWork(state: ExitState): void {
  Atomics.store(state, working, 0);
  Atomics.notify(state, working);
}
