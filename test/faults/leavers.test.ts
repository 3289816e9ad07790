import t, { test } from 'tap';
import { drainedLeavers, leavers, mostReadOn } from '../stress/leavers.js';

const withinMs = 60_000;

test('clients that leave mid-stream, by FIN or RST, leave no request open upstream', async (t) => {
  const figures = await leavers({ leavers: 50, rounds: 1, atOnce: 10, withinMs });
  t.strictSame(figures.open, [0]);
  t.equal(figures.noticedMs.length, 50);
});

test('of a crowd that leaves, some are read on for, and that ends', async (t) => {
  const figures = await drainedLeavers({ leavers: mostReadOn + 10, rounds: 1, atOnce: 10, withinMs });
  t.ok(figures.readOn <= mostReadOn, `${figures.readOn} are open`);
  t.equal(figures.openAtEnd, 0);
});

t.end();
