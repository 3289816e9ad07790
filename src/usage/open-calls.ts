import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import type { CallRecord } from '../metrics/call-record.js';
import type { ProcessMark } from '../store/process-mark.js';
import type { Store } from '../store/store.js';
import { CallTable } from './call-table.js';
import { writePage } from './page.js';

/** The collection of the store where long calls have their records. */
export const openCallsCollection = 'open-calls';

/** A call that has lasted so long, in milliseconds, has a record in the store until it has a line in the ledger. */
const openAfterMs = 10_000;
/** A record is written anew after so long, and, where its calls have changed, after the shorter time. */
const renewMs = 10_000;
const changeMs = 1000;
/** Calls of one record: to tell what each of them has used so far must take less than a millisecond. */
const callsOfRecord = 50;
/** Records of one worker; calls beyond them have none. */
const mostRecords = 200;
/** A call's line may be on its way to the ledger's writer for so long. */
const onItsWayMs = 1000;
/** For so long somebody may find the records of a process that has ended. */
const keptMs = 30 * 24 * 60 * 60 * 1000;

/**
 * A call under way, as a member of a list in the order of their begin. The fields are the list's own: with a `Set` of the
 * calls in their place a small call took 17 % more CPU time.
 */
export interface OpenCall<Call> {
  openBefore: Call | null;
  openAfter: Call | null;
  isListed: boolean;
  openRecord: OpenRecord<Call> | null;
  /** Milliseconds of `performance.now()`; the end is 0 while it goes on. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly accounted: boolean;
}

/** A record of the store with what this process knows of it. */
export interface OpenRecord<Call> {
  readonly id: string;
  /** Null until it is in the store. */
  revision: number | null;
  /** Its calls as they were told last. */
  readonly calls: Map<Call, CallRecord | null>;
  writtenAt: number;
  /** A call has come, or has ended. */
  isChanged: boolean;
}

/** The value of a record: which process has written it, and its calls as a page of the ledger. */
export interface OpenCallsValue {
  readonly writer: ProcessMark;
  /** Unix milliseconds: when it was written. */
  readonly at: number;
  /** No call of the page got its line before this time. */
  readonly since: number;
  readonly page: string;
}

interface OpenCallsOptions<Call> {
  readonly store: Pick<Store, 'get' | 'create' | 'replace' | 'remove'>;
  /** What ids of its records begin with: that of the process's requests. */
  readonly series: string;
  readonly writer: ProcessMark;
  /** What the line of a call would say if its process ended now. */
  soFar(call: Call): CallRecord;
  /** Unix milliseconds of a time of `performance.now()`. */
  unixTime(time: number): number;
  /** For how long the oldest line has waited that is not in the ledger; 0 without any. */
  lagMs(): number;
  /** Hears of a mistake of ours. */
  onFault(fault: unknown): void;
}

/**
 * Keeps what is known of this process's long calls in the store, so that a kill leaves it there. A call that ends before
 * it is long costs one link in a list; of the others many share a record, and one record is written at a time, however
 * slow the store. A call stays in its record until its line is in the ledger: whoever finds the record of a dead process
 * looks for lines of its calls (`InterruptedSearch`).
 */
export class OpenCalls<Call extends OpenCall<Call>> {
  readonly #options: OpenCallsOptions<Call>;
  /** Calls that are not long yet, the oldest first. */
  #first: Call | null = null;
  #last: Call | null = null;
  readonly #records: OpenRecord<Call>[] = [];
  #lastNumber = 0;
  readonly #table = new CallTable();
  /** The record that is being written; resolves with the end of that. */
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: OpenCallsOptions<Call>) {
    this.#options = options;
  }

  /** A call is about to ask an upstream. */
  add(call: Call): void {
    if (call.accounted || call.isListed || call.openRecord !== null) return;
    call.isListed = true;
    call.openBefore = this.#last;
    if (this.#last === null) this.#first = call;
    else this.#last.openAfter = call;
    this.#last = call;
  }

  /** A call has ended. Does nothing for one that was not added. */
  remove(call: Call): void {
    if (call.openRecord !== null) call.openRecord.isChanged = true;
    else if (call.isListed) this.#unlink(call);
  }

  /**
   * Has a call's record written now, however short the call: what it has used is about to be told elsewhere, and its line
   * is not to be lost beside that. Never rejects: where the store does not take it, nothing else is lost than before.
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

  /** Takes note of the calls that have become long, and writes a record if one is due. @param now of `performance.now()` */
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
        // The store is gone, as its other users tell.
        if (!(fault instanceof GatewayError)) this.#options.onFault(fault);
      })
      .finally(() => {
        this.#writing = null;
      });
  }

  /**
   * Removes its records: all calls have ended, and their lines are in the ledger. Never rejects.
   * @param withinMs what is not removed by then is left to whoever finds it, with the lines of its calls
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
      if (this.#records.length >= mostRecords) return;
      const id = `${this.#options.series}/${++this.#lastNumber}`;
      // Written at once, and not with the first change after it.
      record = { id, revision: null, calls: new Map(), writtenAt: now - changeMs, isChanged: true };
      this.#records.push(record);
    }
    record.calls.set(call, null);
    record.isChanged = true;
    call.openRecord = record;
  }

  /** Of the records that are due, the one that was written first. */
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
      // Others may have come meanwhile.
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
      // Somebody has taken this process for dead: its calls have lines that say so.
      if (stored === null) this.#drop(record);
      // A write whose fate was not known has come through.
      else record.revision = stored.revision;
    }
  }

  /** @returns null when none of its calls needs to be there any more */
  #valueOf({ calls }: OpenRecord<Call>, now: number): string | null {
    const { unixTime, lagMs, writer, soFar } = this.#options;
    const at = unixTime(now);
    const lag = lagMs();
    let earliest = now;
    this.#table.begin(at);
    for (const [call, told] of calls) {
      const endedFor = call.accounted ? now - call.endedAt : 0;
      const known = call.accounted ? told : soFar(call);
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
