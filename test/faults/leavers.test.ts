import t, { test } from 'tap';
import { leavers } from '../stress/leavers.js';

test('clients that leave mid-stream, by FIN or RST, leave no request open upstream', async (t) => {
  // An upstream is read on for ten seconds from the notice of a leaving, which may come a moment after the last has left.
  const figures = await leavers({ leavers: 50, rounds: 1, atOnce: 10, withinMs: 60_000 });
  t.strictSame(figures.open, [0]);
  t.equal(figures.noticedMs.length, 50);
});

t.end();
