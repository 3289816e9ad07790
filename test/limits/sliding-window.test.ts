import { test } from 'tap';
import { bucketMs, SlidingWindow } from '../../src/limits/sliding-window.js';
import { cases, fc } from '../support/seed.js';

test('units come back after the time and within a bucket, but for those that were taken out', (t) => {
  const uses = fc.array(
    fc.record({
      afterMs: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 3000 }),
        fc.double({ min: 0, max: 90, noNaN: true }),
      ),
      amount: fc.nat(9),
      unused: fc.nat(12),
    }),
    { maxLength: 80 },
  );
  fc.assert(
    fc.property(uses, (plan) => {
      const window = new SlidingWindow(5000);
      const used: { at: number; bucket: number; amount: number }[] = [];
      let now = 12_345;
      for (const { afterMs, amount, unused } of plan) {
        now += afterMs;
        const due = used.filter(({ bucket }) => (bucket + 1) * bucketMs + 5000 <= now);
        const collected = window.collect(now);
        if (collected !== due.reduce((sum, use) => sum + use.amount, 0)) return false;
        used.splice(0, due.length);
        const bucket = window.add(now, amount);
        used.push({ at: now, bucket, amount });
        const taken = used[unused];
        if (taken !== undefined) {
          if (window.remove(taken.bucket, taken.amount) !== taken.amount) return false;
          taken.amount = 0;
        }
        const left = used.filter((use) => use.amount > 0);
        if (left.some(({ at, bucket: in_ }) => (in_ + 1) * bucketMs <= at || in_ * bucketMs > at))
          return false;
        if (window.total !== left.reduce((sum, use) => sum + use.amount, 0)) return false;
        const end = (use: { bucket: number } | undefined) =>
          use === undefined ? null : (use.bucket + 1) * bucketMs + 5000;
        if (window.nextAt() !== end(left[0]) || window.lastAt() !== end(left.at(-1))) return false;
      }
      return true;
    }),
    { numRuns: cases(300) },
  );
  t.pass();
  t.end();
});

test('units that have come back cannot be taken out', (t) => {
  const window = new SlidingWindow(5000);
  const bucket = window.add(1000, 3);
  t.equal(window.collect(6099), 0);
  t.equal(window.collect(6100), 3);
  t.equal(window.remove(bucket, 3), 0);
  t.equal(window.total, 0);
  t.end();
});

test('a clock that goes back brings nothing back early', (t) => {
  const window = new SlidingWindow(5000);
  window.add(2000, 1);
  window.add(1000, 1);
  t.equal(window.collect(6500), 0);
  t.equal(window.collect(7100), 2);
  t.end();
});

test('while little of a limit is used, units come back within 8 s of their time, never early, and can be taken out', (t) => {
  const uses = fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: 6000 }), amount: fc.integer({ min: 1, max: 4 }) }),
    { minLength: 1, maxLength: 60 },
  );
  fc.assert(
    fc.property(uses, fc.nat(), (plan, undone) => {
      const window = new SlidingWindow(60_000);
      const used: { at: number; bucket: number; amount: number }[] = [];
      let now = 12_345;
      let back = 0;
      for (const [index, { afterMs, amount }] of plan.entries()) {
        now += afterMs;
        back += window.collect(now);
        used.push({ at: now, bucket: window.add(now, amount, 10_000), amount });
        if (index !== undone % plan.length) continue;
        const chosen = used[undone % used.length] as (typeof used)[number];
        const removed = window.remove(chosen.bucket, chosen.amount);
        const hasComeBack = chosen.at + 60_000 <= now;
        if (removed !== chosen.amount && !hasComeBack) return false;
        chosen.amount -= removed;
        const expired = used.filter(({ at }) => at + 60_000 <= now).reduce((sum, use) => sum + use.amount, 0);
        if (back > expired) return false;
      }
      const left = () => used.reduce((sum, use) => sum + use.amount, 0) - back;
      if (window.total !== left()) return false;
      for (; window.total > 0; now += 50) {
        back += window.collect(now);
        const early = used.filter(({ at }) => at + 60_000 > now).reduce((sum, use) => sum + use.amount, 0);
        const late = used.filter(({ at }) => at + 68_100 <= now).reduce((sum, use) => sum + use.amount, 0);
        if (window.total < early || back < late) return false;
      }
      return left() === 0;
    }),
    { numRuns: cases(300) },
  );
  t.pass();
  t.end();
});

test('a pool that is used now and then takes memory for few buckets, and an exact one for each', (t) => {
  const coarse = new SlidingWindow(60_000);
  const exact = new SlidingWindow(60_000);
  let returned = 0;
  for (let now = 0; now < 60_000; now += 100) {
    coarse.add(now, 1, 1_000_000);
    exact.add(now, 1);
  }
  // Eight times, the units of 8 s each.
  for (let now = 60_000; now < 130_000; now += 100) if (coarse.collect(now) > 0) returned++;
  t.equal(returned, 8);
  t.equal(exact.collect(60_100), 1);
  t.equal(exact.collect(60_200), 1);
  t.end();
});
