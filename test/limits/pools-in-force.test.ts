import { test } from 'tap';
import type { Decision } from '../../src/limits/admission.js';
import { LeaseHolder } from '../../src/limits/lease-holder.js';
import type { Pool } from '../../src/limits/pool.js';
import { PoolOwner } from '../../src/limits/pool-owner.js';
import { poolSteps } from '../../src/limits/pools.js';
import { PoolsInForce } from '../../src/limits/pools-in-force.js';
import { unsharedSource } from '../../src/limits/share-source.js';
import { atOnce } from '../../src/wire/steps.js';
import { SimulatedTime } from './time.js';

const key = (id: string, requestsPerMinute: number | null, concurrent: number | null = null) => ({
  id,
  budget: null,
  limits: { requestsPerMinute, tokensPerMinute: null, concurrent },
});
type LimitedKey = ReturnType<typeof key>;

const configOf = (keys: readonly LimitedKey[]) => atOnce(poolSteps({ keys, groups: [], models: [] }));
const applied = (pools: PoolsInForce, ...keys: LimitedKey[]): Pool[] =>
  [...atOnce(pools.configSteps(configOf(keys)))].filter((pool) => pool !== null);
const told = (changed: readonly Pool[]) => changed.map(({ name, limit }) => `${name} ${limit}`).sort();

test('pools come and go with their keys', async (t) => {
  const pools = new PoolsInForce();
  const limits = () =>
    ['key:a:requests', 'key:a:concurrent', 'key:b:requests'].map((name) => pools.get(name)?.limit);
  pools.changeKeys({ whole: true, put: [key('a', 1, 2), key('b', 3), key('c', null)], removed: [] });
  t.strictSame(limits(), [1, 2, 3]);
  t.match(pools.get('key:a:concurrent'), { name: 'key:a:concurrent', kind: 'concurrent' });
  pools.changeKeys({ whole: false, put: [key('a', 5)], removed: ['b', 'unknown'] });
  t.strictSame(limits(), [5, undefined, undefined]);
  pools.changeKeys({ whole: false, put: [key('a', null)], removed: [] });
  t.strictSame(limits(), [undefined, undefined, undefined]);
  pools.changeKeys({ whole: false, put: [key('a', 1)], removed: [] });
  pools.changeKeys({ whole: true, put: [key('b', 4)], removed: [] });
  t.strictSame(limits(), [undefined, undefined, 4]);
});

test('what has changed is told as it last held, and what is new as it is', async (t) => {
  const pools = new PoolsInForce();
  const first = pools.changeKeys({ whole: true, put: [key('a', 1, 2), key('b', 3)], removed: [] });
  t.strictSame(told(first), ['key:a:concurrent 2', 'key:a:requests 1', 'key:b:requests 3']);
  const next = pools.changeKeys({ whole: false, put: [key('a', 5, 2), key('c', 4)], removed: ['b'] });
  t.strictSame(told(next), ['key:a:requests 1', 'key:c:requests 4']);
  const back = pools.changeKeys({ whole: false, put: [key('b', 30)], removed: [] });
  t.strictSame(told(back), ['key:b:requests 3'], 'one that was gone');
  t.strictSame(told(pools.changeKeys({ whole: false, put: [key('b', 30)], removed: [] })), []);
});

test('so it is from one config to the next', async (t) => {
  const pools = new PoolsInForce();
  t.strictSame(told(applied(pools, key('a', 1, 2), key('b', 3))), [], 'at the start nobody has used any');
  t.strictSame(told(applied(pools, key('a', 5, 2), key('c', 4))), ['key:a:requests 1', 'key:c:requests 4']);
  t.strictSame(told(applied(pools)), []);
  t.strictSame(told(applied(pools, key('a', 6, 2), key('b', 3), key('d', 1))), [
    'key:a:requests 5',
    'key:d:requests 1',
  ]);
});

test('what a config says of a key holds, and what else is said of it holds when that has gone', async (t) => {
  const pools = new PoolsInForce();
  applied(pools, key('a', 100));
  t.strictSame(told(pools.changeKeys({ whole: true, put: [key('a', 8)], removed: [] })), []);
  t.equal(pools.get('key:a:requests')?.limit, 100);
  t.strictSame(told(applied(pools)), ['key:a:requests 100']);
  t.equal(pools.get('key:a:requests')?.limit, 8);
  t.strictSame(told(applied(pools, key('a', 9))), ['key:a:requests 8']);
  t.strictSame(told(pools.changeKeys({ whole: true, put: [], removed: [] })), []);
  t.strictSame(told(applied(pools)), []);
  t.strictSame(told(pools.changeKeys({ whole: false, put: [key('a', 7)], removed: [] })), [
    'key:a:requests 9',
  ]);
});

const name = 'key:a:requests';

