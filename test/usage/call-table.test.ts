import { test } from 'tap';
import { CallTable, tableSpanMs } from '../../src/usage/call-table.js';
import { addEntry, addUsage, noTokens, usageEntry } from './entries.js';

const noon = Date.UTC(2026, 2, 9, 12);

/** One that was begun. */
function tableAt(at: number): CallTable {
  const table = new CallTable();
  table.begin(at);
  return table;
}

test('calls are counted as they were, each once', async (t) => {
  const table = tableAt(noon);
  const counted: unknown[] = [];
  const count = () =>
    table.count((facts) => counted.push({ ...facts, usage: facts.usage && { ...facts.usage } }));
  addEntry(table, usageEntry({ at: noon, costNanoUsd: 7 }), { sentAt: 1000.25 });
  count();
  addUsage(table, { at: noon, keyId: 'b', ...noTokens, firstByteMs: null, status: 502 });
  addEntry(table, usageEntry({ at: noon, retries: 1 }), { sentAt: 1000.25 });
  count();
  count();
  t.match(counted, [
    {
      protocol: 'chat',
      model: 'sim-text',
      key: 'team-a',
      status: 200,
      outcome: 'complete',
      durationMs: 812.5,
      firstByteMs: 120.25,
      ownMs: 0.25,
      requestBytes: 400,
      responseBytes: 900,
      usage: { input: 100, output: 20, cached: 60, reasoning: 5 },
      costNanos: 7,
    },
    { key: 'b', status: 502, ownMs: -1, usage: null },
    { key: 'team-a', ownMs: -1 },
  ]);
  t.equal(counted.length, 3);
  t.ok((counted[1] as { readonly firstByteMs: number }).firstByteMs < 0);
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
  t.equal(calls, 1000);
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
  t.equal(table.manners.length, 4);
  t.equal(table.length, 30);
});

test('it begins anew with nothing of the calls before', async (t) => {
  const table = tableAt(noon);
  addUsage(table, { at: noon });
  table.begin(noon + 1);
  t.match(table, { at: noon + 1, length: 0, manners: [], ids: [] });
  addUsage(table, { at: noon + 1, keyId: 'b', requestId: 'x' });
  t.match(table, { length: 1, manners: [{ keyId: 'b' }], ids: ['x'] });
  let counted = 0;
  table.count(() => counted++);
  t.equal(counted, 1);
});
