import type { HostAnswer, HostStatement, PoolStatement } from '../store/shares.js';
import type { OwnedPool } from './owned-pool.js';
import { windowMsOf } from './pool.js';
import type { ShareSource, ShareUser } from './share-source.js';

/** A host that has sent no statement for this long loses its shares. */
const leaseMs = 5000;
/** A host stops using its shares this much earlier, since clocks do not run alike. */
const marginMs = 500;
/** Interval of statements, with shares and without. */
const heartbeatMs = 250;
const restMs = 1000;
/** After this long without an answer, the store counts as gone. At the start it may take longer to be reached. */
const goneMs = 1000;
const firstGoneMs = 3000;
/** Ticks that this must include: a process that is held up itself had no chance to receive the answer. */
const goneTicks = 5;
/** Pause after a failure. */
const retryMs = 100;
/** Most pools in one statement. */
const mostPools = 200;
/** After another host has lacked units, free units are returned immediately for this long. */
const wantedMs = 1000;
/** Units that were free for this long are returned. */
const idleMs = 5000;
/** A share is stated at least this often, in case the store has lost it. */
const restateMs = 30_000;
/** After a denial the store is not asked again for this long. */
const deniedMs = 100;
/**
 * A disconnected host may still have calls in flight. In pools whose units are released by calls, these count for this
 * long after the host's deadline, and no longer.
 */
const slotGraceMs = 15_000;
/**
 * If there are plenty of units, a host is granted this many seconds of its use in advance, and at least `leastSpare`
 * units.
 */
const spareSeconds = 4;
const leastSpare = 8;

interface ShareKeeperOptions {
  /** Returns the milliseconds of a monotonic clock that all processes of the host share. Reads the clock every time. */
  readonly now: () => number;
  /** Name of this host, unique among all hosts at all times. Without spaces. */
  readonly host: string;
  /**
   * Sends a statement to the store. `onAnswer` is called once, later, with null if it is unknown whether the store took
   * it.
   */
  readonly exchange: (statement: HostStatement, onAnswer: (answer: HostAnswer | null) => void) => void;
  /**
   * What to do without the store: `open` counts alone with the whole limits, `closed` uses up the shares that the host
   * has.
   */
  readonly whenGone: () => 'open' | 'closed';
  /** Called when the store is gone, and when it is back. */
  readonly onAvailable: (isAvailable: boolean) => void;
}

const nobody: ShareUser = { onAnswered: () => {}, onWanted: () => {}, onTerm: () => {} };

/**
 * This host's side of limits that several hosts share through a store. The host states what it has, and the store
 * accepts that. The host stops using units before it states that it gives them up, and uses granted units only after
 * the answer. So if a statement or an answer is lost, the next one corrects the state. One statement is in flight at a
 * time.
 */
