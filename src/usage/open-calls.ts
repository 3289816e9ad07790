import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import type { CallRecord } from '../metrics/call-record.js';
import type { ProcessMark } from '../store/process-mark.js';
import type { Store } from '../store/store.js';
import { CallTable } from './call-table.js';
import { writePage } from './page.js';

/** The collection of the store with the records of long calls. */
export const openCallsCollection = 'open-calls';

/** A call that has lasted this long has a record in the store until it has a line in the ledger. */
const openAfterMs = 10_000;
/** Interval at which a record is rewritten, and the shorter one if its calls have changed. */
const renewMs = 10_000;
const changeMs = 1000;
/** Most calls of one record: computing what each has used so far has to take less than a millisecond. */
const callsOfRecord = 50;
/** Most records of a worker; further calls have none. */
const maxRecords = 200;
/** How long a call's line may take to reach the ledger's writer. */
const onItsWayMs = 1000;
/**
 * How long the records of an ended process are kept to be found. Searches compute from it when a record was written, also
 * those of other versions.
 */
export const keptMs = 30 * 24 * 60 * 60 * 1000;

/**
 * A call in flight, as an element of a linked list in the order of starts. The list's fields are on the call itself: with
 * a `Set` of calls instead, a small call took 17 % more CPU time.
 */
export interface OpenCall<Call> {
  openBefore: Call | null;
  openAfter: Call | null;
  isListed: boolean;
  openRecord: OpenRecord<Call> | null;
  /** Milliseconds of `performance.now()`; the end is 0 while the call is in flight. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly accounted: boolean;
}

/** A record of the store, with this process's state of it. */
export interface OpenRecord<Call> {
  readonly id: string;
  /** Null until it is in the store. */
  revision: number | null;
  /** Its calls, with their last reported records. */
  readonly calls: Map<Call, CallRecord | null>;
  writtenAt: number;
  /** Whether a call was added or has ended since. */
  isChanged: boolean;
}

/** The value of a record: the process that wrote it, and its calls as a page of the ledger. */
export interface OpenCallsValue {
  readonly writer: ProcessMark;
  /** Unix milliseconds of the write. */
  readonly at: number;
  /** No call of the page has a ledger line from before this time. */
  readonly since: number;
  readonly page: string;
}

interface OpenCallsOptions<Call> {
  readonly store: Pick<Store, 'get' | 'create' | 'replace' | 'remove'>;
  /** Prefix of its records' ids, the same as of the process's request ids. */
  readonly series: string;
  readonly writer: ProcessMark;
  /** The record of a call as it would be if the process ended now. */
  soFar(call: Call): CallRecord;
  /** Converts a time of `performance.now()` to Unix milliseconds. */
  unixTime(time: number): number;
  /** Milliseconds that the oldest line not yet in the ledger has waited; 0 without any. */
  lagMs(): number;
  /** Called with an internal fault. */
  onFault(fault: unknown): void;
}

/**
 * Keeps the state of this process's long calls in the store, where it survives a kill. A call that ends before it is long
 * costs one link in a list. Long calls share records, and one record is written at a time, however slow the store is. A
 * call stays in its record until its line is in the ledger: `InterruptedSearch` finds the records of a dead process and
 * looks for the lines of their calls.
 */
export class OpenCalls<Call extends OpenCall<Call>> {
  readonly #options: OpenCallsOptions<Call>;
  /** Calls that are not long yet, oldest first. */
  #first: Call | null = null;
  #last: Call | null = null;
  readonly #records: OpenRecord<Call>[] = [];
  #lastNumber = 0;
  readonly #table = new CallTable();
  /** The write in flight; resolves when it ends. */
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: OpenCallsOptions<Call>) {
    this.#options = options;
  }

