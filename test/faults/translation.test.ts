import t, { test } from 'tap';
import { slowTranslations } from '../stress/translation.js';

test('translated streams of clients that hardly read cost no memory', async (t) => {
  const figures = await slowTranslations({
    readers: 8,
    bytesPerSecond: 1024,
    streamMegabytes: 100,
    seconds: 2,
    warmUpSeconds: 1,
    withinMs: 60_000,
  });
  t.strictSame(figures.paths, ['translated']);
  t.ok(figures.highestMb - figures.beforeMb < 64, `from ${figures.beforeMb} to ${figures.highestMb} MB`);
  t.ok(figures.bytesRead >= 8 * 1024);
  t.equal(figures.cut, 0);
  t.equal(figures.openBeforeLeaving, 8);
  t.equal(figures.openAfterLeaving, 0);
  t.equal(figures.cancelled, 8);
});

t.end();
