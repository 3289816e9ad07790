import { writeSync } from 'node:fs';
import { constants } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { claimName, sweepClaims } from './claims.js';
import { type EmbeddedBase, openBase } from './embedded-base.js';
import {
  doWork,
  type EmbeddedAnswer,
  type EmbeddedName,
  type EmbeddedResult,
  type EmbeddedThreadData,
  type NumberedCall,
} from './embedded-calls.js';
import { appendBatch, readLines, readSums, type SumQuestion, sweepLines } from './ledgers.js';
import { dropOwned, findOwned, keepOwned, renewOwned, sweepOwned } from './owned-records.js';
import {
  createRecord,
  getRecord,
  listRecords,
  removeRecord,
  replaceRecord,
  sweepRecords,
} from './records.js';
import type { SumPage } from './store.js';

/** Runs as a separate thread, started by `createEmbeddedStore`. Everything here may wait for the disk. */

/** Most calls in a commit, and most removals of a sweep in a commit. */
const mostTogether = 256;
/** Most lines that a sweep removes in one commit. */
const mostLines = 2000;

const { folder, exitState } = workerData as EmbeddedThreadData;
const port = parentPort;
const waiting: NumberedCall[] = [];
let base: EmbeddedBase | null = null;
let busy = false;

port?.on('message', (calls: readonly NumberedCall[]) => {
  for (const call of calls) waiting.push(call);
  if (busy) return;
  busy = true;
  // Calls that arrived at the same time share a commit.
  setImmediate(() => void serveAll());
});

async function serveAll(): Promise<void> {
  while (waiting.length > 0) await serve(waiting.splice(0, mostTogether));
  busy = false;
}

async function serve(calls: readonly NumberedCall[]): Promise<void> {
  const of = (...names: EmbeddedName[]): NumberedCall[] => calls.filter(({ name }) => names.includes(name));
  // Calls that need no disk are first. If a caller awaited a change before reading, that change was in an earlier turn.
  await attempt(of('get', 'list'), ({ records }, run) => {
    records.records.resetReadTxn();
    run();
  });
  await attempt(of('claim'), ({ changeClaims }, run) => changeClaims(run));
  await attempt(of('create', 'replace', 'remove'), ({ changeRecords }, run) => changeRecords(run));
  for (const read of [of('readLines'), of('readSums')])
    await attempt(read, (base, run) => {
      base.ledgers().lines.resetReadTxn();
      run();
    });
  // One by one, since each result may be large. The previous one has been sent by then.
  for (const find of of('find'))
    await attempt([find], (base, run) => {
      if (base.hasOwned()) base.owned().values.resetReadTxn();
      run();
    });
  await attempt(of('keep', 'renew', 'drop'), (base, run) => base.owned().change(run));
  await attempt(of('append'), (base, run) => base.ledgers().change(run));
  await attempt(of('sweep'), (_, run) => run());
  for (const close of of('close')) {
    closeBase();
    port?.postMessage([{ number: close.number, result: undefined }] satisfies EmbeddedAnswer[]);
    port?.close();
  }
}

/** Executes calls, and sends the result of each. If there is a failure, it is the result of all of them. */
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
        const pages = readPages(opened, calls);
        for (const call of calls) answers.push({ number: call.number, result: perform(opened, call, pages) });
      });
    });
    port?.postMessage(answers);
  } catch (error) {
    // After other failures LMDB may not execute transactions any more, so it is reopened for the next call.
    if (!isOfDisk(error)) closeBase();
    const failure = error instanceof Error ? error.message : String(error);
    if (failure.includes(lmdbWrite)) endErrorLine();
    port?.postMessage(calls.map(({ number }): EmbeddedAnswer => ({ number, failure })));
  }
}

/** In the message of an error that LMDB has also written to standard error, without the end of a line (`mdb_page_flush`). */
const lmdbWrite = 'Attempting to write page';

