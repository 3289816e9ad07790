import { test } from 'tap';
import { createUnixTime } from '../../src/metrics/unix-time.js';

test('a time stays what it was said to be, until the clock is set', async (t) => {
  const { now } = Date;
  t.teardown(() => {
    Date.now = now;
  });
  const unixTime = createUnixTime();
  const time = performance.now();
  const first = unixTime(time);
  t.ok(Math.abs(first - now()) < 1000);
  for (const drift of [-3, 1, 0.5, 200]) {
    Date.now = () => now() + drift;
    t.equal(unixTime(time), first);
  }
  Date.now = () => now() + 3_600_000;
  t.ok(Math.abs(unixTime(time) - first - 3_600_000) < 1000);
});
