/** What is to be written at the end of the turn of the event loop. */
export interface TurnSink {
  /** Is to be written now. @param bytes what was added for it; valid only until this returns */
  writeHeld(bytes: Buffer): void;
}

/** Larger pieces leave at once: to copy them costs more than is gained. */
export const mostHeldBytes = 4096;
/** Room for the pieces of one turn; what does not fit ends the turn's batch early. */
const batchBytes = 128 * 1024;

/**
 * Small answers and small pieces of streamed ones, which leave when the event loop has dealt with what came in. Reading
 * all that has come and then writing all of it costs less than doing both for each: the clients' side is woken once for
 * many of them, and each half stays in the processor's caches (measured with 300 streams: 7 % of the CPU time of an event).
 */
export class TurnWrites {
  readonly #batch = Buffer.allocUnsafeSlow(batchBytes);
  #used = 0;
  readonly #sinks: TurnSink[] = [];
  /** Where the piece of each begins. */
  readonly #starts: number[] = [];
  /** The first that is still to be written: a sink may end others, and with that flush, while it is. */
  #next = 0;
  #armed = false;

  /** Writes out what waits where a piece of so many bytes, at most `mostHeldBytes`, has no room beside it. */
  makeRoom(bytes: number): void {
    if (this.#used + bytes > batchBytes) this.flush();
  }

  /** Copies a piece for which `makeRoom` was called just before. @param size of it in bytes */
  add(sink: TurnSink, bytes: Buffer | string, size: number): void {
    const sinks = this.#sinks;
    const last = sinks.length - 1;
    if (last < this.#next || sinks[last] !== sink) {
      sinks.push(sink);
      this.#starts.push(this.#used);
    }
    if (typeof bytes === 'string') this.#batch.write(bytes, this.#used);
    else this.#batch.set(bytes, this.#used);
    this.#used += size;
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(this.#onTurnEnd);
  }

  /** Writes out what waits. */
  flush(): void {
    const sinks = this.#sinks;
    const starts = this.#starts;
    while (this.#next < sinks.length) {
      const at = this.#next++;
      const end = at + 1 < sinks.length ? starts[at + 1] : this.#used;
      (sinks[at] as TurnSink).writeHeld(this.#batch.subarray(starts[at] as number, end));
    }
    sinks.length = 0;
    starts.length = 0;
    this.#next = 0;
    this.#used = 0;
  }

  readonly #onTurnEnd = (): void => {
    this.#armed = false;
    this.flush();
  };
}
