import t, { test } from 'tap';
import { slowReaders } from '../stress/slow-readers.js';

test('clients that hardly read cost no memory, are not cut, and leave nothing open upstream', async (t) => {
  const figures = await slowReaders({
    readers: 4,
    bytesPerSecond: 1024,
    streamMegabytes: 100,
    seconds: 2,
    warmUpSeconds: 0.5,
    withinMs: 60_000,
  });
  t.ok(figures.highestMb - figures.beforeMb < 64, `from ${figures.beforeMb} to ${figures.highestMb} MB`);
  t.ok(figures.bytesRead >= 4 * 1024);
  t.equal(figures.cut, 0);
  t.equal(figures.openBeforeLeaving, 4);
  t.equal(figures.openAfterLeaving, 0);
  t.equal(figures.cancelled, 4);
});

t.end();
