/** Bytes of a stream's end that are kept: more than its final events, and small enough for Node's buffer pool. */
export const tailBytes = 1536;

/** Keeps the last bytes of an answer that is passed on, or of an upload, so that its end is read once, when it is over. */
export class Tail {
  #buffer: Buffer | null = null;
  #length = 0;
  readonly #bytes: number;

  /** @param bytes how many are kept at least */
  constructor(bytes = tailBytes) {
    this.#bytes = bytes;
  }

  add(run: Buffer): void {
    const bytes = this.#bytes;
    this.#buffer ??= Buffer.allocUnsafe(2 * bytes);
    const buffer = this.#buffer;
    if (run.length >= bytes) {
      run.copy(buffer, 0, run.length - bytes);
      this.#length = bytes;
      return;
    }
    if (this.#length + run.length > buffer.length) {
      buffer.copyWithin(0, this.#length - bytes, this.#length);
      this.#length = bytes;
    }
    run.copy(buffer, this.#length);
    this.#length += run.length;
  }

  /** @returns at most twice the kept bytes; valid until the next `add` */
  bytes(): Buffer {
    return this.#buffer === null ? Buffer.alloc(0) : this.#buffer.subarray(0, this.#length);
  }
}
