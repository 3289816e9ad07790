import { type AdmissionHost, putRight, wholeUnits } from './admission.js';
import { bucketOf } from './cooling.js';
import type { HeldPool } from './held-pool.js';
import { type Demand, isGivenBack } from './kinds.js';

/** So many calls of one bucket take their units pool by pool before some are set aside for those that follow. */
const callsBefore = 8;
/** Of what a worker has, this part is set aside at once: the rest is for calls that fall under other limits, too. */
const part = 1 / 4;
/** For fewer calls it is not worth while. */
const leastCalls = 16;
/** As many as V8 keeps without an object of their own. */
const mostUnits = 2 ** 30;

/** What is counted of a pool. */
type Unit = 'calls' | 'tokens' | 'slots';

/**
 * Units that a worker sets aside for calls which fall under the same limits and come within the same bucket, of all the
 * pools in one go: such a call looks at three numbers that lie together, however many pools there are. Of slots, of
 * which a worker never has many to spare, nothing is set aside at first, and those of calls that have ended are kept
 * for the next ones. To the pools all of it is in use until the allotment is closed; then what nobody took goes back.
 * Whoever finds a pool short, or looks at what it has, closes it before.
 */
export class Allotment {
  isOpen = false;
  /** When its units count as used, in the terms of `Cooling`. */
  #bucket = -1;
  /** What is left. */
  #calls = 0;
  #tokens = 0;
  #slots = 0;
  /** One of each pool, and what is counted of it. */
  readonly #ones: readonly Demand[];
  readonly #units: readonly Unit[];
  /** As in `HeldPools.at`. */
  readonly #found: HeldPool[] = [];
  /** The same, of those of slots alone. */
  readonly #slotOnes: readonly Demand[];
  readonly #slotsFound: HeldPool[] = [];
  /** Calls of the bucket that took their units pool by pool since it was last closed. */
  #callsBefore = 0;
  #host: AdmissionHost | null = null;

  /**
   * @param ones one of each pool that its calls take from
   * @param tokens indexes of those of which a call takes as many as it has tokens
   */
  constructor(ones: readonly Demand[], tokens: readonly number[]) {
    this.#ones = ones;
    this.#units = ones.map(({ pool }, index) =>
      isGivenBack(pool) ? 'slots' : tokens.includes(index) ? 'tokens' : 'calls',
    );
    this.#slotOnes = ones.filter(({ pool }) => isGivenBack(pool));
  }

  /**
   * Takes what a call needs.
   * @param tokens a whole number
   * @param now by the host's clock
   * @returns the bucket of its units, or -1 where it is not open or there is too little
   */
  take(tokens: number, now: number): number {
    const bucket = bucketOf(now);
    if (!this.isOpen || bucket !== this.#bucket || this.#calls === 0 || this.#tokens < tokens) return -1;
    if (this.#slots > 0) this.#slots--;
    else if (!this.#takeSlots(now)) return -1;
    this.#calls--;
    this.#tokens -= tokens;
    return bucket;
  }

  /**
   * Tells what a call really used.
   * @param bucket as `take` has returned it
   * @param reserved the tokens that it took
   * @param used 0 or more
   */
  settle(bucket: number, reserved: number, used: number): void {
    if (!Number.isFinite(used)) return;
    const spare = reserved - wholeUnits(used);
    if (spare >= 0 && this.isOpen && bucket === this.#bucket) {
      this.#tokens += spare;
      return;
    }
    const host = this.#host as AdmissionHost;
    for (let index = 0; index < this.#ones.length; index++) {
      if (this.#units[index] !== 'tokens') continue;
      const held = host.pools.at(this.#found, index, (this.#ones[index] as Demand).pool);
      putRight(host, held, bucket, spare);
    }
  }

  /** A call that took its units here has ended, and its slots are free. */
  release(): void {
    if (this.isOpen) this.#slots++;
    else (this.#host as AdmissionHost).release(this.#slotOnes, this.#slotsFound);
  }

  /**
   * A call has just taken its units pool by pool: where it is one of many, units are set aside for the next ones.
   * @param tokens what it took
   * @returns true when it was opened
   */
  follow(host: AdmissionHost, tokens: number, now: number): boolean {
    const bucket = bucketOf(now);
    if (bucket !== this.#bucket) {
      this.close();
      this.#bucket = bucket;
      this.#callsBefore = 0;
    }
    return ++this.#callsBefore >= callsBefore && this.#open(host, tokens, now);
  }

  /** Gives back to the pools what nobody took. */
  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    for (let index = 0; index < this.#ones.length; index++)
      (this.#found[index] as HeldPool).endAllotment(this, this.#bucket, this.#left(index));
  }

  #open(host: AdmissionHost, tokens: number, now: number): boolean {
    this.close();
    this.#callsBefore = 0;
    let calls = mostUnits;
    let most = mostUnits;
    for (let index = 0; index < this.#ones.length; index++) {
      const held = host.pools.at(this.#found, index, (this.#ones[index] as Demand).pool);
      if (held.isWanted) return false;
      host.askAhead(held);
      const units = Math.floor(held.available * part);
      if (this.#units[index] === 'tokens') most = Math.min(most, units);
      else if (this.#units[index] === 'calls') calls = Math.min(calls, units);
    }
    if (calls < leastCalls || most < leastCalls * tokens) return false;
    this.#host = host;
    this.#calls = calls;
    this.#tokens = most;
    this.#slots = this.#slotOnes.length > 0 ? 0 : mostUnits;
    this.isOpen = true;
    for (let index = 0; index < this.#ones.length; index++)
      (this.#found[index] as HeldPool).beginAllotment(this, this.#left(index), now);
    return true;
  }

  #takeSlots(now: number): boolean {
    const host = this.#host as AdmissionHost;
    if (!host.takeAll(this.#slotOnes, this.#slotsFound, now)) return false;
    if (this.isOpen) return true;
    // There were too few until all that is set aside went back, and so did this.
    host.release(this.#slotOnes, this.#slotsFound);
    return false;
  }

  /** What is left for one of the pools. */
  #left(index: number): number {
    const unit = this.#units[index] as Unit;
    if (unit === 'slots') return this.#slots;
    return unit === 'tokens' ? this.#tokens : this.#calls;
  }
}
