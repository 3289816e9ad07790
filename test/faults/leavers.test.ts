import t, { test } from 'tap';
import { leavers } from '../stress/leavers.js';

test('clients that leave mid-stream, by FIN or RST, leave no request open upstream', async (t) => {
  const figures = await leavers({ leavers: 50, rounds: 1, atOnce: 10, withinMs: 10_000 });
  t.strictSame(figures.open, [0]);
  t.equal(figures.noticedMs.length, 50);
});

t.end();
