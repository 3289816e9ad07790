import { test } from 'tap';
import { LeastRate } from '../../src/upstream/least-rate.js';

const bound = { bytesPerSecond: 100, graceMs: 10_000 };

/** Looks once a second from `from` on, when `bytesAt` says how much has come. @returns when it was too slow, or -1 */
function cutAt(rate: LeastRate, from: number, to: number, bytesAt: (second: number) => number): number {
  for (let second = from; second <= to; second++)
    if (rate.isTooSlow(second * 1000, bytesAt(second), bound)) return second;
  return -1;
}

test('a body may be slow for as long as the grace, and then not', (t) => {
  t.equal(
    cutAt(new LeastRate(0), 1, 60, (second) => second),
    10,
  );
  t.equal(
    cutAt(new LeastRate(0), 1, 60, (second) => second * 100),
    -1,
  );
  t.equal(
    cutAt(new LeastRate(0), 1, 60, (second) => second * 99),
    10,
  );
  t.end();
});

test('what came early does not count for later', (t) => {
  t.equal(
    cutAt(new LeastRate(0), 1, 60, (second) => 1_000_000 + second),
    20,
  );
  t.end();
});

test('time in which nobody reads does not count', (t) => {
  const rate = new LeastRate(0);
  t.equal(
    cutAt(rate, 1, 9, () => 0),
    -1,
  );
  rate.stop(9000);
  t.equal(
    cutAt(rate, 10, 1000, () => 0),
    -1,
  );
  rate.go(1_000_000);
  t.equal(
    cutAt(rate, 1001, 1010, () => 0),
    1001,
  );
  t.end();
});

test('a process that was busy for long does not blame its peer', (t) => {
  const rate = new LeastRate(0);
  t.notOk(rate.isTooSlow(15_000, 0, bound));
  t.notOk(rate.isTooSlow(16_000, 0, bound));
  t.end();
});

test('where there is no bound, nothing is too slow', (t) => {
  const rate = new LeastRate(0);
  for (let second = 1; second < 100; second++)
    t.notOk(rate.isTooSlow(second * 1000, 0, { bytesPerSecond: 0, graceMs: 1000 }));
  t.end();
});
