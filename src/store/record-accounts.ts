import { GatewayError } from '../errors.js';
import { type BudgetAccounts, mostDebts } from './accounts.js';
import type { Store } from './store.js';

/** Collection of the store. Its name is in every store that is in use. */
const collection = 'budgets';
/** Hosts meet each other at an account; more in a row than this means that something is wrong. */
const mostTries = 30;
const longestPauseMs = 20;

/** Accounts of budgets among the records of a store that several processes may share. */
export function createRecordAccounts(store: Pick<Store, 'get' | 'create' | 'replace'>): BudgetAccounts {
  /** @param change of the account; null for none */
  const update = async (
    account: string,
    ttlMs: number,
    change: (account: Account) => Account | null,
  ): Promise<void> => {
    for (let tries = 0; tries < mostTries; tries++) {
      const record = await store.get(collection, account);
      const changed = change(record === null ? { reserved: 0, debts: [] } : readAccount(record.value));
      if (changed === null) return;
      const reserved = Math.min(changed.reserved, Number.MAX_SAFE_INTEGER);
      const value = JSON.stringify({ version: 1, reserved, debts: changed.debts });
      const isDone =
        record === null
          ? await store.create(collection, account, value, ttlMs)
          : await store.replace(collection, account, value, record.revision, ttlMs);
      if (isDone) return;
      // Others are at it: by lot, so that they do not meet again.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(tries, longestPauseMs)));
    }
    throw new GatewayError('store_unavailable', 'The account of a budget is changed too often.');
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
  /** Names of what was owed and taken. */
  readonly debts: readonly string[];
}

/**
 * What an account says.
 * @throws {GatewayError} for one that cannot be read: nobody may spend then
 */
function readAccount(value: string): Account {
  const parsed = parse(value);
  const memberOf = (name: string): unknown =>
    typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, name) : null;
  const [reserved, debts] = [memberOf('reserved'), memberOf('debts')];
  if (typeof reserved === 'number' && Number.isSafeInteger(reserved) && reserved >= 0)
    return { reserved, debts: Array.isArray(debts) ? debts.filter((debt) => typeof debt === 'string') : [] };
  throw new GatewayError('store_unavailable', 'The account of a budget cannot be read.');
}

function parse(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return null;
  }
}
