import { WideMap } from '../wire/wide-map.js';
import {
  type OwnerMessage,
  omitEmpty,
  type PoolAmount,
  type PoolAnswer,
  type PoolAsk,
  type PoolLease,
  type PoolRecall,
} from './lease-messages.js';
import { isReturnable, type Pool, type PoolKind, sliceOf, windowMsOf } from './pool.js';
import { ofAnyPeriod } from './pools.js';
import { SlidingWindow } from './sliding-window.js';

/** For how long after a recall or a denial workers return units that become free, and get none beyond their need. */
const scarceMs = 1000;

/** A worker's request for units, and the workers that may still return idle units for it. */
export interface Ask {
  readonly worker: number;
  /** The worker's latest request. */
  stated: PoolAsk;
  /** Whether other hosts may have more units. They are asked before the workers of this host. */
  awaitsShare: boolean;
  /** Until when other hosts may return what is idle there. */
  readonly shareDeadline: number;
  /** Whether units were recalled from the other workers. */
  isRecalled: boolean;
  /** Number of the last recall when the request was added, or of the recall for it. */
  recall: number;
  /** Workers that have not replied to that recall. */
  readonly waitingFor: Set<number>;
  /** When it is decided, even if replies are missing. */
  deadline: number;
  /** When some worker will have units, or null if none has said so. */
  nextAt: number | null;
}

/** A pool at the primary: who has its units. */
export class OwnedPool {
  readonly name: string;
  readonly kind: PoolKind;
  /** The limit of the config. */
  limit: number;
  /** What this host may use of the pool: everything, or its share. */
  share: number;
  /** Units that are in no host's share, if known. Negative if the shares exceed the limit. */
  left = 0;
  /** Units that no worker has. Negative after a limit was lowered, or if more was used than was leased. */
  free: number;
  /** Whether it is unknown if more units exist. */
  isCutOff = false;
  /** Fewest units that were free since this was last set, which is what was idle all the time. */
  idle = 0;
  /** Units by worker, never 0: idle, in use or in the window there, or on the way to or from it. */
  readonly leased = new Map<number, number>();
  /** Units that workers have to return before they use any, by worker. Never 0. */
  readonly #owed = new Map<number, number>();
  /** Units of workers that are gone. Null for kinds without a window. */
  readonly window: SlidingWindow | null;
  /** Requests of workers in order of arrival. At most one per worker. */
  readonly asks: Ask[] = [];
  /** Workers that were denied units, in order, with the smallest amount that each could use. */
  readonly denied = new Map<number, number>();
  /** Until when nobody gets more than it needs. */
  scarceUntil = Number.NEGATIVE_INFINITY;
  /** Until when requests do not wait for other hosts, since these gave nothing within their time. */
  awaitsAgainAt = Number.NEGATIVE_INFINITY;

  constructor({ name, kind, limit }: Pool) {
    this.name = name;
    this.kind = kind;
    this.limit = limit;
    this.share = limit;
    this.free = limit;
    const windowMs = windowMsOf[kind];
    this.window = windowMs === null ? null : new SlidingWindow(windowMs);
  }

  /** Whether no worker has units or requests some. */
  get isUnused(): boolean {
    return this.leased.size === 0 && this.#isQuiet;
  }

