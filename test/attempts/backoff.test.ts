import { test } from 'tap';
import { backoffMs } from '../../src/attempts/attempts.js';

test('the bound doubles up to the longest, and the draw is a part of it', async (t) => {
  t.same(
    [1, 2, 3, 4, 5, 6, 7, 5000].map((attempt) => backoffMs(attempt, 0.5)),
    [50, 100, 200, 400, 800, 1000, 1000, 1000],
  );
  t.equal(backoffMs(1, 0), 0);
  t.equal(backoffMs(-3, 0.5), 50);
});
