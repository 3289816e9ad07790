/**
 * Work that holds up the event loop for a while, a piece a turn: what else has come gets its turn between two of them.
 * It is bounded by whoever adds to it.
 */
export class TurnQueue {
  #waiting: (() => void)[] = [];

  /** @param work runs in a turn to come, in order. Must not throw. */
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
