/** A call of the model, which its result may name by its id or by its function. */
export interface AnsweredCall {
  readonly id: string;
  isAnswered: boolean;
}

/** Calls in their order. Each is passed over once, however many there are. */
export class CallQueue {
  readonly #calls: AnsweredCall[] = [];
  #next = 0;

  add(call: AnsweredCall): void {
    this.#calls.push(call);
  }

  /** @returns the first call without a result, which has one now; null where there is none */
  take(): AnsweredCall | null {
    let call = this.#calls[this.#next];
    // It may have been answered as one of another queue.
    while (call?.isAnswered) call = this.#calls[++this.#next];
    if (call === undefined) return null;
    this.#next++;
    call.isAnswered = true;
    return call;
  }
}
