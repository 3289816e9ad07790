import { type Test, test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import type { CallRecord } from '../../src/metrics/call-record.js';
import { createStore } from '../../src/store/create.js';
import { hasEnded, type ProcessMark, thisProcess } from '../../src/store/process-mark.js';
import type { WholeStore } from '../../src/store/store.js';
import { BatchMemory } from '../../src/usage/batch-memory.js';
import { InterruptedSearch } from '../../src/usage/interrupted.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import {
  type OpenCall,
  OpenCalls,
  type OpenRecord,
  openCallsCollection,
} from '../../src/usage/open-calls.js';
import { readPage, reportUsage } from '../../src/usage/queries.js';
import { usageLedger } from '../../src/usage/sums.js';
import { OpenBatch } from '../../src/usage/writer.js';
import { callRecord } from '../support/call-record.js';
import { eventually } from '../support/eventually.js';
import { readLedger } from '../support/ledger.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { uncounted } from './records.js';

const series = 'req_0123456789abcdef01';
const dayMs = 86_400_000;
/** When `performance.now()` of the tests began: an hour ago at least, on the hour, so that no day ends among the calls. */
const epoch = Math.floor(Date.now() / 3_600_000 - 1) * 3_600_000;
const dead: ProcessMark = { ...thisProcess(), started: 'before' };

class TestCall implements OpenCall<TestCall> {
  openBefore: TestCall | null = null;
  openAfter: TestCall | null = null;
  isListed = false;
  openRecord: OpenRecord<TestCall> | null = null;
  endedAt = 0;
  accounted = false;
  output = 10;
  readonly startedAt: number;
  readonly id: string;

  constructor(id: string, startedAt: number) {
    this.id = `${series}${id}`;
    this.startedAt = startedAt;
  }

  end(calls: OpenCalls<TestCall>, at: number): void {
    this.accounted = true;
    this.endedAt = at;
    calls.remove(this);
  }
}

function told({ id, output }: TestCall): CallRecord {
  const usage = { input: 100, output, cached: 0, reasoning: 0, partial: true } as const;
  return callRecord({ id, outcome: 'interrupted', usage, costNanoUsd: output * 1000 });
}

interface Fixture {
  readonly store: WholeStore;
  readonly calls: OpenCalls<TestCall>;
  readonly faults: unknown[];
  /** What the store throws, after it has done what it was asked for if need be. */
  failing: 'no' | 'before' | 'after';
  lag: number;
  /** Ticks at a time, and waits for what is written then. */
  tick(now: number): Promise<void>;
  records(): Promise<LedgerRecord[]>;
}

function fixture(t: Test, writer = dead): Fixture {
  const store = createStore({ kind: 'embedded', path: temporaryFolder(t), taskDays: 7 });
  t.teardown(() => store.close());
  let underWay = 0;
  const failing = async <T>(work: () => Promise<T>): Promise<T> => {
    underWay++;
    try {
      if (made.failing === 'before') throw new GatewayError('store_unavailable', null);
      const result = await work();
      if (made.failing === 'after') throw new GatewayError('store_unavailable', null);
      return result;
    } finally {
      underWay--;
    }
  };
  const faults: unknown[] = [];
  const calls = new OpenCalls<TestCall>({
    store: {
      get: (...asked) => failing(() => store.get(...asked)),
      create: (...asked) => failing(() => store.create(...asked)),
      replace: (...asked) => failing(() => store.replace(...asked)),
      remove: (...asked) => failing(() => store.remove(...asked)),
    },
    series,
    writer,
    soFar: told,
    unixTime: (time) => epoch + Math.round(time),
    lagMs: () => made.lag,
    onFault: (fault) => faults.push(fault),
  });
  const made: Fixture = {
    store,
    calls,
    faults,
    failing: 'no',
    lag: 0,
    async tick(now) {
      calls.tick(now);
      let quiet = 0;
      await eventually(() => {
        quiet = underWay === 0 ? quiet + 1 : 0;
        return quiet > 3;
      });
    },
    async records() {
      const { records } = await store.list(openCallsCollection, 1000, null);
      return records.flatMap(({ value }) => readPage((JSON.parse(value) as { page: string }).page));
    },
  };
  return made;
}

