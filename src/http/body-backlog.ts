import type { BodyPool } from './body-pool.js';

const leastBytes = 16 * 1024;
const mostBytes = 512 * 1024;

/** Pieces of a request body that wait for their receiver, copied into buffers of the pool. */
export class BodyBacklog {
  readonly #pool: BodyPool;
  #buffers: Buffer[] = [];
  /** How much of each of them is filled. */
  #sizes: number[] = [];
  #bytes = 0;

  constructor(pool: BodyPool) {
    this.#pool = pool;
  }

  /** How many wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Copies a piece to the end. */
  add(piece: Buffer): void {
    this.#bytes += piece.length;
    let rest = piece;
    while (rest.length > 0) {
      const last = this.#buffers.length - 1;
      const buffer = this.#buffers[last];
      const size = this.#sizes[last] ?? 0;
      if (buffer === undefined || size === buffer.length) {
        this.#buffers.push(this.#room(rest.length));
        this.#sizes.push(0);
        continue;
      }
      const copied = rest.copy(buffer, size);
      this.#sizes[last] = size + copied;
      rest = rest.subarray(copied);
    }
  }

  /** Hands the first of what waits to `take`, for which it is valid until `take` returns. Not for an empty backlog. */
  takeFirst(take: (bytes: Buffer) => void): void {
    const buffer = this.#buffers.shift() as Buffer;
    const size = this.#sizes.shift() as number;
    this.#bytes -= size;
    take(buffer.subarray(0, size));
    this.#pool.give(buffer);
  }

  clear(): void {
    for (const buffer of this.#buffers) this.#pool.give(buffer);
    this.#buffers = [];
    this.#sizes = [];
    this.#bytes = 0;
  }

  #room(bytes: number): Buffer {
    const size = Math.min(mostBytes, Math.max(leastBytes, bytes));
    return this.#pool.take(size) ?? Buffer.allocUnsafeSlow(size);
  }
}
