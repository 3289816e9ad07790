import { type AnsweredCall, CallQueue } from '../../conversation/tool-calls.js';
import { entryOf } from '../../wire/entry-of.js';

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
  readonly #byId = new Map<string, WaitingCalls>();
  readonly #byName = new Map<string, WaitingCalls>();
  /** Only calls to which the client gave no id. */
  readonly #madeByName = new Map<string, WaitingCalls>();
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
    entryOf(this.#byId, id, waitingCalls).add(call);
    entryOf(this.#byName, name, waitingCalls).add(call);
    if (call.isMade) entryOf(this.#madeByName, name, waitingCalls).add(call);
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
    const id = waiting?.take()?.id;
    if (id === undefined) return answered?.id ?? given ?? '';
    if (given !== null && given !== id) this.#answeredAs.set(given, { id, turn: this.#turn });
    return id;
  }
}

const waitingCalls = (): WaitingCalls => new WaitingCalls();

/** The calls of one turn, in their order. Those without an id of their own are answered first. */
interface TurnCalls {
  readonly turn: number;
  readonly made: CallQueue;
  readonly named: CallQueue;
}

/** Calls of one id or of one function without a result. Each is examined once, however many there are. */
class WaitingCalls {
  readonly #turns: TurnCalls[] = [];

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