function searchOf(
  store: WholeStore,
  ended: (writer: ProcessMark, at: number) => boolean | null,
): InterruptedSearch {
  return new InterruptedSearch({
    store,
    hasEnded: ended,
    silentMs: 60_000,
    lastWritesMs: 0,
    retention: () => ({ lineMs: 30 * dayMs, sumMs: 30 * dayMs }),
    record: uncounted,
  });
}

/** Writes the line of a call that has ended. */
async function appendLine(store: WholeStore, id: string, at: number): Promise<void> {
  const batch = new OpenBatch(new BatchMemory(), uncounted, 'pages');
  batch.add(callRecord({ id }), at);
  const { lines, sums } = batch.seal();
  const append = { writer: `of ${id}`, number: 1, lines, lineTtlMs: dayMs, sums: { ...sums, ttlMs: dayMs } };
  await store.append(usageLedger, append);
}

test('a call has a record from its tenth second on, with what is known, until its line is in the ledger', async (t) => {
  const open = fixture(t);
  const [short, long] = [new TestCall('short', 0), new TestCall('long', 0)];
  for (const call of [short, long]) open.calls.add(call);
  await open.tick(9_900);
  short.end(open.calls, 9_950);
  t.same(await open.records(), []);
  await open.tick(10_000);
  t.match(await open.records(), [
    { requestId: long.id, outputTokens: 10, outcome: 'interrupted', at: epoch + 10_000 },
  ]);
  long.output = 70;
  await open.tick(19_900);
  t.match(await open.records(), [{ outputTokens: 10 }], 'not written again before ten seconds have passed');
  await open.tick(20_000);
  t.match(await open.records(), [{ outputTokens: 70, tokensKnown: 'partial', costNanoUsd: 70_000 }]);

  long.end(open.calls, 21_000);
  open.lag = 5000;
  await open.tick(23_000);
  t.match(await open.records(), [{ requestId: long.id }], 'its line waits for the ledger');
  open.lag = 0;
  await open.tick(33_000);
  t.same(await open.records(), []);
  t.equal((await open.store.list(openCallsCollection, 10, null)).records.length, 0);
  t.same(open.faults, []);
});

test('a short call that is to be kept has a record at once, with what it has used by then', async (t) => {
  const open = fixture(t);
  const calls = ['a', 'b', 'c'].map((id) => new TestCall(id, 0));
  for (const call of calls) open.calls.add(call);
  await Promise.all(calls.map((call) => open.calls.keep(call)));
  t.strictSame(
    (await open.records()).map(({ requestId }) => requestId).sort(),
    calls.map(({ id }) => id),
  );
  for (const call of calls) call.output = 70;
  await open.calls.keep(calls[1] as TestCall);
  const [, kept] = (await open.records()).toSorted((a, b) => (a.requestId < b.requestId ? -1 : 1));
  t.equal(kept?.outputTokens, 70, 'and what it has used since');
  for (const call of calls) call.end(open.calls, performance.now());
  await open.tick(performance.now() + 20_000);
  t.same(await open.records(), []);

  open.failing = 'before';
  const unkept = new TestCall('d', 0);
  await open.calls.keep(unkept);
  t.same(open.faults, [], 'a store that fails holds up nobody');
  open.failing = 'no';
  await open.tick(performance.now() + 40_000);
  t.match(await open.records(), [{ requestId: unkept.id }]);
});

test('many long calls share records, and there are no more than so many', async (t) => {
  const open = fixture(t);
  const calls = Array.from({ length: 10_100 }, (_, index) => new TestCall(`${index}`, index / 1000));
  for (const call of calls) open.calls.add(call);
  for (let round = 0; round < 5; round++) await open.tick(11_000 + round * 100);
  t.equal((await open.store.list(openCallsCollection, 1000, null)).records.length, 5, 'one at a time');
  t.equal((await open.records()).length, 250);
  t.equal(calls.filter(({ openRecord }) => openRecord !== null).length, 10_000);
  t.ok(calls.every(({ isListed }) => !isListed));
  await open.calls.close(5000);
  t.equal((await open.store.list(openCallsCollection, 10, null)).records.length, 0);
});

