import { test } from 'tap';
import { type Admission, type Denial, denialToReport } from '../../src/limits/admission.js';
import type { Pool } from '../../src/limits/pool.js';
import { fc } from '../support/seed.js';
import { ownedUnits, type SimulatedHost, type SimulatedWorker, startHost } from './host.js';

const budget: Pool = { name: 'key:a:budget:2026-11', kind: 'budget', limit: 1000 };

const makeHost = (workers: number) => startHost(workers, { pools: [budget] });

/** The admission, or null where there was too little. */
function take(host: SimulatedHost, { holder }: SimulatedWorker, amount: number): Admission | null {
  let admission: Admission | null = null;
  const decided = holder.acquire([{ pool: budget, amount }], (later) => {
    if (later.outcome === 'admitted') admission = later;
  });
  if (decided.outcome === 'admitted') return decided;
  host.advance(1500);
  return admission;
}

/** What is left for good: what was spent is in no share any more. */
const left = (host: SimulatedHost) => ownedUnits(host.owner)[0]?.share ?? budget.limit;

test('what is spent never comes back, and what was reserved beyond it does', (t) => {
  const { host, workers } = makeHost(2);
  const [first, second] = workers as [SimulatedWorker, SimulatedWorker];
  const admission = take(host, first, 600);
  t.ok(admission);
  t.equal(take(host, second, 600), null, 'reserved by a call under way');
  admission?.settle('budget', 100);
  admission?.release();
  host.advance(2000);
  t.equal(left(host), 900);
  const other = take(host, second, 900);
  t.ok(other);
  other?.release();
  host.advance(200_000);
  t.equal(left(host), 0, 'what nobody settled was used as it was reserved');
  t.equal(take(host, first, 1), null);
  t.end();
});

test('what is denied hears of a wait while calls hold enough, wherever they are, and of none once it is spent', (t) => {
  const { host, workers } = makeHost(2);
  const [first, second] = workers as [SimulatedWorker, SimulatedWorker];
  const denialOf = (worker: SimulatedWorker, amount: number): Denial | null => {
    let denial: Denial | null = null;
    const decided = worker.holder.acquire([{ pool: budget, amount }], (later) => {
      if (later.outcome === 'denied') denial = later;
    });
    if (decided.outcome === 'denied') return decided;
    host.advance(1500);
    return denial;
  };
  const [one, other] = [take(host, first, 400), take(host, second, 400)];
  t.match(denialOf(first, 1000), { reason: 'exhausted', retryAfterMs: Number });
  t.match(denialOf(second, 601), { reason: 'exhausted', retryAfterMs: Number });
  one?.settle('budget', 300);
  one?.release();
  host.advance(2000);
  t.match(denialOf(first, 1000), { reason: 'exhausted', retryAfterMs: null }, 'so much will never be there');
  t.match(denialOf(first, 700), { reason: 'exhausted', retryAfterMs: Number });
  other?.undo();
  host.advance(2000);
  t.ok(take(host, first, 700));
  t.end();
});

test('of two limits that deny a call it hears of the one that lets it wait longer', (t) => {
  const soon: Denial = { outcome: 'denied', pool: budget, reason: 'exhausted', retryAfterMs: 50_000 };
  const never: Denial = { ...soon, retryAfterMs: null };
  t.equal(denialToReport(soon, never), never);
  t.equal(denialToReport(never, soon), never);
  t.equal(denialToReport(never, { ...soon, reason: 'unknown' }), never);
  t.end();
});

test('a call that does not take place spends nothing', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  take(host, worker, 1000)?.undo();
  host.advance(1000);
  t.equal(left(host), 1000);
  t.ok(take(host, worker, 1000));
  t.end();
});

test('what a call uses beyond what it reserved is spent, too', (t) => {
  const { host, workers } = makeHost(1);
  const [worker] = workers as [SimulatedWorker];
  const admission = take(host, worker, 10);
  admission?.settle('budget', 1500);
  admission?.release();
  host.advance(1000);
  t.equal(left(host), -500);
  t.equal(take(host, worker, 1), null);
  t.end();
});

test('a worker that is killed may have spent all that it was leased', (t) => {
  const { host, workers } = makeHost(2);
  const [first, second] = workers as [SimulatedWorker, SimulatedWorker];
  t.ok(take(host, first, 300));
  const leased = ownedUnits(host.owner)[0]?.leased.get(first.id) ?? 0;
  t.ok(leased >= 300);
  host.kill(first);
  host.advance(1000);
  t.equal(left(host), 1000 - leased);
  t.ok(take(host, second, 1000 - leased));
  t.end();
});

test('a worker that ends gives back what it does not need', (t) => {
  const { host, workers } = makeHost(2);
  const [first, second] = workers as [SimulatedWorker, SimulatedWorker];
  const admission = take(host, first, 300);
  admission?.settle('budget', 7);
  admission?.release();
  first.holder.close();
  host.advance(10);
  host.kill(first);
  host.advance(10);
  t.equal(left(host), 993);
  t.ok(take(host, second, 993));
  t.end();
});

test('whatever happens, no more is spent than reserved, and nothing is spent twice', (t) => {
  const step = fc.record({
    worker: fc.nat(2),
    reserve: fc.integer({ min: 1, max: 200 }),
    use: fc.nat(200),
    waitMs: fc.nat(400),
    kill: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { host } = makeHost(3);
      const open: {
        readonly admission: Admission;
        readonly use: number;
        readonly worker: SimulatedWorker;
      }[] = [];
      let spent = 0;
      let lost = 0;
      for (const { worker: index, reserve, use, waitMs, kill } of steps) {
        const worker = host.workers[index % host.workers.length] as SimulatedWorker;
        const admission = take(host, worker, reserve);
        if (admission !== null) open.push({ admission, use: Math.min(use, reserve), worker });
        host.advance(waitMs);
        if (kill && host.workers.length > 1 && index === 0) {
          lost += ownedUnits(host.owner)[0]?.leased.get(worker.id) ?? 0;
          host.kill(worker);
          host.start();
          host.advance(5);
        } else if (open.length > 2) {
          const ended = open.shift();
          if (ended === undefined || !host.workers.includes(ended.worker)) continue;
          ended.admission.settle('budget', ended.use);
          ended.admission.release();
          spent += ended.use;
        }
      }
      host.advance(3000);
      // What the killed ones had spent and told of is counted in both.
      return left(host) >= 0 && 1000 - left(host) >= spent - lost && 1000 - left(host) <= spent + lost;
    }),
    { numRuns: 60 },
  );
  t.end();
});
