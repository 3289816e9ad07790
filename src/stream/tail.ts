/** Bytes of a stream's end that are kept: more than its final events, and small enough for Node's buffer pool. */
export const tailBytes = 1536;

/** Keeps the last bytes of a stream that is passed on, so that its usage and end are read once, when it is over. */
export class Tail {
  #buffer: Buffer | null = null;
  #length = 0;

  add(run: Buffer): void {
    this.#buffer ??= Buffer.allocUnsafe(2 * tailBytes);
    const buffer = this.#buffer;
    if (run.length >= tailBytes) {
      run.copy(buffer, 0, run.length - tailBytes);
      this.#length = tailBytes;
      return;
    }
    if (this.#length + run.length > buffer.length) {
      buffer.copyWithin(0, this.#length - tailBytes, this.#length);
      this.#length = tailBytes;
    }
    run.copy(buffer, this.#length);
    this.#length += run.length;
  }

  /** @returns at most the last `2 * tailBytes` bytes; valid until the next `add` */
  bytes(): Buffer {
    return this.#buffer === null ? Buffer.alloc(0) : this.#buffer.subarray(0, this.#length);
  }
}