test('while the store fails, calls wait for it, and what it has taken unknown is gone on from', async (t) => {
  const open = fixture(t);
  const call = new TestCall('long', 0);
  open.calls.add(call);
  open.failing = 'before';
  await open.tick(10_000);
  open.failing = 'after';
  await open.tick(11_000);
  t.match(await open.records(), [{ outputTokens: 10 }]);
  call.output = 20;
  open.failing = 'no';
  await open.tick(12_000);
  call.output = 30;
  open.failing = 'after';
  await open.tick(22_000);
  open.failing = 'no';
  for (const now of [23_000, 33_000, 43_000]) await open.tick(now);
  call.output = 40;
  await open.tick(53_000);
  t.match(await open.records(), [{ requestId: call.id, outputTokens: 40 }]);
  call.end(open.calls, 54_000);
  open.failing = 'after';
  await open.tick(56_000);
  open.failing = 'no';
  await open.tick(57_000);
  t.same(await open.records(), []);
  t.same(open.faults, []);
});

test('calls of a dead process get one line each, whoever searches, but for those that have theirs', async (t) => {
  const open = fixture(t);
  const calls = ['a', 'b', 'c'].map((id) => new TestCall(id, 0));
  for (const call of calls) open.calls.add(call);
  await open.tick(10_000);
  const [first, second, third] = calls.map(({ id }) => id);
  await appendLine(open.store, second ?? '', epoch + 10_500);

  const search = (): Promise<unknown> => searchOf(open.store, () => true).round();
  const alive = await searchOf(open.store, () => false).round();
  t.same(alive, [], 'a process that runs tells of its calls itself');
  await Promise.all([search(), search(), search()]);
  await search();
  const all = await readLedger(open.store);
  t.same(all.map(({ requestId }) => requestId).sort(), [first, second, third].sort());
  t.match(
    all.find(({ requestId }) => requestId === first),
    {
      outcome: 'interrupted',
      tokensKnown: 'partial',
      inputTokens: 100,
      outputTokens: 10,
      costNanoUsd: 10_000,
    },
  );
  t.same(await open.records(), []);
  const day = new Date(epoch + 10_000).toISOString().slice(0, 10);
  const report = await reportUsage(open.store, { firstDay: day, lastDay: day, groupBy: [] });
  t.match(report.total, { calls: 3, interrupted: 2, inexact: 2, costNanoUsd: 20_000 });
});

test('whoever dies between the lines and the end of their record leaves nothing to be told twice', async (t) => {
  const open = fixture(t);
  open.calls.add(new TestCall('a', 0));
  await open.tick(10_000);
  let fails = true;
  const failing: WholeStore = {
    ...open.store,
    claim: async () => true,
    remove: (...asked) =>
      fails ? Promise.reject(new GatewayError('store_unavailable', null)) : open.store.remove(...asked),
  };
  await t.rejects(searchOf(failing, () => true).round(), new GatewayError('store_unavailable', null));
  t.equal((await open.records()).length, 1);
  fails = false;
  t.same(await searchOf(failing, () => true).round(), [], 'they have their lines');
  t.same(await open.records(), []);
  t.equal((await readLedger(open.store)).length, 1);
});

test('a process of which nobody can tell is dead once it is silent', async (t) => {
  const { calls, store, tick, records } = fixture(t, { ...thisProcess(), host: 'elsewhere' });
  calls.add(new TestCall('a', 0));
  await tick(Date.now() - epoch);
  const writtenBefore = async (ms: number) => {
    const [{ id = '', value = '', revision = 0 } = {}] = (await store.list(openCallsCollection, 1, null))
      .records;
    await store.replace(openCallsCollection, id, value, revision, 30 * dayMs - ms);
  };
  await writtenBefore(30_000);
  t.same(await searchOf(store, () => null).round(), []);
  t.equal((await records()).length, 1);
  await writtenBefore(61_000);
  t.match(await searchOf(store, () => null).round(), [{ calls: 1 }]);
});

test('a process of a host whose clock is behind is not silent', async (t) => {
  const { calls, store, tick, records } = fixture(t, { ...thisProcess(), host: 'elsewhere' });
  calls.add(new TestCall('a', 0));
  await tick(Date.now() - epoch - 20 * 60_000);
  t.same(await searchOf(store, () => null).round(), []);
  t.equal((await records()).length, 1);
});

test('calls of a process that runs on another machine of the same name are left to it', async (t) => {
  const open = fixture(t, { ...thisProcess(), boot: 'of that machine', process: 2 ** 22 + 1 });
  open.calls.add(new TestCall('a', 0));
  await open.tick(Date.now() - epoch);
  t.same(await searchOf(open.store, hasEnded).round(), []);
  t.equal((await open.records()).length, 1);
});
