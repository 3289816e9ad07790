import { type AnsweredCall, CallQueue } from '../../conversation/call-queue.js';

interface OpenCall extends AnsweredCall {
  /** Number of the model's turn with the call. */
  readonly turn: number;
  /** The client gave no id. */
  readonly isMade: boolean;
}

/** Longest id that every protocol takes. */
const mostCharacters = 64;

/**
 * Gives ids to the calls of a conversation: the protocol requires none, and a result may contain only the function's
 * name. Ids are made from the call's number, so those of a turn stay the same as the conversation grows.
 */
export class CallIds {
  #calls = 0;
  #turn = 0;
  readonly #byId: CallsByKey = new Map();
  readonly #byName: CallsByKey = new Map();
  /** Only calls to which the client gave no id. */
  readonly #madeByName: CallsByKey = new Map();
  /** Calls that were answered under an id of the client's own making, and in which turn. */
  readonly #answeredAs = new Map<string, { readonly id: string; readonly turn: number }>();

  /** Assigns the calls that follow to a later turn of the model. */
  beginTurn(): void {
    this.#turn++;
  }

  /** @param given the client's own id, or null */
  ofCall(name: string, given: string | null): string {
    const number = this.#calls++;
    const plain = name.slice(0, mostCharacters).replaceAll(/[^A-Za-z0-9_-]/g, '_');
    const id = given ?? `call_${number}_${plain}`.slice(0, mostCharacters);
    const call = { id, turn: this.#turn, isMade: given === null, isAnswered: false };
    addTo(this.#byId, id, call);
    addTo(this.#byName, name, call);
    if (call.isMade) addTo(this.#madeByName, name, call);
    return id;
  }

  /**
   * Returns the id of the call that a result answers. Without an id, a result answers the first call of its function in
   * the latest turn that has one without a result. So does one with an id of the client's own making, which it gave to no
   * call (Effect's client for Google sends calls without the ids of its results). A second result with that id in the turn
   * is the same call's.
   * @returns an empty id for a result without a call
   */
  ofResult(name: string, given: string | null): string {
    const answered = given === null ? undefined : this.#answeredAs.get(given);
    if (answered?.turn === this.#turn) return answered.id;
    const byName = given === null ? this.#byName : this.#madeByName;
    const waiting = (given === null ? undefined : this.#byId.get(given)) ?? byName.get(name);
    const id = waiting === undefined ? undefined : takeFrom(waiting)?.id;
    if (id === undefined) return answered?.id ?? given ?? '';
    if (given !== null && given !== id) this.#answeredAs.set(given, { id, turn: this.#turn });
    return id;
  }
}

/** Calls of one id or of one function: nearly all are the only ones of their id, and take no room of their own. */
type CallsByKey = Map<string, OpenCall | WaitingCalls>;

function addTo(map: CallsByKey, key: string, call: OpenCall): void {
  const waiting = map.get(key);
  if (waiting === undefined) map.set(key, call);
  else if (waiting instanceof WaitingCalls) waiting.add(call);
  else map.set(key, new WaitingCalls(waiting, call));
}

/** @returns the call that is answered next, now marked as answered, or null */
function takeFrom(waiting: OpenCall | WaitingCalls): AnsweredCall | null {
  if (waiting instanceof WaitingCalls) return waiting.take();
  if (waiting.isAnswered) return null;
  waiting.isAnswered = true;
  return waiting;
}

/** The calls of one turn, in their order. Those without an id of their own are answered first. */
interface TurnCalls {
  readonly turn: number;
  readonly made: CallQueue;
  readonly named: CallQueue;
}

/** Calls of one id or of one function without a result. Each is examined once, however many there are. */
class WaitingCalls {
  readonly #turns: TurnCalls[] = [];

  constructor(first: OpenCall, second: OpenCall) {
    this.add(first);
    this.add(second);
  }

  add(call: OpenCall): void {
    let last = this.#turns.at(-1);
    if (last?.turn !== call.turn) {
      last = { turn: call.turn, made: new CallQueue(), named: new CallQueue() };
      this.#turns.push(last);
    }
    (call.isMade ? last.made : last.named).add(call);
  }

  /** Removes and returns the call that is answered next. */
  take(): AnsweredCall | null {
    for (let last = this.#turns.at(-1); last !== undefined; last = this.#turns.at(-1)) {
      const call = last.made.take() ?? last.named.take();
      if (call !== null) return call;
      this.#turns.pop();
    }
    return null;
  }
}