  /** Whether nobody requests units, and none of a worker that is gone will become free. */
  get #isQuiet(): boolean {
    return this.asks.length === 0 && (this.window?.total ?? 0) === 0;
  }

  /**
   * Whether it can be forgotten without losing anything: each worker has its slice, and nothing else is leased or used.
   */
  isIdle(workers: Iterable<{ readonly id: number; readonly sliceDivisor: number }>): boolean {
    if (!this.#isQuiet) return false;
    let slices = 0;
    for (const { id, sliceDivisor } of workers) {
      const slice = sliceOf(this, sliceDivisor);
      if (slice === 0) continue;
      if (this.leased.get(id) !== slice) return false;
      slices++;
    }
    return this.leased.size === slices;
  }

  /** Adds units whose window has passed to the free ones. */
  collect(now: number): void {
    if (this.window !== null) this.free += this.window.collect(now);
  }

  /** Records that somebody lacks units. */
  markScarce(now: number): void {
    this.scarceUntil = now + scarceMs;
  }

  /** Counts units as used at that time, by a worker that may have used them and has ended since. */
  use(at: number, amount: number): void {
    if (amount === 0 || this.window === null) return;
    this.window.add(at, amount);
    this.#addFree(-amount);
  }

  /** Moves units to a worker. */
  lease(worker: number, amount: number): void {
    if (amount === 0) return;
    this.#addFree(-amount);
    this.leased.set(worker, (this.leased.get(worker) ?? 0) + amount);
  }

  /** Takes units back from a worker, but never more than it has. */
  giveBack(worker: number, amount: number): void {
    const had = this.leased.get(worker) ?? 0;
    const back = Math.min(amount, had);
    this.free += back;
    this.#pay(worker, amount);
    if (back === had) this.leased.delete(worker);
    else this.leased.set(worker, had - back);
  }

  /** Records that a worker has used up units for good. */
  spend(worker: number, amount: number): void {
    const used = Math.min(amount, this.leased.get(worker) ?? 0);
    this.giveBack(worker, used);
    this.free -= used;
    this.share -= used;
  }

  /** Removes a worker that ended without returning its units. It may have used all of them just now. */
  lose(worker: number, now: number): void {
    const had = this.leased.get(worker) ?? 0;
    if (this.window !== null) this.window.add(now, had);
    if (isReturnable(this)) this.giveBack(worker, had);
    else if (this.window === null) this.spend(worker, had);
    this.leased.delete(worker);
    this.#owed.delete(worker);
    this.denied.delete(worker);
    const index = this.asks.findIndex((ask) => ask.worker === worker);
    if (index !== -1) this.asks.splice(index, 1);
    for (const ask of this.asks) ask.waitingFor.delete(worker);
  }

  /** Changes how many units the host may use. */
  resize(share: number): void {
    this.#addFree(share - this.share);
    this.share = share;
  }

  /** Units that this host has to give up: its part of the amount by which all shares exceed the limit. */
  get excess(): number {
    if (this.left >= 0) return 0;
    return Math.ceil((-this.left * this.share) / (this.limit - this.left));
  }

  /** Units that can be leased. */
  get usable(): number {
    return Math.max(0, this.free - this.excess);
  }

  /**
   * Records what workers owe if more is leased than there is and the free units do not make up for it. The debt is
   * divided in proportion to what they have.
   * @returns the new debts by worker
   */
  collectDebts(): Map<number, number> {
    const debts = new Map<number, number>();
    let owed = 0;
    for (const amount of this.#owed.values()) owed += amount;
    let leased = 0;
    for (const amount of this.leased.values()) leased += amount;
    const missing = Math.min(this.excess - this.free, leased) - owed;
    if (missing <= 0) return debts;
    for (const [worker, had] of this.leased) {
      const before = this.#owed.get(worker) ?? 0;
      const debt = Math.min(had - before, Math.ceil((missing * (had - before)) / (leased - owed)));
      if (debt <= 0) continue;
      this.#owed.set(worker, before + debt);
      debts.set(worker, debt);
    }
    return debts;
  }

  /**
   * Grants what a request needs, and part of the rest if the worker will soon use it. If there is less than needed,
   * grants everything.
   * @param workers number of workers, which share the rest. 0 if no units may be used now
   */
  answer(ask: Ask, workers: number, now: number): PoolAnswer {
    const { worker, stated } = ask;
    const usable = workers === 0 ? 0 : this.usable;
    const short = usable < stated.need;
    let granted: number;
    if (short) granted = usable < stated.least ? 0 : usable;
    else granted = stated.need + this.#spare(stated, workers, now);
    this.lease(worker, granted);
    if (short) {
      this.denied.set(worker, stated.least);
      this.markScarce(now);
    }
    return {
      pool: this.name,
      number: stated.number,
      granted,
      short,
      retryAt: earlier(ask.nextAt, this.window?.nextAt() ?? null),
      free: this.usable + Math.max(0, this.left),
      inUseElsewhere: short && this.kind === 'budget' ? this.#leasedBeside(worker) : 0,
      isCutOff: this.isCutOff,
    };
  }

  /** Units that other workers have. None of them are idle after a recall. */
  #leasedBeside(worker: number): number {
    let leased = -(this.leased.get(worker) ?? 0);
    for (const amount of this.leased.values()) leased += amount;
    return leased;
  }

  /** Grants a worker units that it did not request. */
  grant(worker: number, amount: number): PoolAnswer {
    this.lease(worker, amount);
    const free = this.usable + Math.max(0, this.left);
    const { name: pool, isCutOff } = this;
    return {
      pool,
      number: 0,
      granted: amount,
      short: false,
      retryAt: null,
      free,
      inUseElsewhere: 0,
      isCutOff,
    };
  }

  #pay(worker: number, amount: number): void {
    const owed = this.#owed.get(worker) ?? 0;
    if (owed > amount) this.#owed.set(worker, owed - amount);
    else this.#owed.delete(worker);
  }

  #addFree(amount: number): void {
    this.free += amount;
    if (this.free < this.idle) this.idle = this.free;
  }

  #spare({ need, want }: PoolAsk, workers: number, now: number): number {
    if (this.asks.length > 0 || now < this.scarceUntil) return 0;
    return Math.max(0, Math.min(want - need, Math.floor((this.usable - need) / (2 * Math.max(1, workers)))));
  }
}

