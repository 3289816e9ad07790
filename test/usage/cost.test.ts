import { test } from 'tap';
import type { PriceSettings } from '../../src/config/price-schema.js';
import { resolvePrice } from '../../src/config/resolve.js';
import type { ServiceTier, Usage } from '../../src/conversation/usage.js';
import { costOf, costsNothing } from '../../src/usage/cost.js';
import { fc } from '../support/seed.js';

const free = resolvePrice({});
const none: Usage = { input: 0, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };

function tokens(price: PriceSettings, usage: Partial<Usage>): number {
  return costOf(resolvePrice(price), { usage: { ...none, ...usage }, seconds: 0, units: 0 });
}

test('tokens, calls and seconds have their prices', async (t) => {
  t.equal(tokens({ input: 1.25, output: 10 }, { input: 1000, output: 200 }), 3_250_000);
  t.equal(
    tokens({ input: 2, cached: 0.5, cacheWritten: 2.5 }, { input: 100, cached: 60, cacheWritten: 30 }),
    125_000,
  );
  const price = resolvePrice({ perCall: 0.04, perSecond: 0.006 });
  t.equal(costOf(price, { usage: null, seconds: 0, units: 1 }), 40_000_000);
  t.equal(costOf(price, { usage: null, seconds: 12.345, units: 0 }), 74_070_000);
  t.equal(costOf(free, { usage: { ...none, input: 1e9 }, seconds: 100, units: 5 }), 0);
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
        const usd = (value: number) => Number(`${value}e-6`);
        const price = resolvePrice({
          input: usd(input),
          output: usd(output),
          cached: usd(cached),
          cacheWritten: usd(cacheWritten),
        });
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
        return BigInt(costOf(price, { usage, seconds: 0, units: 0 })) === (nano < most ? nano : most);
      },
    ),
  );
  t.pass();
});

