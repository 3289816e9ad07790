import type { BudgetAccounts } from './budget-accounts.js';
import type { OwnedPool } from './owned-pool.js';
import type { ShareSource, ShareUser } from './share-source.js';

/** So many parts of a budget are reserved at a time, unless a call needs more: what a crash loses is less than a few. */
const slices = 100;
/** A budget of which the store has said that too little is left is not asked for again before. */
const dryMs = 500;
/** After a call of the store that failed. */
const retryMs = 500;
/** What was free for so long goes back to where other hosts find it. */
const idleMs = 10_000;
/** An account outlives its period, for whoever comes late. */
const keptMs = 40 * 24 * 60 * 60 * 1000;

export interface BudgetSourceOptions {
  readonly accounts: BudgetAccounts;
  /** Milliseconds of the host's monotonic clock. */
  readonly now: () => number;
  /** What holds while the store cannot be reached: `open` lets calls spend, and tells the store of it later. */
  readonly whenGone: () => 'open' | 'closed';
  /** Told once when the store cannot be reached, and once when it can be again. */
  onAvailable(isAvailable: boolean): void;
}

/** Where this host has its part of the budgets from. */
export interface BudgetSource extends ShareSource {
  /** False while the store does not answer. */
  readonly isAvailable: boolean;
  /** Gives back all that is not spent, because the host is about to end. */
  leave(): Promise<void>;
}

/** One budget's pool, and what is known of its account. */
interface Account {
  readonly pool: OwnedPool;
  /** The call of the store that is under way. */
  work: Promise<void> | null;
  dryUntil: number;
  idleSince: number;
  /** Spent while the store was gone, beyond what was reserved: it is to be told. */
  lent: number;
}

/**
 * Reserves budgets from their accounts in a store, a slice at a time: only what is reserved there is ever leased to
 * workers, so nothing that happens to this host lets more be spent.
 */
export function createBudgetSource(options: BudgetSourceOptions): BudgetSource {
  const { accounts, now } = options;
  const known = new Map<OwnedPool, Account>();
  /** Those of which more is wanted than was asked for last. */
  const lacking = new Set<Account>();
  let user: ShareUser | null = null;
  let isAvailable = true;
  let isLeaving = false;

  const setAvailable = (next: boolean): void => {
    if (next === isAvailable) return;
    isAvailable = next;
    options.onAvailable(next);
  };

  /** Calls the store for one account at a time. */
  const work = (account: Account, call: () => Promise<void>): void => {
    const { pool } = account;
    const onDone = (isDone: boolean): void => {
      account.work = null;
      setAvailable(isDone);
      pool.isCutOff = !isDone;
      if (!isDone) {
        account.dryUntil = now() + retryMs;
        if (options.whenGone() === 'open') lend(account);
      }
      user?.onAnswered([pool]);
    };
    account.work = call().then(
      () => onDone(true),
      () => onDone(false),
    );
  };

  const reserve = (account: Account): void => {
    const { pool } = account;
    const needs = pool.asks.map(({ stated }) => stated);
    const free = Math.max(0, pool.free);
    const owed = Math.max(0, -pool.free) + account.lent;
    const least = Math.max(1, Math.min(...needs.map((stated) => stated.least)) - free);
    const need = needs.reduce((sum, stated) => sum + stated.need, 0) - free;
    const want = needs.length === 0 ? 0 : Math.max(need, Math.ceil(pool.total / slices));
    work(account, async () => {
      const granted = await accounts.reserve(pool.name, {
        total: pool.total,
        least: want === 0 ? 0 : least,
        want,
        owed,
        ttlMs: keptMs,
      });
      const paid = owed - account.lent;
      account.lent = 0;
      pool.resize(pool.limit + granted + paid);
      if (granted === 0) account.dryUntil = now() + dryMs;
    });
  };

  const giveBack = (account: Account): void => {
    const { pool } = account;
    const amount = pool.free;
    // At once: nobody may be leased what is on its way back. Where that fails it counts as spent.
    pool.resize(pool.limit - amount);
    work(account, () => accounts.giveBack(pool.name, amount, keptMs));
  };

  /** Lets calls spend what the store has not said they may, and keeps that in mind. */
  const lend = (account: Account): void => {
    const { pool } = account;
    const need = pool.asks.reduce((sum, { stated }) => sum + stated.need, 0) - pool.free;
    if (need <= 0) return;
    account.lent += need;
    pool.resize(pool.limit + need);
  };

  const seek = (account: Account): void => {
    lacking.delete(account);
    if (isAvailable || now() >= account.dryUntil) {
      reserve(account);
      return;
    }
    lend(account);
    user?.onAnswered([account.pool]);
  };

  const isDue = ({ pool, dryUntil, lent }: Account, at: number): boolean =>
    at >= dryUntil && (pool.free < 0 || (lent > 0 && isAvailable));

  return {
    until: null,
    get isAvailable() {
      return isAvailable;
    },
    begin: (next) => {
      user = next;
    },
    isValid: () => true,
    add(pool) {
      pool.resize(0);
      known.set(pool, {
        pool,
        work: null,
        dryUntil: Number.NEGATIVE_INFINITY,
        idleSince: now(),
        lent: 0,
      });
    },
    changed(pool) {
      const account = known.get(pool);
      if (account === undefined) return;
      account.dryUntil = Number.NEGATIVE_INFINITY;
      // The total is looked at with each reservation: what is reserved beyond a lower one is not to be used.
      if (pool.free > 0 && account.work === null) giveBack(account);
    },
    lack(pool, at) {
      const account = known.get(pool);
      if (account === undefined || isLeaving) return false;
      if (at < account.dryUntil && (isAvailable || options.whenGone() === 'closed')) return false;
      lacking.add(account);
      return true;
    },
    isAsking(pool) {
      const account = known.get(pool);
      return account !== undefined && lacking.has(account);
    },
    forget(pool) {
      const account = known.get(pool);
      if (account === undefined) return true;
      if (account.work !== null || account.lent > 0 || pool.free < 0) return false;
      if (pool.free > 0) {
        if (now() - account.idleSince >= idleMs) giveBack(account);
        return false;
      }
      known.delete(pool);
      lacking.delete(account);
      return true;
    },
    flush() {
      for (const account of lacking) if (account.work === null) seek(account);
    },
    tick() {
      const at = now();
      for (const account of known.values()) {
        const { pool } = account;
        if (pool.leased.size > 0 || pool.asks.length > 0) account.idleSince = at;
        if (account.work !== null) continue;
        if (isDue(account, at)) reserve(account);
        else if (pool.free > 0 && at - account.idleSince >= idleMs) giveBack(account);
      }
    },
    async leave() {
      isLeaving = true;
      const settle = async (account: Account): Promise<void> => {
        await account.work;
        if (account.pool.free > 0) giveBack(account);
        await account.work;
      };
      await Promise.all([...known.values()].map(settle));
    },
  };
}
