import { type Test, test } from 'tap';
import { HeldPool } from '../../src/limits/held-pool.js';
import { LeaseHolder } from '../../src/limits/lease-holder.js';
import type { Pool } from '../../src/limits/pool.js';
import { fc, integersOf } from '../support/seed.js';
import {
  admitted,
  heldUnits,
  offer,
  ownedUnits,
  SimulatedHost,
  type SimulatedWorker,
  startHost,
} from './host.js';
import { type Use, worstMinute } from './ledger.js';

const requests: Pool = { name: 'key:a:requests', kind: 'requests', limit: 160 };
const calls: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 160 };
const small: Pool = { name: 'key:b:requests', kind: 'requests', limit: 31 };

/** Two workers, each with a slice of an eighth of every pool. */
function makeHost() {
  const { host, workers } = startHost(2, { pools: [requests, calls, small], sliceDivisor: 8 });
  return { host, workers: workers as [SimulatedWorker, SimulatedWorker] };
}

function isForgotten(t: Test, host: SimulatedHost): void {
  t.strictSame(ownedUnits(host.owner), [], 'the primary has forgotten all pools');
  for (const { holder } of host.workers) t.strictSame(heldUnits(holder), [], 'the worker has, too');
}

test('a worker admits within its slice without a message, again and again', (t) => {
  const { host, workers } = makeHost();
  for (let minute = 0; minute < 3; minute++) {
    for (const worker of workers) t.equal(admitted(offer(host, worker, requests, 10)), 10);
    host.advance(80_000);
  }
  t.strictSame(host.sent, []);
  isForgotten(t, host);
  t.end();
});

test('pools of thousands that call at once and fall silent are forgotten some at a time', (t) => {
  let now = 0;
  const holder = new LeaseHolder({
    now: () => now,
    send: () => {},
    defer: (run) => run(),
    outageRates: () => 'closed',
  });
  holder.receive({ type: 'lease-order', slices: { sliceDivisor: 4, usedUntil: null } });
  const pools = Array.from({ length: 3500 }, (_, i): Pool => ({ ...requests, name: `key:${i}:requests` }));
  const outcomes = pools.map((pool) => holder.take([{ pool, amount: 1 }], now)?.outcome);
  t.strictSame(new Set(outcomes), new Set(['admitted']));
  const isHeld = ({ held }: Pool): boolean => held instanceof HeldPool && held.home !== null;
  for (; now < 300_000; now += 100) holder.tick();
  t.equal(heldUnits(holder).length, 0, 'there is nothing to tell of them');
  t.ok(pools.every(isHeld), 'but their keys may call again');
  let held = 3500;
  let most = 0;
  for (; held > 0 && now < 3_600_000; now += 100) {
    holder.tick();
    const left = pools.filter(isHeld).length;
    most = Math.max(most, held - left);
    held = left;
  }
  t.equal(held, 0);
  t.ok(most <= 64, `${most} at one tick`);
  t.end();
});

test('what is idle of a slice that has become smaller goes back', (t) => {
  const { host, workers } = makeHost();
  for (const worker of workers) t.equal(admitted(offer(host, worker, requests, 5)), 5);
  const lowered: Pool = { ...requests, limit: 80 };
  host.pools.set(requests.name, lowered);
  host.owner.reload([requests]);
  host.advance(150_000);
  t.equal(host.fault(), null);
  isForgotten(t, host);
  const [busy] = workers;
  t.equal(admitted(offer(host, busy, lowered, 100)), 80);
  t.end();
});

test('a worker asks for more before its slice is used up, so that no call waits', (t) => {
  const { host, workers } = makeHost();
  const [worker] = workers;
  for (let i = 0; i < 60; i++) {
    t.equal(worker.holder.acquire([{ pool: requests, amount: 1 }], () => {}).outcome, 'admitted', `${i}`);
    host.advance(5);
  }
  t.ok(host.sent.length < 20, `${host.sent.length} messages`);
  host.advance(150_000);
  isForgotten(t, host);
  t.end();
});

