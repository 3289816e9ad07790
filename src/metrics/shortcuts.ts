import type { CallHistograms } from './call-times.js';
import { noNumber } from './series.js';

/** Status and outcome of most calls are among the first few of their model. */
const mostEndings = 8;
/** Classes of a status: none, and 1xx to 5xx. */
const classCount = 6;
/** How calls for a model by a protocol have ended, with the number of the series of those. */
interface Ending {
  readonly status: number | string;
  readonly outcome: string;
  readonly number: number;
}

/** The numbers of the series that calls for one model by one protocol count in, once they are known. */
export class CallShortcut {
  readonly endings: Ending[] = [];
  input = noNumber;
  output = noNumber;
  cached = noNumber;
  reasoning = noNumber;
  cost = noNumber;
  times: CallHistograms | null = null;

  /** The number of a series of requests, or `noNumber`. */
  numberOf(status: number | string, outcome: string): number {
    const { endings } = this;
    for (let i = 0; i < endings.length; i++) {
      const ending = endings[i] as Ending;
      if (ending.status === status && ending.outcome === outcome) return ending.number;
    }
    return noNumber;
  }

  /** Notes the number that goes with them, for as long as there is room. */
  remember(status: number | string, outcome: string, number: number): void {
    if (this.endings.length < mostEndings) this.endings.push({ status, outcome, number });
  }

  /** Makes it as new. */
  forget(): void {
    this.endings.length = 0;
    this.input = noNumber;
    this.output = noNumber;
    this.cached = noNumber;
    this.reasoning = noNumber;
    this.cost = noNumber;
    this.times = null;
  }
}

/**
 * Spares most calls most look-ups: a dozen of them, one for each label of each family, cost three times as much. Holds
 * no counts. What comes when it is full finds nothing known, each time anew.
 */
export class Shortcuts {
  readonly #limit: number;
  readonly #calls = new Map<string, Map<string, CallShortcut>>();
  #callCount = 0;
  readonly #keys = new Map<string, Int32Array>();
  readonly #noCall = new CallShortcut();
  readonly #noKey = new Int32Array(classCount).fill(noNumber);

  /** @param limit most pairs of protocol and model, and most keys */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Good until the next one is asked for. */
  ofCall(protocol: string, model: string): CallShortcut {
    return this.#calls.get(protocol)?.get(model) ?? this.#addCall(protocol, model);
  }

  /** The numbers of the series of a key by the class of a status. Good until the next one is asked for. */
  ofKey(key: string): Int32Array {
    return this.#keys.get(key) ?? this.#addKey(key);
  }

  #addCall(protocol: string, model: string): CallShortcut {
    if (this.#callCount >= this.#limit) {
      this.#noCall.forget();
      return this.#noCall;
    }
    let models = this.#calls.get(protocol);
    if (models === undefined) {
      models = new Map();
      this.#calls.set(protocol, models);
    }
    const made = new CallShortcut();
    models.set(model, made);
    this.#callCount++;
    return made;
  }

  #addKey(key: string): Int32Array {
    if (this.#keys.size >= this.#limit) return this.#noKey.fill(noNumber);
    const made = new Int32Array(classCount).fill(noNumber);
    this.#keys.set(key, made);
    return made;
  }
}
