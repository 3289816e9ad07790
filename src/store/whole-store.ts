import type { BudgetAccounts } from './accounts.js';
import type { OwnedRecords } from './owned.js';
import type { Ledger, Store } from './store.js';

/** A store with its ledgers, the records of owners, and what only a store of several hosts has. */
export interface WholeStore extends Store, Ledger {
  readonly owned: OwnedRecords;
  readonly accounts: BudgetAccounts;
  /** Null if changes can only be found by polling. */
  readonly changes: ChangeFeed | null;
  /**
   * @returns a sentence for each setting by which a crash may lose what was confirmed as stored, without a full stop
   */
  risks(): Promise<readonly string[]>;
}

/**
 * Notifies immediately of changes by other processes and hosts, but may miss some. A listener that needs all of them
 * has to poll as well.
 */
export interface ChangeFeed {
  /**
   * Begins to listen.
   * @param onChange called with the collection of each change, and with null if some may have been missed
   * @returns a function that stops listening
   */
  listen(onChange: (collection: string | null) => void): () => void;
  close(): Promise<void>;
}
