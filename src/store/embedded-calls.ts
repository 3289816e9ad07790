import type { ExitState } from './embedded-exit.js';
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
