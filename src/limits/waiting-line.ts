import type { Decision } from './admission.js';
import type { Demand } from './pool.js';

interface WaitingCallOptions {
  /** Position among all calls of this worker. */
  readonly sequence: number;
  /** When the call is decided, whatever it waits for. */
  readonly deadline: number;
  readonly demands: readonly Demand[];
  readonly onDecided: (decision: Decision) => void;
  readonly onCancel: (waiting: WaitingCall) => void;
}

/** A call whose demands are not decided. It waits in the queue of one pool that lacks units for it. */
export class WaitingCall {
  readonly outcome = 'pending';
  readonly sequence: number;
  readonly deadline: number;
  readonly demands: readonly Demand[];
  readonly onDecided: (decision: Decision) => void;
  readonly #onCancel: (waiting: WaitingCall) => void;
  /** The queue, and the index of the demand that lacks units there. The queue is null if it is in none. */
  line: WaitingLine | null = null;
  demand = 0;
  previous: WaitingCall | null = null;
  next: WaitingCall | null = null;
  /** The decision, before it is reported. */
  decision: Decision | null = null;
  /** Whether the decision was reported or the call was cancelled. */
  isOver = false;

  constructor({ sequence, deadline, demands, onDecided, onCancel }: WaitingCallOptions) {
    this.sequence = sequence;
    this.deadline = deadline;
    this.demands = demands;
    this.onDecided = onDecided;
    this.#onCancel = onCancel;
  }

  /** Units that it waits for. */
  get amount(): number {
    return this.demands[this.demand]?.amount ?? 0;
  }

  /** Cancels the call: nothing is taken, and `onDecided` is not called. No-op once the decision was reported. */
  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#onCancel(this);
  }
}

/**
 * Queue of calls that wait for units of one pool, in order of arrival at the worker, which is also that of their
 * deadlines.
 */
export class WaitingLine {
  first: WaitingCall | null = null;
  size = 0;
  /** Sum of the units that they wait for. */
  amount = 0;
  #last: WaitingCall | null = null;

  /** Adds a call at its place. A call from another queue goes before those that arrived after it. */
  insert(waiting: WaitingCall, demand: number): void {
    let before = this.#last;
    while (before !== null && before.sequence > waiting.sequence) before = before.previous;
    const after = before === null ? this.first : before.next;
    waiting.line = this;
    waiting.demand = demand;
    waiting.previous = before;
    waiting.next = after;
    if (before === null) this.first = waiting;
    else before.next = waiting;
    if (after === null) this.#last = waiting;
    else after.previous = waiting;
    this.size++;
    this.amount += waiting.amount;
  }

  /** Removes a call of this queue. */
  remove(waiting: WaitingCall): void {
    const { previous, next } = waiting;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    waiting.line = null;
    waiting.previous = null;
    waiting.next = null;
    this.size--;
    this.amount -= waiting.amount;
  }

  /** Returns the smallest amount that one of them waits for. */
  least(): number {
    let least = Number.POSITIVE_INFINITY;
    for (let waiting = this.first; waiting !== null; waiting = waiting.next)
      least = Math.min(least, waiting.amount);
    return least;
  }
}

/**
 * Decided calls that were not notified yet. A notified caller may call the holder immediately, so the holder's state
 * has to be consistent first.
 */
export class DecidedCalls {
  readonly #decided: WaitingCall[] = [];
  #isNotifying = false;

  add(waiting: WaitingCall, decision: Decision): void {
    waiting.decision = decision;
    this.#decided.push(waiting);
  }

  /** Notifies all of them, including those that are added meanwhile. */
  notify(): void {
    if (this.#isNotifying || this.#decided.length === 0) return;
    this.#isNotifying = true;
    try {
      for (let waiting = this.#decided.shift(); waiting !== undefined; waiting = this.#decided.shift()) {
        const { decision, isOver } = waiting;
        if (isOver || decision === null) continue;
        waiting.isOver = true;
        waiting.onDecided(decision);
      }
    } finally {
      this.#isNotifying = false;
    }
  }
}
