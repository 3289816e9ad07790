const leastBlock = 1024;
const mostBlock = 64 * 1024;

/**
 * Collects bytes in memory by copying them into blocks. A body may arrive in as many pieces as it has bytes, and each
 * piece alone would take a hundred times its size. At most half of the memory is unused.
 */
export class ByteBlocks {
  /** Number of bytes. */
  length = 0;
  readonly #blocks: Buffer[] = [];
  /** Number of bytes used in the last block. */
  #filled = 0;

  add(piece: Buffer): void {
    let rest = piece;
    while (rest.length > 0) {
      const last = this.#blocks.at(-1);
      if (last === undefined || this.#filled === last.length) {
        const usual = Math.min(mostBlock, Math.max(leastBlock, this.length));
        this.#blocks.push(Buffer.allocUnsafeSlow(Math.max(rest.length, usual)));
        this.#filled = 0;
        continue;
      }
      const copied = rest.copy(last, this.#filled);
      this.#filled += copied;
      this.length += copied;
      rest = rest.subarray(copied);
    }
  }

  /** @returns views of the bytes from an offset on, which stay valid when more bytes are added */
  pieces(from = 0): Buffer[] {
    const pieces: Buffer[] = [];
    let start = 0;
    for (const [index, block] of this.#blocks.entries()) {
      const size = index === this.#blocks.length - 1 ? this.#filled : block.length;
      if (start + size > from) pieces.push(block.subarray(Math.max(0, from - start), size));
      start += size;
    }
    return pieces;
  }

  clear(): void {
    this.#blocks.length = 0;
    this.#filled = 0;
    this.length = 0;
  }
}
