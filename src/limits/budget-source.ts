import { randomBytes } from 'node:crypto';
import type { BudgetAccounts } from '../store/accounts.js';
import type { OwnedPool } from './owned-pool.js';
import { budgetKeptMs } from './pools.js';
import type { ShareSource, ShareUser } from './share-source.js';

/** So many parts of a budget are reserved at a time, unless a call needs more: what a crash loses is less than a few. */
const reservedParts = 100;
/** A budget of which the store has said that too little is left is not asked for again before. */
const emptyMs = 500;
/** After a call of the store that failed. */
const retryMs = 500;
/** A call of the store that takes longer holds up nobody where an outage is to be `open`; shorter than calls wait. */
const slowMs = 500;
/** What was free for so long goes back to where other hosts find it. */
const idleMs = 10_000;
/** Calls of the store under way, below what any store takes of one process: what it refuses to take counts as spent. */
const mostAtOnce = 512;
/** So many are looked at in a tick, in less than a millisecond: of 100,000 each has its turn every 1.3 s. */
const mostOfTick = 8192;

export interface BudgetSourceOptions {
  readonly accounts: BudgetAccounts;
  /** Milliseconds of the host's monotonic clock. */
  readonly now: () => number;
  /** What holds while the store cannot be reached: `open` lets calls spend, and tells the store of it later. */
  readonly whenGone: () => 'open' | 'closed';
  /** Told once when the store cannot be reached, and once when it can be again. */
  onAvailable(isAvailable: boolean): void;
  /** Told of a pool of which nothing is held any more: what was reserved of it is spent, or was given back. */
  onForgotten?(pool: OwnedPool): void;
}

/** One budget's pool, and what is known of its account. */
interface Account {
  readonly pool: OwnedPool;
  /** The call of the store that is under way. */
  work: Promise<void> | null;
  /** When that began. */
  workSince: number;
  /** Until then the store need not be asked for `emptyFrom` units or more: it has fewer, or cannot be reached. */
  emptyUntil: number;
  emptyFrom: number;
  idleSince: number;
  /** Spent while the store was gone, beyond what was reserved: it is to be told. */
  lent: number;
  /** What the store was told to be owed, until it is known that it has taken it. */
  debt: Debt | null;
  /** The limit is another: what was reserved by the one before goes back. */
  isChanged: boolean;
}

/** Told again under its name until there is an answer, always with the same amounts. */
interface Debt {
  readonly name: string;
  /** Of what was lent. */
  readonly lent: number;
  /** Spent beyond what was reserved. */
  readonly behind: number;
}

/**
 * Where this host has its part of the budgets from. Reserves them from their accounts in a store, a part at a
 * time: only what is reserved there is ever leased to workers, so nothing that happens to this host lets more be
 * spent.
 */
export class BudgetSource implements ShareSource {
  readonly until = null;
  readonly isUndivided = false;
  readonly #options: BudgetSourceOptions;
  readonly #known = new Map<OwnedPool, Account>();
  /** Those of which more is wanted than was asked for last. */
  readonly #lacking = new Set<Account>();
  #user: ShareUser | null = null;
  #isAvailable = true;
  #isLeaving = false;
  /** Accounts whose call of the store is under way. */
  #working = 0;
  /** Whoever is answered asks again at once, and all who wait are being looked at. */
  #isFlushing = false;
  /** In the last round the store had not answered for long. */
  #isSlow = false;
  /** Those of the known ones that are still to be looked at in this round. */
  #round: IterableIterator<Account>;
  #isRoundSlow = false;
  /** While the store is gone, one account at a time finds out whether it is there again. */
  #probeAt = Number.NEGATIVE_INFINITY;

  constructor(options: BudgetSourceOptions) {
    this.#options = options;
    this.#round = this.#known.values();
  }

