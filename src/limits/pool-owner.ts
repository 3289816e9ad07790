import { atOnce, type EndOfSlice, type Steps } from '../wire/steps.js';
import type { HolderMessage, OwnerMessage, PoolAnswer, PoolAsk, PoolRecalled } from './lease-messages.js';
import { type Ask, earlier, OwnedPool } from './owned-pool.js';
import { OwnedPools } from './owned-pools.js';
import { OwnedWorker } from './owned-worker.js';
import { type Pool, type PoolKind, sliceOf, windowMsOf } from './pool.js';
import { type ShareSource, undivided } from './share-source.js';
import { bucketMs } from './sliding-window.js';

/** How long workers may take to answer a recall before somebody is denied without them. */
const recallMs = 250;
/** How long other hosts may take to give back what is idle there. */
const shareMs = 500;
/** Asks that come for so long after other hosts gave nothing do not wait for them: one call would wait twice in turn. */
const shareRestMs = 1000;
/** What a worker has used before its end counts for so long. */
const longestWindowMs = Math.max(...Object.values(windowMsOf).map((ms) => ms ?? 0)) + bucketMs;
/** All slices of a pool make this part of it at most; the rest goes to whoever asks. */
const mostSliced = 1 / 2;

interface PoolOwnerOptions {
  /** The pools of the running config, by name; undefined for one that it has not. */
  readonly poolOf: (name: string) => Pool | undefined;
  /** Milliseconds of a monotonic clock that all processes of the host share. Never a remembered value. */
  readonly now: () => number;
  /** Where the units come from; without it this host has all limits to itself. */
  readonly shares?: ShareSource;
  /**
   * Into how many a pool is divided for the slice of a worker that joins now (see `sliceOf`); 0 for none. Unless given,
   * there are none. A host that shares its limits with others has none either.
   */
  readonly sliceDivisor?: () => number;
}

/** One pool's numbers. At every moment `free`, `inWindow` and all of `leased` make `share`. */
export interface OwnedUnits {
  readonly name: string;
  readonly kind: PoolKind;
  /** The config's limit. */
  readonly limit: number;
  readonly share: number;
  readonly free: number;
  readonly inWindow: number;
  readonly leased: ReadonlyMap<number, number>;
  /** Workers whose asks are not decided. */
  readonly asks: number;
}

/** Pools of which a worker is told in one message. */
const mostAtOnce = 64;
/** So many for which nobody waits are looked at in a tick, in about a millisecond. */
const mostOfTick = 1024;

/** The primary's side of all limits: it owns their units and leases them to workers. */
export class PoolOwner {
  readonly #poolOf: (name: string) => Pool | undefined;
  readonly #now: () => number;
  readonly #shares: ShareSource;
  readonly #workers = new Map<number, OwnedWorker>();
  readonly #pools = new OwnedPools();
  /** Those whose state time alone may change. */
  readonly #due = new Set<OwnedPool>();
  /** Those of them for whose units somebody waits. */
  readonly #awaited = new Set<OwnedPool>();
  /** Those that are due and still to be looked at in this round. */
  #round = this.#due.values();
  /** Those with something to send. */
  readonly #sending = new Set<OwnedWorker>();
  /** Workers that have ended and of which none took the place: what they may have used of their slices, oldest first. */
  #ended: { readonly sliceDivisor: number; readonly usedUntil: number }[] = [];
  /** Workers that have ended, of whose units some pools do not know that yet, and when each did. */
  readonly #goneAt = new Map<number, number>();
  readonly #sliceDivisor: () => number;
  #recalls = 0;

  constructor({ poolOf, now, shares = undivided, sliceDivisor = () => 0 }: PoolOwnerOptions) {
    this.#poolOf = poolOf;
    this.#now = now;
    this.#shares = shares;
    this.#sliceDivisor = sliceDivisor;
    shares.begin({
      onAnswered: (pools) => this.#takeShares(pools),
      onWanted: (pools) => this.#recallForHosts(pools),
      onTerm: () => this.#tellTerm(),
    });
  }

