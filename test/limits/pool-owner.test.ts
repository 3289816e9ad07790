import { test } from 'tap';
import type { Decision, Denial } from '../../src/limits/admission.js';
import type { OwnerMessage } from '../../src/limits/lease-messages.js';
import type { Pool } from '../../src/limits/pool.js';
import { PoolOwner } from '../../src/limits/pool-owner.js';
import { findPool } from '../../src/limits/pools.js';
import { unsharedSource } from '../../src/limits/share-source.js';
import { atOnce } from '../../src/wire/steps.js';
import { admitted, heldUnits, offer, ownedUnits, type SimulatedWorker, startHost } from './host.js';

const window: Pool = { name: 'key:a:requests', kind: 'requests', limit: 10 };
const slots: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 2 };
const money: Pool = { name: 'key:a:budget:2026-11', kind: 'budget', limit: 1000 };

/** A host that has all limits to itself, and whose workers have no slices. */
const alone = { shares: unsharedSource, sliceDivisor: () => 0 };

const makeHost = (count: number, outageRates: 'open' | 'closed' = 'closed') =>
  startHost(count, { pools: [window, slots, money], outageRates });

test('the window units of a killed worker count as used when it ended', (t) => {
  const { host, workers } = makeHost(2);
  const [killed, other] = workers as [SimulatedWorker, SimulatedWorker];
  t.equal(admitted(offer(host, killed, window, 6)), 6);
  host.advance(30_000);
  host.kill(killed);
  const [, , , , denial] = offer(host, other, window, 5) as Denial[];
  t.match(denial, { outcome: 'denied' });
  host.advance(58_000);
  t.equal(admitted(offer(host, other, window, 3)), 0);
  host.advance(3000);
  t.equal(admitted(offer(host, other, window, 6)), 6);
  t.end();
});

test('who asks while pools are told of the end of a worker has its slots, and what it used of windows counts', (t) => {
  const pools = new Map([window, slots].map((pool) => [pool.name, pool]));
  const owner = new PoolOwner({ ...alone, poolOf: (name) => pools.get(name), now: () => 1000 });
  const heard: OwnerMessage[] = [];
  atOnce(owner.joinSteps(1, () => {}));
  atOnce(owner.joinSteps(2, (message) => heard.push(message)));
  const ask = (worker: number, pool: Pool, need: number): void =>
    owner.receive(worker, {
      type: 'lease-news',
      asks: [{ pool: pool.name, number: 1, need, least: 1, want: need }],
    });
  ask(1, slots, 2);
  ask(1, window, 10);
  const steps = owner.goneSteps(1);
  ask(2, slots, 2);
  ask(2, window, 10);
  t.match(
    heard.flatMap(({ answers }) => answers ?? []),
    [
      { pool: slots.name, granted: 2, short: false },
      { pool: window.name, granted: 0, short: true },
    ],
  );
  atOnce(steps);
  t.match(ownedUnits(owner), [
    { name: slots.name, free: 0, inWindow: 0 },
    { name: window.name, free: 0, inWindow: 10 },
  ]);
  t.end();
});

test('the slots of a killed worker are free at once', (t) => {
  const { host, workers } = makeHost(2);
  const [killed, other] = workers as [SimulatedWorker, SimulatedWorker];
  t.equal(admitted(offer(host, killed, slots, 2)), 2);
  host.kill(killed);
  host.advance(2);
  t.equal(admitted(offer(host, other, slots, 2)), 2);
  t.end();
});

test('a recall does not wait for a worker that ends', (t) => {
  const { host, workers } = makeHost(2);
  const [killed, other] = workers as [SimulatedWorker, SimulatedWorker];
  offer(host, killed, slots, 2);
  killed.stalledUntil = host.now + 10_000;
  let told: Decision | null = null;
  other.holder.acquire([{ pool: slots, amount: 1 }], (decision) => {
    told = decision;
  });
  host.advance(5);
  t.equal(told, null);
  host.kill(killed);
  host.advance(5);
  t.match(told, { outcome: 'admitted' });
  t.end();
});