test('one worker gets all of a limit, with the slices of the others that they do not use', (t) => {
  const { host, workers } = makeHost();
  const [busy, other] = workers;
  t.equal(admitted(offer(host, other, requests, 5)), 5);
  t.equal(admitted(offer(host, busy, requests, 300)), 155);
  t.equal(admitted(offer(host, other, requests, 1)), 0);
  host.advance(150_000);
  isForgotten(t, host);
  t.equal(admitted(offer(host, other, requests, 20)), 20);
  t.end();
});

test('a worker that takes the place of a killed one has its slice, as used as that may have left it', (t) => {
  const { host, workers } = makeHost();
  const [killed, other] = workers;
  t.equal(admitted(offer(host, killed, requests, 10)), 10);
  host.kill(killed);
  host.advance(50);
  const next = host.start();
  t.equal(admitted(offer(host, next, requests, 100)) + admitted(offer(host, other, requests, 100)), 140);
  host.advance(150_000);
  isForgotten(t, host);
  t.end();
});

test('what a killed worker has used of its slice counts when the limit changes within the minute', (t) => {
  const { host, workers } = startHost(2, { pools: [requests], sliceDivisor: 8, looks: false });
  const [killed] = workers as [SimulatedWorker];
  t.equal(admitted(offer(host, killed, requests, 9)), 9);
  t.strictSame(host.sent, [], 'it has asked nobody');
  host.kill(killed);
  host.advance(50);
  host.start();
  const larger: Pool = { ...requests, limit: 168 };
  host.pools.set(requests.name, larger);
  host.owner.reload([requests]);
  host.advance(50);
  const later = host.workers.map((worker) => admitted(offer(host, worker, larger, 200)));
  t.ok(later.reduce((sum, count) => sum + count, 9) <= 168, `${later} after 9 of 168`);
  host.advance(150_000);
  t.equal(host.fault(), null);
  isForgotten(t, host);
  t.end();
});

test('what a killed worker has used of a large slice counts, though the next ones have smaller ones', (t) => {
  const { host, workers } = makeHost();
  const [killed, other] = workers;
  host.sliceDivisor = 32;
  host.start();
  t.equal(admitted(offer(host, killed, requests, 9)), 9);
  t.equal(admitted(offer(host, other, requests, 9)), 9);
  t.strictSame(host.sent, []);
  for (const worker of [killed, other]) {
    host.kill(worker);
    host.advance(20);
    host.start();
  }
  const later = host.workers.map((worker) => admitted(offer(host, worker, requests, 200)));
  t.ok(later.reduce((sum, count) => sum + count, 18) <= 160, `${later} after 18 of 160`);
  host.advance(150_000);
  isForgotten(t, host);
  t.end();
});

test('the slots of a killed worker are free at once, and its place has them without a message', (t) => {
  const { host, workers } = makeHost();
  const [killed, other] = workers;
  t.equal(admitted(offer(host, killed, calls, 8)), 8);
  const before = host.sent.length;
  host.kill(killed);
  host.advance(50);
  const next = host.start();
  t.equal(admitted(offer(host, next, calls, 8)), 8);
  t.equal(host.sent.length, before);
  t.equal(admitted(offer(host, other, calls, 200)), 152);
  t.end();
});

test('a worker that begins while the others hold all has no slice of it until there is some', (t) => {
  const { host, workers } = makeHost();
  const [busy, killed] = workers;
  const held = offer(host, busy, calls, 160);
  t.equal(admitted(held), 160);
  host.kill(killed);
  host.advance(50);
  const next = host.start();
  t.equal(admitted(offer(host, next, calls, 3)), 0);
  for (const decision of held) if (decision.outcome === 'admitted') decision.release();
  host.advance(5000);
  isForgotten(t, host);
  const sent = host.sent.length;
  t.equal(admitted(offer(host, next, calls, 8)), 8);
  t.equal(host.sent.length, sent);
  t.end();
});

test('a pool of which workers use their slices alone is told to who names it, and not remembered', (t) => {
  const { host, workers } = makeHost();
  t.equal(admitted(offer(host, workers[0], requests, 5)), 5);
  t.match(ownedUnits(host.owner, [requests.name, 'unknown']), [
    {
      name: requests.name,
      limit: 160,
      free: 120,
      inWindow: 0,
      leased: new Map([
        [1, 20],
        [2, 20],
      ]),
    },
  ]);
  t.strictSame(ownedUnits(host.owner), []);
  t.strictSame(host.sent, []);
  t.end();
});