/** Returns the earlier of two times. Null means unknown. */
export function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}

/** The pools of which the primary has state beyond the limit. Several hundred thousand if all pools are in use. */
export class OwnedPools {
  readonly #byName = new WideMap<OwnedPool>();
  /**
   * Pools of budgets, by the name that the config has for all periods of a budget. Few periods are in use at a time.
   */
  readonly #periods = new WideMap<readonly OwnedPool[]>();

  get(name: string): OwnedPool | undefined {
    return this.#byName.get(name);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  add(pool: OwnedPool): void {
    this.#byName.set(pool.name, pool);
    const budget = ofAnyPeriod(pool.name);
    if (budget !== null) this.#periods.set(budget, [...(this.#periods.get(budget) ?? []), pool]);
  }

  delete(pool: OwnedPool): void {
    this.#byName.delete(pool.name);
    const budget = ofAnyPeriod(pool.name);
    if (budget === null) return;
    const left = (this.#periods.get(budget) ?? []).filter((each) => each !== pool);
    if (left.length === 0) this.#periods.delete(budget);
    else this.#periods.set(budget, left);
  }

  /** Returns the pools that a name of the config stands for: the pool, or that of each period of a budget. */
  under(name: string): readonly OwnedPool[] {
    const pool = this.#byName.get(name);
    const periods = this.#periods.get(name) ?? [];
    return pool === undefined ? periods : [...periods, pool];
  }

  values(): Generator<OwnedPool, void, undefined> {
    return this.#byName.values();
  }
}

/** Smallest extension of a term that workers are told of. */
const termStepMs = 1000;

/** A worker at the primary, and the pending message to it: one for everything that happens in a turn. */
export class OwnedWorker {
  readonly id: number;
  /** Divisor for its slices: see `sliceOf`. */
  readonly sliceDivisor: number;
  /** Whether it missed a recall and has sent nothing since. Requests do not wait for it. */
  isLate = false;
  /** Whether it is still being told of the pools in which it has no slice. It would add what is granted to a slice. */
  isJoining: boolean;
  leases: PoolLease[] = [];
  answers: PoolAnswer[] = [];
  recalls: PoolRecall[] = [];
  debts: PoolAmount[] = [];
  refilled: string[] = [];
  readonly #send: (message: OwnerMessage) => void;
  /** Whether it was sent an answer, and so may have units. */
  #isAnswered = false;
  /** End of its term that it was last told. */
  #until: number | null = null;

  constructor(id: number, sliceDivisor: number, send: (message: OwnerMessage) => void) {
    this.id = id;
    this.sliceDivisor = sliceDivisor;
    this.isJoining = sliceDivisor > 0;
    this.#send = send;
  }

  /** Tells a worker that may have units until when it may use them. */
  tellTerm(until: number | null): void {
    if (this.#isAnswered && this.#isNews(until)) this.#send({ type: 'lease-order', until });
  }

  /** @param until end of the term of what it is granted */
  flush(until: number | null): void {
    const { leases, answers, recalls, debts, refilled } = this;
    this.#isAnswered ||= answers.length > 0;
    this.leases = [];
    this.answers = [];
    this.recalls = [];
    this.debts = [];
    this.refilled = [];
    this.#send({
      type: 'lease-order',
      leases: omitEmpty(leases),
      until: answers.length > 0 && this.#isNews(until) ? until : undefined,
      answers: omitEmpty(answers),
      recalls: omitEmpty(recalls),
      debts: omitEmpty(debts),
      refilled: omitEmpty(refilled),
    });
  }

  /** @returns whether the worker has to be told of that end of its term. If so, records that it was told */
  #isNews(until: number | null): boolean {
    if (until === this.#until) return false;
    if (until !== null && this.#until !== null && until - this.#until < termStepMs) return false;
    this.#until = until;
    return true;
  }
}
