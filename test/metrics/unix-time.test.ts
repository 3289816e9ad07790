import { test } from 'tap';
import { UnixTime } from '../../src/metrics/unix-time.js';

test('a time stays what it was said to be, until the clock is set', async (t) => {
  const { now } = Date;
  t.teardown(() => {
    Date.now = now;
  });
  const unixTime = new UnixTime();
  const time = performance.now();
  const first = unixTime.at(time);
  t.ok(Math.abs(first - now()) < 1000);
  for (const drift of [-3, 1, 0.5, 3]) {
    Date.now = () => now() + drift;
    unixTime.check();
    t.equal(unixTime.at(time), first);
  }
  Date.now = () => now() + 3_600_000;
  t.equal(unixTime.at(time), first, 'nobody has looked');
  unixTime.check();
  t.ok(Math.abs(unixTime.at(time) - first - 3_600_000) < 1000);
});
