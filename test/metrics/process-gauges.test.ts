import { test } from 'tap';
import { watchProcess } from '../../src/metrics/gauges.js';

test('a process knows its memory, and how late its timers were', async (t) => {
  const watch = watchProcess();
  t.teardown(() => watch.close());
  const nothingYet = watch.read();
  t.same(nothingYet.loopDelay, { p50: 0, p99: 0, max: 0 });
  t.ok(nothingYet.residentBytes > nothingYet.heapBytes && nothingYet.heapBytes > 0);

  // Two looks at least, with the loop blocked between them.
  await new Promise((resolve) => setTimeout(resolve, 60));
  const blockedUntil = performance.now() + 100;
  while (performance.now() < blockedUntil);
  await new Promise((resolve) => setTimeout(resolve, 60));
  const { loopDelay } = watch.read();
  const { p50, p99, max } = loopDelay;
  t.ok(max > 0.05 && max >= p99 && p99 >= p50 && p50 >= 0, `${p50} ${p99} ${max}`);
  t.ok(watch.read().loopDelay.max >= max, 'who asks next hears of it too');
  const now = performance.now();
  // Another look at the same time, which may have begun some milliseconds before or after the first.
  t.ok(watch.read(now + 31_000).loopDelay.max > 0.05);
  // Nothing has happened since, which is all that is left.
  t.ok(watch.read(now + 62_000).loopDelay.max < max);
});

test('a process that has no descriptor left tells the memory that it last knew of', async (t) => {
  const watch = watchProcess();
  t.teardown(() => watch.close());
  const { residentBytes } = watch.read();
  const noneLeft = (): never => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  };
  t.intercept(process.memoryUsage, 'rss', { value: noneLeft });
  const later = watch.read();
  t.equal(later.residentBytes, residentBytes);
  t.ok(later.heapBytes > 0);
});