test('a cost is exact on both sides of what numbers can hold', async (t) => {
  // A nano-dollar is a million femto-dollars, and a token at this price is one of these short of it.
  const price = resolvePrice({ input: 0.000999999, perCall: 1, perSecond: 1e-9 });
  fc.assert(
    fc.property(fc.nat(1_000_000_000), fc.nat(20), fc.nat(1_000_000), (input, units, ms) => {
      const femto = BigInt(input) * 999_999n + BigInt(units) * 10n ** 15n + BigInt(ms) * 1000n;
      const cost = costOf(price, { usage: { ...none, input }, seconds: ms / 1000, units });
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

const parts = {
  audioInput: 20,
  imageInput: 30,
  videoInput: 0,
  cachedAudio: 5,
  cachedImage: 6,
  cacheWrittenHour: 4,
  audioOutput: 7,
  imageOutput: 8,
};
const mixed: Usage = {
  input: 100,
  output: 40,
  cached: 25,
  cacheWritten: 10,
  reasoning: 9,
  searches: 2,
  parts,
};

test('every kind of token has its own price, and each token is charged once', async (t) => {
  const cases: readonly (readonly [name: string, price: PriceSettings, nanos: number])[] = [
    ['input: 100 - 25 cached - 10 written - 15 audio - 24 images', { input: 1 }, 100_000],
    ['plain input', { input: 1, cached: 0, cacheWritten: 0, audioInput: 0, imageInput: 0 }, 26_000],
    ['cached', { cached: 1, cachedAudio: 0, cachedImage: 0 }, 14_000],
    ['cached audio', { cachedAudio: 1 }, 5000],
    ['cached images', { cachedImage: 1 }, 6000],
    ['cached of any kind', { cached: 1 }, 25_000],
    ['written', { cacheWritten: 1, cacheWrittenHour: 0 }, 6000],
    ['written for an hour', { cacheWrittenHour: 1 }, 4000],
    ['audio', { audioInput: 1, cachedAudio: 0 }, 15_000],
    ['images', { imageInput: 1, cachedImage: 0 }, 24_000],
    ['output', { output: 1 }, 40_000],
    ['plain output', { output: 1, audioOutput: 0, imageOutput: 0, reasoning: 0 }, 16_000],
    ['audio output', { audioOutput: 1 }, 7000],
    ['image output', { imageOutput: 1 }, 8000],
    ['reasoning', { reasoning: 1 }, 9000],
    ['searches', { perSearch: 0.01 }, 20_000_000],
  ];
  for (const [name, price, nanos] of cases) t.equal(tokens(price, mixed), nanos, name);
});

test('parts that are more than the whole are no more than it', async (t) => {
  const odd = { ...mixed, input: 10, cached: 4, cacheWritten: 0, output: 5 };
  t.equal(tokens({ input: 1, output: 1 }, odd), 15_000);
  t.equal(tokens({ input: 1, audioInput: 2, imageInput: 4, cached: 0 }, odd), 12_000, 'audio before images');
});

test('a long input has the prices of the highest step that it is above', async (t) => {
  const price: PriceSettings = {
    input: 1,
    output: 10,
    cached: 0.1,
    steps: [
      { aboveInput: 2000, input: 3 },
      { aboveInput: 1000, input: 2, output: 15, cached: 0.2 },
    ],
  };
  for (const [input, nanos] of [
    [1000, 1_000_000 + 10_000],
    [1001, 2_002_000 + 15_000],
    [2001, 6_003_000 + 10_000],
  ] as const)
    t.equal(tokens(price, { input, output: 1 }), nanos, `${input}`);
  t.equal(tokens(price, { input: 1001, cached: 1001 }), 200_200, 'for the whole call');
  t.equal(tokens(price, { input: 2001, cached: 2001 }), 200_100, 'what a step does not state is as above');
});

test('a service tier has its factor, or prices of its own', async (t) => {
  const price: PriceSettings = {
    input: 2,
    output: 10,
    perSearch: 0.01,
    tiers: { flex: 0.5, priority: { input: 5, steps: [{ aboveInput: 100, input: 7 }] } },
    steps: [{ aboveInput: 50, input: 3 }],
  };
  const usage = { input: 10, output: 10, searches: 1 };
  const cost = (tier: ServiceTier | null, input = 10) =>
    tokens(price, { ...usage, input, ...(tier === null ? {} : { tier }) });
  t.equal(cost(null), 20_000 + 100_000 + 10_000_000);
  t.equal(cost('batch'), cost(null), 'one without a price of its own');
  t.equal(cost('flex'), cost(null) / 2);
  t.equal(cost('flex', 60) * 2, cost(null, 60), 'with the steps');
  t.equal(cost('priority'), 50_000 + 100_000 + 10_000_000);
  t.equal(cost('priority', 60), 300_000 + 100_000 + 10_000_000);
  t.equal(cost('priority', 101), 707_000 + 100_000 + 10_000_000, 'with its own steps');
});

test('the fast tier costs as much as the priority tier, unless it has a price of its own', async (t) => {
  const cost = (tiers: PriceSettings['tiers'], tier: ServiceTier) =>
    tokens({ input: 2, tiers }, { input: 10, tier });
  t.equal(cost({ priority: 3 }, 'fast'), 60_000);
  t.equal(cost({ priority: { input: 5 } }, 'fast'), 50_000);
  t.equal(cost({ priority: 3, fast: 6 }, 'fast'), 120_000);
  t.equal(cost({ fast: 6 }, 'priority'), 20_000, 'but not the other way round');
  t.equal(cost({ priority: 3 }, 'ultrafast'), 20_000, 'and no other tier does');
});

test('images are charged by size and quality, videos by resolution, and others by the call and second', async (t) => {
  const price = resolvePrice({
    perCall: 0.01,
    perSecond: 0.1,
    images: [
      { size: '1024x1024', quality: 'high', usd: 0.167 },
      { quality: 'high', usd: 0.25 },
      { size: '512x512', usd: 0.018 },
    ],
    seconds: [{ resolution: '1080p', usd: 0.5 }],
  });
  const image = (size: string | null, quality: string | null, units = 1) =>
    costOf(price, { usage: null, seconds: 0, units, made: { size, quality, resolution: null } });
  t.equal(image('1024x1024', 'high', 3), 501_000_000);
  t.equal(image('1536x1024', 'high'), 250_000_000);
  t.equal(image(null, 'high'), 250_000_000);
  t.equal(image('512x512', null), 18_000_000);
  t.equal(image('512x512', 'low'), 18_000_000);
  t.equal(image('1024x1024', 'low'), 10_000_000);
  const video = (resolution: string | null) =>
    costOf(price, { usage: null, seconds: 4, units: 1, made: { size: null, quality: null, resolution } });
  t.equal(video('1080p'), 2_010_000_000);
  t.equal(video('720p'), 410_000_000);
  t.equal(costOf(price, { usage: null, seconds: 4, units: 1 }), 410_000_000);
});

test('a factor is on all of it, exactly', async (t) => {
  const price = resolvePrice({ input: 1.25, perCall: 0.01, tiers: { flex: 0.5 } });
  const of = (factor: number, tier?: ServiceTier) =>
    costOf(
      price,
      { usage: { ...none, input: 1000, ...(tier === undefined ? {} : { tier }) }, seconds: 0, units: 1 },
      factor,
    );
  t.equal(of(1), 11_250_000);
  t.equal(of(1.2), 13_500_000);
  t.equal(of(1.2, 'flex'), 6_750_000);
  t.equal(of(0), 0);
  t.throws(() => of(-1), RangeError);
});

test('what is free is so at every length, tier and size', async (t) => {
  for (const price of [{}, { input: 0 }, { steps: [{ aboveInput: 1 }] }, { tiers: { flex: 2 } }])
    t.ok(costsNothing(resolvePrice(price)));
  for (const price of [
    { perSearch: 1 },
    { characters: 1 },
    { images: [{ usd: 1 }] },
    { seconds: [{ resolution: '1080p', usd: 1 }] },
    { steps: [{ aboveInput: 1, input: 1 }] },
    { tiers: { priority: { input: 1 } } },
    { tiers: { priority: { steps: [{ aboveInput: 1, input: 1 }] } } },
  ])
    t.notOk(costsNothing(resolvePrice(price)), JSON.stringify(price));
});

const anyCounts = fc.record({
  input: amount,
  output: amount,
  cached: amount,
  cacheWritten: amount,
  reasoning: amount,
  parts: fc.record({
    audioInput: amount,
    imageInput: amount,
    videoInput: amount,
    cachedAudio: amount,
    cachedImage: amount,
    cacheWrittenHour: amount,
    audioOutput: amount,
    imageOutput: amount,
  }),
});

test('where all kinds cost the same, only input and output count', async (t) => {
  fc.assert(
    fc.property(anyCounts, micros, micros, (usage, input, output) => {
      const price = { input: Number(`${input}e-6`), output: Number(`${output}e-6`) };
      return tokens(price, usage) === tokens(price, { input: usage.input, output: usage.output });
    }),
  );
  t.pass();
});

test('characters have their price beside calls and tokens, and no factor of a place', async (t) => {
  const price = resolvePrice({
    characters: 15,
    perCall: 1,
    geos: { us: 2 },
    tiers: { flex: 0.5, batch: { characters: 3 } },
    steps: [{ aboveInput: 10, characters: 20 }],
  });
  const cost = (usage: Usage | null, characters: number): number =>
    costOf(price, { usage, seconds: 0, characters, units: 0 });
  const usage = { input: 0, output: 0, cached: 0, cacheWritten: 0, reasoning: 0 };
  t.equal(cost(null, 4), 60_000);
  t.equal(costOf(price, { usage: null, seconds: 0, units: 0 }), 0);
  t.equal(cost({ ...usage, geo: 'us' }, 4), 60_000);
  t.equal(cost({ ...usage, tier: 'flex' }, 4), 30_000);
  t.equal(cost({ ...usage, tier: 'batch' }, 4), 12_000);
  t.equal(cost({ ...usage, input: 11 }, 4), 80_000);
  t.equal(costOf(price, { usage: null, seconds: 0, characters: 4, units: 1 }, 2), 2_000_120_000);
});
