import { test } from 'tap';
import { RecordQueue } from '../../../src/flow/record/account.js';
import type { CallRecord } from '../../../src/metrics/call-record.js';
import { callRecord } from '../../support/call-record.js';

const calls = Array.from({ length: 70 }, (_, index) => callRecord({ number: index }));

const noFault = (fault: unknown): void => {
  throw fault;
};

test('calls are noted in their order, many at once, and the last ones when asked for', (t) => {
  const noted: CallRecord[] = [];
  const queue = new RecordQueue((call) => noted.push(call), noFault);
  const [first, ...others] = calls;
  if (first !== undefined) queue.add(first);
  t.equal(noted.length, 0);
  for (const call of others) queue.add(call);
  t.equal(noted.length, 64);
  queue.flush();
  t.strictSame(noted, calls);
  queue.flush();
  t.equal(noted.length, calls.length, 'each once');
  t.end();
});
