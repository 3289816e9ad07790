import { type Test, test } from 'tap';
import type { Admission, Decision, Denial } from '../../src/limits/admission.js';
import type { Demand, Pool } from '../../src/limits/pool.js';
import type { WaitingCall } from '../../src/limits/waiting-line.js';
import { heldUnits, ownedUnits, type SimulatedHost, type SimulatedWorker, startHost } from './host.js';

const requests: Pool = { name: 'key:a:requests', kind: 'requests', limit: 10 };
const tokens: Pool = { name: 'key:a:tokens', kind: 'tokens', limit: 100 };
const calls: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 2 };
const shared: Pool = { name: 'model:m:concurrent', kind: 'concurrent', limit: 3 };

const makeHost = (workers: number, maxWaiting?: number, outageRates: 'open' | 'closed' = 'closed') =>
  startHost(workers, { pools: [requests, tokens, calls, shared], maxWaiting, outageRates });

/** Decides a call, with what time that takes. */
function decide(host: SimulatedHost, { holder }: SimulatedWorker, ...demands: Demand[]): Decision {
  let decision: Decision | null = null;
  const result = holder.acquire(demands, (decided) => {
    decision = decided;
  });
  if (result.outcome !== 'pending') return result;
  for (let ms = 0; decision === null && ms < 2000; ms++) host.advance(1);
  if (decision === null) throw new Error('nothing was decided');
  return decision;
}

function admit(t: Test, host: SimulatedHost, worker: SimulatedWorker, ...demands: Demand[]): Admission {
  const decision = decide(host, worker, ...demands);
  t.equal(decision.outcome, 'admitted');
  return decision as Admission;
}

function deny(t: Test, host: SimulatedHost, worker: SimulatedWorker, ...demands: Demand[]): Denial {
  const decision = decide(host, worker, ...demands);
  t.equal(decision.outcome, 'denied');
  return decision as Denial;
}

const never = (decision: Decision) => {
  throw new Error(`it was told: ${decision.outcome}`);
};
const one = (pool: Pool): Demand => ({ pool, amount: 1 });
const unitsOf = ({ holder }: SimulatedWorker, { name }: Pool) =>
  heldUnits(holder).find((units) => units.name === name);

test('what the worker holds is taken at once, without a message', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const first = admit(t, host, worker, one(calls));
  first.release();
  const sent = host.sent.length;
  t.equal(worker.holder.acquire([one(calls)], never).outcome, 'admitted');
  t.equal(host.sent.length, sent);
  t.end();
});

test('a busy worker is leased more than it asks for, up to its share of what is free', (t) => {
  const pool: Pool = { name: 'key:c:requests', kind: 'requests', limit: 1000 };
  const { host, workers } = makeHost(4);
  host.pools.set(pool.name, pool);
  for (let i = 0; i < 100; i++) admit(t, host, workers[0] as SimulatedWorker, one(pool));
  t.ok(host.sent.length < 40, `${host.sent.length} messages`);
  const held = unitsOf(workers[0] as SimulatedWorker, pool)?.leased ?? 0;
  t.ok(held >= 100 && held <= 350, `${held} are leased`);
  t.end();
});

test('a slot that one worker frees can be had by another right after', (t) => {
  const { host, workers } = makeHost(2);
  const single: Pool = { name: 'key:one:concurrent', kind: 'concurrent', limit: 1 };
  host.pools.set(single.name, single);
  for (let i = 0; i < 50; i++) {
    const worker = workers[i % 2] as SimulatedWorker;
    const admission = admit(t, host, worker, one(single));
    t.equal(deny(t, host, workers[(i + 1) % 2] as SimulatedWorker, one(single)).pool, single);
    host.advance(1500);
    admission.release();
  }
  t.end();
});

test('after a denial, the first call that comes after units were freed elsewhere gets them', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  const held = [admit(t, host, here, one(calls)), admit(t, host, here, one(calls))];
  for (let i = 0; i < 8; i++) deny(t, host, there, one(calls));
  held[0]?.release();
  host.advance(50);
  admit(t, host, there, one(calls));
  t.end();
});

test('denied calls in a row are denied without a message after the first few', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  for (let i = 0; i < 2; i++) admit(t, host, here, one(calls));
  let asked = 0;
  for (let i = 0; i < 400; i++) {
    host.advance(2);
    if (there.holder.acquire([one(calls)], () => {}).outcome === 'pending') asked++;
  }
  t.ok(asked < 30, `${asked} were asked for`);
  t.end();
});