  /** Called when a call is about to be sent to an upstream. */
  add(call: Call): void {
    if (call.accounted || call.isListed || call.openRecord !== null) return;
    call.isListed = true;
    call.openBefore = this.#last;
    if (this.#last === null) this.#first = call;
    else this.#last.openAfter = call;
    this.#last = call;
  }

  /** Called when a call has ended. No-op for a call that was not added. */
  remove(call: Call): void {
    if (call.openRecord !== null) call.openRecord.isChanged = true;
    else if (call.isListed) this.#unlink(call);
  }

  /**
   * Writes a call's record now, however short the call: its usage is about to be recorded elsewhere, and its line must
   * not be lost then. Never rejects: if the store fails, the call is as it was before.
   */
  async keep(call: Call): Promise<void> {
    if (call.accounted || this.#isClosed) return;
    if (call.isListed) this.#unlink(call);
    if (call.openRecord === null) this.#enter(call, performance.now());
    const record = call.openRecord;
    if (record === null) return;
    record.calls.set(call, null);
    do {
      if (this.#writing === null) this.#begin(record, performance.now());
      await this.#writing;
    } while (record.calls.get(call) === null);
  }

  /** Adds calls that have become long to records, and writes a record if one is due. @param now of `performance.now()` */
  tick(now: number): void {
    if (this.#isClosed) return;
    for (let call = this.#first; call !== null && now - call.startedAt >= openAfterMs; call = this.#first) {
      this.#unlink(call);
      this.#enter(call, now);
    }
    if (this.#writing !== null) return;
    const due = this.#due(now);
    if (due !== null) this.#begin(due, now);
  }

  #begin(record: OpenRecord<Call>, now: number): void {
    this.#writing = this.#write(record, now)
      .catch((fault: unknown) => {
        record.isChanged = true;
        // The store is unavailable, which its other users report.
        if (!(fault instanceof GatewayError)) this.#options.onFault(fault);
      })
      .finally(() => {
        this.#writing = null;
      });
  }

  /**
   * Removes its records, once all calls have ended and their lines are in the ledger. Never rejects.
   * @param withinMs records not removed by then are left to `InterruptedSearch`, which finds the lines of their calls
   */
  async close(withinMs: number): Promise<void> {
    this.#isClosed = true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([this.#removeAll(), late]);
    clearTimeout(timer);
  }

  async #removeAll(): Promise<void> {
    await this.#writing;
    const stored = this.#records.filter(({ revision }) => revision !== null);
    const { store, onFault } = this.#options;
    try {
      await Promise.all(stored.map(({ id }) => store.remove(openCallsCollection, id)));
    } catch (fault) {
      if (!(fault instanceof GatewayError)) onFault(fault);
    }
  }

  #unlink(call: Call): void {
    const { openBefore: before, openAfter: after } = call;
    if (before === null) this.#first = after;
    else before.openAfter = after;
    if (after === null) this.#last = before;
    else after.openBefore = before;
    call.isListed = false;
    call.openBefore = null;
    call.openAfter = null;
  }

  #enter(call: Call, now: number): void {
    let record = this.#records.find(({ calls }) => calls.size < callsOfRecord);
    if (record === undefined) {
      if (this.#records.length >= maxRecords) return;
      const id = `${this.#options.series}/${++this.#lastNumber}`;
      // Backdated, so that it is written immediately.
      record = { id, revision: null, calls: new Map(), writtenAt: now - changeMs, isChanged: true };
      this.#records.push(record);
    }
    record.calls.set(call, null);
    record.isChanged = true;
    call.openRecord = record;
  }

  /** The due record whose last write is the oldest. */
  #due(now: number): OpenRecord<Call> | null {
    let due: OpenRecord<Call> | null = null;
    for (const record of this.#records) {
      const age = now - record.writtenAt;
      if (age < (record.isChanged ? changeMs : renewMs)) continue;
      if (due === null || record.writtenAt < due.writtenAt) due = record;
    }
    return due;
  }

  async #write(record: OpenRecord<Call>, now: number): Promise<void> {
    const { store } = this.#options;
    record.writtenAt = now;
    record.isChanged = false;
    const value = this.#valueOf(record, now);
    if (value === null) {
      if (record.revision !== null) await store.remove(openCallsCollection, record.id);
      record.revision = null;
      // Calls may have been added meanwhile.
      if (record.calls.size === 0) this.#drop(record);
      return;
    }
    if (record.revision === null) {
      await store.create(openCallsCollection, record.id, value, keptMs);
      record.revision = (await store.get(openCallsCollection, record.id))?.revision ?? null;
    } else if (await store.replace(openCallsCollection, record.id, value, record.revision, keptMs))
      record.revision++;
    else {
      const stored = await store.get(openCallsCollection, record.id);
      // Another process counted this one as dead: its calls have lines that say so.
      if (stored === null) this.#drop(record);
      // A write whose outcome was unknown has succeeded.
      else record.revision = stored.revision;
    }
  }

  /** @returns null when none of its calls needs the record any longer */
  #valueOf({ calls }: OpenRecord<Call>, now: number): string | null {
    const { unixTime, lagMs, writer, soFar } = this.#options;
    const at = unixTime(now);
    const lag = lagMs();
    let earliest = now;
    this.#table.begin(at);
    for (const [call, lastRecord] of calls) {
      const endedFor = call.accounted ? now - call.endedAt : 0;
      const known = call.accounted ? lastRecord : soFar(call);
      if (known === null || !known.isMetered || (call.accounted && endedFor > lag + onItsWayMs)) {
        calls.delete(call);
        call.openRecord = null;
        continue;
      }
      calls.set(call, known);
      if (call.accounted) earliest = Math.min(earliest, call.endedAt);
      this.#table.add(known, at);
    }
    if (this.#table.length === 0) return null;
    const page = writePage(this.#table);
    return JSON.stringify({ writer, at, since: unixTime(earliest), page } satisfies OpenCallsValue);
  }

  #drop(record: OpenRecord<Call>): void {
    this.#records.splice(this.#records.indexOf(record), 1);
    for (const call of record.calls.keys()) call.openRecord = null;
    record.calls.clear();
  }
}
