/** The time that an attempt has for the first event of its answer. */
export class FirstTokenTimer {
  #timer: NodeJS.Timeout | null = null;

  /** @param late is called when it has not ended after so many milliseconds */
  start(ms: number, late: () => void): void {
    this.end();
    this.#timer = setTimeout(late, ms);
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
