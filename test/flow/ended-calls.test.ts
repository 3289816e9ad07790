import { test } from 'tap';
import type { Call } from '../../src/flow/call.js';
import { EndedCalls } from '../../src/flow/ended-calls.js';

const calls = Array.from(
  { length: 70 },
  (_, index) => ({ units: index, outcome: 'complete', upload: null }) as unknown as Call,
);

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

test('a call whose client has left, or that was an upload, may still change: it is noted at once, behind the others', (t) => {
  const noted: Call[] = [];
  const ended = new EndedCalls((call) => noted.push(call));
  const left = { outcome: 'client_gone', upload: null } as unknown as Call;
  const upload = { outcome: 'complete', upload: {} } as unknown as Call;
  const [first, second] = calls as [Call, Call];
  ended.add(first);
  ended.add(left);
  t.strictSame(noted, [first, left]);
  ended.add(second);
  ended.add(upload);
  t.strictSame(noted, [first, left, second, upload]);
  t.end();
});
