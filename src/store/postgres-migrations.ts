import { budgetChanges } from './postgres-budget-changes.js';
import { callTables } from './postgres-call-tables.js';
import { ledgerTables } from './postgres-ledger-tables.js';
import { limitTables } from './postgres-limit-tables.js';
import { ownedTables } from './postgres-owned-tables.js';
import { recordTables } from './postgres-record-tables.js';

/**
 * What makes the tables of a store, in order. One that was ever released stays as it is: what is to be different
 * becomes another behind it.
 */
export const migrations: readonly string[] = [
  [recordTables, ledgerTables, ownedTables, limitTables].join('\n'),
  callTables,
  budgetChanges,
];
