import t, { test } from 'tap';
import { nextRestart } from '../../src/supervisor/keep.js';

test('a process that had served for a while is replaced at once, and its past is forgotten', (t) => {
  t.strictSame(nextRestart(60_000, 7), { failures: 0, delayMs: 0 });
  t.end();
});

test('a process that had served for a moment is replaced at once, and waited with when that comes again', (t) => {
  const first = nextRestart(1500, 0);
  t.strictSame(first, { failures: 1, delayMs: 0 });
  t.strictSame(nextRestart(1500, first.failures), { failures: 2, delayMs: 200 });
  t.end();
});

test('a process that keeps failing waits twice as long each time, up to ten seconds', (t) => {
  const delays: number[] = [];
  let failures = 0;
  for (let round = 0; round < 9; round += 1) {
    const restart = nextRestart(0, failures);
    failures = restart.failures;
    delays.push(restart.delayMs);
  }
  t.strictSame(delays, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
  t.end();
});

t.end();
