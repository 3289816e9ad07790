import { test } from 'tap';
import { fuzzHeads } from '../support/head-fuzz.js';
import { seed } from '../support/seed.js';

test('hostile characters anywhere in a request reach no upstream: it gets one clean request, or none', async (t) => {
  const { sent, arrived, faults } = await fuzzHeads(t, seed, 12);
  t.comment(`${sent} sent, ${arrived} arrived`);
  t.strictSame(faults.slice(0, 20), [], `${faults.length} faults, SEED=${seed}`);
  t.ok(arrived > sent / 3, 'honest calls arrive');
});
