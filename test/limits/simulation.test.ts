import { test } from 'tap';
import type { Admission, Decision } from '../../src/limits/admission.js';
import type { Demand, Pool } from '../../src/limits/pool.js';
import { cases, fc, integersOf } from '../support/seed.js';
import { heldUnits, ownedUnits, SimulatedHost, type SimulatedWorker } from './host.js';
import { type Use, worstMinute } from './ledger.js';

/** The limits of the simulated calls, so many times what few of them use up. */
function poolsOf(scale: number) {
  const requests: Pool = { name: 'key:a:requests', kind: 'requests', limit: 20 * scale };
  const tokens: Pool = { name: 'key:a:tokens', kind: 'tokens', limit: 500 * scale };
  const shared: Pool = { name: 'model:m:requests', kind: 'requests', limit: 40 * scale };
  const calls: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 4 * scale };
  return { requests, tokens, shared, calls, all: [requests, tokens, calls, shared] };
}

/** What a call has taken, however it was let in. */
type Taken = Pick<Admission, 'release'> & { settle(used: number): void };

/** Every use of a window, and the slots that are held. */
class Ledger {
  readonly uses = new Map<string, Use[]>();
  slots = new Map<SimulatedWorker, number>();

  used(pool: string, at: number, amount: number): Use {
    const use = { at, amount };
    const uses = this.uses.get(pool) ?? [];
    uses.push(use);
    this.uses.set(pool, uses);
    return use;
  }

  /** @returns the most that was used of a pool in any minute, both ends counted, beyond what was overdrawn in it */
  worst(pool: string, overdrafts: readonly Use[]): number {
    return worstMinute(this.uses.get(pool) ?? [], overdrafts);
  }
}

const steps = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 9000 })),
    action: fc.oneof(
      { weight: 12, arbitrary: fc.constant('call' as const) },
      { weight: 6, arbitrary: fc.constant('burst' as const) },
      { weight: 1, arbitrary: fc.constant('kill' as const) },
      { weight: 1, arbitrary: fc.constant('stall' as const) },
    ),
    worker: fc.nat(3),
    demanded: fc.integer({ min: 1, max: 15 }),
    estimate: fc.integer({ min: 0, max: 200 }),
    actual: fc.integer({ min: 0, max: 260 }),
    lastsMs: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 80_000 })),
    patienceMs: fc.option(fc.integer({ min: 0, max: 40 })),
  }),
  { minLength: 20, maxLength: 120 },
);

/**
 * @param scale how many times the limits and the bursts of calls are what few calls use up
 * @param sliceDivisor of the workers' slices
 * @returns how many calls were admitted
 */
function simulate(scale: number, numRuns: number, sliceDivisor = 0): number {
  let admitted = 0;
  const { requests, tokens, shared, calls, all } = poolsOf(scale);
  fc.assert(
    fc.property(steps, fc.nat(), (plan, seed) => {
      const next = integersOf(seed);
      const ledger = new Ledger();
      const check = () => {
        const held = [...ledger.slots.values()].reduce((total, count) => total + count, 0);
        if (held > calls.limit) throw new Error(`${held} calls at once`);
      };
      const host: SimulatedHost = new SimulatedHost({
        pools: all,
        delay: () => next(next(8) === 0 ? 60 : 3),
        afterEach: check,
        sliceDivisor,
      });
      let undecided = 0;
      const call = (worker: SimulatedWorker, step: (typeof plan)[number]) => {
        const demands: Demand[] = all
          .filter((_pool, index) => (step.demanded >> index) & 1)
          .map((pool) => ({ pool, amount: pool === tokens ? step.estimate : 1 }));
        const use = (taken: Taken) => {
          admitted++;
          const uses = new Map(
            demands.map(({ pool, amount }) => [pool, ledger.used(pool.name, host.now, amount)]),
          );
          const slots = demands.some(({ pool }) => pool === calls) ? 1 : 0;
          ledger.slots.set(worker, (ledger.slots.get(worker) ?? 0) + slots);
          host.at(host.now + step.lastsMs, () => {
            if (!worker.isAlive) return;
            const reserved = uses.get(tokens);
            if (reserved !== undefined) {
              const extra = step.actual - reserved.amount;
              if (extra > 0) ledger.used(tokens.name, host.now, extra);
              else reserved.amount = step.actual;
              taken.settle(step.actual);
            }
            ledger.slots.set(worker, (ledger.slots.get(worker) ?? 0) - slots);
            taken.release();
          });
        };
        const useDecided = (decision: Decision) => {
          if (decision.outcome !== 'admitted') return;
          use({
            settle: (used) => decision.settle('tokens', used),
            release: () => {
              decision.release();
              decision.release();
            },
          });
        };
        const admission = worker.holder.take(demands, host.now);
        if (admission !== null) {
          useDecided(admission);
          return;
        }
        undecided++;
        let isTold = false;
        const result = worker.holder.acquire(demands, (decision) => {
          if (isTold || !worker.isAlive) throw new Error('told twice, or too late');
          isTold = true;
          undecided--;
          useDecided(decision);
        });
        if (result.outcome !== 'pending') {
          undecided--;
          useDecided(result);
          return;
        }
        const giveUp = () => {
          if (isTold) return;
          isTold = true;
          undecided--;
          // A process that was killed gives up nothing.
          if (worker.isAlive) result.cancel();
        };
        if (step.patienceMs !== null) host.at(host.now + step.patienceMs, giveUp);
        host.at(host.now + 2500, () => {
          if (!isTold && worker.isAlive) throw new Error('it waits forever');
          if (!isTold) undecided--;
          isTold = true;
        });
      };
      for (let i = 0; i < 4; i++) host.start();
      for (const step of plan) {
        host.advance(step.afterMs);
        const worker = host.workers[step.worker % host.workers.length] as SimulatedWorker;
        if (step.action === 'kill') {
          host.kill(worker);
          ledger.slots.delete(worker);
          host.start();
        } else if (step.action === 'stall') worker.stalledUntil = host.now + 700;
        else if (host.now >= worker.stalledUntil) {
          const count = step.action === 'burst' ? 12 * scale : 1;
          for (let i = 1; i < count; i++)
            host.at(host.now + (i * 20) / scale, () => {
              if (worker.isAlive && host.now >= worker.stalledUntil) call(worker, step);
            });
          call(worker, step);
        }
        check();
      }
      host.advance(230_000);
      for (const pool of [requests, tokens, shared]) {
        const worst = ledger.worst(
          pool.name,
          host.overdrafts.filter((each) => each.pool === pool.name),
        );
        if (worst > pool.limit) throw new Error(`${worst} of ${pool.name} within a minute`);
      }
      if (undecided !== 0) throw new Error(`${undecided} are not decided`);
      if (ownedUnits(host.owner).length > 0) throw new Error('the primary remembers');
      if (host.workers.some(({ holder }) => heldUnits(holder).length > 0))
        throw new Error('a worker remembers');
    }),
    { numRuns: cases(numRuns) },
  );
  return admitted;
}

