/**
 * Runs work that blocks the event loop for a while, one piece per turn, so that other events are processed in between.
 * The queue has no limit: its callers have to bound it.
 */
export class TurnQueue {
  #waiting: (() => void)[] = [];

  /** @param work runs in a later turn, in order. Must not throw */
  add(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(this.#next);
  }

  readonly #next = (): void => {
    const [work] = this.#waiting;
    work?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(this.#next);
  };
}