test('limits that change one after the other count what workers have of each by the limit that they know of it', (t) => {
  const pools = ['one', 'other'].map((name): Pool => ({ ...requests, name }));
  const { host, workers } = startHost(2, { pools, sliceDivisor: 8, looks: false });
  const [one, other] = pools as [Pool, Pool];
  const larger = { ...other, limit: 2 * other.limit };
  function* inForce() {
    for (const before of pools) {
      host.pools.set(before.name, { ...before, limit: larger.limit });
      yield before;
    }
  }
  const steps = host.owner.reloadSteps(inForce());
  steps.next();
  t.equal(host.pools.get(one.name)?.limit, larger.limit);
  const early = workers.map((worker) => admitted(offer(host, worker, other, 200)));
  t.equal(sum(early), other.limit);
  t.equal(host.fault(), null);
  for (const _ of steps) host.advance(5);
  host.advance(50);
  const later = workers.map((worker) => admitted(offer(host, worker, larger, 300)));
  t.equal(sum(early) + sum(later), larger.limit);
  t.equal(host.fault(), null);
  host.advance(150_000);
  isForgotten(t, host);
  t.end();
});

test('a pool that is too small for slices is decided by the primary', (t) => {
  const { host, workers } = makeHost();
  t.equal(admitted(offer(host, workers[0], small, 40)), 31);
  t.ok(host.sent.length > 0);
  t.end();
});

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

const changes = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 20_000 })),
    action: fc.constantFrom('call', 'call', 'call', 'limit', 'kill'),
    worker: fc.nat(1),
    count: fc.integer({ min: 1, max: 90 }),
    limit: fc.integer({ min: 20, max: 400 }),
  }),
  { minLength: 5, maxLength: 40 },
);

test('a limit that changes holds once its minute is over, whatever workers had of it, and nothing is lost', (t) => {
  let calls = 0;
  fc.assert(
    fc.property(changes, fc.nat(), (plan, seed) => {
      const next = integersOf(seed);
      const host = new SimulatedHost({
        pools: [requests],
        delay: () => next(5),
        sliceDivisor: 8,
        looks: false,
      });
      const uses: Use[] = [];
      /** The largest limit of the last minute bounds what may be used in it. */
      const limits = [{ at: host.now, limit: requests.limit }];
      host.start();
      host.start();
      const use = (decision: { readonly outcome: string }) => {
        if (decision.outcome === 'admitted') uses.push({ at: host.now, amount: 1 });
      };
      for (const { afterMs, action, worker, count, limit } of plan) {
        host.advance(afterMs);
        const before = host.pools.get(requests.name) as Pool;
        const chosen = host.workers[worker % host.workers.length] as SimulatedWorker;
        if (action === 'limit') {
          host.pools.set(requests.name, { ...before, limit });
          limits.push({ at: host.now, limit });
          host.owner.reload(limit === before.limit ? [] : [before]);
          // Workers hear of it before they read their config anew.
          host.advance(50);
        } else if (action === 'kill') {
          host.kill(chosen);
          host.advance(50);
          host.start();
        } else {
          for (let i = 0; i < count; i++) use(chosen.holder.acquire([{ pool: before, amount: 1 }], use));
        }
      }
      host.advance(2000);
      calls += uses.length;
      for (const { at } of uses) {
        const within = uses.filter((each) => each.at <= at && each.at >= at - 60_000);
        const inForce = limits.filter(
          (each, index) => (limits[index + 1]?.at ?? at + 1) >= at - 60_000 && each.at <= at,
        );
        const most = Math.max(...inForce.map((each) => each.limit));
        if (worstMinute(within) > most) throw new Error(`${within.length} of ${most} in a minute`);
      }
      host.advance(230_000);
      const fault = host.fault();
      if (fault !== null) throw new Error(fault);
      if (ownedUnits(host.owner).length > 0) throw new Error('the primary remembers');
      if (host.workers.some(({ holder }) => heldUnits(holder).length > 0))
        throw new Error('a worker remembers');
    }),
    { numRuns: 60 },
  );
  t.ok(calls > 1000, `${calls} calls`);
  t.end();
});
