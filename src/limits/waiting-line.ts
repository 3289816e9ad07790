import type { Decision } from './admission.js';
import type { Demand } from './pool.js';

interface WaitingCallOptions {
  /** Place among all that wait at this worker. */
  readonly sequence: number;
  /** When it is decided, whatever it waits for. */
  readonly deadline: number;
  readonly demands: readonly Demand[];
  readonly onDecided: (decision: Decision) => void;
  readonly onCancel: (waiting: WaitingCall) => void;
}

/** A call whose demands are not decided. It stands in the line of one pool that has too little for it. */
export class WaitingCall {
  readonly outcome = 'pending';
  readonly sequence: number;
  readonly deadline: number;
  readonly demands: readonly Demand[];
  readonly onDecided: (decision: Decision) => void;
  readonly #onCancel: (waiting: WaitingCall) => void;
  /** Where it stands, which demand is short there; null when it stands nowhere. */
  line: WaitingLine | null = null;
  demand = 0;
  previous: WaitingCall | null = null;
  next: WaitingCall | null = null;
  /** What was decided, before it was told. */
  decision: Decision | null = null;
  /** It was told, or gave up. */
  isOver = false;

  constructor({ sequence, deadline, demands, onDecided, onCancel }: WaitingCallOptions) {
    this.sequence = sequence;
    this.deadline = deadline;
    this.demands = demands;
    this.onDecided = onDecided;
    this.#onCancel = onCancel;
  }

  /** Units that it lacks a part of. */
  get amount(): number {
    return this.demands[this.demand]?.amount ?? 0;
  }

  /** Gives up: nothing is taken, nobody is called back. Does nothing once the decision was told. */
  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#onCancel(this);
  }
}

/** Calls that wait for units of one pool, in the order in which they came to the worker: so by deadline, too. */
export class WaitingLine {
  first: WaitingCall | null = null;
  size = 0;
  /** Units that all of them together wait for. */
  amount = 0;
  #last: WaitingCall | null = null;

  /** Puts a call where it belongs: one that stood in another line first goes before those that came later. */
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

  /** Takes a call out, which stands in this line. */
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

  /** The least that one of them waits for. */
  least(): number {
    let least = Number.POSITIVE_INFINITY;
    for (let waiting = this.first; waiting !== null; waiting = waiting.next)
      least = Math.min(least, waiting.amount);
    return least;
  }
}

/** Calls that are decided and not told yet: whoever is told may call the holder at once, which is in order first. */
export class DecidedCalls {
  readonly #decided: WaitingCall[] = [];
  #isTelling = false;

  add(waiting: WaitingCall, decision: Decision): void {
    waiting.decision = decision;
    this.#decided.push(waiting);
  }

  /** Tells all of them, with those that are added meanwhile. */
  tell(): void {
    if (this.#isTelling || this.#decided.length === 0) return;
    this.#isTelling = true;
    try {
      for (let waiting = this.#decided.shift(); waiting !== undefined; waiting = this.#decided.shift()) {
        const { decision, isOver } = waiting;
        if (isOver || decision === null) continue;
        waiting.isOver = true;
        waiting.onDecided(decision);
      }
    } finally {
      this.#isTelling = false;
    }
  }
}
