const firstBytes = 4096;
const nothing: Buffer = Buffer.alloc(0);

/** Collects the pieces of a body up to a limit. */
export class Gather {
  #buffer: Buffer = nothing;
  #length = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * @param chunk copied; valid only during the call
   * @param expected length of the whole where it is known, else 0 or less
   * @returns false when the limit would be passed; nothing was taken then
   */
  add(chunk: Buffer, expected: number): boolean {
    const needed = this.#length + chunk.length;
    if (needed > this.#limit) return false;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(
        Math.max(needed, Math.min(this.#limit, Math.max(expected, 2 * needed)), firstBytes),
      );
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = needed;
    return true;
  }

  /** Gives out what was collected and begins anew. */
  take(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = nothing;
    this.#length = 0;
    return bytes;
  }
}
