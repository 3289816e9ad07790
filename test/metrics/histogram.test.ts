import { test } from 'tap';
import { latencyBounds, ownBounds } from '../../src/metrics/families.js';
import { Histogram, percentile } from '../../src/metrics/tables.js';
import { cases, fc } from '../support/seed.js';

const allBounds = [latencyBounds, ownBounds, [1]];
const someBounds = fc.constantFrom(...allBounds);
const duration = fc.oneof(
  fc.double({ min: 0, max: 600, noNaN: true }),
  fc.double({ min: 0, max: 0.01, noNaN: true }),
  fc.constantFrom(0, ...latencyBounds),
);

/** The bounds between which a duration lies. */
function bucketOf(bounds: readonly number[], seconds: number): number {
  const index = bounds.findIndex((bound) => seconds <= bound);
  return index === -1 ? bounds.length : index;
}

test('bounds ascend by at most a factor of two and a half', async (t) => {
  for (const bounds of [latencyBounds, ownBounds]) {
    for (let i = 1; i < bounds.length; i++) {
      const factor = (bounds[i] as number) / (bounds[i - 1] as number);
      t.ok(factor > 1 && factor < 2.5001, `${bounds[i]}`);
    }
  }
});

test('every duration is counted in its own bucket, a bound within the one below it', async (t) => {
  fc.assert(
    fc.property(someBounds, fc.array(fc.oneof(duration, fc.double({ min: 0, max: 1e9 }))), (bounds, all) => {
      const histogram = new Histogram(bounds);
      const naive = new Array<number>(bounds.length + 1).fill(0);
      for (const seconds of all) {
        histogram.observe(seconds);
        if (Number.isFinite(seconds)) (naive[bucketOf(bounds, seconds)] as number)++;
      }
      t.same([...histogram.counts], naive);
    }),
  );
});

test('what is no duration is not counted, and a negative one is zero', async (t) => {
  const histogram = new Histogram([1, 2]);
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    histogram.observe(value);
  t.same([...histogram.counts], [0, 0, 0]);
  histogram.observe(-5);
  t.same([...histogram.counts], [1, 0, 0]);
  t.equal(histogram.sum, 0);
});

test('two histograms add up to one that saw everything', async (t) => {
  const eighths = fc.array(fc.integer({ min: 0, max: 8000 }).map((n) => n / 8));
  fc.assert(
    fc.property(eighths, eighths, (left, right) => {
      const parts = [left, right].map((all) => {
        const part = new Histogram(latencyBounds);
        for (const seconds of all) part.observe(seconds);
        return part;
      });
      const [sum, other] = parts as [Histogram, Histogram];
      sum.add(other);
      const whole = new Histogram(latencyBounds);
      for (const seconds of [...left, ...right]) whole.observe(seconds);
      t.same([...sum.counts], [...whole.counts]);
      t.equal(sum.sum, whole.sum);
      sum.clear();
      t.ok(sum.counts.every((count) => count === 0));
      t.equal(sum.sum, 0);
    }),
  );
});

test('a percentile lies in the bucket of the true one', async (t) => {
  const share = fc.oneof(fc.constantFrom(0, 0.5, 0.95, 0.99, 1), fc.double({ min: 0, max: 1, noNaN: true }));
  fc.assert(
    fc.property(someBounds, fc.array(duration, { minLength: 1 }), share, (bounds, all, part) => {
      const histogram = new Histogram(bounds);
      for (const seconds of all) histogram.observe(seconds);
      const rank = Math.max(1, Math.ceil(part * all.length));
      const truth = all.toSorted((a, b) => a - b)[rank - 1] as number;
      const estimate = percentile(histogram.bounds, histogram.counts, part) as number;
      const bucket = bucketOf(bounds, truth);
      const lower = bounds[bucket - 1] ?? 0;
      const upper = bounds[bucket] ?? lower;
      t.ok(estimate >= lower && estimate <= upper, `${estimate} for ${truth}`);
    }),
    { numRuns: cases(300) },
  );
});

test('percentiles rise with their share', async (t) => {
  const histogram = new Histogram(latencyBounds);
  for (const seconds of fc.sample(duration, 500)) histogram.observe(seconds);
  let before = 0;
  for (let share = 0; share <= 1; share += 0.01) {
    const estimate = percentile(histogram.bounds, histogram.counts, share) as number;
    t.ok(estimate >= before);
    before = estimate;
  }
});

test('without durations there is no percentile, and above every bound only the last is known', async (t) => {
  const histogram = new Histogram([1, 2]);
  t.equal(percentile(histogram.bounds, histogram.counts, 0.5), null);
  histogram.observe(1000);
  t.equal(percentile(histogram.bounds, histogram.counts, 0.5), 2);
});
