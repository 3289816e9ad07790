import type { RoutingSettings, Target, Upstream } from '../config/types.js';
import type { Steps } from '../wire/steps.js';
import { hashText, keyScore, targetHash } from './affinity.js';
import { type AttemptOutcome, type FailedOutcome, longestRetryAfterMs, restMs } from './outcome.js';

/** Ranks of a key. Lower is better. */
const well = 0;
const resting = 1;
const barred = 2;
/** Most doublings of a time; more would exceed any time that a config can set. */
const mostDoublings = 31;

/** The state of a key for operators, who identify it by its place in the config. */
interface KeyStatus {
  /** Milliseconds until it may be used again, or ranks with the others again; 0 if it does now. */
  readonly waitMs: number;
}

/**
 * The health of the keys of an upstream with several, at one target. A refused key is avoided for a time, and the
 * others stay in use: an upstream's refusal of one account does not count against the upstream.
 */
export class KeyHealth {
  readonly #hashes: readonly number[];
  /** Time until which each key is not used, unless no other can be. */
  readonly #barredUntil: Float64Array;
  /** Time until which each key ranks after the others. */
  readonly #restUntil: Float64Array;
  /** How often in a row each key was rejected. */
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
   * Chooses the key for a call. Keys that are well are preferred to those that rest, and these to barred ones. If all
   * are barred, the one that may be used soonest is chosen.
   * @param affinity hash of the call: calls that begin alike get the same key as long as it is well; null for any key
   * @param random returns numbers in [0, 1)
   * @returns the index of the key
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

  /** Whether any key is well. */
  hasWell(now: number): boolean {
    return this.#hasRank(well, now);
  }

  /** Whether any key may be used now. */
  mayTake(now: number): boolean {
    return this.#hasRank(resting, now);
  }

  /** Returns the earliest time, now or later, at which a key may be used. */
  earliest(now: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const until of this.#barredUntil) if (until < earliest) earliest = until;
    return Math.max(now, earliest);
  }

  /** Called when a call with a key was answered without a refusal of the key. */
  accepted(key: number): void {
    this.#rejections[key] = 0;
  }

