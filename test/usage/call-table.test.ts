import { test } from 'tap';
import type { CallOutcome } from '../../src/metrics/call-record.js';
import { type CallGroup, CallTable, callsSum, tableSpanMs } from '../../src/usage/call-table.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import { amountNames, amounts } from '../../src/usage/sums.js';
import { fc } from '../support/seed.js';
import { addRecord, addUsage, ledgerRecord, noTokens } from './records.js';

const noon = Date.UTC(2026, 2, 9, 12);

/** One that was begun. */
function tableAt(at: number): CallTable {
  const table = new CallTable();
  table.begin(at);
  return table;
}

/** The sums of one group by their names. */
function namedSums(group: CallGroup, sums: Float64Array, start: number) {
  const named = Object.fromEntries(amounts.map(([name, index]) => [name, sums[start + index] ?? 0]));
  return {
    group,
    calls: sums[start + callsSum] ?? 0,
    ...(named as Record<(typeof amountNames)[number], number>),
  };
}

/** Counts the calls of a table: what was told of each group, and the times of each, behind one another. */
function counter(table: CallTable) {
  const told: unknown[] = [];
  return {
    told,
    count: () =>
      table.count((...sums) => {
        told.push(namedSums(...sums));
        return { observe: (...times) => told.push(times) };
      }),
  };
}

test('calls are counted once, by their groups', async (t) => {
  const table = tableAt(noon);
  const { told, count } = counter(table);
  addRecord(table, ledgerRecord({ at: noon, costNanoUsd: 7 }), { ownMs: 0.25 });
  count();
  t.match(told, [
    {
      group: { keyId: 'team-a', protocol: 'chat', model: 'sim-text', status: 200, outcome: 'complete' },
      calls: 1,
      inputTokens: 100,
      outputTokens: 20,
      cachedTokens: 60,
      cacheWrittenTokens: 0,
      reasoningTokens: 5,
      bytesIn: 400,
      bytesOut: 900,
      mediaMs: 0,
      costNanoUsd: 7,
    },
    [812.5, 120.25, 0.25],
  ]);
  told.length = 0;
  addUsage(table, { at: noon, keyId: 'b', ...noTokens, firstByteMs: null, status: 502 });
  addRecord(table, ledgerRecord({ at: noon, retries: 1, cacheWrittenTokens: 2 }));
  addUsage(table, { at: noon, inputTokens: 1, mediaSeconds: 1.5, costNanoUsd: 3, durationMs: 1 });
  count();
  t.match(told, [
    {
      group: { keyId: 'team-a' },
      calls: 2,
      inputTokens: 101,
      cacheWrittenTokens: 2,
      mediaMs: 1500,
      costNanoUsd: 1503,
    },
    { group: { keyId: 'b', status: 502, tokensKnown: 'none' }, calls: 1, inputTokens: 0, bytesIn: 400 },
  ]);
  t.same(told.slice(2), [
    [812.5, -1 / 1000, -1],
    [812.5, 120.25, -1],
    [1, 120.25, -1],
  ]);
  told.length = 0;
  count();
  t.same(told, []);
});

test('each model of a key has one group, and each key of a model', async (t) => {
  const table = tableAt(noon);
  for (let round = 0; round < 2; round++)
    for (let model = 0; model < 20; model++)
      for (let key = 0; key < 10; key++)
        addUsage(table, { at: noon, keyId: `key-${key}`, model: `model-${model}` });
  t.equal(table.callGroups.length, 200);
  const calls = new Map<string, number>();
  table.count((group, sums, start) => {
    calls.set(`${group.keyId} ${group.model}`, sums[start + callsSum] ?? 0);
    return { observe: () => {} };
  });
  t.equal(calls.size, 200);
  t.ok([...calls.values()].every((each) => each === 2));
});

test('a number that cannot be meant adds nothing to those of other calls', async (t) => {
  const table = tableAt(noon);
  const { told, count } = counter(table);
  for (const odd of [Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300]) {
    addUsage(table, { at: noon, inputTokens: odd, bytesOut: odd, mediaSeconds: odd, costNanoUsd: odd });
  }
  addUsage(table, { at: noon });
  count();
  t.match(told[0], {
    calls: 5,
    inputTokens: 100,
    outputTokens: 100,
    bytesOut: 900,
    mediaMs: 0,
    costNanoUsd: 1500,
  });
});

test('sums stay numbers that can be counted, however large those of single calls are', async (t) => {
  const table = tableAt(noon);
  const { told, count } = counter(table);
  const most = Number.MAX_SAFE_INTEGER;
  for (let call = 0; call < 3; call++) {
    addUsage(table, { at: noon, inputTokens: most, mediaSeconds: 9e12, costNanoUsd: most });
  }
  count();
  t.match(told[0], { inputTokens: most, outputTokens: 60, mediaMs: most, costNanoUsd: most });
});

