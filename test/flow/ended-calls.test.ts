import { test } from 'tap';
import type { Call } from '../../src/flow/call.js';
import { EndedCalls, isSettled } from '../../src/flow/ended-calls.js';

const calls = Array.from({ length: 70 }, (_, index) => ({ units: index }) as unknown as Call);

test('calls are noted in their order, many at once, and the last ones when asked for', (t) => {
  const noted: Call[] = [];
  const ended = new EndedCalls((call) => noted.push(call));
  ended.add(calls[0] as Call);
  t.equal(noted.length, 0);
  for (const call of calls.slice(1)) ended.add(call);
  t.equal(noted.length, 64);
  ended.flush();
  t.strictSame(noted, calls);
  ended.flush();
  t.equal(noted.length, calls.length, 'each once');
  t.end();
});

test('a call whose client has left, or that was an upload, may still change', (t) => {
  const call = (outcome: string, upload: object | null) => ({ outcome, upload }) as unknown as Call;
  t.ok(isSettled(call('complete', null)));
  t.notOk(isSettled(call('client_gone', null)));
  t.notOk(isSettled(call('complete', {})));
  t.end();
});
