import type { HostAnswer, HostStatement, PoolStatement } from '../store/shares.js';
import type { OwnedPool } from './owned-pool.js';
import { windowMsOf } from './pool.js';
import type { ShareSource, ShareUser } from './share-source.js';

/** A host that was not heard of for so long has lost its shares. */
const leaseMs = 5000;
/** It stops so much earlier: clocks do not run alike. */
const marginMs = 500;
/** How often a host is heard of: with shares, and without. */
const heartbeatMs = 250;
const restMs = 1000;
/** Without an answer for so long, the store is gone; at the start it may take longer to be reached. */
const goneMs = 1000;
const firstGoneMs = 3000;
/** Ticks of that time: a process that is held up itself has had no chance to hear the answer. */
const goneTicks = 5;
/** Rest after a failure. */
const retryMs = 100;
/** Pools in one statement. */
const mostPools = 200;
/** After another host has lacked units, what is free goes back at once for so long. */
const wantedMs = 1000;
/** What was free for so long goes back. */
const idleMs = 5000;
/** A share is stated at least so often, should the store have lost it. */
const restateMs = 30_000;
/** After a denial nobody asks again for so long. */
const deniedMs = 100;
/**
 * What a host that is cut off may still have under way of what is given back by its users: those calls are counted for
 * so long after its deadline, and not after that.
 */
const slotGraceMs = 15_000;
/** Seconds of its use that a host has in hand where there is plenty, and the least number of units. */
const spareSeconds = 4;
const leastSpare = 8;

interface ShareKeeperOptions {
  /** Milliseconds of a monotonic clock that all processes of the host share. Never a remembered value. */
  readonly now: () => number;
  /** Name of this host that nobody else has or had; no spaces. */
  readonly host: string;
  /** Hands a statement to the store. `onAnswer` is called once, later: with null when its fate is not known. */
  readonly exchange: (statement: HostStatement, onAnswer: (answer: HostAnswer | null) => void) => void;
  /** Without the store this host counts alone with the whole limits, `open`, or uses up the shares it has, `closed`. */
  readonly whenGone: () => 'open' | 'closed';
  /** The store is gone, or is there again. */
  readonly onAvailable: (isAvailable: boolean) => void;
}

const nobody: ShareUser = { onAnswered: () => {}, onWanted: () => {}, onTerm: () => {} };

/**
 * This host's side of limits that several hosts share by a store. The host says what it has, and the store believes
 * it: what is given up was taken out of use before, and what is granted is used only after the answer. So a
 * statement, or an answer, can be lost, and the next one sets things right. One statement is under way at a time.
 */
