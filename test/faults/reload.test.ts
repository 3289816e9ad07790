import t, { test } from 'tap';
import { reload } from '../stress/reload.js';

test('reloads under load fail no request, a bad file changes nothing, and the last good one is in force', async (t) => {
  const figures = await reload({ connections: 8, reloads: 4, everyMs: 100 });
  t.strictSame(figures.failures, []);
  t.ok(figures.answers > 0);
  t.equal(figures.refusals, 1);
  t.strictSame(figures.modelsAfterBad, ['m model-1']);
  t.strictSame(figures.modelsAtEnd, ['last m']);
});

t.end();
