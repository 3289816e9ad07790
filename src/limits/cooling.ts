/** Units that were used within the same time of so many milliseconds come back together. */
export const bucketMs = 100;

/** The bucket of a time. */
export function bucketOf(now: number): number {
  return Math.floor(now / bucketMs);
}

/** When a bucket is over. */
function endOfBucket(bucket: number): number {
  return (bucket + 1) * bucketMs;
}

const firstCapacity = 4;

/**
 * Used units that come back by themselves. Those of one bucket come back a fixed time after the bucket's end: never
 * early, late by a bucket at most. Only buckets in which something was used take memory: for a minute, 602 at most.
 *
 * Every call passes here, between one cache miss and the next: what most of them need stands in fields of its own.
 */
export class Cooling {
  /** Units that have not come back yet. */
  total = 0;
  /** The newest bucket and what is in it; -1 before the first one. */
  #newest = -1;
  #newestAmount = 0;
  /** No bucket that holds anything is older than this one. */
  #oldest = 0;
  readonly #coolMs: number;
  /** A ring of the buckets before the newest, oldest first: their numbers and how many units are in each. */
  #buckets = new Array<number>(firstCapacity).fill(0);
  #amounts = new Array<number>(firstCapacity).fill(0);
  #first = 0;
  #size = 0;

  /** @param coolMs milliseconds from the end of a bucket until its units come back */
  constructor(coolMs: number) {
    this.#coolMs = coolMs;
  }

  /**
   * Puts in units that were used at `now`.
   * @returns the bucket, by which they can be taken out again
   */
  add(now: number, amount: number): number {
    // A clock that went back must not bring the units back early.
    const bucket = Math.max(bucketOf(now), this.#newest);
    if (bucket > this.#newest) this.#begin(bucket);
    this.#newestAmount += amount;
    this.total += amount;
    return bucket;
  }

  /**
   * Takes units out that were not used after all.
   * @returns how many: none where the bucket has come back already
   */
  remove(bucket: number, amount: number): number {
    if (bucket === this.#newest) {
      const removed = Math.min(amount, this.#newestAmount);
      this.#newestAmount -= removed;
      this.total -= removed;
      return removed;
    }
    const slot = this.#find(bucket);
    if (slot === -1) return 0;
    const removed = Math.min(amount, this.#amounts[slot] as number);
    this.#amounts[slot] = (this.#amounts[slot] as number) - removed;
    this.total -= removed;
    return removed;
  }

  /** Takes out what has come back. */
  collect(now: number): number {
    if (this.total === 0 || this.#endOf(this.#oldest) > now) return 0;
    let collected = 0;
    while (this.#size > 0 && this.#endOf(this.#buckets[this.#first] as number) <= now) {
      collected += this.#amounts[this.#first] as number;
      this.#dropFirst();
    }
    if (this.#size === 0 && this.#endOf(this.#newest) <= now) {
      collected += this.#newestAmount;
      this.#newestAmount = 0;
    }
    this.#oldest = this.#size === 0 ? this.#newest : (this.#buckets[this.#first] as number);
    this.total -= collected;
    return collected;
  }

  /** When the next units come back, or null when none will. */
  nextAt(): number | null {
    while (this.#size > 0 && this.#amounts[this.#first] === 0) this.#dropFirst();
    if (this.#size > 0) return this.#endOf(this.#buckets[this.#first] as number);
    return this.#newestAmount === 0 ? null : this.#endOf(this.#newest);
  }

  /** When the last units come back, or null when none will. */
  lastAt(): number | null {
    if (this.#newestAmount > 0) return this.#endOf(this.#newest);
    while (this.#size > 0 && this.#amounts[this.#slot(this.#size - 1)] === 0) this.#size--;
    return this.#size === 0 ? null : this.#endOf(this.#buckets[this.#slot(this.#size - 1)] as number);
  }

  /** Makes a bucket the newest; the one before goes into the ring, if there is anything in it. */
  #begin(bucket: number): void {
    if (this.#newestAmount > 0) {
      if (this.#size === this.#buckets.length) this.#grow();
      const slot = this.#slot(this.#size++);
      this.#buckets[slot] = this.#newest;
      this.#amounts[slot] = this.#newestAmount;
    }
    if (this.#size === 0) this.#oldest = bucket;
    this.#newest = bucket;
    this.#newestAmount = 0;
  }

  /** Lets go of all units and their memory. */
  clear(): void {
    this.total = 0;
    this.#newestAmount = 0;
    this.#size = 0;
    this.#first = 0;
    this.#buckets = new Array<number>(firstCapacity).fill(0);
    this.#amounts = new Array<number>(firstCapacity).fill(0);
  }

  #endOf(bucket: number): number {
    return endOfBucket(bucket) + this.#coolMs;
  }

  /** @returns where a bucket stands in the ring, or -1 */
  #find(bucket: number): number {
    let low = 0;
    let high = this.#size - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const slot = this.#slot(middle);
      const found = this.#buckets[slot] as number;
      if (found === bucket) return slot;
      if (found < bucket) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  #slot(index: number): number {
    return (this.#first + index) & (this.#buckets.length - 1);
  }

  #dropFirst(): void {
    this.#first = this.#slot(1);
    this.#size--;
  }

  #grow(): void {
    const buckets = new Array<number>(this.#size * 2).fill(0);
    const amounts = new Array<number>(this.#size * 2).fill(0);
    for (let i = 0; i < this.#size; i++) {
      buckets[i] = this.#buckets[this.#slot(i)] as number;
      amounts[i] = this.#amounts[this.#slot(i)] as number;
    }
    this.#buckets = buckets;
    this.#amounts = amounts;
    this.#first = 0;
  }
}
