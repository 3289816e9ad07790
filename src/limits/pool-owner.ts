import { atOnce, type EndOfSlice, type Steps } from '../wire/steps.js';
import type { HolderMessage, OwnerMessage, PoolAnswer, PoolAsk, PoolRecalled } from './lease-messages.js';
import { type Ask, earlier, OwnedPool, OwnedPools, OwnedWorker } from './owned-pool.js';
import { type Pool, type PoolKind, sliceOf, windowMsOf } from './pool.js';
import type { ShareSource } from './share-source.js';
import { bucketMs } from './sliding-window.js';

/** How long workers may take to reply to a recall before requests are decided without them. */
const recallMs = 250;
/** How long other hosts may take to return units that are idle there. */
const shareMs = 500;
/**
 * How long requests do not wait for other hosts after these gave nothing in time. Otherwise one call could wait twice
 * in a row.
 */
const shareRestMs = 1000;
/** How long the units that a worker may have used before its end count as used. */
const longestWindowMs = Math.max(...Object.values(windowMsOf).map((ms) => ms ?? 0)) + bucketMs;
/** All slices of a pool together are at most this part of it. The rest is for requests. */
const mostSliced = 1 / 2;

interface PoolOwnerOptions {
  /** Finds a pool of the running config by name. Returns undefined if the config does not have it. */
  readonly poolOf: (name: string) => Pool | undefined;
  /** Returns the milliseconds of a monotonic clock that all processes of the host share. Reads the clock every time. */
  readonly now: () => number;
  /** Source of the units. */
  readonly shares: ShareSource;
  /**
   * Divisor for the slices of a worker that joins now (see `sliceOf`), or 0 for no slices. A host that shares its limits
   * with others has no slices.
   */
  readonly sliceDivisor: () => number;
}

/** The numbers of one pool. The sum of `free`, `inWindow` and all of `leased` is always `share`. */
export interface OwnedUnits {
  readonly name: string;
  readonly kind: PoolKind;
  /** The limit of the config. */
  readonly limit: number;
  readonly share: number;
  readonly free: number;
  readonly inWindow: number;
  readonly leased: ReadonlyMap<number, number>;
  /** Number of workers with undecided requests. */
  readonly asks: number;
}

/** Most pools in one message of a series. */
const mostAtOnce = 64;
/** Most pools that a tick looks at without any worker waiting for them. Takes about a millisecond. */
const mostOfTick = 1024;

/** The primary's side of all limits. Owns their units and leases them to workers. */
export class PoolOwner {
  readonly #poolOf: (name: string) => Pool | undefined;
  readonly #now: () => number;
  readonly #shares: ShareSource;
  readonly #workers = new Map<number, OwnedWorker>();
  readonly #pools = new OwnedPools();
  /** Pools whose state may change with time alone. */
  readonly #due = new Set<OwnedPool>();
  /** Pools for whose units workers wait. A subset of `#due`. */
  readonly #awaited = new Set<OwnedPool>();
  /** The rest of `#due` in the current round. */
  #round = this.#due.values();
  /** Workers with unsent messages. */
  readonly #sending = new Set<OwnedWorker>();
  /** Workers that have ended and were not replaced, oldest first: what they may have used of their slices. */
  #ended: { readonly sliceDivisor: number; readonly usedUntil: number }[] = [];
  /** Workers that have ended, by id, with the time. Some pools still count units as leased to them. */
  readonly #goneAt = new Map<number, number>();
  readonly #sliceDivisor: () => number;
  #recalls = 0;

