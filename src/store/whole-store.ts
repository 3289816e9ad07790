import type { BudgetAccounts } from './accounts.js';
import type { OwnedRecords } from './owned.js';
import type { Ledger, Store } from './store.js';

/** A store with its ledgers, the records of owners, and what only a store of several hosts has. */
export interface WholeStore extends Store, Ledger {
  readonly owned: OwnedRecords;
  readonly accounts: BudgetAccounts;
  /** Null where changes are only to be looked for. */
  readonly changes: ChangeFeed | null;
  /** @returns a sentence for each setting by which a crash may lose what was told to be kept, without a full stop */
  risks(): Promise<readonly string[]>;
}

/** Tells at once of changes by other processes and hosts, as far as it can: whoever has to know of each looks as well. */
export interface ChangeFeed {
  /**
   * Begins to listen.
   * @param onChange is told the collection of each change, and null when some may have been missed
   * @returns what ends it
   */
  listen(onChange: (collection: string | null) => void): () => void;
  close(): Promise<void>;
}
