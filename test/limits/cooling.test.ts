import { test } from 'tap';
import { bucketMs, Cooling } from '../../src/limits/cooling.js';
import { fc } from '../support/seed.js';

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
      const cooling = new Cooling(5000);
      const used: { at: number; bucket: number; amount: number }[] = [];
      let now = 12_345;
      for (const { afterMs, amount, unused } of plan) {
        now += afterMs;
        const due = used.filter(({ bucket }) => (bucket + 1) * bucketMs + 5000 <= now);
        const collected = cooling.collect(now);
        if (collected !== due.reduce((sum, use) => sum + use.amount, 0)) return false;
        used.splice(0, due.length);
        const bucket = cooling.add(now, amount);
        used.push({ at: now, bucket, amount });
        const taken = used[unused];
        if (taken !== undefined) {
          if (cooling.remove(taken.bucket, taken.amount) !== taken.amount) return false;
          taken.amount = 0;
        }
        const left = used.filter((use) => use.amount > 0);
        if (left.some(({ at, bucket: in_ }) => (in_ + 1) * bucketMs <= at || in_ * bucketMs > at))
          return false;
        if (cooling.total !== left.reduce((sum, use) => sum + use.amount, 0)) return false;
        const end = (use: { bucket: number } | undefined) =>
          use === undefined ? null : (use.bucket + 1) * bucketMs + 5000;
        if (cooling.nextAt() !== end(left[0]) || cooling.lastAt() !== end(left.at(-1))) return false;
      }
      return true;
    }),
    { numRuns: 300 },
  );
  t.pass();
  t.end();
});

test('units that have come back cannot be taken out', (t) => {
  const cooling = new Cooling(5000);
  const bucket = cooling.add(1000, 3);
  t.equal(cooling.collect(6099), 0);
  t.equal(cooling.collect(6100), 3);
  t.equal(cooling.remove(bucket, 3), 0);
  t.equal(cooling.total, 0);
  t.end();
});

test('a clock that goes back brings nothing back early', (t) => {
  const cooling = new Cooling(5000);
  cooling.add(2000, 1);
  cooling.add(1000, 1);
  t.equal(cooling.collect(6500), 0);
  t.equal(cooling.collect(7100), 2);
  t.end();
});
