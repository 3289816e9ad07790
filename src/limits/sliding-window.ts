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

/** While less than one of so many parts of what there is has been used, nobody can tell when exactly units come back. */
const coarseBelow = 4;
/** Buckets that are counted as one then: a pool that is used now and then takes little memory. */
const coarseBuckets = 80;
const firstCapacity = 4;
const noNumbers: number[] = [];

/**
 * The units that were used within the last minute, say. Those of one bucket come back a fixed time after the bucket's
 * end: never early, late by a bucket at most; while little of what there is has been used, by 8 s at most. Only buckets in
 * which something was used take memory: for a minute, 602 at most.
 *
 * Every call passes here, between one cache miss and the next: what most of them need stands in fields of its own.
 */
export class SlidingWindow {
  /** Units that have not come back yet. */
  total = 0;
  /** The newest bucket, the first one that was counted with it, and what is in it; -1 before the first one. */
  #newest = -1;
  #newestFrom = 0;
  #newestAmount = 0;
  /** No bucket that holds anything is older than this one. */
  #oldest = 0;
  /** The last bucket that has come back. */
  #returned = -1;
  readonly #windowMs: number;
  /** A ring of the buckets before the newest, oldest first, each with how many units are in it behind it. */
  #ring = noNumbers;
  #first = 0;
  #size = 0;

  /** @param windowMs milliseconds from the end of a bucket until its units come back */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /**
   * Puts in units that were used at `now`.
   * @param held units that whoever uses them has, used or not; 0 where it is always to be exact
   * @returns the bucket, by which they can be taken out again
   */
  add(now: number, amount: number, held = 0): number {
    // A clock that went back must not bring the units back early.
    const bucket = Math.max(bucketOf(now), this.#newest);
    if (bucket > this.#newest) this.#begin(bucket, held);
    this.#newestAmount += amount;
    this.total += amount;
    return bucket;
  }

  /**
   * Takes units out that were not used after all.
   * @returns how many: none where the bucket has come back already
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

  /** Takes out what has come back. */
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

  /** When the next units come back, or null when none will. */
  nextAt(): number | null {
    while (this.#size > 0 && this.#ring[this.#first + 1] === 0) this.#dropFirst();
    if (this.#size > 0) return this.#endOf(this.#ring[this.#first] as number);
    return this.#newestAmount === 0 ? null : this.#endOf(this.#newest);
  }

  /** When so many units have come back, or null when so many never do. @param units from 1 */
  backAt(units: number): number | null {
    let missing = units;
    for (let i = 0; i < this.#size; i++) {
      const slot = this.#slot(i);
      missing -= this.#ring[slot + 1] as number;
      if (missing <= 0) return this.#endOf(this.#ring[slot] as number);
    }
    return missing > this.#newestAmount ? null : this.#endOf(this.#newest);
  }

  /** When the last units come back, or null when none will. */
  lastAt(): number | null {
    if (this.#newestAmount > 0) return this.#endOf(this.#newest);
    while (this.#size > 0 && this.#ring[this.#slot(this.#size - 1) + 1] === 0) this.#size--;
    return this.#size === 0 ? null : this.#endOf(this.#ring[this.#slot(this.#size - 1)] as number);
  }

  /** Lets go of all units and their memory. */
  clear(): void {
    this.total = 0;
    this.#newestAmount = 0;
    this.#size = 0;
    this.#first = 0;
    this.#ring = noNumbers;
  }

  /** Makes a bucket the newest; the one before goes into the ring, if there is anything in it. */
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

  /** @returns where the bucket stands in the ring that holds what was used in this one, or -1 */
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
