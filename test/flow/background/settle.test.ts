import { type Test, test } from 'tap';
import { resolvePrice } from '../../../src/config/resolve.js';
import { settleShown, watchedResponses } from '../../../src/flow/background/settle.js';
import type { Services } from '../../../src/flow/services.js';
import type { CollectedAnswer } from '../../../src/flow/upstream/collect.js';
import { type CallRecord, unknownCost } from '../../../src/metrics/call-record.js';
import { createStore } from '../../../src/store/create.js';
import type { WholeStore } from '../../../src/store/store.js';
import { BackgroundCalls } from '../../../src/usage/background-calls.js';
import { callRecord } from '../../support/call-record.js';
import { servicesOf, settlingWith } from '../../support/tasks/settling.js';
import { temporaryFolder } from '../../support/temporary-folder.js';

const pool = 'budget of k';
const limit = 10_000_000;
const hourMs = 60 * 60 * 1000;
/** Of which the call has reserved so much, in nano-dollars. */
const reserved = 500;
const spentByOthers = 2000;
const id = 'k/resp_1';

interface Stage {
  readonly services: Services;
  readonly calls: BackgroundCalls;
  readonly records: CallRecord[];
  /** What is reserved of the budget. */
  spent(): Promise<number>;
}

/** A call whose response was begun so long ago. */
async function start(t: Test, ageMs: number): Promise<Stage> {
  const store: WholeStore = createStore({ kind: 'embedded', path: temporaryFolder(t), taskDays: 1 });
  t.teardown(() => store.close());
  const asked = { limit, least: 0, want: 0, debt: null, ttlMs: hourMs };
  await store.accounts.reserve(pool, { ...asked, owed: spentByOthers + reserved });
  const calls = new BackgroundCalls(store);
  await calls.add({
    response: 'resp_1',
    upstream: 'u',
    upstreamModel: 'm',
    credential: null,
    at: Date.now() - ageMs,
    reserved: [{ pool, limit, amount: reserved }],
    factor: 1,
    streamed: 0,
    record: callRecord({
      id: 'req_of_creation',
      keyId: 'k',
      model: 'm',
      outcome: 'incomplete',
      usage: { input: 3, output: 7, cached: 0, reasoning: 0 },
      costNanoUsd: reserved,
      paidNanoUsd: unknownCost,
    }),
  });
  const settling = settlingWith(store);
  const records: CallRecord[] = [];
  const price = resolvePrice({ input: 1, output: 2 });
  const services = {
    ...servicesOf(settling),
    background: calls,
    correct: async (record: CallRecord) => void records.push(record),
    running: {
      snapshot: {
        models: new Map([['m', { price, targets: [] }]]),
        upstreams: new Map([['u', { name: 'u', apiKeys: [] }]]),
        timeouts: { totalMs: 1000 },
      },
    },
  } as unknown as Services;
  return { services, calls, records, spent: () => store.accounts.reservedOf(pool) };
}

/** Has the response looked at once by an upstream that answers so. */
async function look({ services }: Stage, status: number, body: string): Promise<void> {
  const work = await watchedResponses(services, () => true).find(id);
  const answered = { head: { status }, body: Buffer.from(body), refusal: null, sentMs: 1 };
  await work?.work(async () => answered as unknown as CollectedAnswer);
}

const completed = Buffer.from(
  '{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":100,"output_tokens":50}}',
);

test('what it uses beyond what was reserved of a budget is taken once, however often its end is seen', async (t) => {
  const stage = await start(t, 1000);
  t.equal(await stage.spent(), spentByOthers + reserved);
  for (let i = 0; i < 3; i++) await settleShown(stage.services, 'k', 'resp_1', completed);
  t.match(stage.records, [{ id: 'req_of_creation', outcome: 'complete', usage: { input: 100, output: 50 } }]);
  t.equal(stage.records.length, 1);
  t.equal(stage.records[0]?.costNanoUsd, 200_000);
  t.equal(await stage.spent(), spentByOthers + 200_000);
  t.equal(await stage.calls.find(id), null);
});

