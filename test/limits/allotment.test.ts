import { type Test, test } from 'tap';
import type { Admission } from '../../src/limits/admission.js';
import { Allotment } from '../../src/limits/allotment.js';
import { bucketMs } from '../../src/limits/cooling.js';
import type { Decision } from '../../src/limits/decision.js';
import type { HeldPool } from '../../src/limits/held-pool.js';
import type { Demand, Pool } from '../../src/limits/kinds.js';
import { SimulatedHost, type SimulatedWorker } from './host.js';

const requests: Pool = { name: 'key:a:requests', kind: 'window', limit: 1000 };
const tokens: Pool = { name: 'key:a:tokens', kind: 'window', limit: 100_000 };
const slots: Pool = { name: 'key:a:concurrent', kind: 'slots', limit: 100 };
const pools = [requests, tokens, slots];
const perCall = 50;
const first: Demand[] = [
  { pool: requests, amount: 1 },
  { pool: tokens, amount: perCall },
  { pool: slots, amount: 1 },
];

/** Workers of a host, each with units of all pools to spare. */
function makeHost(workers = 1) {
  const host: SimulatedHost = new SimulatedHost({
    pools,
    delay: () => 1,
    afterEach: () => {
      const fault = host.fault();
      if (fault !== null) throw new Error(fault);
    },
  });
  return { host, workers: Array.from({ length: workers }, () => host.start()) };
}

/** Has a worker hold so many units of each pool, in the middle of a bucket. */
function lease(host: SimulatedHost, { holder }: SimulatedWorker, amounts: readonly number[]): void {
  let decided: Decision | null = null;
  const demands = pools.map((pool, index) => ({ pool, amount: amounts[index] as number }));
  holder.acquire(demands, (decision) => {
    decided = decision;
  });
  host.advance(10);
  (decided as unknown as Admission).undo();
  host.advance(bucketMs - (host.now % bucketMs) + 40);
}

/** Calls that are let in pool by pool until an allotment is open. */
function opened(t: Test, host: SimulatedHost, { holder }: SimulatedWorker) {
  const allotment = new Allotment(
    pools.map((pool) => ({ pool, amount: 1 })),
    [1],
  );
  const found: HeldPool[] = [];
  let calls = 0;
  for (; !allotment.isOpen && calls < 20; calls++) {
    t.equal(allotment.take(perCall, host.now), -1);
    const admission = holder.take(first, found, host.now) as Admission;
    holder.setAside(allotment, perCall, host.now);
    admission.settle(tokens, 0);
    admission.release();
  }
  t.ok(allotment.isOpen);
  return { allotment, calls };
}

/** The same, at a host of its own whose one worker has so many units of each pool. */
function openedAt(t: Test, leased: readonly number[]) {
  const { host, workers } = makeHost();
  const [worker] = workers as [SimulatedWorker];
  lease(host, worker, leased);
  return { host, worker, ...opened(t, host, worker) };
}

const unitsOf = ({ holder }: SimulatedWorker, { name }: Pool) =>
  holder.inspect().find((units) => units.name === name);
const passTick = (host: SimulatedHost) => host.advance(bucketMs + 1);

test('what calls have taken of what was set aside is used, and the rest goes back at the next tick', (t) => {
  const { host, worker, allotment, calls } = openedAt(t, [400, 40_000, 20]);
  const sent = host.sent.length;
  for (let i = 0; i < 30; i++) {
    const bucket = allotment.take(perCall, host.now);
    t.not(bucket, -1);
    allotment.settle(bucket, perCall, i % 2 === 0 ? 10.5 : perCall);
    allotment.release();
  }
  t.equal(host.sent.length, sent, 'without a message');
  passTick(host);
  t.notOk(allotment.isOpen);
  t.equal(unitsOf(worker, requests)?.cooling, calls + 30);
  t.equal(unitsOf(worker, tokens)?.cooling, 15 * 11 + 15 * perCall);
  t.match(unitsOf(worker, slots), { inUse: 0 });
  t.end();
});

test('it is for one bucket, and lets in no more calls than were set aside', (t) => {
  const { host, allotment } = openedAt(t, [400, 40_000, 100]);
  t.equal(allotment.take(perCall, host.now + bucketMs), -1);
  let taken = 0;
  while (allotment.take(perCall, host.now) !== -1) taken++;
  t.ok(taken >= 90 && taken <= 100, `${taken} calls: no more slots, or a quarter of the requests`);
  t.end();
});

test('a call that ends after it was closed puts its tokens right, and frees its slots', (t) => {
  const { host, worker, allotment } = openedAt(t, [400, 40_000, 20]);
  const buckets = [0, 1, 2].map(() => allotment.take(perCall, host.now));
  passTick(host);
  t.equal(unitsOf(worker, tokens)?.cooling, 3 * perCall);
  t.equal(unitsOf(worker, slots)?.inUse, 3);
  allotment.settle(buckets[0] as number, perCall, 10);
  allotment.settle(buckets[1] as number, perCall, perCall + 25);
  allotment.settle(buckets[2] as number, perCall, Number.NaN);
  for (let i = 0; i < 3; i++) allotment.release();
  t.equal(unitsOf(worker, tokens)?.cooling, 10 + perCall + 25 + perCall);
  t.equal(unitsOf(worker, slots)?.inUse, 0);
  t.end();
});