  /**
   * A worker has begun, which has no units but its slices, of which it is told at once, and then, in steps, of the pools in
   * which it has none. It is not to admit calls before the last step.
   * @param worker is not used for another process again
   * @param send must not throw, nor call the owner
   */
  joinSteps(id: number, send: (message: OwnerMessage) => void): Steps<void> {
    this.#forgetEnded(this.#now());
    const sliceDivisor = this.#divisorOfNext();
    const worker = new OwnedWorker(id, sliceDivisor, send);
    this.#workers.set(id, worker);
    if (sliceDivisor === 0) return nothing();
    send({ type: 'lease-order', slices: { sliceDivisor, usedUntil: this.#inheritSlices(sliceDivisor) } });
    return this.#tellLeases(worker);
  }

  /** Of each pool that is known, a worker has no slice until it is granted one; of those that become known meanwhile it has. */
  *#tellLeases(worker: OwnedWorker): Steps<void> {
    let told = 0;
    for (const pool of this.#pools.values()) {
      if (this.#workers.get(worker.id) !== worker) return;
      if (sliceOf(pool, worker.sliceDivisor) > 0) {
        const { name, kind, limit } = pool;
        worker.leases.push({ pool: name, kind, limit, leased: pool.leased.get(worker.id) ?? 0 });
        this.#sending.add(worker);
        this.#due.add(pool);
        if (++told % mostAtOnce === 0) this.#flush();
      }
      yield;
    }
    worker.isJoining = false;
    this.#flush();
  }

  /** Takes a worker's message. One of a worker that is gone is passed over. */
  receive(id: number, { recalled, overdrafts, spent, returns, asks }: HolderMessage): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    worker.isLate = false;
    const now = this.#now();
    for (const each of recalled ?? []) this.#takeRecalled(worker, each, now);
    for (const { pool, amount } of overdrafts ?? []) this.#change(pool, now, (p) => p.lease(id, amount));
    for (const { pool, amount } of spent ?? []) this.#change(pool, now, (p) => p.spend(id, amount));
    for (const { pool, amount } of returns ?? []) this.#change(pool, now, (p) => p.giveBack(id, amount));
    for (const ask of asks ?? []) this.#take(worker, ask, now);
    this.#flush();
  }

  /**
   * A worker's process has ended. What it had of a window counts as used at this moment; its slots are free. Not to be
   * called while it may still admit calls, even if it cannot be reached. Those who ask between the steps notice nothing of
   * them: what they ask for is told of its end first.
   */
  goneSteps(id: number): Steps<void> {
    const worker = this.#workers.get(id);
    if (worker === undefined) return nothing();
    this.#workers.delete(id);
    this.#sending.delete(worker);
    const now = this.#now();
    const { sliceDivisor } = worker;
    if (sliceDivisor > 0) this.#ended.push({ sliceDivisor, usedUntil: now + longestWindowMs });
    this.#goneAt.set(id, now);
    return this.#loseSteps(id);
  }

  *#loseSteps(id: number): Steps<void> {
    let told = 0;
    for (const pool of this.#pools.values()) {
      this.#answerAsks(pool, this.#now());
      yield ++told % mostAtOnce === 0 ? this.#flush() : undefined;
    }
    this.#goneAt.delete(id);
    this.#flush();
  }

  /** Takes back what workers have left of a pool, as of their ends. */
  #loseGone(pool: OwnedPool): void {
    for (const [id, at] of this.#goneAt) pool.lose(id, at);
  }

  /** Decides what has waited long enough. To be called about every 100 ms. */
  tick(): void {
    this.#shares.tick();
    this.#answerAwaited();
    const now = this.#now();
    for (let count = 0; count < mostOfTick; count++) {
      const { value: pool, done } = this.#round.next();
      if (done) {
        this.#round = this.#due.values();
        break;
      }
      this.#answerAsks(pool, now);
    }
    this.#flush();
  }

  #answerAwaited(): void {
    const now = this.#now();
    for (const pool of [...this.#awaited]) this.#answerAsks(pool, now);
  }

  /**
   * Reads limits anew: `poolOf` knows others now. A pool that `poolOf` does not know any more keeps its limit while it is in use.
   * @param changed pools whose limit has changed, as they were before; and new pools, as they are: one of that name may be in
   * use from earlier. Where other work is done between two steps, `poolOf` must begin to know the new limit of a pool as this
   * iterable gives it out, and not before: until they are told, workers have slices of the limit that was.
   */
  *reloadSteps(changed: Iterable<Pool>): Steps<void> {
    let told = 0;
    for (const before of changed) {
      this.#tellChanged(before);
      for (const pool of this.#pools.under(before.name)) this.#readLimit(pool);
      yield ++told % mostAtOnce === 0 ? this.#flush() : undefined;
    }
    this.#flush();
  }

  /** Does `reloadSteps` at once. */
  reload(changed: Iterable<Pool>): void {
    atOnce(this.reloadSteps(changed));
  }

  #readLimit(pool: OwnedPool): void {
    const limit = this.#poolOf(pool.name)?.limit ?? pool.limit;
    if (limit === pool.limit) return;
    const now = this.#now();
    pool.collect(now);
    pool.limit = limit;
    this.#shares.changed(pool);
    this.#tellDebts(pool);
    this.#answerAsks(pool, now);
  }

  /**
   * The pools of which workers have other units than their slices, or had within the last minute, each at another moment.
   * @param names of others that are to be among them
   */
  *inspectSteps(names: Iterable<string> = []): Steps<OwnedUnits[]> {
    const units = new Map<string, OwnedUnits>();
    for (const pool of this.#pools.values()) {
      units.set(pool.name, unitsOf(pool));
      yield;
    }
    for (const name of names) {
      if (units.has(name)) continue;
      const isKnown = this.#pools.has(name);
      const pool = this.#open(name);
      if (pool !== null) units.set(name, unitsOf(pool));
      // Of what was opened for this there is nothing to remember.
      if (pool !== null && !isKnown) this.#answerAsks(pool, this.#now());
      yield;
    }
    return [...units.values()];
  }

  /** What this host may use of a pool; 0 where it has no part of it. */
  shareOf(name: string): number {
    return this.#pools.get(name)?.share ?? 0;
  }

  /** The pool of that name, or null where the config has none. */
  #open(name: string): OwnedPool | null {
    const known = this.#pools.get(name);
    if (known !== undefined) {
      this.#loseGone(known);
      return known;
    }
    const pool = this.#poolOf(name);
    if (pool === undefined) return null;
    return this.#add(pool);
  }

  /** A pool of which nothing was known: every worker has its slice of it. */
  #add(pool: Pool): OwnedPool {
    const added = new OwnedPool(pool);
    this.#pools.add(added);
    this.#shares.add(added);
    for (const { id, sliceDivisor } of this.#workers.values()) added.lease(id, sliceOf(pool, sliceDivisor));
    if (windowMsOf[pool.kind] === null) return added;
    const now = this.#now();
    this.#forgetEnded(now);
    for (const { sliceDivisor, usedUntil } of this.#ended)
      added.use(usedUntil - longestWindowMs, sliceOf(pool, sliceDivisor));
    return added;
  }

  /**
   * Parts of a pool for the slice of a worker that joins, as far as the slices of the others leave room for it, those
   * included that were used before a worker's end.
   */
  #divisorOfNext(): number {
    const sliceDivisor = this.#shares.isUndivided ? this.#sliceDivisor() : 0;
    if (sliceDivisor === 0) return 0;
    let sliced = this.#ended.some((ended) => ended.sliceDivisor === sliceDivisor) ? 0 : 1 / sliceDivisor;
    for (const ended of this.#ended) sliced += 1 / ended.sliceDivisor;
    for (const worker of this.#workers.values())
      if (worker.sliceDivisor > 0) sliced += 1 / worker.sliceDivisor;
    // Sums of fractions are not exact.
    return sliced <= mostSliced + 1e-9 ? sliceDivisor : 0;
  }

  /** A worker has the slices of one that has ended, if any had as large ones. @returns until when they count as used */
  #inheritSlices(sliceDivisor: number): number | null {
    const index = this.#ended.findIndex((ended) => ended.sliceDivisor === sliceDivisor);
    return index === -1 ? null : (this.#ended.splice(index, 1)[0]?.usedUntil ?? null);
  }

  #hasSlices(pool: Pool): boolean {
    for (const { sliceDivisor } of this.#workers.values()) if (sliceOf(pool, sliceDivisor) > 0) return true;
    return this.#ended.some(({ sliceDivisor }) => sliceOf(pool, sliceDivisor) > 0);
  }

  /** @param before a pool whose limit is about to change */
  #tellChanged(before: Pool): void {
    const { name, kind } = before;
    const limit = this.#poolOf(name)?.limit ?? before.limit;
    if (limit === before.limit) return;
    if (!this.#hasSlices(before) && !this.#hasSlices({ name, kind, limit })) return;
    if (!this.#pools.has(name)) this.#add(before);
    for (const worker of this.#workers.values()) {
      if (worker.sliceDivisor === 0) continue;
      const slice = sliceOf(before, worker.sliceDivisor);
      // One that joins knows nothing yet of pools in which it has no slice.
      const leased = worker.isJoining ? (this.#pools.get(name)?.leased.get(worker.id) ?? 0) : slice;
      worker.leases.push({ pool: name, kind, limit, leased });
      this.#sending.add(worker);
    }
  }

  #forgetEnded(now: number): void {
    if (this.#ended.length > 0) this.#ended = this.#ended.filter(({ usedUntil }) => usedUntil > now);
  }

  #change(name: string, now: number, change: (pool: OwnedPool) => void): void {
    const pool = this.#open(name);
    if (pool === null) return;
    change(pool);
    this.#answerAsks(pool, now);
  }

  #take(worker: OwnedWorker, stated: PoolAsk, now: number): void {
    const pool = this.#open(stated.pool);
    if (pool === null) {
      this.#queueAnswer(worker, {
        pool: stated.pool,
        number: stated.number,
        granted: 0,
        short: true,
        retryAt: null,
        free: 0,
        inUseElsewhere: 0,
        isCutOff: false,
      });
      return;
    }
    pool.collect(now);
    pool.denied.delete(worker.id);
    const ask = pool.asks.find(({ worker: asking }) => asking === worker.id);
    if (ask === undefined) this.#begin(pool, worker, stated, now);
    else ask.stated = stated;
    this.#answerAsks(pool, now);
  }

  /**
   * Notes an ask. Where there is too little for it and those before it, other hosts are asked, and where they have no
   * more, the other workers of this one are asked what is idle.
   */
  #begin(pool: OwnedPool, worker: OwnedWorker, stated: PoolAsk, now: number): void {
    const before = pool.asks.reduce((sum, ask) => sum + ask.stated.need, 0);
    const suffices = this.#shares.isValid(pool, now) && pool.usable >= before + stated.need;
    const isSought = !suffices && this.#shares.lack(pool, now);
    const ask: Ask = {
      worker: worker.id,
      stated,
      awaitsShare: isSought && now >= pool.awaitsAgainAt,
      shareDeadline: now + shareMs,
      isRecalled: false,
      recall: this.#recalls,
      waitingFor: new Set<number>(),
      deadline: now + recallMs,
      nextAt: null,
    };
    pool.asks.push(ask);
    if (!suffices && !ask.awaitsShare) this.#recallFor(pool, ask, now);
  }