/** A primary with two workers that have slices, as it is put together for a gateway. */
function startHost() {
  const time = new SimulatedTime();
  const pools = new PoolsInForce();
  const owner = new PoolOwner({
    now: () => time.now,
    poolOf: (each) => pools.get(each),
    shares: unsharedSource,
    sliceDivisor: () => 8,
  });
  let messages = 0;
  const every = (run: () => void): void => {
    time.at(time.now + 100, () => {
      run();
      every(run);
    });
  };
  every(() => owner.tick());
  const start = (id: number): LeaseHolder => {
    const holder = new LeaseHolder({
      now: () => time.now,
      send(message) {
        messages++;
        time.at(time.now + 1, () => owner.receive(id, structuredClone(message)));
      },
      defer: (run) => run(),
      outageRates: () => 'closed',
    });
    let isJoining = true;
    atOnce(
      owner.joinSteps(id, (message) => {
        messages++;
        if (isJoining) holder.receive(structuredClone(message));
        else time.at(time.now + 1, () => holder.receive(structuredClone(message)));
      }),
    );
    isJoining = false;
    every(() => holder.tick());
    return holder;
  };
  return {
    workers: [start(1), start(2)],
    time,
    messages: () => messages,
    config: (...keys: LimitedKey[]) => owner.reload(atOnce(pools.configSteps(configOf(keys)))),
    keys: (...keys: LimitedKey[]) => owner.reload(pools.changeKeys({ whole: true, put: keys, removed: [] })),
    pool: (): Pool => ({ ...(pools.get(name) as Pool) }),
  };
}

/** How many calls are let in of `perTick` that each worker gets ten times a second. */
function offer({ workers, time, pool }: ReturnType<typeof startHost>, perTick: number, ms: number): number {
  let admitted = 0;
  const decide = ({ outcome }: Pick<Decision, 'outcome'>): void => {
    if (outcome === 'admitted') admitted++;
  };
  for (let at = 0; at < ms; at += 100) {
    for (const worker of workers) {
      for (let i = 0; i < perTick; i++) {
        const decided = worker.acquire([{ pool: pool(), amount: 1 }], decide);
        if (decided.outcome !== 'pending') decide(decided);
      }
    }
    time.advance(100);
  }
  return admitted;
}

/** What is let in in each of five minutes by a limit of 8, behind the first second. */
function minutes(host: ReturnType<typeof startHost>): number[] {
  host.time.advance(1000);
  return Array.from({ length: 5 }, () => offer(host, 5, 60_000));
}

for (const gap of [1000, 60_000, 600_000])
  test(`a limit that comes back lower after ${gap / 1000} s holds`, async (t) => {
    for (const beside of [[], [key('z', 5)]]) {
      const host = startHost();
      host.config(key('a', 1000), ...beside);
      offer(host, 1, 100);
      host.time.advance(70_000);
      host.config(...beside);
      host.time.advance(gap);
      host.config(key('a', 8), ...beside);
      t.strictSame(minutes(host).slice(1), [8, 8, 8, 8], `${beside.length} beside it`);
    }
  });

test('a limit that is in use, goes and comes back lower holds', async (t) => {
  for (const how of ['config', 'keys'] as const) {
    const host = startHost();
    host.config(key('z', 5));
    host[how](key('a', 100));
    offer(host, 30, 1000);
    host[how]();
    host.time.advance(1000);
    host[how](key('a', 8));
    t.strictSame(minutes(host).slice(1), [8, 8, 8, 8], how);
  }
});

test('of what a config and another say of one key, the limit in force holds', async (t) => {
  const gone = startHost();
  gone.config(key('a', 100));
  gone.keys(key('a', 8));
  offer(gone, 30, 1000);
  gone.config();
  t.strictSame(minutes(gone).slice(1), [8, 8, 8, 8], 'the config has it no more');

  const come = startHost();
  come.config();
  come.keys(key('a', 100));
  offer(come, 30, 1000);
  come.config(key('a', 8));
  t.strictSame(minutes(come).slice(1), [8, 8, 8, 8], 'the config has it now');

  const shadowed = startHost();
  shadowed.config(key('a', 100));
  offer(shadowed, 1, 100);
  shadowed.keys(key('a', 8));
  const offered = Array.from({ length: 5 }, () => offer(shadowed, 5, 60_000));
  t.strictSame(offered.slice(1), [100, 100, 100, 100], 'the config has it all the while');
});

test('a limit that comes back higher is told, and then nobody has more to say', async (t) => {
  for (const [before, after] of [
    [100, 120],
    [1000, 2000],
    [1000, 8000],
  ] as const) {
    const host = startHost();
    host.config(key('a', before), key('z', 5));
    offer(host, Math.ceil(before / 10), 500);
    host.config(key('z', 5));
    host.time.advance(1000);
    host.config(key('a', after), key('z', 5));
    host.time.advance(120_000);
    const said = host.messages();
    host.time.advance(600_000);
    t.ok(host.messages() - said < 20, `${before} to ${after}: ${host.messages() - said} messages`);
  }
});

test('a config without many of the former keys is put in force key by key', async (t) => {
  const pools = new PoolsInForce();
  const keys = Array.from({ length: 50 }, (_, index) => key(`key-${index}`, 100));
  applied(pools, ...keys);
  const owner = new PoolOwner({
    poolOf: (name) => pools.get(name),
    now: () => 0,
    shares: unsharedSource,
    sliceDivisor: () => 0,
  });
  let steps = 0;
  for (const _ of owner.reloadSteps(atOnce(pools.configSteps(configOf([]))))) steps++;
  t.ok(steps >= keys.length, `${steps} steps`);
  t.equal(pools.get('key:key-0:requests'), undefined);
});
