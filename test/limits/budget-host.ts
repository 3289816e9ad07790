import type { Admission, Decision } from '../../src/limits/admission.js';
import { BudgetSource } from '../../src/limits/budget-source.js';
import type { Pool } from '../../src/limits/pool.js';
import { type SimulatedHost, type SimulatedWorker, startHost } from './host.js';
import type { SimulatedAccounts } from './simulated-accounts.js';
import type { SimulatedTime } from './time.js';

interface BudgetHostOptions {
  readonly time: SimulatedTime;
  readonly accounts: SimulatedAccounts;
  readonly pools: readonly Pool[];
  readonly workers: number;
  readonly whenGone?: () => 'open' | 'closed';
  /** See the options of a simulated host. */
  readonly looks?: boolean;
}

/** A primary and its workers, which have budgets from simulated accounts. */
export interface BudgetHost {
  readonly host: SimulatedHost;
  readonly source: BudgetSource;
  /** What was told of the store. */
  readonly told: readonly boolean[];
}

export function startBudgetHost(options: BudgetHostOptions): BudgetHost {
  const { time, accounts, pools, whenGone = () => 'closed', looks } = options;
  const told: boolean[] = [];
  const source = new BudgetSource({
    accounts,
    now: () => time.now,
    whenGone,
    onAvailable: (isAvailable) => told.push(isAvailable),
    onForgotten: () => {},
  });
  const { host } = startHost(options.workers, { pools, time, shares: source, looks });
  return { host, source, told };
}

/** Asks a worker for some of a budget. @returns the decision, once there is one */
export function ask({ holder }: SimulatedWorker, pool: Pool, amount: number): { decision: Decision | null } {
  const asked: { decision: Decision | null } = { decision: null };
  const decided = holder.acquire([{ pool, amount }], (later) => {
    asked.decision = later;
  });
  if (decided.outcome !== 'pending') asked.decision = decided;
  return asked;
}

/** The admission, or null where there is none. */
export function admitted(asked: { readonly decision: Decision | null }): Admission | null {
  return asked.decision?.outcome === 'admitted' ? asked.decision : null;
}

/** A call has ended, and cost so much. */
export function finish(admission: Admission | null, cost: number): void {
  admission?.settle('budget', cost);
  admission?.release();
}