  constructor({ poolOf, now, shares, sliceDivisor }: PoolOwnerOptions) {
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
   * Adds a worker that has started. It has no units but its slices, which it is sent immediately. Then, in steps, it is
   * sent the pools of which it does not have its slice. It must not admit calls before the last step.
   * @param id never used for another process again
   * @param send must not throw or call the owner
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

  /**
   * Tells a joining worker what it has of the known pools. It is granted its slices of them later. Of pools that are
   * added meanwhile it has its slice from the start.
   */
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

  /** Handles a worker's message. Ignores messages of workers that are gone. */
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
   * Called when a worker's process has ended. What it had of a window counts as used at this moment, and its slots are
   * free. Must not be called while the process may still admit calls, even if it cannot be reached. Requests between
   * the steps are safe: a pool takes the worker's end into account before anything else.
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

  /** Takes back the units of workers that have ended, as of their ends. */
  #loseGone(pool: OwnedPool): void {
    for (const [id, at] of this.#goneAt) pool.lose(id, at);
  }

  /** Decides requests that have waited long enough. To be called about every 100 ms. */
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
   * Applies new limits that `poolOf` returns. A pool that `poolOf` no longer knows keeps its limit while it is in use.
   * @param changed the pools whose limit has changed, as they were before, and new pools, as they are. A pool with the
   * name of a new one may be in use from earlier. Null is a step without a pool. If other work runs between steps,
   * `poolOf` must return a pool's new limit from the moment this iterable yields the pool, and not earlier: until
   * workers are told, their slices are of the old limit.
   */
  *reloadSteps(changed: Iterable<Pool | null>): Steps<void> {
    let told = 0;
    for (const before of changed) {
      if (before === null) {
        yield;
        continue;
      }
      this.#tellChanged(before);
      for (const pool of this.#pools.under(before.name)) this.#readLimit(pool);
      yield ++told % mostAtOnce === 0 ? this.#flush() : undefined;
    }
    this.#flush();
  }

  /** Does the same as `reloadSteps`, synchronously. */
  reload(changed: Iterable<Pool | null>): void {
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
   * Lists the pools of which workers have units other than their slices, or had within the last minute. Each pool is
   * read at a different moment.
   * @param names further pools to include
   */
  *inspectSteps(names: Iterable<string>): Steps<OwnedUnits[]> {
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
      // A pool that was opened only for this need not be remembered.
      if (pool !== null && !isKnown) this.#answerAsks(pool, this.#now());
      yield;
    }
    return [...units.values()];
  }

  /** Returns what this host may use of a pool: 0 if it has no share. */
  shareOf(name: string): number {
    return this.#pools.get(name)?.share ?? 0;
  }

  /** Returns the pool of that name, or null if the config does not have it. */
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

  /** Adds a pool that was unknown so far. Every worker has its slice of it. */
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
   * Returns the divisor for the slices of a joining worker, or 0 if the slices of the others leave no room for them.
   * Slices that workers may have used before their ends count too.
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

  /**
   * Passes on the slices of a worker that has ended, if any had slices of that size.
   * @returns until when they count as used, or null
   */
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
      // A joining worker has no slice yet of pools that it has not been told of.
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
   * Adds a request. If the free units do not suffice for it and those before it, the other hosts are asked for units.
   * If they have no more, idle units are recalled from the other workers of this host.
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

  /** Called when other hosts have given units, or have none. */
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

  /**
   * Tells workers what they owe if they have more than there is. Nothing else makes busy workers return units that they
   * use again.
   */
  #tellDebts(pool: OwnedPool): void {
    this.#loseGone(pool);
    for (const [id, amount] of pool.collectDebts()) {
      const worker = this.#workers.get(id);
      if (worker === undefined) continue;
      worker.debts.push({ pool: pool.name, amount });
      this.#sending.add(worker);
    }
  }

  /** Called when other hosts lack units. Units that are idle at workers may help them. */
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

  /** @returns the workers that will reply */
  #recall(pool: OwnedPool, except: number | null, now: number): Set<number> {
    const number = ++this.#recalls;
    const waitingFor = new Set<number>();
    for (const id of pool.leased.keys()) {
      const worker = this.#workers.get(id);
      // A late worker still has a recall to reply to. More would only pile up in its channel.
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
   * Answers the requests that can be decided, in order of arrival. If none is left, refills slices and tells workers
   * that were denied that units are free again. Forgets a pool that is unused.
   */
  #answerAsks(pool: OwnedPool, now: number): void {
    this.#loseGone(pool);
    pool.collect(now);
    const isValid = this.#shares.isValid(pool, now);
    for (let ask = pool.asks[0]; ask !== undefined; ask = pool.asks[0]) {
      const isMet = isValid && pool.usable >= ask.stated.need;
      const isDecided = isMet || (ask.waitingFor.size === 0 && !ask.awaitsShare);
      // A slow store is no reason to deny requests: the waiting calls have a deadline of their own.
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

  /**
   * Refills each worker's slice if no worker lacks units.
   * @returns whether a worker still has less than its slice
   */
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

  /**
   * Tells workers that were denied that there are units again, but only as many as the units suffice for. The others
   * would only request in vain.
   */
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

  /**
   * @returns the end of the time slice if workers were sent anything, since they handle everything that arrives in one
   * turn together
   */
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