test('what a stream has shown counts also if it is written while its end is settled', async (t) => {
  const stage = await start(t, 1000);
  const { calls } = stage;
  const claim = calls.claim.bind(calls);
  calls.claim = async (...asked) => {
    await calls.noteStreamed(id, 90);
    return claim(...asked);
  };
  await settleShown(stage.services, 'k', 'resp_1', Buffer.from('{"id":"resp_1","status":"cancelled"}'));
  t.match(stage.records, [{ usage: { output: 90, partial: true } }]);
});

test('a response that goes on is not settled', async (t) => {
  const stage = await start(t, hourMs);
  for (const body of [
    '{"status":"queued"}',
    '{"status":"in_progress","usage":{"input_tokens":1}}',
    '{}',
    '[]',
  ])
    await look(stage, 200, body);
  await look(stage, 500, completed.toString());
  t.equal(stage.records.length, 0);
  t.not(await stage.calls.find(id), null);
});

test('one that its upstream does not know is charged what it was taken for, once it should know it', async (t) => {
  const young = await start(t, 0);
  await look(young, 404, '{}');
  t.equal(young.records.length, 0);
  const old = await start(t, hourMs);
  await look(old, 404, '{}');
  t.match(old.records, [{ costNanoUsd: reserved, usage: { input: 3, output: 7, estimated: true } }]);
  t.equal(await old.spent(), spentByOthers + reserved);
});

test('one that does not end is charged what it was taken for after a day', async (t) => {
  const stage = await start(t, 24 * hourMs);
  await look(stage, 200, '{"status":"in_progress"}');
  t.match(stage.records, [{ costNanoUsd: reserved, outcome: 'incomplete', usage: { estimated: true } }]);
});

test('one of which nobody could ask for a day is charged what it has used, if it has ended', async (t) => {
  const stage = await start(t, 24 * hourMs);
  await look(stage, 200, completed.toString());
  t.match(stage.records, [{ costNanoUsd: 200_000, outcome: 'complete', usage: { input: 100, output: 50 } }]);
  const failing = await start(t, 24 * hourMs);
  await look(failing, 500, '{}');
  t.match(failing.records, [{ costNanoUsd: reserved, outcome: 'incomplete', usage: { estimated: true } }]);
});

test('one whose model is gone from the config costs what it was taken for, with the tokens that it used', async (t) => {
  const stage = await start(t, 1000);
  (stage.services.running.snapshot.models as Map<string, unknown>).clear();
  await settleShown(stage.services, 'k', 'resp_1', completed);
  t.match(stage.records, [{ costNanoUsd: reserved, usage: { input: 100, output: 50 } }]);
});

test('a call that the store does not take is noted once it does', async (t) => {
  const store = createStore({ kind: 'embedded', path: temporaryFolder(t), taskDays: 1 });
  t.teardown(() => store.close());
  let isDown = true;
  const create: WholeStore['create'] = async (...asked) => {
    if (isDown) throw new Error('the store is down');
    return store.create(...asked);
  };
  const calls = new BackgroundCalls({ ...store, create });
  const call = {
    response: 'resp_1',
    upstream: 'u',
    upstreamModel: 'm',
    credential: 'mark',
    at: Date.now(),
    reserved: [],
    factor: 1,
    streamed: 0,
    record: callRecord({ keyId: 'k' }),
  };
  t.equal(await calls.add(call), true);
  await calls.catchUp();
  t.equal(await calls.find(id), null);
  isDown = false;
  await calls.catchUp();
  t.match(await calls.find(id), { response: 'resp_1', credential: 'mark', record: { keyId: 'k' } });
  isDown = true;
  t.equal(await calls.add({ ...call, response: 'resp_2' }), true);
  t.strictSame(
    calls.close().map(({ response }) => response),
    ['resp_2'],
    'what is still left is told at the end',
  );
});
