/** A call of the model. Its result may refer to it by its id or by its function. */
export interface AnsweredCall {
  readonly id: string;
  isAnswered: boolean;
}

/** Calls in their order. Each is skipped at most once, however many there are. */
export class CallQueue {
  readonly #calls: AnsweredCall[] = [];
  #next = 0;

  add(call: AnsweredCall): void {
    this.#calls.push(call);
  }

  /** @returns the first call without a result, now marked as answered, or null */
  take(): AnsweredCall | null {
    let call = this.#calls[this.#next];
    // It may have been answered through another queue.
    while (call?.isAnswered) call = this.#calls[++this.#next];
    if (call === undefined) return null;
    this.#next++;
    call.isAnswered = true;
    return call;
  }
}
