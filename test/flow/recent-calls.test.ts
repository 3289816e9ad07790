import { test } from 'tap';
import type { Call } from '../../src/flow/call.js';
import { createRecentCalls } from '../../src/flow/recent-calls.js';
import { UnixTime } from '../../src/metrics/unix-time.js';
import { target } from '../metrics/facts.js';

/** A call that has ended well at this moment, as far as its record goes, but for what is given. */
function endedCall(given: { exchange?: object; [name: string]: unknown } = {}): Call {
  const endedAt = performance.now();
  const { exchange, ...rest } = given;
  return {
    exchange: { id: 'req_1', method: 'POST', path: '/v1/chat/completions', status: 200, ...exchange },
    route: { protocol: 'chat' },
    model: { name: 'm' },
    key: { id: 'team' },
    target: target('up', 'm-1'),
    usage: { input: 7, output: 5 },
    error: null,
    outcome: 'complete',
    retries: 0,
    startedAt: endedAt - 250,
    sentAt: endedAt - 249.75,
    answeredAt: endedAt - 150,
    endedAt,
    ...rest,
  } as unknown as Call;
}

test('a call that went well is remembered with its times', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  t.same(calls.list(), []);
  const before = Date.now();
  calls.add(endedCall());
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
    inputTokens: 7,
    outputTokens: 5,
  });
});

test('a call that came to nothing has no times and names but its own', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  const none = { route: null, model: null, key: null, target: null, usage: null, sentAt: 0, answeredAt: 0 };
  calls.add(endedCall({ ...none, outcome: 'refused', error: { kind: 'invalid_api_key' } }));
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
  calls.add(endedCall({ retries: 1 }));
  t.match(calls.list()[0], { ownMs: null, firstByteMs: 100, retries: 1 });
});

test('the last hundred are remembered, newest first, and nothing of those before', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  const ids = () => calls.list().map(({ id }) => id);
  for (let i = 0; i < 3; i++) calls.add(endedCall({ exchange: { id: `a${i}` } }));
  t.same(ids(), ['a2', 'a1', 'a0']);
  for (let i = 0; i < 250; i++) calls.add(endedCall({ exchange: { id: `b${i}` }, usage: null }));
  t.same(
    ids(),
    Array.from({ length: 100 }, (_, age) => `b${249 - age}`),
  );
  t.ok(calls.list().every(({ inputTokens }) => inputTokens === 0));
});

test('what a client is free to choose is cut, and no key is shown', async (t) => {
  const calls = createRecentCalls(new UnixTime());
  calls.add(endedCall({ exchange: { path: `/${'x'.repeat(5000)}`, method: 'M'.repeat(100) } }));
  calls.add(endedCall({ exchange: { path: '/v1beta/models/m:generateContent%3Fkey=sk-secret&alt=sse' } }));
  const [encoded, long] = calls.list();
  t.equal(long?.path, `/${'x'.repeat(255)}…`);
  t.equal(long?.method, `${'M'.repeat(16)}…`);
  t.equal(encoded?.path, '/v1beta/models/m:generateContent%3Fkey=…&alt=sse');
});
