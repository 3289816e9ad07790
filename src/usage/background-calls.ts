import { performance } from 'node:perf_hooks';
import type { CallRecord } from '../metrics/call-record.js';
import type { Store } from '../store/store.js';
import { isObject, type JsonObject, parseObject, textOrNull } from '../wire/json.js';
import { CallTable } from './call-table.js';
import { callOf } from './interrupted.js';
import { isTime } from './ledger-record.js';
import { writePage } from './page.js';
import { readPage } from './queries.js';

/** Its name is in every store that is in use. */
const collection = 'background-calls';
/** Whoever was to settle one has so long to come back. */
const keptMs = 7 * 24 * 60 * 60 * 1000;
/** Where there were none a while ago, there are only others' that have come since: of those, others take care, too. */
const idleMs = 5000;
/** Calls that the store has not taken yet: they are in memory. */
const mostLeft = 10_000;

/** What a call has taken of a budget for what it has begun. */
export interface ReservedBudget {
  /** Name of its account. */
  readonly pool: string;
  /** In nano-dollars, as is the next. */
  readonly limit: number;
  readonly amount: number;
}

/** A call whose upstream goes on after its answer, and tells what it has used once it has ended. */
export interface BackgroundCall {
  /** The upstream's id of what it makes. */
  readonly response: string;
  /** Names of the upstream and of the model there, and the mark of the key that it was asked with. */
  readonly upstream: string;
  readonly upstreamModel: string;
  readonly credential: string | null;
  /** Unix milliseconds: when the call ended. */
  readonly at: number;
  readonly reserved: readonly ReservedBudget[];
  /** On what it is charged; see `factorOf`. */
  readonly factor: number;
  /** Tokens of output that its stream had brought to its client by then. */
  readonly streamed: number;
  /** Its record as it is where nobody can tell what it has used: that for which it was taken. */
  readonly record: CallRecord;
}

/** What a call is found by: its key and what its upstream calls that which it makes. */
export function backgroundId(keyId: string, response: string): string {
  return `${keyId}/${response}`;
}

/** The calls of the store whose end is still to come. Every promise rejects with the store's error when it cannot be reached. */
export class BackgroundCalls {
  readonly #store: Store;
  readonly #table = new CallTable();
  /** What could not be written yet, by id. */
  readonly #left = new Map<string, BackgroundCall>();
  #idleUntil = 0;
  #adds = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Notes a call; where the store cannot be reached, `catchUp` makes up for it.
   * @returns false where there is no room for that, or another call has begun the same: nobody will settle this one
   */
  async add(call: BackgroundCall): Promise<boolean> {
    const id = backgroundId(call.record.keyId ?? '', call.response);
    this.#adds++;
    this.#idleUntil = 0;
    try {
      return (await this.#create(id, call)) || (await this.find(id))?.record.id === call.record.id;
    } catch {
      if (this.#left.size >= mostLeft) return false;
      this.#left.set(id, call);
    }
    return true;
  }

  /** Writes what could not be written yet. Never rejects. */
  async catchUp(): Promise<void> {
    for (const [id, call] of [...this.#left]) {
      try {
        await this.#create(id, call);
      } catch {
        // The others would fare no better now.
        return;
      }
      this.#left.delete(id);
    }
  }

  /** @returns calls that the store has not taken, and nobody will settle */
  close(): readonly BackgroundCall[] {
    const left = [...this.#left.values()];
    this.#left.clear();
    return left;
  }

  #create(id: string, call: BackgroundCall): Promise<boolean> {
    return this.#store.create(collection, id, this.#write(call), keptMs);
  }

  #write({ record, ...call }: BackgroundCall): string {
    this.#table.begin(call.at);
    this.#table.add(record, call.at);
    return JSON.stringify({ ...call, page: writePage(this.#table) });
  }

  async find(id: string): Promise<BackgroundCall | null> {
    const stored = await this.#store.get(collection, id);
    return stored === null ? null : read(stored.value);
  }

  /** There may be some: they are not looked for all the time where there were none. */
  mayBeAny(): boolean {
    return performance.now() >= this.#idleUntil;
  }

  /** Ids, a page at a time, as `Store.list` has them. */
  async page(
    limit: number,
    from: string | null,
  ): Promise<{ readonly ids: readonly string[]; readonly next: string | null }> {
    const adds = this.#adds;
    const { records, next } = await this.#store.list(collection, limit, from);
    const areNone = records.length === 0 && from === null && next === null && adds === this.#adds;
    this.#idleUntil = areNone ? performance.now() + idleMs : 0;
    return { ids: records.map(({ id }) => id), next };
  }

  /**
   * @param work to ask its upstream, or to settle it
   * @returns true for one caller in `ms` milliseconds, of all processes and hosts: it may do that
   */
  claim(work: 'watch' | 'end', id: string, ms: number): Promise<boolean> {
    return this.#store.claim(`background-${work}:${id}`, ms);
  }

  /** It is settled. */
  remove(id: string): Promise<void> {
    return this.#store.remove(collection, id);
  }
}

/** @returns null for what this version does not write */
function read(text: string): BackgroundCall | null {
  const { response, upstream, upstreamModel, credential, at, reserved, factor, streamed, page } =
    parseObject(text) ?? {};
  if (typeof response !== 'string' || typeof upstream !== 'string' || typeof upstreamModel !== 'string')
    return null;
  if (!isTime(at) || typeof factor !== 'number' || typeof page !== 'string') return null;
  const [line] = readPage(page);
  if (line === undefined || !Array.isArray(reserved) || !reserved.every(isReserved)) return null;
  return {
    response,
    upstream,
    upstreamModel,
    credential: textOrNull(credential),
    at,
    reserved,
    factor,
    // Versions before did not note it.
    streamed: typeof streamed === 'number' ? streamed : 0,
    record: callOf(line),
  };
}

function isReserved(value: unknown): value is ReservedBudget {
  if (!isObject(value)) return false;
  const { pool, limit, amount }: JsonObject = value;
  return typeof pool === 'string' && typeof limit === 'number' && typeof amount === 'number';
}
