import type { ExitState } from './embedded-exit.js';
import type { FoundAmongAll, OwnedBounds, OwnedRecord } from './owned.js';
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

/** What the thread of an embedded store can be asked, each as a function of what it is told. */
interface EmbeddedFunctions {
  get(asked: { collection: string; id: string }): StoredRecord | null;
  list(asked: { collection: string; limit: number; from: string | null; order: ListOrder }): StoredPage;
  create(asked: { collection: string; id: string; value: string; ttlMs: number }): boolean;
  replace(asked: { collection: string; id: string; value: string; revision: number; ttlMs: number }): boolean;
  remove(asked: { collection: string; id: string }): null;
  claim(asked: { claim: string; ttlMs: number }): boolean;
  append(asked: {
    ledger: string;
    batch: Omit<LedgerBatch, 'sums'>;
    sums: Omit<LedgerSums, 'ids'>;
    /** Of the sums, as JSON: to hand over ten thousand texts one by one holds up a worker for ten milliseconds. */
    ids: string;
  }): boolean;
  readLines(asked: PageOf<{ from: number; until: number }>): LinePage;
  readSums(asked: PageOf<{ from: string; until: string | null }>): SumPage;
  keepOwned(asked: {
    owner: string;
    records: readonly OwnedRecord[];
    ttlMs: number;
    most: OwnedBounds;
  }): boolean;
  findOwned(asked: {
    owner: string;
    ids: readonly string[];
    mostBytes: number;
  }): readonly (string | null)[] | null;
  findAmongAll(asked: { owner: string; ids: readonly string[]; mostBytes: number }): FoundAmongAll | null;
  renewOwned(asked: { owner: string; ids: readonly string[]; ttlMs: number }): null;
  dropOwned(asked: { owner: string; id: string }): boolean;
  /** @returns true when there is more to sweep */
  sweep(asked: unknown): boolean;
  close(asked: unknown): null;
}

interface PageOf<Range> {
  readonly ledger: string;
  readonly range: Readonly<Range>;
  readonly limit: number;
  readonly from: string | null;
}

/** What one of them is told. */
export type Asked<Name extends keyof EmbeddedFunctions> = Readonly<Parameters<EmbeddedFunctions[Name]>[0]>;

/** What comes back for each of them. */
export type EmbeddedResults = { [Name in keyof EmbeddedFunctions]: ReturnType<EmbeddedFunctions[Name]> };

type CallOf<Name extends keyof EmbeddedFunctions> = { readonly name: Name } & Asked<Name>;
export type EmbeddedCall = { [Name in keyof EmbeddedFunctions]: CallOf<Name> }[keyof EmbeddedFunctions];

/** A call on its way to the thread. */
export interface NumberedCall {
  readonly number: number;
  readonly call: EmbeddedCall;
}

/** What the thread sends back, several at once. */
export type EmbeddedAnswer =
  | { readonly number: number; readonly result: EmbeddedResults[keyof EmbeddedResults] }
  | { readonly number: number; readonly failure: string };
