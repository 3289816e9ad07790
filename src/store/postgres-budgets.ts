import { randomBytes } from 'node:crypto';
import { GatewayError } from '../errors.js';
import { type BudgetAccounts, mostDebts, type Reservation } from './accounts.js';
import { numberOf, type PostgresLink, type Row } from './postgres-link.js';
import { sweepInSteps } from './postgres-sweep.js';
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

/** Accounts of which it is known what was reserved; those that were not asked of for longest go first. */
const mostKnown = 100_000;
/** Longer than accounts are kept. */
const writerTtlMs = 100 * 24 * 60 * 60 * 1000;
/** How often a process that asks nothing looks whether the server still knows what it was told. */
const lookEveryMs = 2000;

/**
 * Accounts of budgets in PostgreSQL. What is asked while an answer is awaited goes together, in one statement. Where the
 * server is found to be older than what it has answered, as after a restore, what was reserved by then is told to it before
 * anything else: it holds from then on, unless more is reserved there.
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
    // What was asked meanwhile has waited. Where the server is gone the next look finds out.
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
    /** Removes what processes that are gone for months have left. */
    sweep: () => sweepInSteps(link, statements.sweep),
    close: () => clearInterval(timer),
  };
}

/** What a process says of accounts, one statement after the other. */
function createBudgetWriter(link: PostgresLink) {
  const name = randomBytes(12).toString('base64url');
  let number = 0;
  /** The last statement that was answered; 0 where nothing is known that the server may have forgotten. */
  let answered = 0;
  /** What was reserved of accounts by the last answers, and until when they are kept, in Unix milliseconds. */
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
    /** Carries out changes, and tells each what has become of it. Never rejects. */
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
    /** Tells the server what is known, where it does not know that itself. @throws {GatewayError} of the store */
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
