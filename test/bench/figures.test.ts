import { test } from 'tap';
import { pairedDifference, quantiles } from '../../bench/figures.js';

test('the difference of pairs is that of their ratios, whatever the machine does to both of a pair', (t) => {
  const others = Array.from({ length: 40 }, (_, at) => 20 + at);
  const values = others.map((other, at) => other * (at % 2 === 0 ? 1.03 : 1.01));
  const { low = 0, middle = 0, high = 0 } = pairedDifference(values, others) ?? {};
  t.ok(Math.abs(middle - 0.02) < 0.001, `${middle}`);
  t.ok(low > 0.015 && low < middle && high > middle && high < 0.025, `${low} to ${high}`);
  t.end();
});

test('a few pairs that something else has spoilt do not move it', (t) => {
  const others = Array.from({ length: 40 }, () => 20);
  const values = others.map((other, at) => (at < 3 ? other * 9 : other * (1 + (at % 5) / 1000)));
  const { middle = 1 } = pairedDifference(values, others) ?? {};
  t.ok(Math.abs(middle) < 0.01, `${middle}`);
  t.end();
});

test('quantiles are those of the values in their order, which stay where they are', (t) => {
  const values = Float64Array.from({ length: 1000 }, (_, at) => (at * 7) % 1000);
  t.same(quantiles(values), { p50: 500, p90: 900, p99: 990, p999: 999 });
  t.same([...values.subarray(0, 3)], [0, 7, 14]);
  t.same(quantiles(new Float64Array()), { p50: 0, p90: 0, p99: 0, p999: 0 });
  t.end();
});

test('of fewer than ten pairs nothing is said', (t) => {
  t.equal(pairedDifference([1, 2, 3], [1, 2, 3]), null);
  t.end();
});
