import type { ExitState } from './embedded-exit.js';
import type { OwnedRecords } from './owned.js';
import type { Ledger, LedgerBatch, LedgerSums, ListOrder, Store, StoredPage } from './store.js';

/** What the thread of an embedded store is started with. */
export interface EmbeddedThreadData {
  /** Absolute path of the folder of the data. */
  readonly folder: string;
  readonly exitState: ExitState;
}

/** The functions of a contract without their promises. */
type Unpromised<Contract> = {
  [Name in keyof Contract]: Contract[Name] extends (...asked: infer Asked) => Promise<infer Result>
    ? (...asked: Asked) => Result
    : never;
};

/** What the thread of an embedded store can be asked: what the store itself can, but for what is said otherwise here. */
interface EmbeddedFunctions
  extends Unpromised<
    Pick<Store, 'get' | 'create' | 'replace' | 'remove' | 'claim'> &
      Pick<Ledger, 'readLines' | 'readSums'> &
      OwnedRecords
  > {
  list(collection: string, limit: number, from: string | null, order: ListOrder): StoredPage;
  /** @param ids of the sums, as JSON: to hand over ten thousand texts one by one holds up a worker for ten milliseconds */
  append(
    ledger: string,
    batch: Omit<LedgerBatch, 'sums'>,
    sums: Omit<LedgerSums, 'ids'>,
    ids: string,
  ): boolean;
  /** @returns true when there is more to sweep */
  sweep(): boolean;
  close(): void;
}

export type EmbeddedName = keyof EmbeddedFunctions;

/** What one of them is told, and what comes back. */
export type Asked<Name extends EmbeddedName> = Readonly<Parameters<EmbeddedFunctions[Name]>>;
export type EmbeddedResult<Name extends EmbeddedName = EmbeddedName> = ReturnType<EmbeddedFunctions[Name]>;

/** A call on its way to the thread. */
export type NumberedCall = {
  [Name in EmbeddedName]: { readonly number: number; readonly name: Name; readonly asked: Asked<Name> };
}[EmbeddedName];

/** What the thread sends back, several at once. */
export type EmbeddedAnswer =
  | { readonly number: number; readonly result: EmbeddedResult }
  | { readonly number: number; readonly failure: string };
