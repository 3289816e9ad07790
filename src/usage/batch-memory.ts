import { CallTable } from './call-table.js';
import { SumCollector } from './sums.js';

/** The sizes of buffers that are used again are multiples of this. */
const sizeStep = 16 * 1024;
/** Pages below this have as much memory as they need, once: a process with few calls has many of them. */
const leastBytes = sizeStep / 2;
/** Most buffers without a page that are kept. */
const mostFree = 16;

/**
 * Memory for the batches of a writer, one after the other. Buffers that live as long as a batch would be collected only
 * when V8 marks its whole heap, and V8 would mark it because of them: every 20 to 50 seconds with 100,000 keys in use.
 */
export class BatchMemory {
  readonly table = new CallTable();
  readonly sums = new SumCollector();
  readonly #free: Buffer[] = [];

  /** Copies a page into a buffer, which is free for other pages after `free`. */
  write(page: string): Buffer {
    const length = Buffer.byteLength(page);
    const size = length < leastBytes ? length : Math.ceil(length / sizeStep) * sizeStep;
    // A store copies buffers as a whole, so none is much larger than its page.
    const index = this.#free.findIndex((buffer) => buffer.length >= size && buffer.length <= 2 * size);
    const [known] = index === -1 ? [] : this.#free.splice(index, 1);
    // Not of Node's pool, which others write to.
    const buffer = known ?? Buffer.allocUnsafeSlow(size);
    buffer.write(page);
    return buffer.subarray(0, length);
  }

  /** @param page a result of `write` that nobody reads any more */
  free(page: Uint8Array): void {
    if (page.buffer.byteLength < sizeStep) return;
    this.#free.push(Buffer.from(page.buffer));
    if (this.#free.length > mostFree) this.#free.shift();
  }
}

/** Returns the bytes of memory that a page takes. */
export function bytesOf(page: Uint8Array): number {
  return page.buffer.byteLength;
}
