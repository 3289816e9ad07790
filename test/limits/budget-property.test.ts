import { test } from 'tap';
import type { Admission } from '../../src/limits/admission.js';
import type { Pool } from '../../src/limits/pool.js';
import { fc } from '../support/seed.js';
import { admitted, ask, type BudgetHost, finish, startBudgetHost } from './budget-host.js';
import type { SimulatedWorker } from './host.js';
import { pass, SimulatedAccounts } from './simulated-accounts.js';
import { SimulatedTime } from './time.js';

const total = 10_000;
const budget: Pool = { name: 'key:a:budget:2026-11', kind: 'budget', limit: total };

/** A call that an upstream serves. */
interface Running {
  readonly admission: Admission;
  readonly worker: SimulatedWorker;
  readonly taken: number;
  readonly cost: number;
}

/** Several hosts at one account, and the calls that they let in. */
class Stage {
  readonly time = new SimulatedTime();
  readonly accounts = new SimulatedAccounts(this.time);
  readonly hosts: BudgetHost[] = [];
  readonly asked: {
    readonly asked: ReturnType<typeof ask>;
    readonly worker: SimulatedWorker;
    taken: number;
    cost: number;
  }[] = [];
  readonly running: Running[] = [];
  spent = 0;

  start(): void {
    const { time, accounts } = this;
    this.hosts.push(startBudgetHost({ time, accounts, pools: [budget], workers: 2 }));
  }

  get reserved(): number {
    return this.accounts.reserved.get(budget.name) ?? 0;
  }

  call(host: number, worker: number, taken: number, cost: number): void {
    const { workers } = (this.hosts[host % this.hosts.length] as BudgetHost).host;
    const chosen = workers[worker % workers.length] as SimulatedWorker;
    this.asked.push({
      asked: ask(chosen, budget, taken),
      worker: chosen,
      taken,
      cost: Math.min(cost, taken),
    });
  }

  /** Calls whose worker was killed end with it: nobody knows what they cost, so they cost all that they took. */
  look(): void {
    for (const call of this.asked.splice(0)) {
      const admission = admitted(call.asked);
      if (admission !== null) this.running.push({ ...call, admission });
      else if (call.asked.decision === null && call.worker.isAlive) this.asked.push(call);
    }
    for (const call of this.running.splice(0)) {
      if (call.worker.isAlive) this.running.push(call);
      else this.spent += call.taken;
    }
  }

  end(): void {
    const call = this.running.shift();
    if (call === undefined) return;
    finish(call.admission, call.cost);
    this.spent += call.cost;
  }

  killWorker(index: number): void {
    const { host } = this.hosts[index % this.hosts.length] as BudgetHost;
    host.kill(host.workers[0] as SimulatedWorker);
    host.start();
  }

  killHost(index: number): void {
    this.hosts.splice(index % this.hosts.length, 1)[0]?.host.stop();
    this.start();
  }

  /** What is wrong, or null. */
  fault(): string | null {
    const { reserved } = this;
    const inUse = this.running.reduce((sum, { taken }) => sum + taken, 0);
    if (reserved < 0 || reserved > total) return `${reserved} reserved`;
    if (this.spent + inUse > reserved)
      return `${this.spent} spent and ${inUse} in use of ${reserved} reserved`;
    return null;
  }
}

const does = ['call', 'call', 'call', 'call', 'end', 'end', 'end', 'killWorker', 'killHost'] as const;
const step = fc.record({
  does: fc.constantFrom(...does),
  host: fc.nat(2),
  worker: fc.nat(1),
  taken: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 3000 })),
  cost: fc.nat(3000),
  waitMs: fc.oneof(fc.nat(3), fc.nat(40), fc.constant(1200)),
  fate: fc.constantFrom('good', 'good', 'good', 'good', 'failed', 'lost'),
  delayMs: fc.constantFrom(0, 1, 5, 300),
});

test('what hosts have spent and have in use is never more than is reserved, and that never more than the budget', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const stage = new Stage();
      for (let i = 0; i < 3; i++) stage.start();
      for (const { does, host, worker, taken, cost, waitMs, fate, delayMs } of steps) {
        stage.accounts.fate = () => fate;
        stage.accounts.delayMs = delayMs;
        if (does === 'call') stage.call(host, worker, taken, cost);
        else if (does === 'end') stage.end();
        else stage[does](host);
        for (let i = 0; i < 5; i++) {
          stage.look();
          const fault = stage.fault();
          if (fault !== null) throw new Error(fault);
          await pass(stage.time, waitMs / 5, Math.max(1, waitMs / 20));
        }
      }
    }),
    { numRuns: 60 },
  );
});

test('what is given back without a crash leaves nothing reserved but what was spent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const stage = new Stage();
      for (let i = 0; i < 2; i++) stage.start();
      for (const { does, host, worker, taken, cost, waitMs } of steps) {
        if (does === 'end') stage.end();
        else stage.call(host, worker, taken, cost);
        await pass(stage.time, waitMs % 50, 2);
        stage.look();
      }
      await pass(stage.time, 2000, 20);
      stage.look();
      while (stage.running.length > 0) stage.end();
      await pass(stage.time, 15_000, 50);
      return stage.reserved === stage.spent;
    }),
    { numRuns: 40 },
  );
});
