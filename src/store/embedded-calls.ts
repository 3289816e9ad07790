import type { ExitState } from './embedded-exit.js';
import type { OwnedBounds, OwnedRecord } from './owned.js';
import type {
  LedgerBatch,
  LedgerSums,
  LinePage,
  ListOrder,
  StoredPage,
  StoredRecord,
  SumPage,
} from './store.js';

/** What the thread of an embedded store is started with. */
export interface EmbeddedThreadData {
  /** Absolute path of the folder of the data. */
  readonly folder: string;
  readonly exitState: ExitState;
}

/** What the thread of an embedded store can be asked. */
export type EmbeddedCall =
  | { readonly name: 'get'; readonly collection: string; readonly id: string }
  | {
      readonly name: 'list';
      readonly collection: string;
      readonly limit: number;
      readonly from: string | null;
      readonly order: ListOrder;
    }
  | {
      readonly name: 'create';
      readonly collection: string;
      readonly id: string;
      readonly value: string;
      readonly ttlMs: number;
    }
  | {
      readonly name: 'replace';
      readonly collection: string;
      readonly id: string;
      readonly value: string;
      readonly revision: number;
      readonly ttlMs: number;
    }
  | { readonly name: 'remove'; readonly collection: string; readonly id: string }
  | { readonly name: 'claim'; readonly claim: string; readonly ttlMs: number }
  | {
      readonly name: 'append';
      readonly ledger: string;
      readonly batch: Omit<LedgerBatch, 'sums'>;
      readonly sums: Omit<LedgerSums, 'ids'>;
      /** Of the sums, as JSON: to hand over ten thousand texts one by one holds up a worker for ten milliseconds. */
      readonly ids: string;
    }
  | {
      readonly name: 'readLines';
      readonly ledger: string;
      readonly range: { readonly from: number; readonly until: number };
      readonly limit: number;
      readonly from: string | null;
    }
  | {
      readonly name: 'readSums';
      readonly ledger: string;
      readonly range: { readonly from: string; readonly until: string | null };
      readonly limit: number;
      readonly from: string | null;
    }
  | {
      readonly name: 'keepOwned';
      readonly owner: string;
      readonly records: readonly OwnedRecord[];
      readonly ttlMs: number;
      readonly most: OwnedBounds;
    }
  | {
      readonly name: 'findOwned';
      readonly owner: string;
      readonly ids: readonly string[];
      readonly mostBytes: number;
    }
  | {
      readonly name: 'renewOwned';
      readonly owner: string;
      readonly ids: readonly string[];
      readonly ttlMs: number;
    }
  | { readonly name: 'dropOwned'; readonly owner: string; readonly id: string }
  | { readonly name: 'sweep' }
  | { readonly name: 'close' };

/** What comes back for each of them. */
export interface EmbeddedResults {
  readonly get: StoredRecord | null;
  readonly list: StoredPage;
  readonly create: boolean;
  readonly replace: boolean;
  readonly remove: null;
  readonly claim: boolean;
  readonly append: boolean;
  readonly readLines: LinePage;
  readonly readSums: SumPage;
  readonly keepOwned: boolean;
  readonly renewOwned: null;
  readonly findOwned: readonly (string | null)[] | null;
  readonly dropOwned: boolean;
  /** True when there is more to sweep. */
  readonly sweep: boolean;
  readonly close: null;
}

/** A call on its way to the thread. */
export interface NumberedCall {
  readonly number: number;
  readonly call: EmbeddedCall;
}

/** What the thread sends back, several at once. */
export type EmbeddedAnswer =
  | { readonly number: number; readonly result: EmbeddedResults[keyof EmbeddedResults] }
  | { readonly number: number; readonly failure: string };