test('nor does it when what that worker had is lost', (t) => {
  const { host, workers } = makeHost(2);
  const [killed, other] = workers as [SimulatedWorker, SimulatedWorker];
  offer(host, killed, window, 10);
  killed.stalledUntil = host.now + 10_000;
  let told: Decision | null = null;
  other.holder.acquire([{ pool: window, amount: 1 }], (decision) => {
    told = decision;
  });
  host.kill(killed);
  host.advance(10);
  t.match(told, { outcome: 'denied', pool: window });
  t.end();
});

test('after a recall, units that have cooled go back at once', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  offer(host, here, window, 10);
  host.advance(59_000);
  t.equal(admitted(offer(host, there, window, 1)), 0);
  t.match(ownedUnits(host.owner), [{ free: 0 }]);
  host.advance(500);
  t.strictSame(ownedUnits(host.owner), []);
  t.end();
});

test('a raised limit holds at once, and those who were denied learn of it', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  t.equal(admitted(offer(host, worker, window, 12)), 10);
  const raised = { ...window, limit: 15 };
  host.pools.set(raised.name, raised);
  host.owner.reload([window]);
  host.advance(30);
  t.equal(admitted(offer(host, worker, raised, 6)), 5);
  t.end();
});

test('a lowered limit takes what is idle, and what comes back', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  t.equal(admitted(offer(host, here, window, 8)), 8);
  host.advance(20_000);
  const lowered = { ...window, limit: 4 };
  host.pools.set(lowered.name, lowered);
  host.owner.reload([window]);
  t.match(ownedUnits(host.owner), [{ free: -4, limit: 4 }]);
  host.advance(10);
  t.equal(admitted(offer(host, there, lowered, 1)), 0);
  host.advance(43_000);
  t.equal(admitted(offer(host, there, lowered, 6)), 4);
  t.end();
});

test('a pool that the config has no more keeps its limit while it is in use, and is denied after', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  t.equal(admitted(offer(host, worker, slots, 1)), 1);
  host.pools.delete(slots.name);
  host.owner.reload([]);
  t.equal(admitted(offer(host, worker, slots, 2)), 1);
  const { host: other, workers: others } = makeHost(1);
  other.pools.delete(slots.name);
  t.equal(admitted(offer(other, others[0] as SimulatedWorker, slots, 1)), 0);
  t.end();
});

test('a limit that comes back as another one holds for what is in use of the one before', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  t.equal(admitted(offer(host, worker, window, 8)), 8);
  host.pools.delete(window.name);
  host.owner.reload([]);
  const lowered = { ...window, limit: 4 };
  host.pools.set(lowered.name, lowered);
  host.owner.reload([lowered]);
  t.match(ownedUnits(host.owner), [{ name: window.name, limit: 4 }]);
  host.advance(10);
  t.equal(admitted(offer(host, worker, lowered, 1)), 0);
  t.end();
});