  #recallFor(pool: OwnedPool, ask: Ask, now: number): void {
    for (const id of this.#recall(pool, ask.worker, now)) ask.waitingFor.add(id);
    ask.deadline = now + recallMs;
    ask.recall = this.#recalls;
    ask.isRecalled = true;
  }

  /** Other hosts have given units, or have none. */
  #takeShares(pools: readonly OwnedPool[]): void {
    const now = this.#now();
    for (const pool of pools) {
      if (pool.usable > 0) pool.awaitsAgainAt = Number.NEGATIVE_INFINITY;
      this.#answerAsks(pool, now);
      const isAsking = this.#shares.isAsking(pool);
      for (const ask of pool.asks) {
        if (!ask.awaitsShare) continue;
        ask.awaitsShare = isAsking && now < ask.shareDeadline;
        if (isAsking && !ask.awaitsShare) pool.awaitsAgainAt = now + shareRestMs;
        if (!ask.isRecalled || !isAsking) this.#recallFor(pool, ask, now);
      }
      this.#tellDebts(pool);
      this.#answerAsks(pool, now);
    }
    this.#flush();
  }

  /** Where there is less than workers have, they owe it: nothing else makes busy ones give up what they use again. */
  #tellDebts(pool: OwnedPool): void {
    this.#loseGone(pool);
    for (const [id, amount] of pool.collectDebts()) {
      const worker = this.#workers.get(id);
      if (worker === undefined) continue;
      worker.debts.push({ pool: pool.name, amount });
      this.#sending.add(worker);
    }
  }

  /** Other hosts lack units: what is idle at workers may help them. */
  #recallForHosts(pools: readonly OwnedPool[]): void {
    const now = this.#now();
    for (const pool of pools) this.#recall(pool, null, now);
    this.#flush();
  }

  #tellTerm(): void {
    for (const worker of this.#workers.values()) worker.tellTerm(this.#shares.until);
    this.#answerAwaited();
    this.#flush();
  }

  /** @returns who will answer */
  #recall(pool: OwnedPool, except: number | null, now: number): Set<number> {
    const number = ++this.#recalls;
    const waitingFor = new Set<number>();
    for (const id of pool.leased.keys()) {
      const worker = this.#workers.get(id);
      // One that is late has a recall to answer yet: more of them would only pile up in its channel.
      if (worker === undefined || id === except || worker.isLate) continue;
      worker.recalls.push({ pool: pool.name, kind: pool.kind, limit: pool.limit, number });
      this.#sending.add(worker);
      waitingFor.add(id);
    }
    pool.markScarce(now);
    return waitingFor;
  }

  #takeRecalled(worker: OwnedWorker, recalled: PoolRecalled, now: number): void {
    const pool = this.#open(recalled.pool);
    if (pool !== null) {
      pool.giveBack(worker.id, recalled.amount);
      for (const ask of pool.asks) {
        if (ask.recall <= recalled.recall) ask.waitingFor.delete(worker.id);
        ask.nextAt = earlier(ask.nextAt, recalled.nextAt);
      }
    }
    if (recalled.ask !== null) this.#take(worker, recalled.ask, now);
    else if (pool !== null) this.#answerAsks(pool, now);
  }

  /**
   * Answers the asks that can be decided, first come first served; where none is left, fills slices and tells of units
   * that are free again. Forgets the pool when nothing is left of it.
   */
  #answerAsks(pool: OwnedPool, now: number): void {
    this.#loseGone(pool);
    pool.collect(now);
    const isValid = this.#shares.isValid(pool, now);
    for (let ask = pool.asks[0]; ask !== undefined; ask = pool.asks[0]) {
      const isMet = isValid && pool.usable >= ask.stated.need;
      const isDecided = isMet || (ask.waitingFor.size === 0 && !ask.awaitsShare);
      // Nobody is refused because the store is slow: the calls that wait have a deadline of their own.
      if (!isDecided && (now < ask.deadline || ask.awaitsShare)) break;
      if (!isDecided) this.#noteLate(ask);
      pool.asks.shift();
      const worker = this.#workers.get(ask.worker);
      if (worker === undefined) continue;
      this.#queueAnswer(worker, pool.answer(ask, isValid ? this.#workers.size : 0, now));
    }
    if (isValid) this.#tellRefilled(pool);
    const lacksSlices = this.#fillSlices(pool, now);
    const isAwaited = pool.asks.length > 0 || pool.denied.size > 0;
    if (!lacksSlices && pool.isIdle(this.#workers.values()) && this.#shares.forget(pool)) {
      this.#pools.delete(pool);
      this.#due.delete(pool);
      this.#awaited.delete(pool);
      return;
    }
    if (isAwaited) this.#awaited.add(pool);
    else this.#awaited.delete(pool);
    if (lacksSlices || isAwaited || (pool.window?.total ?? 0) > 0) {
      this.#due.add(pool);
    } else this.#due.delete(pool);
  }

  /** Where nobody lacks units, each worker gets its slice again. @returns whether some has less yet */
  #fillSlices(pool: OwnedPool, now: number): boolean {
    let isLacking = false;
    for (const worker of this.#workers.values()) {
      const missing = sliceOf(pool, worker.sliceDivisor) - (pool.leased.get(worker.id) ?? 0);
      if (missing <= 0) continue;
      if (worker.isJoining) {
        isLacking = true;
        continue;
      }
      const isScarce = pool.asks.length > 0 || now < pool.scarceUntil;
      if (isScarce || pool.usable < missing) isLacking = true;
      else this.#queueAnswer(worker, pool.grant(worker.id, missing));
    }
    return isLacking;
  }

  #noteLate(ask: Ask): void {
    for (const id of ask.waitingFor) {
      const worker = this.#workers.get(id);
      if (worker !== undefined) worker.isLate = true;
    }
  }

  /** Tells as many of those who were denied as there are units for: the others would only ask in vain. */
  #tellRefilled(pool: OwnedPool): void {
    if (pool.asks.length > 0) return;
    let left = pool.usable;
    for (const [id, least] of pool.denied) {
      if (left < least) continue;
      left -= least;
      pool.denied.delete(id);
      const worker = this.#workers.get(id);
      if (worker === undefined) continue;
      worker.refilled.push(pool.name);
      this.#sending.add(worker);
    }
  }

  #queueAnswer(worker: OwnedWorker, answer: PoolAnswer): void {
    worker.answers.push(answer);
    this.#sending.add(worker);
  }

  /** @returns the end of a slice where workers are told anything: what comes in one turn, they take in at once */
  #flush(): EndOfSlice | undefined {
    const isNews = this.#sending.size > 0;
    for (const worker of this.#sending) worker.flush(this.#shares.until);
    this.#sending.clear();
    this.#shares.flush();
    return isNews ? 'end of slice' : undefined;
  }
}

function* nothing(): Steps<void> {}

function unitsOf({ name, kind, limit, share, free, window, leased, asks }: OwnedPool): OwnedUnits {
  return {
    name,
    kind,
    limit,
    share,
    free,
    inWindow: window?.total ?? 0,
    leased: new Map(leased),
    asks: asks.length,
  };
}
