/** Units that were used within the same interval of this length become free together. */
export const bucketMs = 100;

/** Returns the bucket of a time. */
export function bucketOf(now: number): number {
  return Math.floor(now / bucketMs);
}

function endOfBucket(bucket: number): number {
  return (bucket + 1) * bucketMs;
}

/**
 * While less than a quarter of the available units is used, buckets are merged, since callers cannot tell when exactly
 * units become free.
 */
const coarseBelow = 4;
/** Most buckets that are merged into one. This saves memory for pools with occasional use. */
const coarseBuckets = 80;
const firstCapacity = 4;
const noNumbers: number[] = [];

/**
 * The units that were used within, for example, the last minute. Those of a bucket become free a fixed time after the
 * bucket's end: never early, and at most a bucket late. While little of what is available is used, they may be 8 s
 * late. Only buckets with used units take memory: at most 602 for a minute.
 *
 * Every call uses this, and each access may be a cache miss. What most calls need is in fields of its own.
 */
export class SlidingWindow {
  /** Units that are not free yet. */
  total = 0;
  /** The newest bucket, the first bucket that was merged into it, and its units. -1 before the first one. */
  #newest = -1;
  #newestFrom = 0;
  #newestAmount = 0;
  /** No bucket with units is older than this one. */
  #oldest = 0;
  /** The last bucket that has become free. */
  #returned = -1;
  readonly #windowMs: number;
  /** A ring of the buckets before the newest, oldest first. Each entry is a bucket's number and its units. */
  #ring = noNumbers;
  #first = 0;
  #size = 0;

  /** @param windowMs milliseconds from the end of a bucket until its units become free */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /**
   * Adds units that were used at `now`.
   * @param held units that the user has, used or not. 0 if the time has to be exact
   * @returns the bucket, for `remove`
   */
  add(now: number, amount: number, held = 0): number {
    // If the clock goes back, units must not become free early.
    const bucket = Math.max(bucketOf(now), this.#newest);
    if (bucket > this.#newest) this.#begin(bucket, held);
    this.#newestAmount += amount;
    this.total += amount;
    return bucket;
  }

  /**
   * Removes units that were not used after all.
   * @returns how many were removed: none if the bucket is already free
   */
  remove(bucket: number, amount: number): number {
    if (bucket <= this.#returned) return 0;
    if (bucket >= this.#newestFrom) {
      const removed = Math.min(amount, this.#newestAmount);
      this.#newestAmount -= removed;
      this.total -= removed;
      return removed;
    }
    const slot = this.#find(bucket);
    if (slot === -1) return 0;
    const removed = Math.min(amount, this.#ring[slot + 1] as number);
    (this.#ring[slot + 1] as number) -= removed;
    this.total -= removed;
    return removed;
  }

  /** Removes the units that are free, and returns how many. */
  collect(now: number): number {
    if (this.total === 0 || this.#endOf(this.#oldest) > now) return 0;
    let collected = 0;
    while (this.#size > 0 && this.#endOf(this.#ring[this.#first] as number) <= now) {
      collected += this.#ring[this.#first + 1] as number;
      this.#dropFirst();
    }
    if (this.#size === 0 && this.#endOf(this.#newest) <= now) {
      collected += this.#newestAmount;
      this.#newestAmount = 0;
      this.#returned = this.#newest;
    }
    this.#oldest = this.#size === 0 ? this.#newest : (this.#ring[this.#first] as number);
    this.total -= collected;
    return collected;
  }

  /** Returns when the next units become free, or null if none will. */
  nextAt(): number | null {
    while (this.#size > 0 && this.#ring[this.#first + 1] === 0) this.#dropFirst();
    if (this.#size > 0) return this.#endOf(this.#ring[this.#first] as number);
    return this.#newestAmount === 0 ? null : this.#endOf(this.#newest);
  }

  /**
   * Returns when that many units are free, or null if there are fewer.
   * @param units at least 1
   */
  backAt(units: number): number | null {
    let missing = units;
    for (let i = 0; i < this.#size; i++) {
      const slot = this.#slot(i);
      missing -= this.#ring[slot + 1] as number;
      if (missing <= 0) return this.#endOf(this.#ring[slot] as number);
    }
    return missing > this.#newestAmount ? null : this.#endOf(this.#newest);
  }

  /** Returns when the last units become free, or null if there are none. */
  lastAt(): number | null {
    if (this.#newestAmount > 0) return this.#endOf(this.#newest);
    while (this.#size > 0 && this.#ring[this.#slot(this.#size - 1) + 1] === 0) this.#size--;
    return this.#size === 0 ? null : this.#endOf(this.#ring[this.#slot(this.#size - 1)] as number);
  }

  /** Drops all units and their memory. */
  clear(): void {
    this.total = 0;
    this.#newestAmount = 0;
    this.#size = 0;
    this.#first = 0;
    this.#ring = noNumbers;
  }

  /** Makes a bucket the newest. The former one goes into the ring if it has units. */
  #begin(bucket: number, held: number): void {
    if (this.#newestAmount > 0) {
      if (this.total * coarseBelow < held && bucket - this.#newestFrom < coarseBuckets) {
        this.#newest = bucket;
        if (this.#size === 0) this.#oldest = bucket;
        return;
      }
      if (this.#size * 2 === this.#ring.length) this.#grow();
      const slot = this.#slot(this.#size++);
      this.#ring[slot] = this.#newest;
      this.#ring[slot + 1] = this.#newestAmount;
    }
    if (this.#size === 0) this.#oldest = bucket;
    this.#newest = bucket;
    this.#newestFrom = bucket;
    this.#newestAmount = 0;
  }

  #endOf(bucket: number): number {
    return endOfBucket(bucket) + this.#windowMs;
  }

  /** @returns the position in the ring of the entry that this bucket was counted in, or -1 */
  #find(bucket: number): number {
    let low = 0;
    let high = this.#size - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ring[this.#slot(middle)] as number) < bucket) low = middle + 1;
      else high = middle;
    }
    const slot = this.#slot(low);
    return this.#size > 0 && (this.#ring[slot] as number) >= bucket ? slot : -1;
  }

  #slot(index: number): number {
    return (this.#first + index * 2) & (this.#ring.length - 1);
  }

  #dropFirst(): void {
    this.#returned = this.#ring[this.#first] as number;
    this.#first = this.#slot(1);
    this.#size--;
  }

  #grow(): void {
    const grown = new Array<number>(Math.max(firstCapacity, this.#size * 2) * 2).fill(0);
    for (let i = 0; i < this.#size; i++) {
      const slot = this.#slot(i);
      grown[i * 2] = this.#ring[slot] as number;
      grown[i * 2 + 1] = this.#ring[slot + 1] as number;
    }
    this.#ring = grown;
    this.#first = 0;
  }
}