/** Keeps a line of the log, which may go to the same file, from being glued to what LMDB wrote. */
function endErrorLine(): void {
  try {
    writeSync(2, '\n');
  } catch {
    // Nobody reads it.
  }
}

function closeBase(): void {
  doWork(exitState, () => base?.close());
  base = null;
}

/** Whether the disk refused a commit. The commit is undone, and everything else still works, including reads. */
function isOfDisk(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
  return [ENOSPC, EDQUOT, EFBIG, EIO].some((each) => each === code);
}

/** Pages of sums by the numbers of the calls. */
type SumPages = ReadonlyMap<number, SumPage>;

/** Reads the pages of sums for all calls with a single look into the log of sums. */
function readPages(base: EmbeddedBase, calls: readonly NumberedCall[]): SumPages {
  const questions = calls.flatMap(({ number, ...call }): [number, SumQuestion][] => {
    if (call.name !== 'readSums') return [];
    const [ledger, range, limit, from] = call.asked;
    return [[number, { ledger, range, limit, from }]];
  });
  if (questions.length === 0) return new Map();
  const { change, ...ledgers } = base.ledgers();
  const pages = readSums(
    ledgers,
    change,
    questions.map(([, question]) => question),
  );
  return new Map(questions.map(([number], index) => [number, pages[index] as SumPage]));
}

/** @param pages the pages of calls of `readSums` */
function perform(base: EmbeddedBase, call: NumberedCall, pages: SumPages): EmbeddedResult {
  const { records, claims } = base;
  switch (call.name) {
    case 'get':
      return getRecord(records, ...call.asked);
    case 'list':
      return listRecords(records, ...call.asked);
    case 'create':
      return createRecord(records, ...call.asked);
    case 'replace':
      return replaceRecord(records, ...call.asked);
    case 'remove':
      return removeRecord(records, ...call.asked);
    case 'claim':
      return claimName(claims, ...call.asked);
    case 'append': {
      const [ledger, batch, sums, ids] = call.asked;
      return appendBatch(base.ledgers(), ledger, {
        ...batch,
        sums: { ...sums, ids: JSON.parse(Buffer.from(ids).toString()) },
      });
    }
    case 'readLines':
      return readLines(base.ledgers(), ...call.asked);
    case 'readSums':
      return pages.get(call.number);
    case 'keep':
      return keepOwned(base.owned(), ...call.asked);
    case 'find': {
      const [, ids] = call.asked;
      // Reading creates no files.
      if (!base.hasOwned()) return { values: ids.map(() => null), ofOthers: [] };
      return findOwned(base.owned(), ...call.asked);
    }
    case 'renew':
      return renewOwned(base.owned(), ...call.asked);
    case 'drop':
      return dropOwned(base.owned(), ...call.asked);
    case 'sweep':
      return sweepSome(base);
    case 'close':
      return undefined;
  }
}

/** @returns true if there is more. The caller then calls again, and other calls run in between */
function sweepSome(base: EmbeddedBase): boolean {
  const { records, claims, changeRecords, changeClaims } = base;
  if (changeRecords(() => sweepRecords(records, mostTogether)) === mostTogether) return true;
  if (base.hasLedgers()) {
    const { change, ...ledgers } = base.ledgers();
    if (change(() => sweepRecords(ledgers.sums, mostTogether)) === mostTogether) return true;
    if (change(() => sweepLines(ledgers, mostLines)) === mostLines) return true;
    ledgers.lines.readerCheck();
  }
  if (base.hasOwned()) {
    const owned = base.owned();
    if (owned.change(() => sweepOwned(owned, mostTogether)) === mostTogether) return true;
    owned.values.readerCheck();
  }
  let last: Buffer | null = null;
  do {
    const after: Buffer | null = last;
    last = changeClaims(() => sweepClaims(claims, after, mostTogether));
  } while (last !== null);
  // Frees the reader slots of killed processes, which would keep the pages of their time from being reused.
  records.records.readerCheck();
  claims.readerCheck();
  return false;
}
