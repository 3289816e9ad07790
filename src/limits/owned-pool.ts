import type { PoolAnswer, PoolAsk } from './lease-messages.js';
import { isGivenBack, type Pool, type PoolKind, sliceOf, windowMsOf } from './pool.js';
import { SlidingWindow } from './sliding-window.js';

/** After a recall or a denial workers send back what becomes free for so long; nobody is given any to spare. */
const scarceMs = 1000;

/** What a worker lacks, and who is still to say whether it has that idle. */
export interface Ask {
  readonly worker: number;
  /** As the worker said last. */
  stated: PoolAsk;
  /** Other hosts may have more of the pool, and are asked first. */
  awaitsShare: boolean;
  /** Until then they may give back what is idle there. */
  readonly shareDeadline: number;
  /** The other workers were asked. */
  isRecalled: boolean;
  /** Number of the last recall that was made when it was noted, or for it. */
  recall: number;
  /** Workers that have not answered that recall. */
  readonly waitingFor: Set<number>;
  /** When it is decided, whoever has not answered. */
  deadline: number;
  /** When some worker will have units, as far as they have said. */
  nextAt: number | null;
}

/** A pool as the primary sees it: who has its units. */
export class OwnedPool {
  readonly name: string;
  readonly kind: PoolKind;
  /** The config's limit. */
  limit: number;
  /** What this host may use of it: all, or its share. */
  share: number;
  /** Units that are in no host's share, as far as is known; below zero where the shares are more than the limit. */
  left = 0;
  /** Units that no worker has; below zero after a limit was lowered, or more was used than was leased. */
  free: number;
  /** Nobody knows whether there is more of it. */
  isCutOff = false;
  /** Least that was free since this was last set: so much was idle all the time. */
  idle = 0;
  /** Units by worker: idle, in use or in the window there, or on the way to or from it. Never 0. */
  readonly leased = new Map<number, number>();
  /** Units that workers are to give back before they use any, by worker. Never 0. */
  readonly #owed = new Map<number, number>();
  /** Units of workers that are gone; null where none come back by themselves. */
  readonly window: SlidingWindow | null;
  /** What workers lack, first come first. One of a worker at most. */
  readonly asks: Ask[] = [];
  /** Workers that were denied units, with the least that they could use, first come first. */
  readonly denied = new Map<number, number>();
  /** Until then nobody gets more than it needs. */
  scarceUntil = Number.NEGATIVE_INFINITY;
  /** Other hosts have given nothing for as long as one waits for them: until then nobody does. */
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

  /** No worker has any units of it, or asks for some. */
  get isUnused(): boolean {
    return this.leased.size === 0 && this.#isQuiet;
  }

  /** Nobody asks for units, and none of a worker that is gone are to come back. */
  get #isQuiet(): boolean {
    return this.asks.length === 0 && (this.window?.total ?? 0) === 0;
  }

  /** Nothing is lost when it is forgotten: each worker has its slice, and nobody has anything else. */
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

  /** Adds what has come back to the free units. */
  collect(now: number): void {
    if (this.window !== null) this.free += this.window.collect(now);
  }

  /** Somebody lacks units. */
  markScarce(now: number): void {
    this.scarceUntil = now + scarceMs;
  }

  /** Units may have been used at a time by a worker that has ended since. */
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

  /** Moves units of a worker back: never more than it has. */
  giveBack(worker: number, amount: number): void {
    const had = this.leased.get(worker) ?? 0;
    const back = Math.min(amount, had);
    this.free += back;
    this.#pay(worker, amount);
    if (back === had) this.leased.delete(worker);
    else this.leased.set(worker, had - back);
  }

  /** Units of a worker are used up: nobody will have them again. */
  spend(worker: number, amount: number): void {
    const used = Math.min(amount, this.leased.get(worker) ?? 0);
    this.giveBack(worker, used);
    this.free -= used;
    this.share -= used;
  }

  /** A worker ended without a word: whatever it had may have been used a moment ago. */
  lose(worker: number, now: number): void {
    const had = this.leased.get(worker) ?? 0;
    if (this.window !== null) this.window.add(now, had);
    if (isGivenBack(this)) this.giveBack(worker, had);
    else if (this.window === null) this.spend(worker, had);
    this.leased.delete(worker);
    this.#owed.delete(worker);
    this.denied.delete(worker);
    const index = this.asks.findIndex((ask) => ask.worker === worker);
    if (index !== -1) this.asks.splice(index, 1);
    for (const ask of this.asks) ask.waitingFor.delete(worker);
  }

  /** The host may use another number of units from now on. */
  resize(share: number): void {
    this.#addFree(share - this.share);
    this.share = share;
  }

  /** Units that this host is to give up: its part of what the shares of all are beyond the limit. */
  get excess(): number {
    if (this.left >= 0) return 0;
    return Math.ceil((-this.left * this.share) / (this.limit - this.left));
  }

  /** Units that a worker can be given. */
  get usable(): number {
    return Math.max(0, this.free - this.excess);
  }

  /**
   * Notes what workers owe, each by what it has, where the free units do not make up for what there is too much.
   * @returns what is new of it, by worker
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
   * Grants what an ask needs, and a share of what is left to who will soon use it; where there is less, all of it.
   * @param workers how many there are, who share what is left; 0 where no units may be used now
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

  /** What other workers have: nothing of that is idle once they were asked for it. */
  #leasedBeside(worker: number): number {
    let leased = -(this.leased.get(worker) ?? 0);
    for (const amount of this.leased.values()) leased += amount;
    return leased;
  }

  /** Gives a worker units for which it has not asked. */
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

/** The earlier of two times, of which each may be unknown. */
export function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
