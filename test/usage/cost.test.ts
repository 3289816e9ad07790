import { test } from 'tap';
import type { Price } from '../../src/config/types.js';
import type { Usage } from '../../src/conversation/usage.js';
import { costOf } from '../../src/usage/cost.js';
import { fc } from '../support/seed.js';

const free: Price = { input: 0, output: 0, cached: 0, cacheWritten: 0, perCall: 0, perSecond: 0 };
const none: Usage = { input: 0, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };

function tokens(price: Partial<Price>, usage: Partial<Usage>): number {
  return costOf({ ...free, ...price }, { usage: { ...none, ...usage }, seconds: 0, calls: 0 });
}

test('tokens, calls and seconds have their prices', async (t) => {
  t.equal(tokens({ input: 1.25, output: 10 }, { input: 1000, output: 200 }), 3_250_000);
  t.equal(
    tokens({ input: 2, cached: 0.5, cacheWritten: 2.5 }, { input: 100, cached: 60, cacheWritten: 30 }),
    125_000,
  );
  const price = { ...free, perCall: 0.04, perSecond: 0.006 };
  t.equal(costOf(price, { usage: null, seconds: 0, calls: 1 }), 40_000_000);
  t.equal(costOf(price, { usage: null, seconds: 12.345, calls: 0 }), 74_070_000);
  t.equal(costOf(free, { usage: { ...none, input: 1e9 }, seconds: 100, calls: 5 }), 0);
});

test('reasoning is part of the output, and not charged again', async (t) => {
  t.equal(tokens({ output: 10 }, { output: 100, reasoning: 90 }), 1_000_000);
});

test('fractions of a nano-dollar are rounded once, half up', async (t) => {
  // A token costs 0.1, 0.5 and 0.4 nano-dollars.
  t.equal(tokens({ input: 0.0001 }, { input: 4 }), 0);
  t.equal(tokens({ input: 0.0001 }, { input: 5 }), 1);
  t.equal(tokens({ input: 0.0005 }, { input: 3 }), 2);
  t.equal(tokens({ input: 0.0001, output: 0.0004 }, { input: 1, output: 1 }), 1);
  t.equal(tokens({ input: 1e-7 }, { input: 1_000_000 }), 100);
});

test('counts that cannot be are none, and more cached than there is counts as all', async (t) => {
  const price = { input: 3, cached: 1, cacheWritten: 4 };
  t.equal(tokens(price, { input: 10, cached: 50, cacheWritten: 50 }), 10_000);
  t.equal(tokens(price, { input: 10, cached: 4, cacheWritten: 50 }), 28_000);
  for (const input of [-1, Number.NaN, Number.POSITIVE_INFINITY]) t.equal(tokens(price, { input }), 0);
  t.equal(tokens(price, { input: 9.6 }), 30_000);
});

test('a price that is none is refused', async (t) => {
  for (const input of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => tokens({ input }, { input: 1 }), RangeError);
  }
});

test('amounts stop where they cannot be counted', async (t) => {
  t.equal(tokens({ output: 1e6 }, { output: Number.MAX_SAFE_INTEGER }), Number.MAX_SAFE_INTEGER);
});

/** Prices with as many decimals as anybody writes, in millionths of a dollar. */
const micros = fc.integer({ min: 0, max: 1_000_000_000 });
const amount = fc.integer({ min: 0, max: 100_000_000 });

test('a cost is the exact sum of its parts', async (t) => {
  fc.assert(
    fc.property(
      fc.tuple(micros, micros, micros, micros),
      fc.tuple(amount, amount, amount, amount),
      (prices, counts) => {
        const [input, output, cached, cacheWritten] = prices;
        const [plain, answered, read, written] = counts;
        const price = { ...free };
        const usd = (value: number) => Number(`${value}e-6`);
        Object.assign(price, { input: usd(input), output: usd(output) });
        Object.assign(price, { cached: usd(cached), cacheWritten: usd(cacheWritten) });
        const usage = {
          ...none,
          input: plain + read + written,
          output: answered,
          cached: read,
          cacheWritten: written,
        };
        // Millionths of a dollar for a million tokens are pico-dollars for one.
        const pico =
          BigInt(plain) * BigInt(input) +
          BigInt(answered) * BigInt(output) +
          BigInt(read) * BigInt(cached) +
          BigInt(written) * BigInt(cacheWritten);
        const most = BigInt(Number.MAX_SAFE_INTEGER);
        const nano = (pico + 500n) / 1000n;
        return BigInt(costOf(price, { usage, seconds: 0, calls: 0 })) === (nano < most ? nano : most);
      },
    ),
  );
  t.pass();
});

test('a cost is exact on both sides of what numbers can hold', async (t) => {
  // A nano-dollar is a million femto-dollars, and a token at this price is one of these short of it.
  const price = { ...free, input: 0.000999999, perCall: 1, perSecond: 1e-9 };
  fc.assert(
    fc.property(fc.nat(1_000_000_000), fc.nat(20), fc.nat(1_000_000), (input, calls, ms) => {
      const femto = BigInt(input) * 999_999n + BigInt(calls) * 10n ** 15n + BigInt(ms) * 1000n;
      const cost = costOf(price, { usage: { ...none, input }, seconds: ms / 1000, calls });
      return BigInt(cost) === (femto + 500_000n) / 1_000_000n;
    }),
  );
  t.pass();
});

test('calls at a price in whole nano-dollars cost as much together as one by one', async (t) => {
  fc.assert(
    fc.property(micros, fc.array(fc.integer({ min: 0, max: 10_000 }), { maxLength: 50 }), (price, counts) => {
      // A thousandth of a dollar for a million tokens is a nano-dollar for one.
      const input = Number(`${price % 1_000_000}e-3`);
      const one = counts.reduce((sum, count) => sum + tokens({ input }, { input: count }), 0);
      const all = tokens({ input }, { input: counts.reduce((sum, count) => sum + count, 0) });
      return one === all;
    }),
  );
  t.pass();
});

test('more of anything never costs less', async (t) => {
  const price = fc.double({ min: 0, max: 1000, noNaN: true });
  fc.assert(
    fc.property(price, price, amount, amount, (input, output, count, more) => {
      const usage = { input: count, output: count };
      const least = tokens({ input, output }, usage);
      const most = tokens({ input, output }, { ...usage, output: count + more });
      return Number.isSafeInteger(least) && least >= 0 && most >= least;
    }),
  );
  t.pass();
});
