import type { Snapshot } from '../config/types.js';
import type { MemoryBudget } from './memory-budget.js';

type BufferLimits = Pick<Snapshot['limits'], 'bufferedBytes' | 'bufferedBytesPerKey'>;

/** An upload as the others of its worker see it. */
export interface TurnTaker {
  readonly keyId: string;
  /** Bytes that came in spite of a stop and wait for its upstream. */
  readonly waiting: number;
  /** The most that one read of its socket may bring, in bytes. */
  readonly mostRead: number;
  /** Has it ask `mayRead`, and be read or not as that says. */
  reconsider(): void;
}

/**
 * Which uploads of a worker are read. A read may bring far more than an upstream takes (see `mostAfterStop`), so one is
 * read only while the memory budget has room for that; until then its client is held back, in the order of asking.
 * Nobody is held back but by bytes that wait of other uploads, which their upstreams take or which are given up. So
 * there is always one that goes on.
 */
export class UploadTurns {
  readonly #memory: MemoryBudget;
  readonly #uploads = new Set<TurnTaker>();
  readonly #heldBack = new Set<TurnTaker>();

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  add(upload: TurnTaker): void {
    this.#uploads.add(upload);
  }

  /** It has ended, or all of it has come. */
  remove(upload: TurnTaker): void {
    this.#heldBack.delete(upload);
    if (this.#uploads.delete(upload)) this.onLessWaiting();
  }

  /** @returns whether it is its turn to be read; if not, `reconsider` follows when it may be */
  mayRead(upload: TurnTaker, limits: BufferLimits): boolean {
    const isFull = this.#memory.bytes + upload.mostRead > limits.bufferedBytes;
    const isKeyFull = this.#memory.bytesOf(upload.keyId) + upload.mostRead > limits.bufferedBytesPerKey;
    const isNext = this.#isNext(upload);
    if (isNext && !((isFull || isKeyFull) && this.#waitsOfOthers(upload, isFull))) {
      this.#heldBack.delete(upload);
      return true;
    }
    this.#heldBack.add(upload);
    return false;
  }

  /** What waits of an upload takes up more: others that are read may have to be held back. */
  onMoreWaiting(upload: TurnTaker): void {
    for (const other of this.#uploads) if (other !== upload && !this.#heldBack.has(other)) other.reconsider();
  }

  /** What waits of an upload takes up less: others may go on. */
  onLessWaiting(): void {
    if (this.#heldBack.size === 0) return;
    const before = [...this.#heldBack];
    this.#heldBack.clear();
    // Who asks again and may not be read has its place again; who wants nothing at the moment keeps nobody waiting.
    for (const upload of before) upload.reconsider();
  }

  /** No other of its key was held back before it. */
  #isNext(upload: TurnTaker): boolean {
    for (const other of this.#heldBack) {
      if (other === upload) return true;
      if (other.keyId === upload.keyId) return false;
    }
    return true;
  }

  #waitsOfOthers(upload: TurnTaker, ofAnyKey: boolean): boolean {
    for (const other of this.#uploads) {
      if (other !== upload && other.waiting > 0 && (ofAnyKey || other.keyId === upload.keyId)) return true;
    }
    return false;
  }
}
