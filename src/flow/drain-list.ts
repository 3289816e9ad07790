/** Calls of a worker, and of one key, whose upstreams are read on for at once; those of others are cancelled. */
const mostAtOnce = 500;
const mostOfKey = 50;

/** Reading on for a call. */
export interface Draining {
  readonly keyId: string;
  /** Reads no more, and accounts for the call by what is known. */
  stop(): void;
}

/** The calls of a worker whose clients have left, and whose upstreams are read on for. */
export class DrainList {
  readonly #drains = new Set<Draining>();
  readonly #ofKeys = new Map<string, number>();
  #isClosed = false;

  get size(): number {
    return this.#drains.size;
  }

  hasRoom(keyId: string): boolean {
    return !this.#isClosed && this.#drains.size < mostAtOnce && (this.#ofKeys.get(keyId) ?? 0) < mostOfKey;
  }

  add(drain: Draining): void {
    this.#drains.add(drain);
    this.#ofKeys.set(drain.keyId, (this.#ofKeys.get(drain.keyId) ?? 0) + 1);
  }

  remove(drain: Draining): void {
    if (!this.#drains.delete(drain)) return;
    const left = (this.#ofKeys.get(drain.keyId) ?? 1) - 1;
    if (left === 0) this.#ofKeys.delete(drain.keyId);
    else this.#ofKeys.set(drain.keyId, left);
  }

  /** Cancels them all; from now on none is added. */
  close(): void {
    this.#isClosed = true;
    for (const drain of this.#drains) drain.stop();
  }
}
