import t, { test } from 'tap';
import { bodies } from '../stress/bodies.js';

test('large bodies that all wait at once are all answered, and held only once', async (t) => {
  const connections = 50;
  const bodyBytes = 150_000;
  const figures = await bodies({ connections, bodyBytes, restSeconds: 0 });
  t.strictSame(figures.problems, []);
  t.equal(figures.answered, connections);
  const growth = figures.peakMb - figures.beforeMb;
  t.ok(growth < 64, `${growth} MB for ${(connections * bodyBytes) / 1e6} MB of bodies`);
});

t.end();
