import { randomBytes } from 'node:crypto';
import type { BudgetAccounts } from '../store/accounts.js';
import type { OwnedPool } from './owned-pool.js';
import { budgetKeptMs } from './pools.js';
import type { ShareSource, ShareUser } from './share-source.js';

/** A hundredth of a budget is reserved at a time, unless a call needs more. A crash loses at most a few such parts. */
const reservedParts = 100;
/** How long the store is not asked again for a budget of which it has too little left. */
const emptyMs = 500;
/** Wait after a failed call of the store. */
const retryMs = 500;
/**
 * If `whenGone` is `open`, requests wait no longer than this for a call of the store. Shorter than calls wait for
 * units.
 */
const slowMs = 500;
/** Units that were free for this long are returned to the store, where other hosts find them. */
const idleMs = 10_000;
/**
 * Most concurrent calls of the store. Below what any store accepts from one process, since what a store refuses counts
 * as spent.
 */
const mostAtOnce = 512;
/**
 * Most accounts that a tick looks at, in less than a millisecond. Of 100,000 accounts, each is looked at every 1.3 s.
 */
const mostOfTick = 8192;

export interface BudgetSourceOptions {
  readonly accounts: BudgetAccounts;
  /** Returns the milliseconds of the host's monotonic clock. */
  readonly now: () => number;
  /** What to do while the store cannot be reached. `open` lets calls spend and reports it to the store later. */
  readonly whenGone: () => 'open' | 'closed';
  /**
   * Called once when the store becomes unreachable, and once when it can be reached again.
   * @param failure why it cannot be reached
   */
  onAvailable(isAvailable: boolean, failure?: unknown): void;
  /** Called when nothing of a pool is held any more: what was reserved is spent or was returned. */
  onForgotten(pool: OwnedPool): void;
}

/** The pool of one budget, and the state of its account in the store. */
interface Account {
  readonly pool: OwnedPool;
  /** The call of the store in flight, if any. */
  work: Promise<void> | null;
  /** When it began. */
  workSince: number;
  /** Until when the store must not be asked for `emptyFrom` units or more: it has fewer, or cannot be reached. */
  emptyUntil: number;
  emptyFrom: number;
  idleSince: number;
  /** Units that were spent beyond what was reserved while the store was gone, and still have to be reported. */
  lent: number;
  /** What was reported to the store as owed, until the store has confirmed it. */
  debt: Debt | null;
  /** The limit has changed: what was reserved under the former one is returned. */
  isChanged: boolean;
}

/** Reported under the same name, with the same amounts, until the store replies. */
interface Debt {
  readonly name: string;
  /** How much of it is `Account.lent`. */
  readonly lent: number;
  /** Spent beyond what was reserved. */
  readonly behind: number;
}

/**
 * Source of this host's units of budgets. Reserves them from accounts in a store, a part at a time. Workers are only
 * leased what is reserved there, so no failure of this host lets more be spent.
 */
export class BudgetSource implements ShareSource {
  readonly until = null;
  readonly isUndivided = false;
  readonly #options: BudgetSourceOptions;
  readonly #known = new Map<OwnedPool, Account>();
  /** Accounts that need more than was last requested. */
  readonly #lacking = new Set<Account>();
  #user: ShareUser | null = null;
  #isAvailable = true;
  #isLeaving = false;
  /** Number of accounts with a call of the store in flight. */
  #working = 0;
  /**
   * True during `flush`, which looks at all lacking accounts. Answered users request again immediately and would call
   * it again.
   */
  #isFlushing = false;
  /** Whether the store was slow or gone in the last round. */
  #isSlow = false;
  /** The rest of the known accounts in the current round. */
  #round: IterableIterator<Account>;
  #isRoundSlow = false;
  /** While the store is gone, when the next account may try whether it is back: one account at a time. */
  #probeAt = Number.NEGATIVE_INFINITY;

  constructor(options: BudgetSourceOptions) {
    this.#options = options;
    this.#round = this.#known.values();
  }

  /** False while the store does not answer. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  /** The budgets of which this host has a part or has requested one recently. */
  pools(): IterableIterator<OwnedPool> {
    return this.#known.keys();
  }

  begin(user: ShareUser): void {
    this.#user = user;
  }

  isValid(): boolean {
    return true;
  }