test('it has room for calls of one second, and for so many', async (t) => {
  t.notOk(new CallTable().hasRoom(noon), 'not before it begins');
  const table = tableAt(noon);
  t.ok(table.hasRoom(noon));
  t.ok(table.hasRoom(noon + tableSpanMs - 1));
  t.notOk(table.hasRoom(noon + tableSpanMs));
  t.notOk(table.hasRoom(noon - 1), 'a clock that was put back');
  t.notOk(table.hasRoom(Number.NaN));
  let calls = 0;
  for (; calls < 2000 && table.hasRoom(noon); calls++) addUsage(table, { at: noon });
  t.equal(calls, 500);
  table.end();
  t.notOk(table.hasRoom(noon));
});

test('it ends with its day, since its calls are added to the sums of one', async (t) => {
  const midnight = Date.UTC(2026, 2, 10);
  const table = tableAt(midnight - 10);
  t.ok(table.hasRoom(midnight - 1));
  t.notOk(table.hasRoom(midnight));
});

test('what calls have in common is kept once, for all that have it', async (t) => {
  const table = tableAt(noon);
  for (let call = 0; call < 30; call++) {
    const keyId = call % 3 === 0 ? null : 'team-a';
    addUsage(table, { at: noon, keyId, requestId: `${call}`, status: call % 2 === 0 ? 200 : 500 });
  }
  t.equal(table.callGroups.length, 4);
  t.equal(table.length, 30);
});

test('it begins anew with nothing of the calls before', async (t) => {
  const table = tableAt(noon);
  addUsage(table, { at: noon });
  table.begin(noon + 1);
  t.match(table, { at: noon + 1, length: 0, callGroups: [], ids: [] });
  addUsage(table, { at: noon + 1, keyId: 'b', requestId: 'x' });
  t.match(table, { length: 1, callGroups: [{ keyId: 'b' }], ids: ['x'] });
  const { told, count } = counter(table);
  count();
  t.match(told, [{ calls: 1, group: { keyId: 'b' } }, [812.5, 120.25, -1]]);
});

const few = <T>(...values: T[]) => fc.constantFrom(...values);
/** Calls of few groups. */
const likelyAlike = fc
  .record({
    keyId: few<string | null>('a', 'b', null),
    model: few('m', 'n'),
    status: few(200, 500),
    outcome: few<CallOutcome>('complete', 'refused'),
    inputTokens: fc.nat(),
    outputTokens: fc.nat(),
    cachedTokens: fc.nat(),
    cacheWrittenTokens: fc.nat(),
    reasoningTokens: fc.nat(),
    bytesIn: fc.nat(),
    bytesOut: fc.nat(),
    mediaSeconds: fc.double({ min: 0, max: 1000, noNaN: true }),
    costNanoUsd: fc.nat(),
  })
  .map((record) => ledgerRecord({ at: noon, ...record }));

test('what is counted adds up to the calls, whatever they have in common and whenever somebody asks', async (t) => {
  const groupOf = ({ keyId, model, status, outcome }: CallGroup | LedgerRecord) =>
    `${keyId} ${model} ${status} ${outcome}`;
  fc.assert(
    fc.property(fc.array(fc.tuple(likelyAlike, fc.boolean()), { maxLength: 40 }), (steps) => {
      const table = tableAt(noon);
      const { told, count } = counter(table);
      let asked = 1;
      for (const [record, asks] of steps) {
        addRecord(table, record);
        if (!asks) continue;
        count();
        asked++;
      }
      count();
      const sums = told.filter((each): each is ReturnType<typeof namedSums> => !Array.isArray(each));
      t.equal(told.length - sums.length, steps.length, 'the times of each');
      const groups = new Set(steps.map(([record]) => groupOf(record)));
      t.ok(sums.length <= asked * groups.size, 'a group is told of as one');
      for (const group of groups) {
        const own = steps.flatMap(([record]) => (groupOf(record) === group ? [record] : []));
        const counted = sums.filter((each) => groupOf(each.group) === group);
        const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
        t.equal(sum(counted.map(({ calls }) => calls)), own.length);
        for (const name of amountNames) {
          const amounts = own.map((record) =>
            name === 'mediaMs' ? Math.round(record.mediaSeconds * 1000) : (record[name] ?? 0),
          );
          t.equal(sum(counted.map((each) => each[name])), sum(amounts), name);
        }
      }
    }),
  );
});
