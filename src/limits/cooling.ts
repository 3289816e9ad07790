/** Units that were used within the same time of so many milliseconds come back together. */
export const bucketMs = 100;

const firstCapacity = 4;

/**
 * Used units that come back by themselves. Those of one bucket come back a fixed time after the bucket's end: never
 * early, late by a bucket at most. Only buckets in which something was used take memory: for a minute, 602 at most.
 */
export class Cooling {
  /** Units that have not come back yet. */
  total = 0;
  readonly #coolMs: number;
  /** A ring of buckets, oldest first: their numbers and how many units are in each. */
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
    let bucket = Math.floor(now / bucketMs);
    if (this.#size > 0) {
      const newest = this.#slot(this.#size - 1);
      // A clock that went back must not bring the units back early.
      bucket = Math.max(bucket, this.#buckets[newest] as number);
      if (this.#buckets[newest] === bucket) {
        this.#amounts[newest] = (this.#amounts[newest] as number) + amount;
        this.total += amount;
        return bucket;
      }
    }
    if (amount === 0) return bucket;
    if (this.#size === this.#buckets.length) this.#grow();
    const slot = this.#slot(this.#size++);
    this.#buckets[slot] = bucket;
    this.#amounts[slot] = amount;
    this.total += amount;
    return bucket;
  }

  /**
   * Takes units out that were not used after all.
   * @returns how many: none where the bucket has come back already
   */
  remove(bucket: number, amount: number): number {
    let low = 0;
    let high = this.#size - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const slot = this.#slot(middle);
      const found = this.#buckets[slot] as number;
      if (found === bucket) {
        const removed = Math.min(amount, this.#amounts[slot] as number);
        this.#amounts[slot] = (this.#amounts[slot] as number) - removed;
        this.total -= removed;
        return removed;
      }
      if (found < bucket) low = middle + 1;
      else high = middle - 1;
    }
    return 0;
  }

  /** Takes out what has come back. */
  collect(now: number): number {
    let collected = 0;
    while (this.#size > 0 && this.#endOf(this.#first) <= now) {
      collected += this.#amounts[this.#first] as number;
      this.#dropFirst();
    }
    this.total -= collected;
    return collected;
  }

  /** When the next units come back, or null when none will. */
  nextAt(): number | null {
    while (this.#size > 0 && this.#amounts[this.#first] === 0) this.#dropFirst();
    return this.#size === 0 ? null : this.#endOf(this.#first);
  }

  /** When the last units come back, or null when none will. */
  lastAt(): number | null {
    while (this.#size > 0 && this.#amounts[this.#slot(this.#size - 1)] === 0) this.#size--;
    return this.#size === 0 ? null : this.#endOf(this.#slot(this.#size - 1));
  }

  #endOf(slot: number): number {
    return ((this.#buckets[slot] as number) + 1) * bucketMs + this.#coolMs;
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
