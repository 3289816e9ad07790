import { GatewayError } from '../errors.js';
import type { BudgetAccounts } from './accounts.js';
import type { Store } from './store.js';

/** Collection of the store. Its name is in every store that is in use. */
const collection = 'budgets';
/** Hosts meet each other at an account; more in a row than this means that something is wrong. */
const mostTries = 30;
const longestPauseMs = 20;

/** Accounts of budgets among the records of a store that several processes may share. */
export function createRecordAccounts(store: Pick<Store, 'get' | 'create' | 'replace'>): BudgetAccounts {
  /** @param change of what is reserved; null for none */
  const update = async (
    account: string,
    ttlMs: number,
    change: (reserved: number) => number | null,
  ): Promise<void> => {
    for (let tries = 0; tries < mostTries; tries++) {
      const record = await store.get(collection, account);
      const reserved = change(record === null ? 0 : readReserved(record.value));
      if (reserved === null) return;
      const value = JSON.stringify({ version: 1, reserved: Math.min(reserved, Number.MAX_SAFE_INTEGER) });
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
    async reserve(account, { total, least, want, owed, ttlMs }) {
      let granted = 0;
      await update(account, ttlMs, (reserved) => {
        const left = total - reserved - owed;
        granted = left < least ? 0 : Math.min(want, left);
        return granted + owed === 0 ? null : reserved + owed + granted;
      });
      return granted;
    },
    giveBack: (account, amount, ttlMs) =>
      update(account, ttlMs, (reserved) => Math.max(0, reserved - amount)),
    async reservedOf(account) {
      const record = await store.get(collection, account);
      return record === null ? 0 : readReserved(record.value);
    },
  };
}

/**
 * What an account says.
 * @throws {GatewayError} for one that cannot be read: nobody may spend then
 */
function readReserved(value: string): number {
  const parsed = parse(value);
  const reserved: unknown =
    typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, 'reserved') : null;
  if (typeof reserved === 'number' && Number.isSafeInteger(reserved) && reserved >= 0) return reserved;
  throw new GatewayError('store_unavailable', 'The account of a budget cannot be read.');
}

function parse(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return null;
  }
}