test('what a call used beyond what it took is used at once, while it is open', (t) => {
  const { host, worker, allotment } = openedAt(t, [400, 40_000, 20]);
  allotment.settle(allotment.take(perCall, host.now), perCall, 1000);
  passTick(host);
  t.equal(unitsOf(worker, tokens)?.cooling, 1000);
  t.end();
});

test('whoever finds a pool short gets what is set aside of it', (t) => {
  const { host, worker, allotment } = openedAt(t, [400, 40_000, 20]);
  const bucket = allotment.take(perCall, host.now);
  const available = unitsOf(worker, requests)?.available ?? 0;
  const more = worker.holder.take([{ pool: requests, amount: available + 1 }], [], host.now);
  t.not(more, null);
  t.notOk(allotment.isOpen);
  t.not(bucket, -1);
  t.equal(host.fault(), null);
  t.end();
});

test('a slot that is kept for the next call is there for any other', (t) => {
  const { host, worker, allotment } = openedAt(t, [400, 40_000, 2]);
  for (let i = 0; i < 2; i++) allotment.take(perCall, host.now);
  allotment.release();
  t.equal(unitsOf(worker, slots)?.inUse, 2, 'it is kept');
  t.not(worker.holder.take([{ pool: slots, amount: 1 }], [], host.now), null);
  t.end();
});

test('a call for whose slot all had to be gathered is not let in by what went back with it', (t) => {
  const { host, workers } = makeHost();
  const [worker] = workers as [SimulatedWorker];
  lease(host, worker, [400, 40_000, 2]);
  const { allotment: keeping } = opened(t, host, worker);
  keeping.take(perCall, host.now);
  const { allotment } = opened(t, host, worker);
  keeping.release();
  t.not(allotment.take(perCall, host.now), -1);
  t.equal(allotment.take(perCall, host.now), -1);
  t.notOk(allotment.isOpen || keeping.isOpen);
  t.match(unitsOf(worker, slots), { inUse: 1 });
  t.end();
});

test('another worker that lacks units gets what is set aside here', (t) => {
  const { host, workers } = makeHost(2);
  const [here, there] = workers as [SimulatedWorker, SimulatedWorker];
  lease(host, here, [1000, 100_000, 100]);
  const { allotment } = opened(t, host, here);
  let decided: Decision | null = null;
  there.holder.acquire([{ pool: requests, amount: 900 }], (decision) => {
    decided = decision;
  });
  host.advance(10);
  t.match(decided, { outcome: 'admitted' });
  t.notOk(allotment.isOpen);
  t.end();
});

/** Brings twenty calls, so many milliseconds apart. @returns whether an allotment is open then */
function bringCalls(leased: readonly number[], gapMs: number, termMs: number | null = null) {
  const { host, workers } = makeHost();
  const [worker] = workers as [SimulatedWorker];
  const { holder } = worker;
  lease(host, worker, leased);
  if (termMs !== null) holder.receive({ type: 'lease-term', until: host.now + termMs });
  const allotment = new Allotment(first, [1]);
  for (let i = 0; i < 20; i++) {
    const admission = holder.take(first, [], host.now) as Admission;
    holder.setAside(allotment, perCall, host.now);
    admission.undo();
    host.advance(gapMs);
  }
  return { host, holder, allotment };
}

test('nothing is set aside of little, for calls that come now and then, or beyond the term of leases', (t) => {
  t.ok(bringCalls([400, 40_000, 20], 0).allotment.isOpen);
  t.notOk(bringCalls([50, 40_000, 20], 0).allotment.isOpen, 'too few requests');
  t.notOk(bringCalls([400, 2000, 20], 0).allotment.isOpen, 'too few tokens');
  t.notOk(bringCalls([400, 40_000, 20], 20).allotment.isOpen, 'five a bucket');
  t.ok(bringCalls([400, 40_000, 20], 0, 100).allotment.isOpen);
  t.notOk(bringCalls([400, 40_000, 20], 0, 10).allotment.isOpen, 'the bucket ends after the term');
  t.end();
});

test('with another term of leases nothing is set aside any more', (t) => {
  const { host, holder, allotment } = bringCalls([400, 40_000, 20], 0);
  holder.receive({ type: 'lease-term', until: host.now + 10 });
  t.notOk(allotment.isOpen);
  t.equal(host.fault(), null);
  t.end();
});

test('what callers are told counts what was set aside and not taken as left', (t) => {
  const { host, worker, allotment, calls } = openedAt(t, [400, 40_000, 20]);
  for (let i = 0; i < 3; i++) allotment.take(perCall, host.now);
  t.equal(worker.holder.peek(requests).remaining, requests.limit - calls - 3);
  t.end();
});

test('a busy worker asks for more before it runs out', (t) => {
  const { host, workers } = makeHost();
  const large: Pool = { name: 'key:b:requests', kind: 'window', limit: 1_000_000 };
  host.pools.set(large.name, large);
  const [{ holder }] = workers as [SimulatedWorker];
  const demands = [{ pool: large, amount: 1 }];
  const allotment = new Allotment(demands, []);
  const found: HeldPool[] = [];
  let waited = 0;
  for (let i = 0; i < 30_000; i++) {
    if (i % 10 === 0) host.advance(1);
    if (allotment.take(0, host.now) !== -1) continue;
    if (holder.take(demands, found, host.now) !== null) holder.setAside(allotment, 0, host.now);
    else if (holder.acquire(demands, () => {}).outcome === 'pending' && i > 10_000) waited++;
  }
  t.equal(waited, 0, 'after the first second nobody waits');
  t.end();
});