export class ShareKeeper implements ShareSource {
  readonly isUndivided = false;
  readonly #options: ShareKeeperOptions;
  #user = nobody;
  readonly #shares = new Map<OwnedPool, PoolShare>();
  readonly #byName = new Map<string, PoolShare>();
  /** Those whose asks want more than is free. */
  readonly #lacking = new Set<PoolShare>();
  /** Those of which there was too little: what other hosts give back is asked for with each tick. */
  readonly #waiting = new Set<PoolShare>();
  /** Those of which other hosts lacked units a moment ago. */
  readonly #wanted = new Set<PoolShare>();
  /** Those of which the store may count less for this host than it has. */
  readonly #unknown = new Set<PoolShare>();
  /** From then on this host's shares may be used by others. */
  #deadline = 0;
  /** The deadline has passed, and what was free then is given up. */
  #isDisowned = false;
  /** It counts alone. */
  #isAlone = false;
  #isGone = false;
  /** Changes whenever all shares do: an answer to what was said before says nothing of them. */
  #round = 0;
  #isLeaving = false;
  /** When the first statement was sent that has had no answer since the last that had one. */
  #silentSince: number | null = null;
  /** Ticks since then. */
  #silentTicks = 0;
  #isUnderWay = false;
  /** An answer is being told. */
  #isTelling = false;
  /** There was more to say than one statement holds. */
  #isBehind = false;
  #number = 0;
  /** The last statement that was answered. */
  #answered = 0;
  #heartbeatAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: ShareKeeperOptions) {
    this.#options = options;
  }

  get until(): number | null {
    return this.#isAlone ? null : this.#deadline;
  }

  /** The store answered within the last moments, or was not asked for long enough to tell. */
  get isAvailable(): boolean {
    return !this.#isGone;
  }

  begin(user: ShareUser): void {
    this.#user = user;
  }

  isValid(_pool: OwnedPool, now: number): boolean {
    return this.#isInTerm(now);
  }

  add(pool: OwnedPool): void {
    const share = new PoolShare(pool, this.#options.now());
    this.#shares.set(pool, share);
    this.#byName.set(pool.name, share);
    pool.resize(this.#isAlone ? pool.limit : 0);
    pool.isCutOff = this.#isGone && !this.#isAlone;
  }

  changed(pool: OwnedPool): void {
    if (this.#isAlone) pool.resize(pool.limit);
    const share = this.#shares.get(pool);
    // The answer says whether the shares are more than the limit now.
    if (share !== undefined) share.isDirty = true;
  }

  lack(pool: OwnedPool, now: number): boolean {
    const share = this.#shares.get(pool);
    if (share === undefined || this.#isGone) return false;
    if (this.#isInTerm(now) && pool.share >= pool.limit) return false;
    if (now < share.deniedUntil) this.#waiting.add(share);
    else this.#lacking.add(share);
    return true;
  }

  isAsking(pool: OwnedPool): boolean {
    const share = this.#shares.get(pool);
    return share !== undefined && (this.#lacking.has(share) || this.#waiting.has(share));
  }

  forget(pool: OwnedPool): boolean {
    const share = this.#shares.get(pool);
    if (share === undefined) return true;
    const isDone = this.#isAlone ? !share.isDirty : share.isDone(this.#options.now());
    if (!isDone) return false;
    this.#shares.delete(pool);
    this.#byName.delete(pool.name);
    this.#lacking.delete(share);
    this.#waiting.delete(share);
    this.#wanted.delete(share);
    this.#unknown.delete(share);
    return true;
  }

  flush(): void {
    if (this.#isUnderWay || this.#isTelling || (this.#lacking.size === 0 && !this.#isBehind)) return;
    const now = this.#options.now();
    if (now >= this.#pausedUntil) this.#send(now, this.#isBehind);
  }

  tick(): void {
    const now = this.#options.now();
    if (this.#silentSince !== null) this.#silentTicks++;
    this.#noteSilence(now);
    const isDue = (now >= this.#heartbeatAt || this.#hasForOthers(now)) && now >= this.#pausedUntil;
    for (const share of this.#waiting) if (share.pool.asks.length > 0) this.#lacking.add(share);
    this.#waiting.clear();
    if (isDue && !this.#isUnderWay) this.#send(now, true);
    else this.flush();
  }

  /** Other hosts lack units that are free here: they are not to wait for the next heartbeat. */
  #hasForOthers(now: number): boolean {
    let isFound = false;
    for (const share of this.#wanted) {
      if (now >= share.wantedUntil) this.#wanted.delete(share);
      else isFound ||= share.hasSurplus(now);
    }
    return isFound;
  }

  /** Gives back what is free, as the last thing that is said. */
  leave(): void {
    const isSilent = this.#isLeaving || this.#isAlone || this.#isUnderWay;
    this.#isLeaving = true;
    if (isSilent) return;
    const now = this.#options.now();
    for (const share of this.#shares.values()) share.disown();
    this.#send(now, true);
  }

  /** @param isWhole says all that is to be said; else only what is urgent */
  #send(now: number, isWhole: boolean): void {
    if (!this.#isInTerm(now) && !this.#isDisowned) this.#disown();
    const shares = this.#gather(now, isWhole);
    const pools = shares.map((share) => share.state(now));
    const number = ++this.#number;
    const round = this.#round;
    this.#isUnderWay = true;
    this.#silentSince ??= now;
    this.#heartbeatAt = now + (this.#shares.size === 0 ? restMs : heartbeatMs);
    this.#options.exchange({ host: this.#options.host, number, leaseMs, pools }, (answer) => {
      this.#isUnderWay = false;
      const isLate = this.#options.now() - now >= leaseMs;
      if (answer === null || isLate) this.#fail();
      else this.#accept(answer, { number, sentAt: now, round, isWhole, shares, pools });
    });
  }

  #gather(now: number, isWhole: boolean): PoolShare[] {
    const gathered = new Set<PoolShare>();
    this.#isBehind = false;
    // While it counts alone there is nothing to say but that it is there.
    if (this.#isAlone) return [];
    const groups: Iterable<PoolShare>[] = [this.#lacking, this.#unknown];
    if (isWhole) groups.push(this.#shares.values());
    for (const group of groups) {
      for (const share of group) {
        const isUrgent = this.#lacking.has(share) || this.#unknown.has(share);
        if (!isUrgent) share.sweep(now);
        if (gathered.has(share) || (!isUrgent && !share.isDue(now))) continue;
        if (gathered.size === mostPools) {
          this.#isBehind = true;
          return [...gathered];
        }
        gathered.add(share);
        this.#lacking.delete(share);
      }
    }
    return [...gathered];
  }

  #fail(): void {
    const now = this.#options.now();
    this.#pausedUntil = now + retryMs;
    // What was stated since the deadline passed may be too old by the time of the next answer.
    this.#isDisowned = false;
    this.#noteSilence(now);
  }

  #accept(answer: HostAnswer, sent: Sent): void {
    const now = this.#options.now();
    this.#silentSince = null;
    this.#silentTicks = 0;
    const wasInTerm = this.#isInTerm(now);
    const isForgotten = answer.seen < this.#answered;
    this.#answered = sent.number;
    if (isForgotten) for (const share of this.#shares.values()) this.#unknown.add(share);
    if (sent.round === this.#round) this.#apply(answer, sent, now);
    this.#isTelling = true;
    this.#setGone(false);
    if (this.#unknown.size === 0) {
      this.#deadline = sent.sentAt + leaseMs - marginMs;
      this.#isDisowned = false;
    } else this.#isBehind = true;
    // Not with every answer: there may be many.
    if (sent.isWhole || !wasInTerm) this.#user.onTerm();
    this.#tellUser(answer, sent, now);
    this.#isTelling = false;
    this.flush();
  }

  #tellUser(answer: HostAnswer, { shares, isWhole }: Sent, now: number): void {
    const changed = new Set(shares.map(({ pool }) => pool));
    if (isWhole) this.#addUnused(changed);
    this.#noteWanted(answer.wanted, now);
    this.#user.onAnswered([...changed]);
  }

  /** Adds the pools that can be forgotten. */
  #addUnused(pools: Set<OwnedPool>): void {
    for (const { pool } of this.#shares.values()) if (pool.share === 0 && pool.isUnused) pools.add(pool);
  }

  #apply(answer: HostAnswer, { shares, pools }: Sent, now: number): void {
    for (const [index, share] of shares.entries()) {
      const [statement, outcome] = [pools[index], answer.pools[index]];
      if (statement === undefined || outcome === undefined) continue;
      share.accept(statement, outcome.granted, outcome.left, now);
      if (outcome.granted < statement.need && share.pool.share < share.pool.limit) this.#waiting.add(share);
      this.#unknown.delete(share);
    }
  }

  #noteWanted(wanted: readonly string[], now: number): void {
    const news: OwnedPool[] = [];
    for (const name of wanted) {
      const share = this.#byName.get(name);
      if (share === undefined) continue;
      this.#wanted.add(share);
      if (share.markWanted(now)) news.push(share.pool);
    }
    if (news.length === 0) return;
    // What workers send back goes on with the next tick.
    this.#heartbeatAt = now;
    this.#user.onWanted(news);
  }

  /** The store may have given what is free to others, or may not know of what is used: only the latter is kept. */
  #disown(): void {
    this.#isDisowned = true;
    for (const share of this.#shares.values()) {
      share.disown();
      this.#unknown.add(share);
    }
  }

  #isInTerm(now: number): boolean {
    return this.#isAlone || now < this.#deadline;
  }

  #noteSilence(now: number): void {
    if (this.#silentSince === null) return;
    const limitMs = this.#answered === 0 ? firstGoneMs : goneMs;
    if (now - this.#silentSince >= limitMs && this.#silentTicks >= goneTicks) this.#setGone(true);
    if (this.#isGone) this.#decideAlone();
  }

  #setGone(isGone: boolean): void {
    if (this.#isGone === isGone) return;
    this.#isGone = isGone;
    this.#options.onAvailable(!isGone);
    if (isGone) this.#forgetAsks();
    this.#decideAlone();
    this.#markCutOff();
    if (isGone) this.#user.onAnswered([...this.#shares.keys()]);
  }

  #forgetAsks(): void {
    this.#lacking.clear();
    this.#waiting.clear();
  }

  /** Counts alone while the store is gone and the config wants that, which a reload may change meanwhile. */
  #decideAlone(): void {
    const isAlone = this.#isGone && !this.#isLeaving && this.#options.whenGone() === 'open';
    if (isAlone === this.#isAlone) return;
    this.#isAlone = isAlone;
    this.#round++;
    if (isAlone) this.#standAlone();
    else this.#disown();
    this.#markCutOff();
    this.#user.onTerm();
  }

  #markCutOff(): void {
    for (const { pool } of this.#shares.values()) pool.isCutOff = this.#isGone && !this.#isAlone;
  }

  #standAlone(): void {
    this.#unknown.clear();
    for (const share of this.#shares.values()) {
      share.isDirty ||= share.pool.share > 0;
      share.pool.left = 0;
      share.pool.resize(share.pool.limit);
    }
  }
}

interface Sent {
  readonly number: number;
  /** Milliseconds of the host's clock, before it was handed on. */
  readonly sentAt: number;
  /** The keeper's round at that time. */
  readonly round: number;
  /** It said all that was to be said. */
  readonly isWhole: boolean;
  readonly shares: readonly PoolShare[];
  readonly pools: readonly PoolStatement[];
}

/** What a host knows of its share of one pool. The share itself is the pool's `share`. */
class PoolShare {
  readonly pool: OwnedPool;
  /** The store may count more for this host than it has. */
  isDirty = false;
  /** Until then there is nothing to be had. */
  deniedUntil = Number.NEGATIVE_INFINITY;
  /** Until then other hosts lack units. */
  wantedUntil = Number.NEGATIVE_INFINITY;
  #idle = 0;
  #idleAt: number;
  #statedAt: number;

  constructor(pool: OwnedPool, now: number) {
    this.pool = pool;
    this.#idleAt = now;
    this.#statedAt = now;
  }

  /** Its users have no units, nobody else has any for it, and there is nothing to remember. */
  isDone(now: number): boolean {
    return this.pool.share === 0 && !this.isDirty && now >= this.deniedUntil;
  }

  /** Other hosts lack units. @returns false where that is known */
  markWanted(now: number): boolean {
    const isKnown = this.wantedUntil - now > wantedMs / 2;
    if (isKnown) return false;
    this.wantedUntil = now + wantedMs;
    // It may be that all have too much.
    this.isDirty = true;
    return true;
  }

  /** Notes from time to time what was free all the while. */
  sweep(now: number): void {
    if (now - this.#idleAt < idleMs) return;
    this.#idle = Math.max(0, Math.min(this.pool.idle, this.pool.free));
    this.#idleAt = now;
    this.pool.idle = this.pool.free;
  }

  /** There is something to be said of it. */
  isDue(now: number): boolean {
    const { pool } = this;
    const isOld = pool.share > 0 && now - this.#statedAt >= restateMs;
    return this.isDirty || isOld || pool.free < 0 || this.hasSurplus(now);
  }

  /** There is something for other hosts. */
  hasSurplus(now: number): boolean {
    return this.#surplus(now) > 0;
  }

  /** All that is free is given up, and what is used too much is owned to: the share is what is in use. */
  disown(): void {
    this.pool.resize(this.pool.share - this.pool.free);
    this.isDirty = true;
  }

  /** Gives up what nobody here needs, and says what is left and what is lacking. Until it is answered, nothing changes. */
  state(now: number): PoolStatement {
    const { pool } = this;
    if (pool.free < 0) this.disown();
    const surplus = this.#surplus(now);
    pool.resize(pool.share - surplus);
    pool.left += surplus;
    this.#idle = 0;
    this.isDirty = true;
    let need = 0;
    let want = 0;
    let least = Number.POSITIVE_INFINITY;
    for (const { stated } of pool.asks) {
      need += stated.need;
      want += stated.want;
      least = Math.min(least, stated.least);
    }
    const lacked = Math.max(0, need - pool.usable);
    const spare = Math.max(leastSpare, spareSeconds * (want - need));
    return {
      pool: pool.name,
      limit: pool.limit,
      held: pool.share,
      need: lacked,
      least: lacked === 0 ? 0 : Math.max(1, least - pool.usable),
      want: lacked === 0 ? 0 : lacked + spare,
      blockMs: windowMsOf[pool.kind] ?? slotGraceMs,
    };
  }

  /** The store has answered. */
  accept(statement: PoolStatement, granted: number, left: number, now: number): void {
    this.isDirty = statement.limit !== this.pool.limit;
    this.#statedAt = now;
    this.pool.left = left;
    this.pool.resize(this.pool.share + granted);
    if (granted < statement.need) this.deniedUntil = now + deniedMs;
  }

  #surplus(now: number): number {
    const { free, excess, asks } = this.pool;
    if (free <= 0) return 0;
    if (asks.length > 0) return Math.min(free, excess);
    return now < this.wantedUntil ? free : Math.min(free, Math.max(this.#idle, excess));
  }
}
