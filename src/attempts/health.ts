import type { RoutingSettings, Target, Upstream } from '../config/types.js';
import type { Steps } from '../wire/steps.js';
import { hashText, keyScore, targetHash } from './affinity.js';
import { type AttemptOutcome, type FailedOutcome, longestRetryAfterMs, restMs } from './outcome.js';

/** Lower is better. */
const well = 0;
const resting = 1;
const barred = 2;
/** Beyond any span of time that a config may set. */
const mostDoublings = 31;

/** The state of a key for operators, who know it by its place in the config. */
interface KeyStatus {
  /** Milliseconds until it may be used again, or is as good as the others; 0 when it is now. */
  readonly waitMs: number;
}

/**
 * How the keys of an upstream that has several fare at one target. One that is refused is left alone for a time, and
 * the others go on: what an upstream says of one of its accounts is nothing against itself.
 */
export class KeyHealth {
  readonly #hashes: readonly number[];
  /** It is not used until then, where any other can be. */
  readonly #barredUntil: Float64Array;
  /** It is better left alone until then. */
  readonly #restUntil: Float64Array;
  /** How often in a row it was told that it is not accepted. */
  readonly #rejections: Uint8Array;

  /** @param apiKeys two or more */
  constructor(apiKeys: readonly string[]) {
    this.#hashes = apiKeys.map((apiKey) => hashText(0, apiKey));
    this.#barredUntil = new Float64Array(apiKeys.length).fill(Number.NEGATIVE_INFINITY);
    this.#restUntil = new Float64Array(apiKeys.length).fill(Number.NEGATIVE_INFINITY);
    this.#rejections = new Uint8Array(apiKeys.length);
  }

  get count(): number {
    return this.#hashes.length;
  }

  /**
   * Chooses the key for a call. One that is well comes before one that rests, and any before those that are barred, of
   * which the one that may be used soonest is the best of a bad lot.
   * @param affinity hash of the call: calls that begin alike get the same key as long as it is well; null for any
   * @param random gives numbers in [0, 1)
   * @returns its index
   */
  choose(affinity: number | null, random: () => number, now: number): number {
    let chosen = 0;
    let bestRank = Number.POSITIVE_INFINITY;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let key = 0; key < this.#hashes.length; key++) {
      const rank = this.#rank(key, now);
      if (rank > bestRank) continue;
      let score = affinity === null ? random() : keyScore(affinity, this.#hashes[key] as number);
      if (rank === barred) score = -(this.#barredUntil[key] as number);
      if (rank === bestRank && score <= bestScore) continue;
      chosen = key;
      bestRank = rank;
      bestScore = score;
    }
    return chosen;
  }

  /** Whether any of them is well. */
  hasWell(now: number): boolean {
    return this.#hasRank(well, now);
  }

  /** Whether any of them may be used now. */
  mayTake(now: number): boolean {
    return this.#hasRank(resting, now);
  }

  /** The earliest time at which one of them may be used: now, or later. */
  earliest(now: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const until of this.#barredUntil) if (until < earliest) earliest = until;
    return Math.max(now, earliest);
  }

  /** A call with it was not refused for its sake. */
  accepted(key: number): void {
    this.#rejections[key] = 0;
  }

  /**
   * A call with it was refused for its sake: it is barred for as long as the upstream asks, when it is not accepted for
   * as long as an ill target would be, and else it rests.
   */
  refused(key: number, now: number, { kind, retryAfterMs }: FailedOutcome, settings: RoutingSettings): void {
    if (retryAfterMs !== null && retryAfterMs > 0)
      this.#bar(key, now + Math.min(retryAfterMs, longestRetryAfterMs));
    else if (kind === 'rateLimited') this.#rest(key, now + restMs);
    else if (kind === 'doubted') this.#rest(key, now + settings.openMs);
    else if (now >= (this.#barredUntil[key] as number)) {
      // Calls that were under way together are one refusal.
      const before = this.#rejections[key] as number;
      this.#rejections[key] = Math.min(before + 1, mostDoublings);
      this.#bar(key, now + Math.min(settings.openMs * 2 ** before, settings.maxOpenMs));
    }
  }

  status(now: number): KeyStatus[] {
    return this.#hashes.map((_hash, key) => {
      const until = Math.max(this.#barredUntil[key] as number, this.#restUntil[key] as number);
      return { waitMs: Math.max(0, until - now) };
    });
  }

  #bar(key: number, until: number): void {
    this.#barredUntil[key] = Math.max(this.#barredUntil[key] as number, until);
  }