  /** False while the store does not answer. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  /** The budgets that this host has a part of, or has asked for lately. */
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
    // An account that has no more, or cannot be reached, is remembered: it would be asked again by the next call.
    if (account.work !== null || isBehind(account) || this.#now() < account.emptyUntil) return false;
    if (pool.free > 0) {
      if (this.#now() - account.idleSince >= idleMs && this.#hasRoom()) this.#giveBack(account);
      return false;
    }
    this.#known.delete(pool);
    this.#lacking.delete(account);
    this.#options.onForgotten?.(pool);
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
    // Its turn comes later, and nobody knows when where those before it get no answer.
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

  /** Gives back all that is not spent, because the host is about to end. Where the store does not answer it stays spent. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    const accounts = this.#known.values();
    const settleSome = async (): Promise<void> => {
      for (const account of accounts) {
        await this.#settle(account);
        // The next would wait as long.
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

  #setAvailable(next: boolean): void {
    if (next === this.#isAvailable) return;
    this.#isAvailable = next;
    this.#options.onAvailable(next);
  }

  #isDue(account: Account, at: number): boolean {
    return isBehind(account) && at >= account.emptyUntil && (this.#isAvailable || at >= this.#probeAt);
  }

  /** Calls the store for one account at a time. */
  #work(account: Account, call: () => Promise<void>): void {
    account.workSince = this.#now();
    this.#working++;
    account.work = call().then(
      () => this.#onDone(account, true),
      () => this.#onDone(account, false),
    );
  }

  #onDone(account: Account, isDone: boolean): void {
    const { pool } = account;
    account.work = null;
    this.#working--;
    this.#setAvailable(isDone);
    pool.isCutOff = !isDone;
    if (!isDone) {
      account.emptyUntil = this.#now() + retryMs;
      if (this.#options.whenGone() === 'open') lend(account);
    }
    if (account.isChanged) this.#reserveAnew(account);
    this.#user?.onAnswered([pool]);
    // In steps: each looks at all that wait.
    if (this.#lacking.size > 0 && this.#working <= mostAtOnce / 2) this.flush();
  }

  /** What the call under way is to bring is not there, and may not be for as long as calls of the store may take. */
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
    // At once: nobody may be leased what is on its way back. Where that fails it counts as spent.
    pool.resize(pool.share - amount);
    this.#work(account, () => this.#options.accounts.giveBack(pool.name, amount, budgetKeptMs));
  }

  /** Gives back what is free, and asks again for those who wait: what there is in all is looked at with each reservation. */
  #reserveAnew(account: Account): void {
    account.isChanged = false;
    account.emptyUntil = Number.NEGATIVE_INFINITY;
    if (account.pool.asks.length > 0) this.#lacking.add(account);
    if (account.pool.free > 0) this.#giveBack(account);
  }

  #answerLack(account: Account): void {
    this.#lacking.delete(account);
    // What was reserved for others was enough for them, too.
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

  /** Tells the store of all that was spent, and gives back the rest. */
  async #settle(account: Account): Promise<void> {
    await account.work;
    if (isBehind(account)) this.#reserve(account);
    await account.work;
    if (account.pool.free > 0) this.#giveBack(account);
    await account.work;
  }
}

/** More was spent than the store knows. */
function isBehind({ pool, lent }: Account): boolean {
  return pool.free < 0 || lent > 0;
}

function debtOf({ pool, lent }: Account): Debt {
  return { name: randomBytes(12).toString('base64url'), lent, behind: Math.max(0, -pool.free) };
}

/** Lets calls spend what the store has not said they may, and keeps that in mind. */
function lend(account: Account): void {
  const { pool } = account;
  const need = pool.asks.reduce((sum, { stated }) => sum + stated.need, 0) - pool.free;
  if (need <= 0) return;
  account.lent += need;
  pool.resize(pool.share + need);
}

/** Fewer units beside the free ones help none of those who ask. */
function leastLack({ asks, free }: OwnedPool): number {
  return Math.max(1, Math.min(...asks.map(({ stated }) => stated.least)) - Math.max(0, free));
}
