import { test } from 'tap';
import { createConditions } from '../../src/supervisor/workers.js';

test('a condition that holds is not waited for, and another until it does', async (t) => {
  const conditions = createConditions();
  let count = 0;
  t.equal(await conditions.until(() => count === 0, 60_000), true);
  const waited = conditions.until(() => count === 2, 60_000);
  for (count = 1; count < 2; count += 1) conditions.changed();
  conditions.changed();
  t.equal(await waited, true);
});

test('a condition that does not come true is given up in time', async (t) => {
  const conditions = createConditions();
  t.equal(await conditions.until(() => false, 1), false);
  conditions.changed();
});