test('a change of one limit looks at no other, however many are in use', (t) => {
  const pools = new Map<string, Pool>();
  for (let i = 0; i < 1000; i++) pools.set(`key:${i}:requests`, { ...window, name: `key:${i}:requests` });
  pools.set('key:a:budget:', { ...money, name: 'key:a:budget:' });
  let looked: string[] = [];
  const owner = new PoolOwner({
    ...alone,
    now: () => 0,
    poolOf(name) {
      looked.push(name);
      return findPool(pools, name);
    },
  });
  atOnce(owner.joinSteps(1, () => {}));
  const inUse = [...pools.keys()].filter((name) => !name.endsWith(':budget:'));
  const budgets = ['key:a:budget:2026-11', 'key:a:budget:2026-12'];
  const asks = [...inUse, ...budgets].map((pool) => ({ pool, number: 1, need: 1, least: 1, want: 1 }));
  owner.receive(1, { type: 'lease-news', asks });
  t.equal(ownedUnits(owner).length, 1002);
  const limits = (...names: string[]) =>
    ownedUnits(owner).flatMap(({ name, limit }) => (names.includes(name) ? [limit] : []));
  looked = [];
  pools.set('key:7:requests', { ...window, name: 'key:7:requests', limit: 20 });
  owner.reload([{ ...window, name: 'key:7:requests' }]);
  t.strictSame(new Set(looked), new Set(['key:7:requests']));
  t.strictSame(limits('key:7:requests', 'key:8:requests'), [20, 10]);
  looked = [];
  pools.set('key:a:budget:', { ...money, name: 'key:a:budget:', limit: 2000 });
  owner.reload([{ ...money, name: 'key:a:budget:' }]);
  t.strictSame(new Set(looked), new Set(['key:a:budget:', ...budgets]), 'a budget, in each of its periods');
  t.strictSame(limits(...budgets), [2000, 2000]);
  t.end();
});

test('without a primary, a worker uses up what it holds and denies the rest', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const [first, second] = offer(host, worker, slots, 2);
  let told: Decision | null = null;
  worker.holder.acquire([{ pool: window, amount: 1 }], (decision) => {
    told = decision;
  });
  worker.holder.disconnect();
  t.match(told, { outcome: 'denied', reason: 'unknown', pool: window });
  const sent = host.sent.length;
  for (const each of [first, second]) if (each?.outcome === 'admitted') each.release();
  t.equal(worker.holder.acquire([{ pool: slots, amount: 2 }], () => {}).outcome, 'admitted');
  const denial = worker.holder.acquire([{ pool: slots, amount: 1 }], () => {});
  t.match(denial, { outcome: 'denied', reason: 'exhausted', pool: slots });
  for (let i = 0; i < 30; i++) worker.holder.tick();
  t.equal(host.sent.length, sent);
  t.end();
});

test('without a primary, a worker that holds all of a limit, or was told a moment ago, knows that there is no more', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  const refusal = ({ holder }: SimulatedWorker, pool: Pool) =>
    holder.acquire([{ pool, amount: 1 }], () => {});
  t.equal(admitted(offer(host, here, slots, 2)), 2);
  t.equal(admitted(offer(host, here, window, 10)), 10);
  t.equal(admitted(offer(host, there, window, 1)), 0);
  for (const { holder } of workers) holder.disconnect();
  t.match(refusal(here, slots), { outcome: 'denied', reason: 'exhausted', pool: slots });
  t.match(refusal(there, window), { outcome: 'denied', reason: 'exhausted', pool: window });
  t.match(refusal(there, slots), { outcome: 'denied', reason: 'unknown', pool: slots });
  host.advance(5000);
  t.match(refusal(there, window), { outcome: 'denied', reason: 'unknown', pool: window });
  t.end();
});

test('without a primary, a call of which nobody can tell is let in where the config says so', (t) => {
  const { host, workers } = makeHost(2, 'open');
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  const ask = ({ holder }: SimulatedWorker, ...pools: readonly Pool[]) =>
    holder.acquire(
      pools.map((pool) => ({ pool, amount: 1 })),
      () => {},
    );
  t.equal(admitted(offer(host, here, slots, 2)), 2);
  let told: Decision | null = null;
  there.holder.acquire([{ pool: window, amount: 1 }], (decision) => {
    told = decision;
  });
  for (const { holder } of workers) holder.disconnect();
  t.match(told, { outcome: 'admitted' }, 'one that waits');
  const first = ask(there, slots);
  t.match(first, { outcome: 'admitted' }, 'one that comes later');
  if (first.outcome === 'admitted') first.release();
  t.match(ask(there, slots), { outcome: 'admitted' }, 'what it had is free again');
  t.match(ask(here, slots), { outcome: 'denied', reason: 'exhausted', pool: slots }, 'it holds all of them');
  t.match(ask(there, money), { outcome: 'denied', reason: 'unknown', pool: money }, 'money is not lent');
  t.match(ask(there, slots, money), { outcome: 'denied', reason: 'unknown' });
  t.end();
});

