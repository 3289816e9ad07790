import { GatewayError } from '../errors.js';
import { parseObject } from '../wire/json.js';
import { type BudgetAccounts, mostDebts } from './accounts.js';
import { changeRecord, type Store } from './store.js';

/** Collection of the store. Existing stores have this name. */
const collection = 'budgets';

/** Accounts of budgets as records of a store that several processes may share. */
export function createRecordAccounts(store: Pick<Store, 'get' | 'create' | 'replace'>): BudgetAccounts {
  /** @param change returns the new account; null for no change */
  const update = async (
    account: string,
    ttlMs: number,
    change: (account: Account) => Account | null,
  ): Promise<void> => {
    const isDone = await changeRecord(store, { collection, id: account, ttlMs }, (value) => {
      const changed = change(value === null ? { reserved: 0, debts: [] } : readAccount(value));
      if (changed === null) return null;
      const reserved = Math.min(changed.reserved, Number.MAX_SAFE_INTEGER);
      return JSON.stringify({ version: 1, reserved, debts: changed.debts });
    });
    if (isDone) return;
    throw new GatewayError('store_unavailable', 'The budget account is updated too often.');
  };

  return {
    async reserve(account, { limit, least, want, owed, debt, ttlMs }) {
      let granted = 0;
      await update(account, ttlMs, ({ reserved, debts }) => {
        const isKnown = debt !== null && debts.includes(debt);
        const taken = isKnown ? 0 : owed;
        const left = limit - reserved - taken;
        granted = left < least ? 0 : Math.min(want, left);
        if (granted === 0 && taken === 0) return null;
        const isNew = debt !== null && taken !== 0;
        return {
          reserved: Math.max(0, reserved + taken + granted),
          debts: isNew ? [...debts, debt].slice(-mostDebts) : debts,
        };
      });
      return granted;
    },
    giveBack: (account, amount, ttlMs) =>
      update(account, ttlMs, ({ reserved, debts }) => ({ reserved: Math.max(0, reserved - amount), debts })),
    async reservedOf(account) {
      const record = await store.get(collection, account);
      return record === null ? 0 : readAccount(record.value).reserved;
    },
  };
}

interface Account {
  readonly reserved: number;
  /** Names of debts that were taken. */
  readonly debts: readonly string[];
}

/**
 * Parses an account.
 * @throws {GatewayError} if it cannot be read. Nobody may spend then
 */
function readAccount(value: string): Account {
  const { reserved = null, debts = null } = parseObject(value) ?? {};
  if (typeof reserved === 'number' && Number.isSafeInteger(reserved) && reserved >= 0)
    return { reserved, debts: Array.isArray(debts) ? debts.filter((debt) => typeof debt === 'string') : [] };
  throw new GatewayError('store_unavailable', 'The budget account cannot be read.');
}