  #rest(key: number, until: number): void {
    this.#restUntil[key] = Math.max(this.#restUntil[key] as number, until);
  }

  #hasRank(most: number, now: number): boolean {
    for (let key = 0; key < this.#hashes.length; key++) if (this.#rank(key, now) <= most) return true;
    return false;
  }

  #rank(key: number, now: number): number {
    if (now < (this.#barredUntil[key] as number)) return barred;
    return now < (this.#restUntil[key] as number) ? resting : well;
  }
}

/** The window moves on in so many steps. */
const slotCount = 10;
/** A probe that is under way may be over after so long: when to come back is a guess. */
const probeGuessMs = 1000;
/** Characters of an error that are kept. */
const longestError = 200;
/** The ticket of a call that began though the breaker was open: it does not count. */
const outside = 0;

/** The state of a target for operators, at one worker. */
interface TargetStatus {
  readonly upstream: string;
  readonly model: string;
  /** `cooling`: well, but it asked to be left alone. */
  readonly state: 'closed' | 'cooling' | 'open' | 'half-open';
  readonly inFlight: number;
  /** Of an upstream with several keys, in their order; empty for one with fewer. */
  readonly keys: readonly KeyStatus[];
  /** Within the window, as are the failures. */
  readonly calls: number;
  readonly failures: number;
  readonly consecutiveFailures: number;
  /** Milliseconds until it may be taken again; 0 when it may be now. */
  readonly waitMs: number;
  readonly lastError: string | null;
  /** Milliseconds since then, or null. */
  readonly lastErrorAgoMs: number | null;
}

/** Hears when the breaker of a target opens, and when it closes: not of what a probe says in between. */
type BreakerListener = (
  target: Pick<TargetHealth, 'upstream' | 'model'>,
  change: {
    readonly isOpen: boolean;
    readonly lastError: string | null;
    /** For how long it is left alone before the first probe; 0 when the breaker closes. */
    readonly openMs: number;
  },
) => void;

/**
 * How one target fares at one worker: calls under way, a breaker, and the times at which it asked to be left
 * alone. All times are milliseconds of `performance.now()` and come from the caller.
 *
 * The breaker is closed until too many calls fail, in a row or as a share of those in the window. Then it is open for
 * a time, and half-open after it: one call may go, the probe. When the probe succeeds the breaker is closed, and when
 * it fails it is open for twice as long as before.
 *
 * Each call holds a ticket, the number of the period in which it began. A period ends when the breaker opens and when
 * a probe is sent or lost, so that a late result of a call from before decides nothing about the time after.
 */
export class TargetHealth {
  readonly upstream: string;
  readonly model: string;
  /** What `rendezvousScore` knows it by. */
  readonly hash: number;
  /** Null for an upstream with one key or none, whose refusals are the target's. */
  readonly keys: KeyHealth | null;
  #settings: RoutingSettings;
  readonly #onBreaker: BreakerListener;

  #inFlight = 0;
  #period = outside + 1;
  #isOpen = false;
  #isProbing = false;
  #openedAt = 0;
  #openForMs = 0;
  #consecutive = 0;
  /** It asked to be left alone until then. */
  #coolUntil = Number.NEGATIVE_INFINITY;
  /** It is better left alone until then. */
  #restUntil = Number.NEGATIVE_INFINITY;

  readonly #slotCalls = new Uint32Array(slotCount);
  readonly #slotFailures = new Uint32Array(slotCount);
  /** Number of the slot in use, counted from the beginning of time. */
  #slot = 0;
  #calls = 0;
  #failures = 0;

  #lastError: string | null = null;
  #lastErrorAt = 0;

  /** @param apiKeys of the upstream */
  constructor(
    upstream: string,
    model: string,
    settings: RoutingSettings,
    apiKeys: readonly string[] = [],
    onBreaker: BreakerListener = () => {},
  ) {
    this.upstream = upstream;
    this.model = model;
    this.hash = targetHash(upstream, model);
    this.keys = apiKeys.length > 1 ? new KeyHealth(apiKeys) : null;
    this.#settings = settings;
    this.#onBreaker = onBreaker;
  }

  /** Calls under way. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether a call may go to it now. Ask right before `began`: the place of a probe may have been taken meanwhile. */
  mayTake(now: number): boolean {
    if (now < this.#coolUntil || this.keys?.mayTake(now) === false) return false;
    return !this.#isOpen || (!this.#isProbing && now >= this.#openedAt + this.#openForMs);
  }

  /** Whether others should be tried before it, since it has refused a call for their number a moment ago. */
  isResting(now: number): boolean {
    return now < this.#restUntil || this.keys?.hasWell(now) === false;
  }

  /** The earliest time at which a call may go to it: now, or later; a guess while a probe is under way. */
  earliest(now: number): number {
    const cool = Math.max(this.#coolUntil, this.keys?.earliest(now) ?? now);
    if (!this.#isOpen) return Math.max(now, cool);
    const free = this.#isProbing ? now + probeGuessMs : this.#openedAt + this.#openForMs;
    return Math.max(now, free, cool);
  }

  /**
   * A call goes to it. One that goes though `mayTake` says no is in flight, and counts for nothing else.
   * @returns the ticket to give back to `ended`
   */
  began(now: number): number {
    this.#inFlight++;
    if (!this.#isOpen) return this.#period;
    if (!this.mayTake(now)) return outside;
    this.#isProbing = true;
    return ++this.#period;
  }

  /**
   * A call is being answered well. Its end may be minutes away, and a breaker that only waits for its probe closes
   * now. For every other call it does nothing.
   */
  answered(ticket: number): void {
    if (this.#isProbing && ticket === this.#period) this.#close();
  }

  /**
   * A call is over. To be told exactly once for every `began`.
   * @param key index of the upstream's key that it went with
   */
  ended(now: number, ticket: number, outcome: AttemptOutcome, key = 0): void {
    if (this.#inFlight > 0) this.#inFlight--;
    const counts = ticket === this.#period;
    if (outcome === 'success') {
      this.keys?.accepted(key);
      if (!counts) return;
      if (this.#isOpen) this.#close();
      this.#count(now, 0);
      this.#consecutive = 0;
      return;
    }
    if (outcome !== 'uncounted') {
      this.#note(now, outcome);
      if (this.keys !== null && outcome.kind !== 'failure')
        this.keys.refused(key, now, outcome, this.#settings);
      else if (this.#heed(now, outcome) && counts) {
        this.#fail(now);
        return;
      }
    }
    if (counts && this.#isProbing) this.#freeProbe();
  }

  /** Other settings hold from now on. What is open stays so, but for no longer than they allow. */
  setSettings(settings: RoutingSettings): void {
    const { windowMs } = this.#settings;
    this.#settings = settings;
    this.#openForMs = Math.min(this.#openForMs, settings.maxOpenMs);
    // The slots of one length cannot be told in those of another.
    if (settings.windowMs !== windowMs) this.#clear();
  }

  status(now: number): TargetStatus {
    this.#advance(now);
    const wait = this.earliest(now) - now;
    return {
      upstream: this.upstream,
      model: this.model,
      state: this.#stateAt(now),
      inFlight: this.#inFlight,
      keys: this.keys?.status(now) ?? [],
      calls: this.#calls,
      failures: this.#failures,
      consecutiveFailures: this.#consecutive,
      waitMs: wait,
      lastError: this.#lastError,
      lastErrorAgoMs: this.#lastError === null ? null : Math.max(0, now - this.#lastErrorAt),
    };
  }

  #stateAt(now: number): TargetStatus['state'] {
    if (this.#isOpen) return now < this.#openedAt + this.#openForMs ? 'open' : 'half-open';
    return now < this.#coolUntil || this.isResting(now) ? 'cooling' : 'closed';
  }

  #fail(now: number): void {
    this.#count(now, 1);
    this.#consecutive++;
    const { failures, failureRate, minimumCalls, openMs, maxOpenMs } = this.#settings;
    if (this.#isOpen) {
      this.#openedAt = now;
      this.#openForMs = Math.min(2 * this.#openForMs, maxOpenMs);
      this.#freeProbe();
      return;
    }
    const isFrequent = this.#calls >= minimumCalls && this.#failures / this.#calls >= failureRate;
    if (this.#consecutive < failures && !isFrequent) return;
    this.#isOpen = true;
    this.#openedAt = now;
    this.#openForMs = Math.min(openMs, maxOpenMs);
    this.#period++;
    this.#onBreaker(this, { isOpen: true, lastError: this.#lastError, openMs: this.#openForMs });
  }

  #freeProbe(): void {
    this.#isProbing = false;
    this.#period++;
  }

  /** The period goes on, so that a probe that was answered counts like any other call when it ends. */
  #close(): void {
    this.#isOpen = false;
    this.#isProbing = false;
    this.#consecutive = 0;
    this.#clear();
    this.#onBreaker(this, { isOpen: false, lastError: this.#lastError, openMs: 0 });
  }

  #note(now: number, { error }: FailedOutcome): void {
    this.#lastError = shortened(error);
    this.#lastErrorAt = now;
  }

  /** Notes how long the target is to be left alone. @returns whether the call counts as failed */
  #heed(now: number, { kind, retryAfterMs }: FailedOutcome): boolean {
    if (kind === 'doubted') return false;
    if (retryAfterMs !== null && retryAfterMs > 0)
      this.#coolUntil = Math.max(this.#coolUntil, now + Math.min(retryAfterMs, longestRetryAfterMs));
    else if (kind === 'rateLimited') this.#restUntil = Math.max(this.#restUntil, now + restMs);
    return kind !== 'rateLimited';
  }

  #count(now: number, failures: number): void {
    this.#advance(now);
    const index = this.#slot % slotCount;
    this.#slotCalls[index] = (this.#slotCalls[index] as number) + 1;
    this.#calls++;
    // Nearly no call fails, and what is not touched need not be fetched from memory.
    if (failures === 0) return;
    this.#slotFailures[index] = (this.#slotFailures[index] as number) + failures;
    this.#failures += failures;
  }

  /** Takes out of the window what has become too old. */
  #advance(now: number): void {
    const slot = Math.floor((now * slotCount) / this.#settings.windowMs);
    if (slot <= this.#slot) return;
    if (slot - this.#slot >= slotCount) this.#clear();
    else {
      for (let each = this.#slot + 1; each <= slot; each++) {
        const index = each % slotCount;
        this.#calls -= this.#slotCalls[index] as number;
        this.#slotCalls[index] = 0;
        if (this.#failures === 0) continue;
        this.#failures -= this.#slotFailures[index] as number;
        this.#slotFailures[index] = 0;
      }
    }
    this.#slot = slot;
  }

  /** The next count finds its slot anew, also when slots have become longer and the numbers smaller. */
  #clear(): void {
    this.#slotCalls.fill(0);
    this.#slotFailures.fill(0);
    this.#slot = 0;
    this.#calls = 0;
    this.#failures = 0;
  }
}

/** A copy: a part of a long text would keep the whole of it in memory. */
function shortened(error: string): string {
  return error.length <= longestError ? error : Buffer.from(error.slice(0, longestError)).toString();
}

interface Entry {
  readonly health: TargetHealth;
  /** As the config had it that named the target last. */
  upstream: Upstream;
}

/**
 * The health of all targets at one worker. Targets that different models share, and those of a config before and after
 * its reload, are one when their upstream has the same name and place and their model is the same.
 */
export class HealthTable {
  /** Spares the names' concatenation at every call; targets of a config that is gone go with it. */
  readonly #byTarget = new WeakMap<Target, TargetHealth>();
  readonly #byName = new Map<string, Entry>();
  #settings: RoutingSettings;
  readonly #onBreaker: BreakerListener | undefined;

  constructor(settings: RoutingSettings, onBreaker?: BreakerListener) {
    this.#settings = settings;
    this.#onBreaker = onBreaker;
  }

  /** How targets are chosen now. */
  get settings(): RoutingSettings {
    return this.#settings;
  }

  /** The health of a target, the same until `retainSteps` is told otherwise. Allocates only at the first time. */
  of(target: Target): TargetHealth {
    return this.#byTarget.get(target) ?? this.#meet(target);
  }

  #meet(target: Target): TargetHealth {
    const { upstream } = target;
    const name = nameOf(target);
    const entry = this.#byName.get(name);
    const isKnown = entry !== undefined && isSamePlace(entry.upstream, upstream);
    const health = isKnown ? entry.health : this.#make(target);
    this.#byTarget.set(target, health);
    // A call of the config before may ask for a target whose name means another place by now: it stays by itself.
    if (entry === undefined) this.#byName.set(name, { health, upstream });
    return health;
  }

  #make({ upstream, model }: Target): TargetHealth {
    return new TargetHealth(upstream.name, model, this.#settings, upstream.apiKeys, this.#onBreaker);
  }

  /**
   * Forgets all targets but these, and knows these from now on: call it with the targets of every model when a config
   * becomes the running one. A target whose upstream has moved, or has other keys, starts as well, so that a mistake
   * that was put right is not held against it. Calls under way end at the health that they began with. The config is to
   * become the running one behind the last step.
   * @param settings hold for every target from then on; those that hold now unless given
   */
  *retainSteps(targets: Iterable<Target>, settings = this.#settings): Steps<void> {
    const kept = new Set<string>();
    for (const target of targets) {
      const { upstream } = target;
      const name = nameOf(target);
      kept.add(name);
      let entry = this.#byName.get(name);
      if (entry === undefined || !isSamePlace(entry.upstream, upstream)) {
        entry = { health: this.#make(target), upstream };
        this.#byName.set(name, entry);
      }
      entry.upstream = upstream;
      this.#byTarget.set(target, entry.health);
      yield;
    }
    this.#settings = settings;
    for (const [name, { health }] of this.#byName) {
      if (kept.has(name)) health.setSettings(settings);
      else this.#byName.delete(name);
      yield;
    }
  }

  /**
   * The state of all targets, in the order in which they became known.
   * @param now milliseconds of `performance.now()`
   */
  *status(now: number): Generator<TargetStatus, void, undefined> {
    for (const { health } of this.#byName.values()) yield health.status(now);
  }
}

/** Names of upstreams have no control characters, so no two targets have the same text; with a slash two could. */
function nameOf({ upstream, model }: Target): string {
  return `${upstream.name}\n${model}`;
}

function isSamePlace(a: Upstream, b: Upstream): boolean {
  return (
    a === b ||
    (a.origin.identity === b.origin.identity &&
      a.basePath === b.basePath &&
      a.baseQuery === b.baseQuery &&
      a.keyHeader === b.keyHeader &&
      a.apiKeys.length === b.apiKeys.length &&
      a.apiKeys.every((key, index) => key === b.apiKeys[index]))
  );
}
