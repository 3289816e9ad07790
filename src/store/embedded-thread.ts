import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type {
  EmbeddedAnswer,
  EmbeddedCall,
  EmbeddedResults,
  EmbeddedThreadData,
  NumberedCall,
} from './embedded-calls.js';
import { doWork } from './embedded-exit.js';
import { type Environment, type OpenLmdb, openEnvironment } from './environment.js';
import { appendBatch, type LedgerBase, readLines, readSums, sweepLines } from './ledgers.js';
import { nameKey } from './record-format.js';
import {
  type Bytes,
  createRecord,
  getRecord,
  listRecords,
  type Records,
  removeRecord,
  replaceRecord,
  sweepRecords,
} from './records.js';
import { expiryOf } from './revision.js';

/** Runs as a thread of its own, started by `createEmbeddedStore`: everything here may wait for the disk. */

type Result = EmbeddedResults[keyof EmbeddedResults];

/** Calls that share a commit, and removals of a sweep that do. */
const mostTogether = 256;
/** Lines that a sweep removes in one commit. */
const mostLines = 2000;

const { folder, exitState } = workerData as EmbeddedThreadData;
const port = parentPort;
const waiting: NumberedCall[] = [];
let base: EmbeddedBase | null = null;
let busy = false;

port?.on('message', (message: NumberedCall) => {
  waiting.push(message);
  if (busy) return;
  busy = true;
  // What came at the same time is taken together: one commit for all of it.
  setImmediate(() => void serveAll());
});

async function serveAll(): Promise<void> {
  while (waiting.length > 0) await serve(waiting.splice(0, mostTogether));
  busy = false;
}

async function serve(calls: readonly NumberedCall[]): Promise<void> {
  const of = (...names: EmbeddedCall['name'][]): NumberedCall[] =>
    calls.filter(({ call }) => names.includes(call.name));
  // Those that need no disk go first. Whoever waited for a change before asking has it in an earlier turn.
  await attempt(of('get', 'list'), ({ records }, run) => {
    records.records.resetReadTxn();
    run();
  });
  await attempt(of('claim'), ({ changeClaims }, run) => changeClaims(run));
  await attempt(of('create', 'replace', 'remove'), ({ changeRecords }, run) => changeRecords(run));
  await attempt(of('readLines', 'readSums'), (base, run) => {
    base.ledgers().lines.resetReadTxn();
    run();
  });
  await attempt(of('append'), (base, run) => base.ledgers().change(run));
  await attempt(of('sweep'), (_, run) => run());
  for (const close of of('close')) {
    closeBase();
    port?.postMessage([{ number: close.number, result: null }] satisfies EmbeddedAnswer[]);
    port?.close();
  }
}

/** Has calls done, and tells each what came of it: the same failure for all of them, if there is one. */
async function attempt(
  calls: readonly NumberedCall[],
  within: (opened: EmbeddedBase, run: () => void) => void,
): Promise<void> {
  if (calls.length === 0) return;
  try {
    const { open } = await import('lmdb');
    const answers: EmbeddedAnswer[] = [];
    doWork(exitState, () => {
      base ??= openBase(open, folder);
      const opened = base;
      within(opened, () => {
        for (const { number, call } of calls) answers.push({ number, result: perform(opened, call) });
      });
    });
    port?.postMessage(answers);
  } catch (error) {
    // After other failures LMDB may serve no transaction any more, until it is opened anew for the next call.
    if (!isOfDisk(error)) closeBase();
    const failure = error instanceof Error ? error.message : String(error);
    port?.postMessage(calls.map(({ number }): EmbeddedAnswer => ({ number, failure })));
  }
}

function closeBase(): void {
  doWork(exitState, () => base?.close());
  base = null;
}

/** A commit that the disk did not take is undone, and all else goes on: what is there can still be read. */
function isOfDisk(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
  return [ENOSPC, EDQUOT, EFBIG, EIO].some((each) => each === code);
}

function perform(base: EmbeddedBase, call: EmbeddedCall): Result {
  const { records, claims } = base;
  switch (call.name) {
    case 'get':
      return getRecord(records, call.collection, call.id);
    case 'list':
      return listRecords(records, call);
    case 'create':
      return createRecord(records, call);
    case 'replace':
      return replaceRecord(records, call);
    case 'remove':
      removeRecord(records, call.collection, call.id);
      return null;
    case 'claim':
      return claimName(claims, call.claim, call.ttlMs);
    case 'append':
      return appendBatch(base.ledgers(), call.ledger, call.batch);
    case 'readLines':
      return readLines(base.ledgers(), call);
    case 'readSums':
      return readSums(base.ledgers(), call);
    case 'sweep':
      return sweepSome(base);
    case 'close':
      return null;
  }
}