test('a window tells when its next units come back, and they come back then', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  const begun = host.now;
  for (let i = 0; i < 10; i++) admit(t, host, here, one(requests));
  const used = host.now;
  host.advance(20_000);
  const denial = deny(t, host, there, one(requests));
  t.match(denial, { pool: requests, reason: 'exhausted' });
  t.ok(host.now + (denial.retryAfterMs ?? 0) > begun + 60_000);
  t.ok(host.now + (denial.retryAfterMs ?? 0) <= used + 60_200);
  host.advance(used + 60_400 - host.now);
  for (let i = 0; i < 10; i++) admit(t, host, there, one(requests));
  t.end();
});

test('all demands are met, or none', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  for (let i = 0; i < 2; i++) admit(t, host, worker, one(calls), one(requests));
  t.equal(deny(t, host, worker, one(requests), one(calls)).pool, calls);
  t.equal(unitsOf(worker, requests)?.inWindow, 2);
  t.end();
});

test('a window tells when so many units are back as a call needs, not when the first of them is', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  admit(t, host, worker, { pool: tokens, amount: 1 });
  host.advance(50_000);
  admit(t, host, worker, { pool: tokens, amount: 98 });
  host.advance(5000);
  const soon = deny(t, host, worker, { pool: tokens, amount: 2 });
  t.ok((soon.retryAfterMs ?? 0) <= 5200, `${soon.retryAfterMs}: the first one is enough`);
  const late = deny(t, host, worker, { pool: tokens, amount: 50 });
  t.ok((late.retryAfterMs ?? 0) > 50_000, `${late.retryAfterMs}`);
  host.advance(late.retryAfterMs ?? 0);
  admit(t, host, worker, { pool: tokens, amount: 50 });
  t.end();
});

test('two workers that each hold too little do not keep each other from it', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  for (const worker of workers) admit(t, host, worker, { pool: tokens, amount: 50 }).undo();
  const decided: string[] = [];
  for (const [name, { holder }] of Object.entries({ here, there }))
    holder.acquire([{ pool: tokens, amount: 60 }], ({ outcome }) => decided.push(`${name} ${outcome}`));
  host.advance(300);
  t.equal(decided.filter((text) => text.endsWith('admitted')).length, 1, decided.join());
  t.equal(decided.length, 2);
  t.end();
});

test('calls that wait are served in the order in which they came', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const order: number[] = [];
  for (let i = 0; i < 12; i++)
    worker.holder.acquire([one(requests)], ({ outcome }) => order.push(outcome === 'admitted' ? i : -i));
  host.advance(10);
  t.strictSame(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -10, -11]);
  t.end();
});

test('no more wait than may, and none longer', (t) => {
  const { host, workers } = makeHost(1, 3);
  const [worker] = workers as [SimulatedWorker];
  worker.stalledUntil = host.now + 1500;
  const decided: Decision[] = [];
  for (let i = 0; i < 3; i++)
    t.equal(worker.holder.acquire([one(requests)], (each) => decided.push(each)).outcome, 'pending');
  t.match(worker.holder.acquire([one(requests)], never), { outcome: 'denied', reason: 'unknown' });
  host.advance(1400);
  worker.holder.tick();
  t.match(decided, Array(3).fill({ outcome: 'denied', reason: 'unknown' }));
  t.equal(decided.length, 3);
  host.advance(10_000);
  t.strictSame(ownedUnits(host.owner), []);
  t.end();
});

test('what the primary does not answer in time is let in where the config says so, and counts', (t) => {
  const { host, workers } = makeHost(2, undefined, 'open');
  const [worker, other] = workers as [SimulatedWorker, SimulatedWorker];
  admit(t, host, other, { pool: requests, amount: 9 });
  worker.stalledUntil = host.now + 1500;
  const decided: Decision[] = [];
  const demands = [{ pool: requests, amount: 2 }, one(calls)];
  t.equal(worker.holder.acquire(demands, (each) => decided.push(each)).outcome, 'pending');
  host.advance(1400);
  worker.holder.tick();
  t.match(decided, [{ outcome: 'admitted' }]);
  host.advance(1000);
  t.match(
    ownedUnits(host.owner).find(({ name }) => name === requests.name),
    { free: -1 },
  );
  t.match(unitsOf(worker, calls), { inUse: 1 });
  (decided[0] as Admission).release();
  t.equal(deny(t, host, worker, one(requests)).reason, 'exhausted', 'it is known by then');
  host.advance(70_000);
  t.strictSame(ownedUnits(host.owner), []);
  t.end();
});

test('that there is too little for a large call says nothing of a smaller one that was not answered', (t) => {
  const { host, workers } = makeHost(2, undefined, 'open');
  const [worker, other] = workers as [SimulatedWorker, SimulatedWorker];
  admit(t, host, other, { pool: tokens, amount: 95 });
  const decided: Decision[] = [];
  const large = worker.holder.acquire([{ pool: tokens, amount: 50 }], (each) => {
    decided.push(each);
    worker.stalledUntil = host.now + 5000;
  });
  t.equal(large.outcome, 'pending');
  t.equal(
    worker.holder.acquire([{ pool: tokens, amount: 3 }], (each) => decided.push(each)).outcome,
    'pending',
  );
  host.advance(1001);
  worker.holder.tick();
  t.match(decided, [{ outcome: 'denied', reason: 'exhausted' }, { outcome: 'admitted' }]);
  t.end();
});

