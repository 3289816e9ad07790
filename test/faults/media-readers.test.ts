import t, { test } from 'tap';
import { videoReaders } from '../stress/video-readers.js';

test('clients that read a large video slowly get its bytes, and cost no memory', async (t) => {
  const readers = 8;
  const figures = await videoReaders({
    readers,
    bytes: 64 * 1024 ** 2,
    bytesPerSecond: 65_536,
    seconds: 2,
    warmUpSeconds: 0.5,
  });
  t.equal(figures.served, readers);
  t.ok(figures.bytesRead >= readers * 16_384, `${figures.bytesRead} bytes`);
  t.equal(figures.wrong, 0);
  t.equal(figures.cut, 0);
  t.equal(figures.openBeforeLeaving, readers);
  t.equal(figures.openAfterLeaving, 0);
  const growth = figures.highestMb - figures.beforeMb;
  t.ok(growth < 48, `${growth} MB`);
});

t.end();