export class ShareKeeper implements ShareSource {
  readonly isUndivided = false;
  readonly #options: ShareKeeperOptions;
  #user = nobody;
  readonly #shares = new Map<OwnedPool, PoolShare>();
  readonly #byName = new Map<string, PoolShare>();
  /** Shares whose pools have requests for more than is free. */
  readonly #lacking = new Set<PoolShare>();
  /** Shares that were denied units. Each tick asks for what other hosts have returned since. */
  readonly #waiting = new Set<PoolShare>();
  /** Shares of which other hosts lacked units a moment ago. */
  readonly #wanted = new Set<PoolShare>();
  /** Shares for which the store may count less than this host has. */
  readonly #unknown = new Set<PoolShare>();
  /** Until when this host may use its shares. Afterwards other hosts may use them. */
  #deadline = 0;
  /** Whether the deadline has passed and what was free then is given up. */
  #isDisowned = false;
  /** Whether this host counts alone. */
  #isAlone = false;
  #isGone = false;
  /** Changes whenever all shares do. An answer to a statement of an earlier round does not apply to the shares. */
  #round = 0;
  #isLeaving = false;
  /** When the first statement without an answer was sent, since the last answer. */
  #silentSince: number | null = null;
  /** Ticks since then. */
  #silentTicks = 0;
  #isUnderWay = false;
  /** Whether the user is being notified of an answer. */
  #isTelling = false;
  /** Whether one statement did not hold everything. */
  #isBehind = false;
  #number = 0;
  /** Number of the last statement that was answered. */
  #answered = 0;
  #heartbeatAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(options: ShareKeeperOptions) {
    this.#options = options;
  }

  get until(): number | null {
    return this.#isAlone ? null : this.#deadline;
  }

  /** False if the store has not answered for `goneMs`, or `firstGoneMs` at the start. */
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
    // The answer says whether the shares exceed the limit now.
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

  /** Whether there are free units that other hosts lack. They must not wait for the next heartbeat. */
  #hasForOthers(now: number): boolean {
    let isFound = false;
    for (const share of this.#wanted) {
      if (now >= share.wantedUntil) this.#wanted.delete(share);
      else isFound ||= share.hasSurplus(now);
    }
    return isFound;
  }

  /** Returns what is free in a last statement. */
  leave(): void {
    const isSilent = this.#isLeaving || this.#isAlone || this.#isUnderWay;
    this.#isLeaving = true;
    if (isSilent) return;
    const now = this.#options.now();
    for (const share of this.#shares.values()) share.giveUpFree();
    this.#send(now, true);
  }

  /** @param isWhole whether to state everything; otherwise only what is urgent */
  #send(now: number, isWhole: boolean): void {
    if (!this.#isInTerm(now) && !this.#isDisowned) this.#giveUpFree();
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
    // While it counts alone, it only states that it is alive.
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
    // What was stated since the deadline may be too old by the next answer.
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
    // Not after every answer, of which there may be many.
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
    // What workers return is stated at the next tick.
    this.#heartbeatAt = now;
    this.#user.onWanted(news);
  }

  /**
   * Gives up what is free, which the store may have given to others. Keeps what is in use, which the store may have
   * forgotten.
   */
  #giveUpFree(): void {
    this.#isDisowned = true;
    for (const share of this.#shares.values()) {
      share.giveUpFree();
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

  /**
   * Starts or stops counting alone. It does so while the store is gone and the config says `open`, which a reload may
   * change.
   */
  #decideAlone(): void {
    const isAlone = this.#isGone && !this.#isLeaving && this.#options.whenGone() === 'open';
    if (isAlone === this.#isAlone) return;
    this.#isAlone = isAlone;
    this.#round++;
    if (isAlone) this.#standAlone();
    else this.#giveUpFree();
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
  /** Time just before it was sent, in milliseconds of the host's clock. */
  readonly sentAt: number;
  /** The keeper's round at that time. */
  readonly round: number;
  /** Whether it stated everything. */
  readonly isWhole: boolean;
  readonly shares: readonly PoolShare[];
  readonly pools: readonly PoolStatement[];
}

/** The state of this host's share of one pool. The share itself is the pool's `share`. */
class PoolShare {
  readonly pool: OwnedPool;
  /** Whether the store may count more for this host than it has. */
  isDirty = false;
  /** Until when the store is not asked again, since it had too few units. */
  deniedUntil = Number.NEGATIVE_INFINITY;
  /** Until when other hosts lack units. */
  wantedUntil = Number.NEGATIVE_INFINITY;
  #idle = 0;
  #idleAt: number;
  #statedAt: number;

  constructor(pool: OwnedPool, now: number) {
    this.pool = pool;
    this.#idleAt = now;
    this.#statedAt = now;
  }

  /** Whether it can be forgotten: the host has no units, the store counts none for it, and no denial is in force. */
  isDone(now: number): boolean {
    return this.pool.share === 0 && !this.isDirty && now >= this.deniedUntil;
  }

  /**
   * Records that other hosts lack units.
   * @returns false if that is known
   */
  markWanted(now: number): boolean {
    const isKnown = this.wantedUntil - now > wantedMs / 2;
    if (isKnown) return false;
    this.wantedUntil = now + wantedMs;
    // All hosts together may have too many.
    this.isDirty = true;
    return true;
  }

  /** Records from time to time what was free all the time. */
  sweep(now: number): void {
    if (now - this.#idleAt < idleMs) return;
    this.#idle = Math.max(0, Math.min(this.pool.idle, this.pool.free));
    this.#idleAt = now;
    this.pool.idle = this.pool.free;
  }

  /** Whether it has to be stated. */
  isDue(now: number): boolean {
    const { pool } = this;
    const isOld = pool.share > 0 && now - this.#statedAt >= restateMs;
    return this.isDirty || isOld || pool.free < 0 || this.hasSurplus(now);
  }

  /** Whether it has units for other hosts. */
  hasSurplus(now: number): boolean {
    return this.#surplus(now) > 0;
  }

  /** Reduces the share to what is in use: gives up what is free, or reports what is used beyond it. */
  giveUpFree(): void {
    this.pool.resize(this.pool.share - this.pool.free);
    this.isDirty = true;
  }

  /**
   * Makes a statement: gives up what is not needed here, and states what is left and what is lacking. The share does
   * not change until the answer.
   */
  state(now: number): PoolStatement {
    const { pool } = this;
    if (pool.free < 0) this.giveUpFree();
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

  /** Applies the store's answer. */
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