test('whatever happens, no bound is passed, no unit is lost and nobody waits forever', (t) => {
  const admitted = simulate(1, 15);
  t.ok(admitted > cases(200), `${admitted} calls were admitted`);
  t.end();
});

test('nor where calls are many, and their worker asks for units before it lacks them', (t) => {
  const admitted = simulate(100, 6);
  t.ok(admitted > cases(5000), `${admitted} calls were admitted`);
  t.end();
});

test('nor where workers have slices of their pools, which they use without a word', (t) => {
  for (const scale of [10, 100]) {
    const admitted = simulate(scale, 6, 16);
    t.ok(admitted > cases(50) * scale, `${admitted} calls were admitted`);
  }
  t.end();
});

for (const sliceDivisor of [0, 16]) {
  const kind = sliceDivisor === 0 ? 'without slices' : 'with slices';
  test(`four workers that offer more get all of a window, and never more, ${kind}`, (t) => {
    const pool: Pool = { name: 'key:b:requests', kind: 'requests', limit: 600 };
    const next = integersOf(11);
    const host = new SimulatedHost({
      pools: [pool],
      delay: () => 0.2 + next(10) / 10,
      sliceDivisor,
      looks: false,
    });
    const ledger = new Ledger();
    const demands = [{ pool, amount: 1 }];
    const use = (decision: { readonly outcome: string }) => {
      if (decision.outcome === 'admitted') ledger.used(pool.name, host.now, 1);
    };
    for (let i = 0; i < 4; i++) host.start();
    const begun = host.now;
    for (let at = 0; at < 200_000; at += 7) {
      host.advance(7);
      // Never the same share for each, and each alone for a while.
      const [busy, other] = [Math.floor(at / 20_000) % 4, next(4)];
      for (const index of [busy, other])
        use((host.workers[index] as SimulatedWorker).holder.acquire(demands, use));
    }
    const uses = ledger.uses.get(pool.name) ?? [];
    t.equal(ledger.worst(pool.name, []), 600);
    // It is full at the start, and again after each minute.
    t.ok(uses.length >= 0.98 * 4 * 600, `${uses.length} in all`);
    for (const fromMs of [0, 61_000, 122_000]) {
      const within = uses.filter(({ at }) => at >= begun + fromMs && at < begun + fromMs + 61_000);
      t.ok(within.length >= 590, `${within.length} in the minute after ${fromMs} ms`);
    }
    t.equal(host.fault(), null);
    t.end();
  });
}

test('slots are used to the full when all workers want them', (t) => {
  const pool: Pool = { name: 'key:b:concurrent', kind: 'concurrent', limit: 10 };
  const next = integersOf(5);
  const host = new SimulatedHost({ pools: [pool], delay: () => 0.3, looks: false });
  let held = 0;
  let most = 0;
  let heldMs = 0;
  for (let i = 0; i < 4; i++) host.start();
  const use = (decision: Decision) => {
    if (decision.outcome !== 'admitted') return;
    most = Math.max(most, ++held);
    const lastsMs = 50 + next(100);
    heldMs += lastsMs;
    host.at(host.now + lastsMs, () => {
      held--;
      decision.release();
    });
  };
  for (let at = 0; at < 20_000; at += 2) {
    host.advance(2);
    const result = (host.workers[next(4)] as SimulatedWorker).holder.acquire([{ pool, amount: 1 }], use);
    if (result.outcome !== 'pending') use(result);
  }
  t.equal(most, 10);
  t.ok(heldMs / (10 * 20_000) > 0.85, `${heldMs / 2000} % of the time`);
  t.ok(host.sent.length < 30_000, `${host.sent.length} messages`);
  t.end();
});
