import { GatewayError } from '../errors.js';
import { type BudgetAccounts, mostDebts, type Reservation } from './accounts.js';
import { numberOf, type PostgresLink } from './postgres-link.js';
import { toColumn, toKey } from './postgres-text.js';
import { firstRevision } from './revision.js';
import { storeUnavailable } from './unavailable.js';

/** What is asked of one account. */
interface Change extends Reservation {
  readonly account: string;
  readonly back: number;
  resolve(granted: number): void;
  reject(error: unknown): void;
}

/** Changes that wait, and those that go in one statement. */
const mostWaiting = 20_000;
const mostTogether = 500;

/** Accounts of budgets in PostgreSQL. What is asked while an answer is awaited goes together, in one statement. */
export function createPostgresBudgets(link: PostgresLink): BudgetAccounts {
  let waiting: Change[] = [];
  let isUnderWay = false;

  const send = async (): Promise<void> => {
    isUnderWay = true;
    while (waiting.length > 0) {
      const changes = waiting.slice(0, mostTogether);
      waiting = waiting.slice(mostTogether);
      await carryOut(link, changes);
    }
    isUnderWay = false;
  };
  const ask = (account: string, change: Reservation & { readonly back: number }): Promise<number> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= mostWaiting) {
        reject(storeUnavailable(new Error(`${mostWaiting} changes of budgets wait`)));
        return;
      }
      waiting.push({ account, ...change, resolve, reject });
      if (!isUnderWay) void send();
    });

  return {
    reserve: (account, reservation) => ask(account, { ...reservation, back: 0 }),
    async giveBack(account, back, ttlMs) {
      await ask(account, { limit: 0, least: 1, want: 0, owed: 0, debt: null, ttlMs, back });
    },
    async reservedOf(account) {
      const [row] = await link.ask(statements.read, [toKey(account)]);
      if (row === undefined) return 0;
      if (row.reserved === null) throw unreadable();
      return numberOf(row.reserved);
    },
  };
}

async function carryOut(link: PostgresLink, changes: readonly Change[]): Promise<void> {
  const asked = changes.map(({ account, limit, least, want, owed, debt, back, ttlMs }) => {
    const amounts = [limit, least, want, owed, back].map((each) => Math.min(each, Number.MAX_SAFE_INTEGER));
    return [toKey(account), toColumn(account), ...amounts, Math.ceil(ttlMs), debt];
  });
  try {
    const rows = await link.ask(statements.change, [JSON.stringify(asked), firstRevision(), mostDebts]);
    for (const { at, granted } of rows) {
      const change = changes[numberOf(at) - 1];
      if (granted !== null) change?.resolve(numberOf(granted));
      else change?.reject(unreadable());
    }
  } catch (error) {
    for (const { reject } of changes) reject(error);
  }
}

function unreadable(): GatewayError {
  return new GatewayError('store_unavailable', 'The account of a budget cannot be read.');
}

const statements = {
  change: { name: 'change_budgets', text: 'SELECT at, granted FROM change_budgets($1, $2, $3)' },
  read: {
    name: 'read_budget',
    text: `SELECT budget_reserved(value) AS reserved FROM records
WHERE collection = 'budgets' AND key = $1 AND expires_at > now()`,
  },
} as const;
