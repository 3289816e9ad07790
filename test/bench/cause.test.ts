import { test } from 'tap';
import { causeOf, otherCause } from '../../bench/pauses/cause.js';

const turn = { pid: 1, role: 'worker', serves: true, at: 0, cpuMs: 4, gcMs: 0, intervalMs: {} } as const;

test('a turn is put down to what took at least half of it', (t) => {
  t.equal(causeOf({ ...turn, gcMs: 2.5, intervalMs: { flush: 1 } }), 'garbage collection');
  t.equal(causeOf({ ...turn, gcMs: 1, intervalMs: { sweep: 0.2, flush: 2.5 } }), 'each interval of flush');
  t.equal(causeOf({ ...turn, gcMs: 1, intervalMs: { sweep: 1, flush: 1 } }), otherCause);
  t.equal(causeOf(turn), otherCause);
  t.end();
});