  add(pool: OwnedPool): void {
    pool.resize(0);
    this.#known.set(pool, {
      pool,
      work: null,
      workSince: 0,
      emptyUntil: Number.NEGATIVE_INFINITY,
      emptyFrom: 0,
      idleSince: this.#now(),
      lent: 0,
      debt: null,
      isChanged: false,
    });
  }

  changed(pool: OwnedPool): void {
    const account = this.#known.get(pool);
    if (account === undefined) return;
    account.isChanged = true;
    if (account.work === null && this.#hasRoom()) this.#reserveAnew(account);
  }

  lack(pool: OwnedPool): boolean {
    const account = this.#known.get(pool);
    if (account === undefined || this.#isLeaving) return false;
    this.#lacking.add(account);
    return true;
  }

  isAsking(pool: OwnedPool): boolean {
    const account = this.#known.get(pool);
    return account !== undefined && this.#lacking.has(account);
  }

  forget(pool: OwnedPool): boolean {
    const account = this.#known.get(pool);
    if (account === undefined) return true;
    // An account that has too little left, or cannot be reached, is kept. Otherwise the next call would ask the store
    // again.
    if (account.work !== null || isBehind(account) || this.#now() < account.emptyUntil) return false;
    if (pool.free > 0) {
      if (this.#now() - account.idleSince >= idleMs && this.#hasRoom()) this.#giveBack(account);
      return false;
    }
    this.#known.delete(pool);
    this.#lacking.delete(account);
    this.#options.onForgotten(pool);
    return true;
  }

  flush(): void {
    if (this.#isLeaving || this.#isFlushing) return;
    this.#isFlushing = true;
    try {
      for (const account of this.#lacking) {
        if (!this.#hasRoom() && this.#isAvailable) break;
        if (account.work === null && this.#hasRoom()) this.#answerLack(account);
        else if (!this.#isAvailable) this.#lendMeanwhile(account);
      }
    } finally {
      this.#isFlushing = false;
    }
  }

  tick(): void {
    const at = this.#now();
    for (let count = 0; count < mostOfTick; count++) {
      const { value: account, done } = this.#round.next();
      if (done) {
        this.#isSlow = this.#isRoundSlow || !this.#isAvailable;
        this.#isRoundSlow = false;
        this.#round = this.#known.values();
        return;
      }
      this.#lookAt(account, at);
    }
  }

  #lookAt(account: Account, at: number): void {
    const { pool } = account;
    if (pool.leased.size > 0 || pool.asks.length > 0) account.idleSince = at;
    if (account.work !== null) {
      const isLate = !this.#isAvailable || at - account.workSince >= slowMs;
      if (isLate) this.#lendMeanwhile(account);
      this.#isRoundSlow ||= isLate;
    } else if (this.#hasRoom()) this.#renew(account, at);
    // It has to wait for its turn, which may take long while the store does not answer those before it.
    else if (this.#isSlow) this.#lendMeanwhile(account);
  }

  #renew(account: Account, at: number): void {
    const { pool } = account;
    if (account.isChanged) this.#reserveAnew(account);
    else if (this.#isDue(account, at)) {
      if (!this.#isAvailable) this.#probeAt = at + retryMs;
      this.#reserve(account);
    } else if (pool.free > 0 && at - account.idleSince >= idleMs) this.#giveBack(account);
    else if (pool.isUnused && pool.free === 0) this.#user?.onAnswered([pool]);
  }

  /**
   * Returns all that is not spent, since the host is about to end. If the store does not answer, it counts as spent.
   */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    const accounts = this.#known.values();
    const settleSome = async (): Promise<void> => {
      for (const account of accounts) {
        await this.#settle(account);
        // The next account would wait as long.
        if (!this.#isAvailable) return;
      }
    };
    await Promise.all(Array.from({ length: mostAtOnce }, settleSome));
  }

  #now(): number {
    return this.#options.now();
  }

  #hasRoom(): boolean {
    return this.#working < mostAtOnce;
  }

  #setAvailable(next: boolean, failure?: unknown): void {
    if (next === this.#isAvailable) return;
    this.#isAvailable = next;
    this.#options.onAvailable(next, failure);
  }

  #isDue(account: Account, at: number): boolean {
    return isBehind(account) && at >= account.emptyUntil && (this.#isAvailable || at >= this.#probeAt);
  }

  /** Calls the store. An account must have at most one call in flight. */
  #work(account: Account, call: () => Promise<void>): void {
    account.workSince = this.#now();
    this.#working++;
    account.work = call().then(
      () => this.#onDone(account, true),
      (failure: unknown) => this.#onDone(account, false, failure),
    );
  }

  #onDone(account: Account, isDone: boolean, failure?: unknown): void {
    const { pool } = account;
    account.work = null;
    this.#working--;
    this.#setAvailable(isDone, failure);
    pool.isCutOff = !isDone;
    if (!isDone) {
      account.emptyUntil = this.#now() + retryMs;
      if (this.#options.whenGone() === 'open') lend(account);
    }
    if (account.isChanged) this.#reserveAnew(account);
    this.#user?.onAnswered([pool]);
    // Not after every call, since each `flush` looks at all lacking accounts.
    if (this.#lacking.size > 0 && this.#working <= mostAtOnce / 2) this.flush();
  }

  /** Lends what requests are waiting for if the config says `open`, since calls of the store may take long. */
  #lendMeanwhile(account: Account): void {
    if (account.pool.asks.length === 0 || this.#options.whenGone() !== 'open') return;
    lend(account);
    this.#lacking.delete(account);
    this.#user?.onAnswered([account.pool]);
  }

  #reserve(account: Account): void {
    const { pool } = account;
    const needs = pool.asks.map(({ stated }) => stated);
    const free = Math.max(0, pool.free);
    const lacks = leastLack(pool);
    account.debt ??= isBehind(account) ? debtOf(account) : null;
    const { debt } = account;
    const need = needs.reduce((sum, stated) => sum + stated.need, 0) - free;
    const want = needs.length === 0 ? 0 : Math.max(need, Math.ceil(pool.limit / reservedParts));
    this.#work(account, async () => {
      const granted = await this.#options.accounts.reserve(pool.name, {
        limit: pool.limit,
        least: want === 0 ? 0 : lacks,
        want,
        owed: debt === null ? 0 : debt.lent + debt.behind,
        debt: debt?.name ?? null,
        ttlMs: budgetKeptMs,
      });
      if (debt !== null) account.lent -= debt.lent;
      account.debt = null;
      pool.resize(pool.share + granted + (debt?.behind ?? 0));
      if (granted > 0 || want === 0) return;
      account.emptyUntil = this.#now() + emptyMs;
      account.emptyFrom = lacks;
    });
  }

  #giveBack(account: Account): void {
    const { pool } = account;
    const amount = pool.free;
    // Resized before the call, since units that are being returned must not be leased. If the call fails, they count as
    // spent.
    pool.resize(pool.share - amount);
    this.#work(account, () => this.#options.accounts.giveBack(pool.name, amount, budgetKeptMs));
  }

  /**
   * Returns what is free, and requests units again for those who wait. Each reservation checks the limit as a whole.
   */
  #reserveAnew(account: Account): void {
    account.isChanged = false;
    account.emptyUntil = Number.NEGATIVE_INFINITY;
    if (account.pool.asks.length > 0) this.#lacking.add(account);
    if (account.pool.free > 0) this.#giveBack(account);
  }

  #answerLack(account: Account): void {
    this.#lacking.delete(account);
    // What was reserved for other requests was enough for these, too.
    if (account.pool.asks.length === 0) return;
    // What is too little for one call may be enough for another.
    const mayHelp = this.#isAvailable && leastLack(account.pool) < account.emptyFrom;
    if (this.#now() >= account.emptyUntil || mayHelp) {
      this.#reserve(account);
      return;
    }
    if (!this.#isAvailable && this.#options.whenGone() === 'open') lend(account);
    this.#user?.onAnswered([account.pool]);
  }

  /** Reports all that was spent to the store, and returns the rest. */
  async #settle(account: Account): Promise<void> {
    await account.work;
    if (isBehind(account)) this.#reserve(account);
    await account.work;
    if (account.pool.free > 0) this.#giveBack(account);
    await account.work;
  }
}

/** Whether more was spent than the store knows. */
function isBehind({ pool, lent }: Account): boolean {
  return pool.free < 0 || lent > 0;
}

function debtOf({ pool, lent }: Account): Debt {
  return { name: randomBytes(12).toString('base64url'), lent, behind: Math.max(0, -pool.free) };
}

/** Lets calls spend units that the store has not granted, and records the amount. */
function lend(account: Account): void {
  const { pool } = account;
  const need = pool.asks.reduce((sum, { stated }) => sum + stated.need, 0) - pool.free;
  if (need <= 0) return;
  account.lent += need;
  pool.resize(pool.share + need);
}

/** Returns the fewest units, beyond the free ones, that help any of those who request some. */
function leastLack({ asks, free }: OwnedPool): number {
  return Math.max(1, Math.min(...asks.map(({ stated }) => stated.least)) - Math.max(0, free));
}
