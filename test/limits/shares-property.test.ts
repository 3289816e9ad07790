import { test } from 'tap';
import type { Pool } from '../../src/limits/pool.js';
import { cases, fc, integersOf } from '../support/seed.js';
import type { SimulatedWorker } from './host.js';
import { type SharedHost, SimulatedHosts } from './hosts.js';
import { type Use, worstMinute } from './ledger.js';

const requests: Pool = { name: 'key:a:requests', kind: 'requests', limit: 60 };
const tokens: Pool = { name: 'key:a:tokens', kind: 'tokens', limit: 500 };
const calls: Pool = { name: 'key:a:concurrent', kind: 'concurrent', limit: 6 };
const pools = [requests, tokens, calls];

const steps = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 20_000 })),
    action: fc.oneof(
      { weight: 16, arbitrary: fc.constant('burst' as const) },
      { weight: 2, arbitrary: fc.constant('cut' as const) },
      { weight: 2, arbitrary: fc.constant('lose' as const) },
      { weight: 1, arbitrary: fc.constant('crash' as const) },
      { weight: 1, arbitrary: fc.constant('stall' as const) },
      { weight: 1, arbitrary: fc.constant('kill' as const) },
    ),
    host: fc.nat(2),
    pool: fc.nat(2),
    calls: fc.integer({ min: 1, max: 80 }),
    amount: fc.integer({ min: 1, max: 120 }),
    lastsMs: fc.integer({ min: 0, max: 12_000 }),
  }),
  { minLength: 10, maxLength: 60 },
);

/** Calls at once on a host that was cut off count for so long after its deadline, and no longer. */
const slotGraceMs = 15_000;

type Plan = typeof steps extends fc.Arbitrary<infer Steps> ? Steps : never;

/**
 * Has three hosts live through a plan, and then looks whether all units are there again.
 * @param isExact no host ever counts alone, and so no bound is ever passed
 * @returns how many calls were admitted
 */
function play(plan: Plan, seed: number, isExact: boolean): number {
  let admitted = 0;
  const next = integersOf(seed);
  const hosts = new SimulatedHosts({ pools, next, whenGone: 'closed' });
  const uses = new Map<Pool, Use[]>(pools.map((pool) => [pool, []]));
  const open = new Map<SharedHost, number>();
  const call = (shared: SharedHost, pool: Pool, amount: number, lastsMs: number): void => {
    const { host } = shared;
    const worker = host.workers[next(host.workers.length)] as SimulatedWorker;
    const use = (decision: ReturnType<typeof worker.holder.acquire>): void => {
      if (decision.outcome !== 'admitted') return;
      admitted++;
      if (pool === calls) open.set(shared, (open.get(shared) ?? 0) + amount);
      else uses.get(pool)?.push({ at: host.now, amount });
      const sum = [...open.values()].reduce((total, each) => total + each, 0);
      if (isExact && pool === calls && sum > calls.limit) throw new Error(`${sum} calls at once`);
      host.at(host.now + Math.min(lastsMs, slotGraceMs), () => {
        if (!worker.isAlive) return;
        if (pool === calls) open.set(shared, (open.get(shared) ?? 0) - amount);
        decision.release();
      });
    };
    use(worker.holder.acquire([{ pool, amount }], use));
  };
  for (let i = 0; i < 3; i++) hosts.start();
  for (const step of plan) {
    hosts.advance(step.afterMs);
    const shared = hosts.hosts[step.host % hosts.hosts.length] as SharedHost;
    const { workers } = shared.host;
    const worker = workers[next(workers.length)] as SimulatedWorker;
    const pool = pools[step.pool] as Pool;
    if (!isExact && next(6) === 0) hosts.whenGone = hosts.whenGone === 'open' ? 'closed' : 'open';
    if (step.action === 'cut') shared.way.isCut = !shared.way.isCut;
    else if (step.action === 'lose') shared.way.lossOf = next(5);
    else if (step.action === 'stall') worker.stalledUntil = hosts.time.now + 700;
    else if (step.action === 'crash') {
      open.delete(shared);
      hosts.crash(shared);
      hosts.start();
    } else if (step.action === 'kill' && pool !== calls && !open.get(shared)) {
      shared.host.kill(worker);
      shared.host.start();
    } else if (step.action === 'burst' && hosts.time.now >= worker.stalledUntil) {
      const amount = pool === tokens ? step.amount : 1;
      for (let i = 0; i < step.calls; i++) call(shared, pool, amount, step.lastsMs);
    }
  }
  for (const { way } of hosts.hosts) {
    way.isCut = false;
    way.lossOf = 0;
  }
  hosts.advance(150_000);
  for (const pool of [requests, tokens]) {
    const worst = worstMinute(uses.get(pool) ?? []);
    if (isExact && worst > pool.limit) throw new Error(`${worst} of ${pool.name} within a minute`);
    const { size } = hosts.model.sharesOf(pool.name);
    if (hosts.sum(pool.name) !== 0) throw new Error(`${pool.name}: a host remembers`);
    if (size > 0 && hosts.hosts.every(({ name }) => hosts.model.sharesOf(pool.name).has(name)))
      throw new Error(`${pool.name}: the store remembers`);
  }
  // All of it is there again, wherever it is wanted.
  const before = uses.get(requests)?.length ?? 0;
  for (let i = 0; i < 200; i++) {
    call(hosts.hosts[1] as SharedHost, requests, 1, 0);
    hosts.advance(20);
  }
  const after = (uses.get(requests)?.length ?? 0) - before;
  if (after !== requests.limit) throw new Error(`only ${after} are left`);
  return admitted;
}

test('closed: whatever is lost, cut or ended, no bound is passed and no unit is lost', (t) => {
  let admitted = 0;
  fc.assert(
    fc.property(steps, fc.nat(), (plan, seed) => {
      admitted += play(plan, seed, true);
    }),
    { numRuns: cases(40) },
  );
  t.ok(admitted > cases(1000), `${admitted} calls were admitted`);
  t.end();
});

test('whatever the config says of a store that is gone, no unit is lost by it', (t) => {
  let admitted = 0;
  fc.assert(
    fc.property(steps, fc.nat(), (plan, seed) => {
      admitted += play(plan, seed, false);
    }),
    { numRuns: cases(40) },
  );
  t.ok(admitted > cases(1000), `${admitted} calls were admitted`);
  t.end();
});
