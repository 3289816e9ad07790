import { test } from 'tap';
import { createRecentCalls } from '../../../src/flow/record/recent-calls.js';
import { type CallRecord, none } from '../../../src/metrics/call-record.js';
import { UnixTime } from '../../../src/metrics/unix-time.js';
import { callRecord, type GivenRecord } from '../../support/call-record.js';

/** A call that has ended well at this moment, but for what is given. */
function endedCall(given: GivenRecord = {}): CallRecord {
  const usage = { input: 7, output: 5, cached: 0, reasoning: 0 };
  const times = { endedAt: performance.now(), durationMs: 250, firstByteMs: 100, ownMs: 0.25 };
  return callRecord({ model: 'm', keyId: 'team', usage, ...times, ...given });
}

test('a call that went well is remembered with its times', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  t.same(calls.list(), []);
  const before = Date.now();
  calls.add(endedCall({ leftOut: ['top_k'] }));
  const [{ at = 0, ...call } = {}, ...others] = calls.list();
  t.equal(calls.list()[0]?.at, at);
  t.same(others, []);
  t.ok(at >= before - 2 && at <= Date.now() + 2, `${at} is about ${before}`);
  t.strictSame(call, {
    id: 'req_1',
    method: 'POST',
    path: '/v1/chat/completions',
    protocol: 'chat',
    model: 'm',
    key: 'team',
    target: 'up/m-1',
    status: 200,
    outcome: 'complete',
    error: null,
    durationMs: 250,
    firstByteMs: 100,
    ownMs: 0.25,
    retries: 0,
    leftOut: ['top_k'],
    lostInAnswer: [],
    inputTokens: 7,
    outputTokens: 5,
  });
});

test('a call that came to nothing has no times and names but its own', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  const nothing = { protocol: null, model: null, keyId: null, target: null, usage: null };
  const early = { outcome: 'refused', error: 'invalid_api_key', firstByteMs: none, ownMs: none } as const;
  calls.add(endedCall({ ...nothing, ...early }));
  t.match(calls.list(), [
    {
      protocol: null,
      model: null,
      key: null,
      target: null,
      outcome: 'refused',
      error: 'invalid_api_key',
      firstByteMs: null,
      ownMs: null,
      inputTokens: 0,
    },
  ]);
  calls.add(endedCall({ retries: 1, ownMs: none }));
  t.match(calls.list()[0], { ownMs: null, firstByteMs: 100, retries: 1 });
});

test('the last hundred are remembered, newest first, and nothing of those before', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  const ids = () => calls.list().map(({ id }) => id);
  for (let i = 0; i < 3; i++) calls.add(endedCall({ id: `a${i}` }));
  t.same(ids(), ['a2', 'a1', 'a0']);
  for (let i = 0; i < 250; i++) calls.add(endedCall({ id: `b${i}`, usage: null }));
  t.same(
    ids(),
    Array.from({ length: 100 }, (_, age) => `b${249 - age}`),
  );
  t.ok(calls.list().every(({ inputTokens }) => inputTokens === 0));
});

test('what a client is free to choose is cut, and no key is shown', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  calls.add(endedCall({ path: `/${'x'.repeat(5000)}`, method: 'M'.repeat(100) }));
  calls.add(endedCall({ path: '/v1beta/models/m:generateContent%3Fkey=sk-secret&alt=sse' }));
  const [encoded, long] = calls.list();
  t.equal(long?.path, `/${'x'.repeat(255)}…`);
  t.equal(long?.method, `${'M'.repeat(16)}…`);
  t.equal(encoded?.path, '/v1beta/models/m:generateContent%3Fkey=…&alt=sse');
});