/** @returns true when there is more: whoever sweeps asks again, and others have their turn in between */
function sweepSome(base: EmbeddedBase): boolean {
  const { records, claims, changeRecords, changeClaims } = base;
  if (changeRecords(() => sweepRecords(records, mostTogether)) === mostTogether) return true;
  if (base.hasLedgers()) {
    const { change, ...ledgers } = base.ledgers();
    if (change(() => sweepRecords(ledgers.sums, mostTogether)) === mostTogether) return true;
    if (change(() => sweepLines(ledgers, mostLines)) === mostLines) return true;
    ledgers.lines.readerCheck();
  }
  let last: Buffer | null = null;
  do {
    const after: Buffer | null = last;
    last = changeClaims(() => sweepClaims(claims, after, mostTogether));
  } while (last !== null);
  // Places of readers whose process was killed: they would keep the pages of that time from being used again.
  records.records.readerCheck();
  claims.readerCheck();
  return false;
}

/** The open databases of an embedded store. */
interface EmbeddedBase {
  readonly records: Records;
  readonly claims: Bytes;
  readonly changeRecords: Environment['change'];
  readonly changeClaims: Environment['change'];
  /** Opens the ledgers when they are first needed. */
  ledgers(): OpenLedgers;
  /** Some process has made ledgers here. */
  hasLedgers(): boolean;
  close(): void;
}

/** The open databases of the ledgers. */
interface OpenLedgers extends LedgerBase {
  readonly change: Environment['change'];
}

/** Address space, of which a ledger of months needs more than the records do. */
const ledgerMapBytes = 2 ** 38;

const claimsPrefix = 'claims';

/**
 * Opens the databases under a folder: `records`, and the claims apart from them. A claim lasts for seconds and is made
 * often, so that no disk need be waited for: a killed process loses nothing by that, only a machine that goes down
 * may, and after that the claims begin anew, in a folder that is named after the machine's start. Ledgers are apart from
 * the records too: whoever makes a record does not wait until a long batch is written.
 * @throws Error when they cannot be opened
 */
export function openBase(open: OpenLmdb, folder: string): EmbeddedBase {
  const boot = bootId();
  const claimsName = boot === null ? claimsPrefix : `${claimsPrefix}-${boot}`;
  removeOldClaims(folder, claimsName);
  const opened: Environment[] = [];
  const close = (): void => {
    for (const environment of opened) environment.close();
  };
  try {
    const records = openEnvironment(open, join(folder, 'records'), { durable: true });
    opened.push(records);
    const claims = openEnvironment(open, join(folder, claimsName), { durable: boot === null });
    opened.push(claims);
    const ledgerFolder = join(folder, 'ledgers');
    let ledgers: OpenLedgers | null = null;
    const openLedgers = (): OpenLedgers => {
      const environment = openEnvironment(open, ledgerFolder, { durable: true, mapBytes: ledgerMapBytes });
      opened.push(environment);
      return {
        lines: environment.database('lines'),
        retention: environment.database('retention'),
        sums: { records: environment.database('sums'), expiry: environment.database('expiry') },
        change: environment.change,
      };
    };
    return {
      records: { records: records.database('records'), expiry: records.database('expiry') },
      claims: claims.database('claims'),
      changeRecords: records.change,
      changeClaims: claims.change,
      ledgers() {
        ledgers ??= openLedgers();
        return ledgers;
      },
      hasLedgers: () => ledgers !== null || existsSync(ledgerFolder),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** What Linux calls this start of the machine; null where nobody says. */
function bootId(): string | null {
  try {
    const text = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return /^[0-9a-f-]{36}$/.test(text) ? text : null;
  } catch {
    return null;
  }
}

/** Nobody has them open any more: the processes that had went down with the machine. */
function removeOldClaims(folder: string, current: string): void {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return;
  }
  for (const name of names) {
    if (!name.startsWith(`${claimsPrefix}-`) || name === current) continue;
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/**
 * Takes a name for a while. Belongs into a write transaction.
 * @returns false while somebody has it
 */
function claimName(claims: Bytes, name: string, ttlMs: number): boolean {
  const key = nameKey(name);
  const now = Date.now();
  const held = claims.get(key);
  if (held !== undefined && held.readDoubleBE() > now) return false;
  const until = Buffer.alloc(8);
  until.writeDoubleBE(expiryOf(ttlMs, now));
  void claims.put(key, until);
  return true;
}

/**
 * Removes claims that have expired. Belongs into a write transaction.
 * @param after key behind which it begins, or null
 * @param most how many claims are looked at
 * @returns the last key that was looked at, or null when there are no more
 */
function sweepClaims(claims: Bytes, after: Buffer | null, most: number): Buffer | null {
  const now = Date.now();
  const start = after ?? Buffer.from([0]);
  let last: Buffer | null = null;
  for (const { key, value } of [...claims.getRange({ start, limit: most })]) {
    if (value.readDoubleBE() <= now) void claims.remove(key);
    last = key;
  }
  return last === null || (after !== null && last.equals(after)) ? null : last;
}