test('without a primary, units whose time has run out are not known to be used up', (t) => {
  const { host, workers } = makeHost(1);
  const [{ holder }] = workers as [SimulatedWorker];
  const decisions = offer(host, workers[0] as SimulatedWorker, slots, 2);
  t.equal(admitted(decisions), 2);
  holder.receive({ type: 'lease-order', until: host.now });
  holder.disconnect();
  const refusal = () => holder.acquire([{ pool: slots, amount: 1 }], () => {});
  t.match(refusal(), { outcome: 'denied', reason: 'exhausted' }, 'all are in use');
  for (const each of decisions) if (each.outcome === 'admitted') each.release();
  t.match(refusal(), { outcome: 'denied', reason: 'unknown' }, 'it has some, and may not use them');
  t.end();
});

test('what is idle goes back within moments, and nothing is remembered', (t) => {
  const { host, workers } = makeHost(2);
  for (const worker of workers) {
    for (const each of offer(host, worker, slots, 1)) if (each.outcome === 'admitted') each.release();
    offer(host, worker, window, 2);
  }
  host.advance(3000);
  t.match(
    ownedUnits(host.owner).map(({ name }) => name),
    [window.name],
  );
  host.advance(62_000);
  t.strictSame(ownedUnits(host.owner), []);
  t.ok(workers.every(({ holder }) => heldUnits(holder).length === 0));
  t.end();
});

test('a view tells what remains, and when all is back', (t) => {
  const { host, workers } = makeHost(2);
  const [worker, other] = workers as [SimulatedWorker, SimulatedWorker];
  t.strictSame(worker.holder.peek(window), { limit: 10, remaining: 10, resetMs: 0 });
  offer(host, worker, window, 4);
  const { remaining, resetMs } = worker.holder.peek(window);
  t.equal(remaining, 6);
  t.ok(resetMs > 59_000 && resetMs <= 60_100, `${resetMs} ms`);
  offer(host, other, window, 6);
  offer(host, worker, window, 1);
  t.equal(worker.holder.peek(window).remaining, 0);
  host.advance(64_000);
  t.strictSame(worker.holder.peek(window), { limit: 10, remaining: 10, resetMs: 0 });
  t.end();
});

test('a tick looks at some of the pools that nobody waits for, and at each in its turn', (t) => {
  const count = 10_000;
  let now = 0;
  let looks = 0;
  const owner = new PoolOwner({
    ...alone,
    now: () => now,
    poolOf: (name) => ({ name, kind: 'requests', limit: 10 }),
    shares: {
      ...unsharedSource,
      isValid() {
        looks++;
        return true;
      },
    },
  });
  atOnce(owner.joinSteps(1, () => {}));
  atOnce(owner.joinSteps(2, () => {}));
  const names = Array.from({ length: count }, (_, index) => `key:${index}:requests`);
  const amounts = names.map((pool) => ({ pool, amount: 10 }));
  owner.receive(1, { type: 'lease-news', overdrafts: amounts });
  atOnce(owner.goneSteps(1));
  t.equal(ownedUnits(owner).length, count);
  for (let tick = 0; tick < 10; tick++) {
    now += 100;
    looks = 0;
    owner.tick();
    t.ok(looks > 0 && looks <= 1024);
  }
  now += 70_000;
  for (let tick = 0; tick < 10; tick++) owner.tick();
  t.same(ownedUnits(owner), [], 'each had its turn');
  t.end();
});

