/**
 * Bytes that the calls of each key hold in memory. A key that holds none takes up no room here, but for the last one
 * that was asked for: most calls follow one of the same key, and none of those looks anything up.
 */
export class KeyBytes {
  readonly #others = new Map<string, number>();
  #last = '';
  #bytes = 0;

  /** What a key holds. */
  of(keyId: string): number {
    if (keyId !== this.#last) this.#turnTo(keyId);
    return this.#bytes;
  }

  /** @param bytes below zero for those that are given back */
  add(keyId: string, bytes: number): void {
    if (keyId !== this.#last) this.#turnTo(keyId);
    this.#bytes += bytes;
  }

  /** The keys that hold anything, with what they hold. */
  list(): (readonly [string, number])[] {
    this.#turnTo('');
    return [...this.#others];
  }

  #turnTo(keyId: string): void {
    if (this.#bytes === 0) this.#others.delete(this.#last);
    else this.#others.set(this.#last, this.#bytes);
    this.#last = keyId;
    this.#bytes = this.#others.get(keyId) ?? 0;
  }
}