  /**
   * Called when an upstream refused a call because of its key. The key is barred for as long as the upstream asks. If
   * it asks for no time, a rejected key is barred for as long as a failing target would be, and any other key rests.
   */
  refused(key: number, now: number, { kind, retryAfterMs }: FailedOutcome, settings: RoutingSettings): void {
    if (retryAfterMs !== null && retryAfterMs > 0)
      this.#bar(key, now + Math.min(retryAfterMs, longestRetryAfterMs));
    else if (kind === 'rateLimited') this.#rest(key, now + restMs);
    else if (kind === 'doubted') this.#rest(key, now + settings.openMs);
    else if (now >= (this.#barredUntil[key] as number)) {
      // Refusals of calls that were in flight at the same time count as one.
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

/** Number of steps in which the window moves on. */
const slotCount = 10;
/** Guess of the milliseconds until a probe in flight ends. */
const probeGuessMs = 1000;
/** Most characters of an error that are kept. */
const longestError = 200;
/** Ticket of a call that began while the breaker was open and is not its probe: its result does not count. */
const outside = 0;

/** The state of a target for operators, at one worker. */
interface TargetStatus {
  readonly upstream: string;
  readonly model: string;
  /** `cooling`: the breaker is closed, but the target asked to be left alone, or ranks after others. */
  readonly state: 'closed' | 'cooling' | 'open' | 'half-open';
  readonly inFlight: number;
  /** The keys of an upstream with several, in their order; empty for an upstream with one or none. */
  readonly keys: readonly KeyStatus[];
  /** Calls and failures within the window. */
  readonly calls: number;
  readonly failures: number;
  readonly consecutiveFailures: number;
  /** Milliseconds until a call may go to it again; 0 if one may now. */
  readonly waitMs: number;
  readonly lastError: string | null;
  /** Milliseconds since the last error, or null if there was none. */
  readonly lastErrorAgoMs: number | null;
}

/** Called when the breaker of a target opens and when it closes, but not for failed probes in between. */
type BreakerListener = (
  target: Pick<TargetHealth, 'upstream' | 'model'>,
  change: {
    readonly isOpen: boolean;
    readonly lastError: string | null;
    /** Milliseconds before the first probe; 0 when the breaker closes. */
    readonly openMs: number;
  },
) => void;

/**
 * The health of one target at one worker: its calls in flight, its breaker, and how long it asked to be left alone. The
 * caller passes all times, in milliseconds of `performance.now()`.
 *
 * The breaker is closed until too many calls fail, in a row or as a share of those in the window. It then opens for a
 * time. After that it is half-open: one call may pass, the probe. If the probe succeeds, the breaker closes. If it
 * fails, the breaker stays open for twice as long as before, at most `maxOpenMs`.
 *
 * Each call holds a ticket: the number of the period in which it began. A period ends when the breaker opens, and when
 * a probe is sent, fails or ends without a result. A late result of a call from an earlier period thus decides nothing.
 */
export class TargetHealth {
  readonly upstream: string;
  readonly model: string;
  /** Hash that identifies the target for `rendezvousScore`. */
  readonly hash: number;
  /** Null for an upstream with one key or none: refusals of the key then count for the target. */
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
  /** Time until which the target asked to be left alone. */
  #coolUntil = Number.NEGATIVE_INFINITY;
  /** Time until which the target ranks after others. */
  #restUntil = Number.NEGATIVE_INFINITY;

  readonly #slotCalls = new Uint32Array(slotCount);
  readonly #slotFailures = new Uint32Array(slotCount);
  /** Number of the current slot, counted from time 0. */
  #slot = 0;
  #calls = 0;
  #failures = 0;

  #lastError: string | null = null;
  #lastErrorAt = 0;

  /** @param apiKeys keys of the upstream */
  constructor(
    upstream: string,
    model: string,
    settings: RoutingSettings,
    apiKeys: readonly string[],
    onBreaker: BreakerListener,
  ) {
    this.upstream = upstream;
    this.model = model;
    this.hash = targetHash(upstream, model);
    this.keys = apiKeys.length > 1 ? new KeyHealth(apiKeys) : null;
    this.#settings = settings;
    this.#onBreaker = onBreaker;
  }

  /** The number of calls in flight. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether a call may be sent now. Check immediately before `began`: another call may have become the probe. */
  mayTake(now: number): boolean {
    if (now < this.#coolUntil || this.keys?.mayTake(now) === false) return false;
    return !this.#isOpen || (!this.#isProbing && now >= this.#openedAt + this.#openForMs);
  }

  /**
   * Whether other targets should be tried first: it has just refused a call for its rate, or none of its keys is well.
   */
  isResting(now: number): boolean {
    return now < this.#restUntil || this.keys?.hasWell(now) === false;
  }

  /** Returns the earliest time, now or later, at which a call may be sent; a guess while a probe is in flight. */
  earliest(now: number): number {
    const cool = Math.max(this.#coolUntil, this.keys?.earliest(now) ?? now);
    if (!this.#isOpen) return Math.max(now, cool);
    const free = this.#isProbing ? now + probeGuessMs : this.#openedAt + this.#openForMs;
    return Math.max(now, free, cool);
  }

  /**
   * Called when a call is sent to the target. While the breaker is open, a call that is sent although `mayTake` returns
   * false counts as in flight, and for nothing else.
   * @returns the ticket to pass to `ended`
   */
  began(now: number): number {
    this.#inFlight++;
    if (!this.#isOpen) return this.#period;
    if (!this.mayTake(now)) return outside;
    this.#isProbing = true;
    return ++this.#period;
  }

  /**
   * Called when a call receives a good answer. The answer may take minutes to end, so a breaker that waits for this
   * call as its probe closes now. No-op for every other call.
   */
  answered(ticket: number): void {
    if (this.#isProbing && ticket === this.#period) this.#close();
  }

  /**
   * Must be called exactly once for every `began`, when the call has ended.
   * @param key index of the upstream's key that the call was sent with
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

  /** Applies other settings from now on. An open breaker stays open, but at most for the new `maxOpenMs`. */
  setSettings(settings: RoutingSettings): void {
    const { windowMs } = this.#settings;
    this.#settings = settings;
    this.#openForMs = Math.min(this.#openForMs, settings.maxOpenMs);
    // Slots of one length cannot be converted to slots of another.
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

  /** Closes the breaker. The period continues, so that an answered probe counts like any other call when it ends. */
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

  /** Records how long the target is to be left alone. @returns whether the call counts as failed */
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
    // Few calls fail, and memory that is not touched need not be fetched.
    if (failures === 0) return;
    this.#slotFailures[index] = (this.#slotFailures[index] as number) + failures;
    this.#failures += failures;
  }

  /** Removes from the window the slots that have become too old. */
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

  /**
   * Empties the window. With 0 as slot, the next count sets the current one, even if longer slots have smaller numbers.
   */
  #clear(): void {
    this.#slotCalls.fill(0);
    this.#slotFailures.fill(0);
    this.#slot = 0;
    this.#calls = 0;
    this.#failures = 0;
  }
}

/** Copies the start of a long text, since a slice would keep the whole text in memory. */
function shortened(error: string): string {
  return error.length <= longestError ? error : Buffer.from(error.slice(0, longestError)).toString();
}

/** Configs before the one in force whose targets are known. */
const mostFormer = 8;

interface Entry {
  readonly health: TargetHealth;
  /** The upstream in the last config that named the target. */
  upstream: Upstream;
}

/**
 * The health of all targets at one worker. Targets of different models, and of a config before and after a reload,
 * share one health if their upstream has the same name, place and keys, and their model is the same.
 */
export class HealthTable {
  /** Avoids concatenating names with every call. */
  #byTarget = new WeakMap<Target, TargetHealth>();
  /**
   * The same for the targets of the configs before, the newest first: calls may still use them. A single map would keep
   * those of every config until V8 marks its heap, and copying it when it is full takes 7 ms for those of nine configs
   * with 5,000 targets.
   */
  #former: readonly WeakMap<Target, TargetHealth>[] = [];
  readonly #byName = new Map<string, Entry>();
  #settings: RoutingSettings;
  readonly #onBreaker: BreakerListener;

  constructor(settings: RoutingSettings, onBreaker: BreakerListener) {
    this.#settings = settings;
    this.#onBreaker = onBreaker;
  }

  /** The settings in force. */
  get settings(): RoutingSettings {
    return this.#settings;
  }

  /**
   * Returns the health of a target, which stays the same until `retainSteps` replaces it. Allocates only the first
   * time.
   */
  of(target: Target): TargetHealth {
    return this.#byTarget.get(target) ?? this.#ofFormer(target) ?? this.#meet(target);
  }

  #ofFormer(target: Target): TargetHealth | undefined {
    for (const byTarget of this.#former) {
      const health = byTarget.get(target);
      if (health !== undefined) return health;
    }
    return undefined;
  }

  #meet(target: Target): TargetHealth {
    const { upstream } = target;
    const name = nameOf(target);
    const entry = this.#byName.get(name);
    const isKnown = entry !== undefined && isSamePlace(entry.upstream, upstream);
    const health = isKnown ? entry.health : this.#make(target);
    this.#byTarget.set(target, health);
    // A call of the previous config may use a target whose name by now means another place: its health stays separate.
    if (entry === undefined) this.#byName.set(name, { health, upstream });
    return health;
  }

  #make({ upstream, model }: Target): TargetHealth {
    return new TargetHealth(upstream.name, model, this.#settings, upstream.apiKeys, this.#onBreaker);
  }

  /**
   * Keeps the health of these targets, and drops all others. To be called with the targets of every model before a
   * config becomes the running one, which it must become right after the last step. A target whose upstream has moved,
   * or has other keys, starts as healthy, so that a corrected mistake does not count against it. Calls in flight end at
   * the health that they began with.
   * @param settings settings for every target from then on
   */
  *retainSteps(targets: Iterable<Target>, settings: RoutingSettings): Steps<void> {
    const kept = new Set<string>();
    const byTarget = new WeakMap<Target, TargetHealth>();
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
      byTarget.set(target, entry.health);
      yield;
    }
    this.#former = [this.#byTarget, ...this.#former].slice(0, mostFormer);
    this.#byTarget = byTarget;
    this.#settings = settings;
    for (const [name, { health }] of this.#byName) {
      if (kept.has(name)) health.setSettings(settings);
      else this.#byName.delete(name);
      yield;
    }
  }

  /**
   * Yields the state of all targets, in the order in which they became known.
   * @param now milliseconds of `performance.now()`
   */
  *status(now: number): Generator<TargetStatus, void, undefined> {
    for (const { health } of this.#byName.values()) yield health.status(now);
  }
}

/**
 * Joins with a line feed, which names of upstreams cannot contain: with a slash, two targets could have the same text.
 */
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