/** An owner of many pools that one worker uses, and what its workers hear. */
function makeShared(count: number) {
  let now = 0;
  let limit = 160;
  const owner = new PoolOwner({
    ...alone,
    now: () => now,
    poolOf: (name) => ({ name, kind: 'requests', limit }),
    sliceDivisor: () => 8,
  });
  const heard = new Map<number, OwnerMessage[]>();
  const listen = (id: number) => {
    const messages: OwnerMessage[] = [];
    heard.set(id, messages);
    return (message: OwnerMessage) => void messages.push(message);
  };
  const names = Array.from({ length: count }, (_, index) => `key:${index}:requests`);
  atOnce(owner.joinSteps(1, listen(1)));
  owner.receive(1, { type: 'lease-news', overdrafts: names.map((pool) => ({ pool, amount: 30 })) });
  return {
    owner,
    names,
    heard,
    listen,
    tick() {
      now += 100;
      owner.tick();
    },
    setLimitSteps(next: number) {
      limit = next;
      return owner.reloadSteps(names.map((name) => ({ name, kind: 'requests', limit: 160 })));
    },
  };
}

test('of pools that change or lose a worker, one message in a slice tells of a bounded number', (t) => {
  const { owner, names, heard, listen, setLimitSteps } = makeShared(1000);
  atOnce(owner.joinSteps(2, listen(2)));
  const messages = heard.get(2) ?? [];
  const ask = (pool: string) => ({ pool, number: 1, need: 230, least: 230, want: 230 });
  for (const work of ['change', 'loss'] as const) {
    if (work === 'loss') owner.receive(2, { type: 'lease-news', asks: names.map(ask) });
    messages.length = 0;
    let told = 0;
    for (const step of work === 'change' ? setLimitSteps(240) : owner.goneSteps(1)) {
      if (step === undefined) continue;
      t.equal(messages.length, ++told, 'one message since the slice before');
    }
    t.ok(told >= messages.length - 1, 'a slice ends behind each');
    const sizes = messages.map(({ leases = [], answers = [] }) => leases.length + answers.length);
    t.ok(sizes.length > 10, `${sizes.length} messages`);
    t.ok(Math.max(...sizes) <= 128, `${Math.max(...sizes)} pools in one`);
  }
  t.end();
});

test('a worker that joins is told of pools some at a time, and granted nothing before it knows all', (t) => {
  const { owner, names, heard, listen, tick, setLimitSteps } = makeShared(1000);
  const steps = owner.joinSteps(2, listen(2));
  const messages = heard.get(2) ?? [];
  t.match(messages, [{ slices: { sliceDivisor: 8 } }]);
  for (let step = 0; step < 300; step++) steps.next();
  for (let count = 0; count < 3; count++) tick();
  t.ok(messages.every(({ answers = [] }) => answers.length === 0));
  atOnce(setLimitSteps(80));
  while (steps.next().done !== true) tick();
  const leases = messages.flatMap((message) => message.leases ?? []);
  t.strictSame(new Set(leases.map(({ pool }) => pool)), new Set(names));
  t.ok(leases.every(({ leased }) => leased === 0));
  const joining = messages.slice(1);
  t.ok(joining.length >= 1000 / 64);
  for (let count = 0; count < 100; count++) tick();
  const granted = messages.flatMap(({ answers = [] }) => answers.map(({ granted }) => granted));
  t.equal(granted.length, 1000);
  t.ok(granted.every((units) => units === 10));
  t.end();
});

test('a worker has its slice of a pool that becomes known while it joins', (t) => {
  const { owner, heard, listen } = makeShared(100);
  const steps = owner.joinSteps(2, listen(2));
  for (let step = 0; step < 50; step++) steps.next();
  owner.receive(1, { type: 'lease-news', overdrafts: [{ pool: 'key:new:requests', amount: 30 }] });
  while (steps.next().done !== true);
  const told = heard
    .get(2)
    ?.flatMap(({ leases = [] }) => leases)
    .filter(({ pool }) => pool === 'key:new:requests');
  t.ok(told?.every(({ leased }) => leased === 20));
  t.equal(
    ownedUnits(owner, ['key:new:requests'])
      .find(({ name }) => name === 'key:new:requests')
      ?.leased.get(2),
    20,
  );
  t.end();
});
