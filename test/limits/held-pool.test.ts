import { test } from 'tap';
import { HeldPools } from '../../src/limits/held-pool.js';
import { LeaseHolder } from '../../src/limits/lease-holder.js';
import type { Pool } from '../../src/limits/pool.js';

const pool = (index: number): Pool => ({ name: `key:${index}:requests`, kind: 'requests', limit: 1000 });

/** Pools that are all due at the first tick. */
function dueTogether(count: number) {
  const pools = new HeldPools();
  pools.setSlices({ sliceDivisor: 4, usedUntil: null });
  const held = Array.from({ length: count }, (_, index) => pools.of(pool(index)));
  for (const each of held) pools.sweepIn(each, 1);
  pools.beginTick(100);
  return { pools, held };
}

test('sweeps that are due at the same time are done in parts, each once', (t) => {
  const { pools, held } = dueTogether(700);
  const swept: unknown[] = [];
  const parts: number[] = [];
  for (let isMore = true; isMore; ) {
    const before = swept.length;
    isMore = pools.sweepSome((each) => swept.push(each));
    parts.push(swept.length - before);
  }
  t.same(parts, [256, 256, 188]);
  t.equal(new Set(swept).size, held.length);
  t.notOk(pools.sweepSome(() => t.fail('all are done')));
  t.end();
});

test('a sweep that waits is left out if the pool has been scheduled anew or dropped', (t) => {
  const { pools, held } = dueTogether(300);
  t.ok(pools.sweepSome(() => {}));
  const [moved, dropped] = held.slice(256);
  if (moved === undefined || dropped === undefined) throw new Error('there are too few');
  pools.sweepIn(moved, 1);
  pools.forget(dropped);
  const swept: unknown[] = [];
  t.notOk(pools.sweepSome((each) => swept.push(each)));
  t.equal(swept.length, 42);
  pools.beginTick(200);
  pools.sweepSome((each) => swept.push(each));
  t.equal(swept.at(-1), moved);
  t.equal(swept.length, 43);
  t.end();
});

test('a worker sweeps many pools in several turns, and ticks meanwhile', (t) => {
  let now = 0;
  const waiting: (() => void)[] = [];
  const defer = (run: () => void) => void waiting.push(run);
  const holder = new LeaseHolder({ now: () => now, send: () => {}, defer, outageRates: () => 'open' });
  holder.receive({ type: 'lease-order', slices: { sliceDivisor: 4, usedUntil: null } });
  // So many that more than 256 share a tick, although they are spread.
  for (let index = 0; index < 140_000; index++) holder.take([{ pool: pool(index), amount: 1 }], now);
  let turns = 0;
  for (; now < 40_000; now += 100) {
    holder.tick();
    holder.tick();
    t.ok(waiting.length <= 1);
    for (const run of waiting.splice(0)) {
      turns++;
      run();
    }
  }
  t.ok(turns > 0);
  t.end();
});

/** The answer to an ask for units that nobody has. */
const denied = ({ name, kind, limit }: Pool) => ({
  pool: name,
  kind,
  limit,
  number: 1,
  granted: 0,
  short: true,
  retryAt: null,
  free: 0,
  inUseElsewhere: 0,
  isCutOff: false,
});

test('a fault of one who waits for units does not end the sweeps', (t) => {
  let now = 0;
  const waiting: (() => void)[] = [];
  const defer = (run: () => void) => void waiting.push(run);
  const holder = new LeaseHolder({ now: () => now, send: () => {}, defer, outageRates: () => 'closed' });
  holder.receive({ type: 'lease-order', slices: { sliceDivisor: 4, usedUntil: null } });
  const pools = Array.from({ length: 2000 }, (_, index) => pool(index));
  for (const each of pools) holder.take([{ pool: each, amount: 1 }], now);
  const scarce: Pool = { name: 'scarce', kind: 'requests', limit: 8 };
  let faults = 0;
  for (let tick = 0; tick < 45_000; tick++, now += 100) {
    // Units that are returned together share a tick.
    if (tick === 100) for (const each of pools) holder.acquire([{ pool: each, amount: 900 }], () => {});
    if (tick === 101) holder.receive({ type: 'lease-order', answers: pools.map(denied) });
    if (tick > 40 && tick <= 140)
      holder.acquire([{ pool: scarce, amount: 5 }], () => {
        faults++;
        throw new Error('a fault');
      });
    for (const run of [() => holder.tick(), ...waiting.splice(0)]) {
      try {
        run();
      } catch (error) {
        if (!(error instanceof Error && error.message === 'a fault')) throw error;
      }
    }
  }
  t.ok(faults > 0);
  t.same(
    [...holder.units()].filter(({ name }) => name !== scarce.name),
    [],
  );
  t.end();
});
