import { randomBytes } from 'node:crypto';
import { GatewayError } from '../errors.js';
import { type BudgetAccounts, mostDebts, type Reservation } from './accounts.js';
import { numberOf, type PostgresLink, type Row, sweepInSteps } from './postgres-link.js';
import { toColumn, toKey } from './postgres-text.js';
import { firstRevision } from './record-format.js';
import { storeUnavailable } from './store.js';

/** A change of one account. */
interface Change extends Reservation {
  readonly account: string;
  readonly back: number;
  resolve(granted: number): void;
  reject(error: unknown): void;
}

/** Most pending changes, and most changes in one statement. */
const mostWaiting = 20_000;
const mostTogether = 500;

/** Most accounts whose reservations are remembered. Those that were not used for the longest time are dropped first. */
const mostKnown = 100_000;
/** Longer than accounts are kept. */
const writerTtlMs = 100 * 24 * 60 * 60 * 1000;
/** Interval at which an idle process checks that the server still has what it was sent. */
const lookEveryMs = 2000;

/**
 * Accounts of budgets in PostgreSQL. Changes that arrive while an answer is pending are sent together in one statement.
 * If the server turns out to be older than its answers, as after a restore, it is first sent what was reserved by then.
 * That applies from then on, unless more is reserved there.
 */
export function createPostgresBudgets(link: PostgresLink) {
  let waiting: Change[] = [];
  let isUnderWay = false;
  const writer = createBudgetWriter(link);

  const send = async (): Promise<void> => {
    isUnderWay = true;
    while (waiting.length > 0) {
      const changes = waiting.slice(0, mostTogether);
      waiting = waiting.slice(mostTogether);
      await writer.write(changes);
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
  const timer = setInterval(() => {
    if (isUnderWay) return;
    isUnderWay = true;
    // Changes that arrived meanwhile are sent now. If the server is gone, the next check notices it.
    void writer.look().then(send, send);
  }, lookEveryMs).unref();

  const accounts: BudgetAccounts = {
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
  return {
    accounts,
    /** Removes entries of processes that have been gone for months. */
    sweep: () => sweepInSteps(link, statements.sweep),
    close: () => clearInterval(timer),
  };
}

/** Sends the statements of a process about accounts, one after the other. */
function createBudgetWriter(link: PostgresLink) {
  const name = randomBytes(12).toString('base64url');
  let number = 0;
  /** Number of the last statement that was answered. 0 if the server cannot have forgotten anything. */
  let answered = 0;
  /**
   * What was reserved of accounts according to the last answers, and until when they are kept, in Unix milliseconds.
   */
  const known = new Map<string, { readonly reserved: number; readonly until: number }>();

  const learn = (account: string, reserved: number, ttlMs: number): void => {
    known.delete(account);
    known.set(account, { reserved, until: Date.now() + ttlMs });
    const [oldest] = known.keys();
    if (known.size > mostKnown && oldest !== undefined) known.delete(oldest);
  };
  const restate = async (): Promise<void> => {
    const stated = [...known].flatMap(([account, { reserved, until }]) => {
      const left = until - Date.now();
      return left > 0 ? [[toKey(account), toColumn(account), reserved, left]] : [];
    });
    for (let at = 0; at < stated.length; at += mostTogether) {
      const some = JSON.stringify(stated.slice(at, at + mostTogether));
      await link.ask(statements.restate, [some, firstRevision()]);
    }
    answered = 0;
  };
  const write = async (changes: readonly Change[]): Promise<readonly Row[]> => {
    number += 1;
    const asked = JSON.stringify(changes.map(askedOf));
    const values = [name, number, answered, writerTtlMs, asked, firstRevision(), mostDebts];
    const rows = await link.ask(statements.write, values);
    if (rows[0] === undefined || numberOf(rows[0].at) > 0) {
      answered = number;
      return rows;
    }
    await restate();
    return write(changes);
  };

  return {
    /** Executes changes, and reports the result of each. Never rejects. */
    async write(changes: readonly Change[]): Promise<void> {
      try {
        for (const { at, granted, reserved } of await write(changes)) {
          const change = changes[numberOf(at) - 1];
          if (change === undefined) continue;
          if (reserved !== null) learn(change.account, numberOf(reserved), change.ttlMs);
          if (granted !== null) change.resolve(numberOf(granted));
          else change.reject(unreadable());
        }
      } catch (error) {
        for (const { reject } of changes) reject(error);
      }
    },
    /**
     * Sends the server what is known if the server has forgotten it.
     * @throws {GatewayError} of the store
     */
    async look(): Promise<void> {
      if (answered === 0) return;
      const [row] = await link.ask(statements.look, [name]);
      if (row === undefined || numberOf(row.number) < answered) await restate();
    },
  };
}

function askedOf({ account, limit, least, want, owed, debt, back, ttlMs }: Change): readonly unknown[] {
  const amounts = [limit, least, want, owed, back].map((each) => Math.min(each, Number.MAX_SAFE_INTEGER));
  return [toKey(account), toColumn(account), ...amounts, Math.ceil(ttlMs), debt];
}

function unreadable(): GatewayError {
  return new GatewayError('store_unavailable', 'The budget account cannot be read.');
}

const statements = {
  write: {
    name: 'write_budgets',
    text: 'SELECT at, granted, reserved FROM write_budgets($1, $2, $3, $4, $5, $6, $7)',
  },
  restate: { name: 'restate_budgets', text: 'SELECT restate_budgets($1, $2)' },
  look: { name: 'budget_look', text: 'SELECT number FROM budget_writers WHERE writer = $1' },
  sweep: {
    name: 'budget_sweep',
    text: `DELETE FROM budget_writers WHERE writer IN
(SELECT writer FROM budget_writers WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING true AS gone`,
  },
  read: {
    name: 'read_budget',
    text: `SELECT budget_reserved(value) AS reserved FROM records
WHERE collection = 'budgets' AND key = $1 AND expires_at > now()`,
  },
} as const;
