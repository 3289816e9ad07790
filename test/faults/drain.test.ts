import t, { test } from 'tap';
import { drain } from '../stress/drain.js';

test('SIGTERM under load fails no request, lets open streams end, and exits with 0', async (t) => {
  const figures = await drain({
    workers: 2,
    busy: 6,
    pausing: 6,
    streams: 4,
    streamSeconds: 1,
    seconds: 0.5,
  });
  t.strictSame(figures.failures, []);
  t.ok(figures.answers > 0);
  t.equal(figures.streamsWhole, 4);
  t.strictSame(figures.exit, { code: 0, signal: null });
});

t.end();
