import { performance } from 'node:perf_hooks';
import type { CallRecord } from '../metrics/call-record.js';
import { changeRecord, type Store } from '../store/store.js';
import { isObject, type JsonObject, parseObject, textOrNull } from '../wire/json.js';
import { CallTable } from './call-table.js';
import { callOf } from './interrupted.js';
import { isTime } from './ledger-record.js';
import { writePage } from './page.js';
import { readPage } from './queries.js';

/** Collection of the store. Existing stores contain this name. */
const collection = 'background-calls';
/** How long a call waits for a process that can settle it. */
const keptMs = 7 * 24 * 60 * 60 * 1000;
/** How long no calls are looked for after none were found: calls added since by other processes are watched by these. */
const idleMs = 5000;
/** Most calls held in memory while the store is unavailable. */
const maxDeferred = 10_000;

/** The amount that a call has reserved from a budget for what it started. */
export interface ReservedBudget {
  /** Name of its account. */
  readonly pool: string;
  /** In nano-dollars, like the next. */
  readonly limit: number;
  readonly amount: number;
}

/** A call whose upstream continues after its answer, and reports the usage once it has ended. */
export interface BackgroundCall {
  /** The upstream's id of the response in progress. */
  readonly response: string;
  /** Names of the upstream and of its model, and the mark of the upstream key that was used. */
  readonly upstream: string;
  readonly upstreamModel: string;
  readonly credential: string | null;
  /** Unix milliseconds: end of the call. */
  readonly at: number;
  readonly reserved: readonly ReservedBudget[];
  /** Factor on its charge; see `factorOf`. */
  readonly factor: number;
  /** Output tokens that its streams have delivered to the client, as far as is known. */
  readonly streamed: number;
  /** Its record for the case that its usage stays unknown: with the usage expected when it was admitted. */
  readonly record: CallRecord;
}

/** The id of a background call, from its key and the upstream's id of the response. */
export function backgroundId(keyId: string, response: string): string {
  return `${keyId}/${response}`;
}

/** The unsettled background calls in the store. Promises reject with the store's error while it is unavailable. */
export class BackgroundCalls {
  readonly #store: Store;
  readonly #table = new CallTable();
  /** Calls not yet written to the store, by id. */
  readonly #deferred = new Map<string, BackgroundCall>();
  #idleUntil = 0;
  #adds = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Records a call. While the store is unavailable, this is deferred to `catchUp`.
   * @returns false if there is no room to defer it, or another call has started the same response; nobody settles this
   * call then
   */
  async add(call: BackgroundCall): Promise<boolean> {
    const id = backgroundId(call.record.keyId ?? '', call.response);
    this.#adds++;
    this.#idleUntil = 0;
    try {
      return (await this.#create(id, call)) || (await this.find(id))?.record.id === call.record.id;
    } catch {
      if (this.#deferred.size >= maxDeferred) return false;
      this.#deferred.set(id, call);
    }
    return true;
  }

  /** Writes the deferred calls. Never rejects. */
  async catchUp(): Promise<void> {
    for (const [id, call] of [...this.#deferred]) {
      try {
        await this.#create(id, call);
      } catch {
        // The rest would fail, too.
        return;
      }
      this.#deferred.delete(id);
    }
  }

  /** @returns the deferred calls, which nobody will settle */
  close(): readonly BackgroundCall[] {
    const left = [...this.#deferred.values()];
    this.#deferred.clear();
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

  /** Records that streams have delivered so many output tokens of a call, unless more is recorded or it is settled. */
  async noteStreamed(id: string, streamed: number): Promise<void> {
    await changeRecord(this.#store, { collection, id, ttlMs: keptMs }, (value) => {
      const call = value === null ? null : parseObject(value);
      return call === null || streamedOf(call) >= streamed ? null : JSON.stringify({ ...call, streamed });
    });
  }

  /** Whether to look for calls: false for a while after none were found. */
  mayBeAny(): boolean {
    return performance.now() >= this.#idleUntil;
  }

  /** Lists ids, a page at a time, like `Store.list`. */
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
   * Claims work on a call across all processes and hosts.
   * @param work to poll its upstream, or to settle it
   * @returns true for one caller in `ms` milliseconds, which may then do the work
   */
  claim(work: 'watch' | 'end', id: string, ms: number): Promise<boolean> {
    return this.#store.claim(`background-${work}:${id}`, ms);
  }

  /** Removes a call that was settled. */
  remove(id: string): Promise<void> {
    return this.#store.remove(collection, id);
  }
}

/** @returns null for a record of another version, or a damaged one */
function read(text: string): BackgroundCall | null {
  const call = parseObject(text) ?? {};
  const { response, upstream, upstreamModel, credential, at, reserved, factor, page } = call;
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
    streamed: streamedOf(call),
    record: callOf(line),
  };
}

/** Earlier versions did not record it. */
function streamedOf({ streamed }: JsonObject): number {
  return typeof streamed === 'number' ? streamed : 0;
}

function isReserved(value: unknown): value is ReservedBudget {
  if (!isObject(value)) return false;
  const { pool, limit, amount }: JsonObject = value;
  return typeof pool === 'string' && typeof limit === 'number' && typeof amount === 'number';
}
