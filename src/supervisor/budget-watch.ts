import type { Logger } from 'pino';
import type { OwnedPool } from '../limits/owned-pool.js';
import { budgetKeptMs, budgetMark } from '../limits/pools.js';
import type { PrimaryGauge } from '../metrics/exposition.js';
import type { Store } from '../store/store.js';
import { budgetPeriod } from '../usage/budget.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';

/** Collection of the store with the marks that budgets have passed. Its name is in every store that is in use. */
const collection = 'budget-marks';
/** Parts of a budget of which it is told once a period when they are used, in percent. */
const marks = [50, 80, 100] as const;
/** With less left than is reserved at a time, calls are refused that need more: then all of it counts as used. */
const fullRatio = 0.99;
/** Budgets that are shown at most, the fullest ones. */
const mostShown = 1000;
/** Budgets whose accounts are read in one look. */
const mostRead = 200;

interface BudgetWatchOptions {
  readonly store: Pick<Store, 'create'>;
  /** The pools of budgets that this host has a part of: what it has reserved and not spent is their share. */
  inUse(): IterableIterator<OwnedBudget>;
  /** What all hosts together have reserved of a budget, in nano-dollars. @throws {GatewayError} of the store */
  reserved(account: string): Promise<number>;
  /** Unix milliseconds. */
  now(): number;
  readonly log: Logger;
}

/** A budget as the host knows it, in nano-dollars. */
type OwnedBudget = Pick<OwnedPool, 'name' | 'limit' | 'share'>;

interface SeenBudget {
  /** Name of its pool, which has the period in it. */
  readonly account: string;
  readonly period: string;
  readonly ratio: number;
  /** The highest mark that is known to have been told; 0 for none. */
  readonly told: number;
}

/**
 * Knows how far budgets are used, of those that calls at this host have asked for. Nothing is read before the first look.
 */
export function createBudgetWatch(options: BudgetWatchOptions) {
  const { store, now, log } = options;
  /** By the owner: `key:team-a`. */
  const seen = new Map<string, SeenBudget>();
  /** What is left of a round through all of them. */
  let round = options.inUse();
  let isLooking = false;

  const read = async ({ name, limit, share }: OwnedBudget): Promise<void> => {
    const at = name.lastIndexOf(budgetMark);
    const owner = name.slice(0, at);
    const period = name.slice(at + budgetMark.length);
    // What this host has reserved and not spent is spent by nobody.
    const used = Math.max(0, (await options.reserved(name)) - Math.max(0, share));
    const ratio = used / limit;
    const before = seen.get(owner);
    let told = before?.account === name ? before.told : 0;
    for (const mark of marks) {
      if (mark <= told || ratio < (mark === 100 ? fullRatio : mark / 100)) continue;
      // Whoever makes the record tells it: other hosts, and this one after a restart, find it.
      const isFirst = await store.create(collection, `${name}:${mark}`, '1', budgetKeptMs);
      told = mark;
      if (!isFirst) continue;
      const usd = { budgetUsd: limit / nanosPerDollar, usedUsd: used / nanosPerDollar };
      log.warn({ budget: owner, period, percent: mark, ...usd }, `${mark} % of a budget is used`);
    }
    seen.set(owner, { account: name, period, ratio, told });
  };

  const forgetSome = (): void => {
    const current = new Set((['day', 'week', 'month'] as const).map((per) => budgetPeriod(per, now()).id));
    for (const [owner, { period }] of seen) if (!current.has(period)) seen.delete(owner);
    if (seen.size <= mostShown) return;
    const emptiest = [...seen].sort(([, one], [, other]) => one.ratio - other.ratio);
    for (const [owner] of emptiest.slice(0, seen.size - mostShown)) seen.delete(owner);
  };

  return {
    /**
     * Reads some of the accounts, the others when it is called next. A mark that was passed is logged, by one host and
     * once in the period of the budget. Resolves when it is done; never rejects.
     */
    async look(): Promise<void> {
      if (isLooking) return;
      isLooking = true;
      try {
        for (let reads = 0; reads < mostRead; reads++) {
          let step = round.next();
          if (step.done === true && reads === 0) {
            round = options.inUse();
            step = round.next();
          }
          if (step.done === true) break;
          await read(step.value);
        }
      } catch {
        // The store is gone, of which others tell: what was seen stands until it is back.
      } finally {
        forgetSome();
        isLooking = false;
      }
    },
    /** How far each is used. */
    gauge(): PrimaryGauge {
      const budgets = [...seen];
      return {
        name: 'gateway_budget_used_ratio',
        labelValues: budgets.flatMap(([owner]) => {
          const end = owner.indexOf(':');
          return [owner.slice(0, end), owner.slice(end + 1)];
        }),
        values: budgets.map(([, { ratio }]) => ratio),
      };
    },
  };
}
