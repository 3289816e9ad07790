import t, { test } from 'tap';
import { workerDeath } from '../stress/worker-death.js';

test('a worker killed under load costs what it was serving, and nothing on the other worker', async (t) => {
  const figures = await workerDeath({ connections: 8, seconds: 0.5 });
  t.ok(figures.failuresOnVictim <= figures.onVictim, `${figures.failuresOnVictim} of ${figures.onVictim}`);
  t.equal(figures.failuresOnSurvivor, 0);
  t.equal(figures.failuresAfterwards, 0);
  t.ok(figures.answers > 0);
});

t.end();