test('a worker that does not answer a recall is not waited for longer than a moment, and once only', (t) => {
  const { host, workers } = makeHost(3);
  const [stalled, here, there] = workers as [SimulatedWorker, SimulatedWorker, SimulatedWorker];
  for (let i = 0; i < 2; i++) admit(t, host, stalled, one(calls));
  stalled.stalledUntil = host.now + 5000;
  const begun = host.now;
  deny(t, host, here, one(calls));
  t.ok(host.now - begun <= 360, `${host.now - begun} ms`);
  const again = host.now;
  deny(t, host, there, one(calls));
  t.ok(host.now - again <= 10, `${host.now - again} ms`);
  t.end();
});

test('a caller that gives up takes nothing, and those behind it are served', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  admit(t, host, worker, { pool: tokens, amount: 60 });
  const large = worker.holder.acquire([{ pool: tokens, amount: 50 }], never) as WaitingCall;
  const told: string[] = [];
  worker.holder.acquire([{ pool: tokens, amount: 30 }], ({ outcome }) => told.push(outcome));
  large.cancel();
  large.cancel();
  host.advance(10);
  t.strictSame(told, ['admitted']);
  t.equal(unitsOf(worker, tokens)?.inWindow, 90);
  t.end();
});

test('a caller may give up, and others come, while another is told', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const told: string[] = [];
  // The first is asked for alone, the two that come meanwhile together.
  worker.holder.acquire([one(requests)], ({ outcome }) => told.push(outcome));
  worker.holder.acquire([one(requests)], () => {
    told.push('second');
    third.cancel();
    worker.holder.acquire([{ pool: requests, amount: 8 }], ({ outcome }) => told.push(outcome));
  });
  const third = worker.holder.acquire([one(requests)], never) as WaitingCall;
  host.advance(10);
  t.strictSame(told, ['admitted', 'second', 'admitted']);
  t.equal(unitsOf(worker, requests)?.inWindow, 10);
  t.end();
});

test('what was reserved and not used is available again, and slots are freed once', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const admission = admit(t, host, worker, { pool: tokens, amount: 80 }, one(calls));
  admission.settle('tokens', 29.5);
  admission.settle('tokens', 0);
  admission.settle('requests', 5);
  admission.settle('concurrent', 0);
  t.match(unitsOf(worker, tokens), { inWindow: 30, leased: 80, available: 50 });
  t.equal(unitsOf(worker, calls)?.inUse, 1);
  for (let i = 0; i < 2; i++) admission.release();
  t.match(unitsOf(worker, calls), { inUse: 0 });
  t.equal(host.fault(), null);
  admit(t, host, worker, { pool: tokens, amount: 70 });
  t.end();
});

test('an admission that is undone has used nothing', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const admission = admit(t, host, worker, { pool: tokens, amount: 80 }, one(requests), one(calls));
  admission.settle('tokens', 10);
  admission.undo();
  admission.undo();
  t.equal(unitsOf(worker, tokens)?.inWindow, 10);
  t.match(unitsOf(worker, requests), { inWindow: 0 });
  t.match(unitsOf(worker, calls), { inUse: 0 });
  t.end();
});

test('a call that is settled after its minute gives nothing back twice', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const admission = admit(t, host, worker, { pool: tokens, amount: 80 });
  host.advance(30_000);
  admit(t, host, worker, { pool: tokens, amount: 20 });
  host.advance(31_000);
  admission.settle('tokens', 0);
  t.equal(host.fault(), null);
  host.advance(3000);
  admit(t, host, worker, { pool: tokens, amount: 80 });
  deny(t, host, worker, { pool: tokens, amount: 1 });
  t.end();
});

test('what was used beyond the reserved is paid before anybody gets more', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  const admission = admit(t, host, here, { pool: tokens, amount: 60 });
  admit(t, host, there, { pool: tokens, amount: 40 });
  host.advance(30_000);
  admission.settle('tokens', 90);
  t.match(unitsOf(here, tokens), { available: 0, inWindow: 90, leased: 90 });
  host.advance(5);
  t.match(ownedUnits(host.owner), [{ free: -30 }]);
  host.advance(32_000);
  // 100 came back, of which 30 are still paid for.
  deny(t, host, there, { pool: tokens, amount: 71 });
  host.advance(1100);
  admit(t, host, there, { pool: tokens, amount: 70 });
  t.end();
});
