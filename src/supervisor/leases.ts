import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { ResolvedConfig } from '../config/resolve.js';
import type { StoreSettings } from '../config/types.js';
import { type FaultPlace, guard } from '../errors.js';
import type { KeyChange } from '../keys/managed-key.js';
import { BudgetSource, type BudgetSourceOptions } from '../limits/budget-source.js';
import { HostClock } from '../limits/clock.js';
import type { HolderMessage } from '../limits/lease-messages.js';
import type { OwnedPool } from '../limits/owned-pool.js';
import { type OwnedUnits, PoolOwner } from '../limits/pool-owner.js';
import { budgetKeptMs, budgetMark, poolSteps } from '../limits/pools.js';
import { PoolsInForce } from '../limits/pools-in-force.js';
import { bothSources, undivided } from '../limits/share-source.js';
import { ShareKeeper } from '../limits/shares.js';
import { type PrimaryGauge, primaryGauge } from '../metrics/exposition.js';
import { createShareStore } from '../store/create.js';
import type { Store } from '../store/store.js';
import type { WholeStore } from '../store/whole-store.js';
import { budgetPeriod } from '../usage/budget.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';
import { inSlices } from '../wire/steps.js';
import { tell } from './keep.js';

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
/** Of those of which the host has no part any more; more come to be so only where far more are in use. */
const mostLeftRead = 200;

interface BudgetWatchOptions {
  readonly store: Pick<Store, 'create'>;
  /** The pools of budgets that this host has a part of. */
  inUse(): IterableIterator<OwnedBudget>;
  /** What this host has reserved of a budget and not spent, in nano-dollars. */
  shareOf(account: string): number;
  /** What all hosts together have reserved of a budget, in nano-dollars. @throws {GatewayError} of the store */
  reserved(account: string): Promise<number>;
  /** Unix milliseconds. */
  now(): number;
  readonly log: Logger;
}

/** A budget as the host knows it, in nano-dollars. */
type OwnedBudget = Pick<OwnedPool, 'name' | 'limit'>;

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
  /** Budgets of which this host has held a part since they were last read, and holds none now, by their names. */
  const left = new Map<string, OwnedBudget>();
  let isLooking = false;

  const read = async ({ name, limit }: OwnedBudget): Promise<void> => {
    // One that was left may be in use again.
    const share = options.shareOf(name);
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
    // One of a period that has ended may be looked at after that of the next one.
    const isOver = before !== undefined && before.account !== name && !currentPeriods().has(period);
    if (!isOver) seen.set(owner, { account: name, period, ratio, told });
  };

  const currentPeriods = (): ReadonlySet<string> =>
    new Set((['day', 'week', 'month'] as const).map((per) => budgetPeriod(per, now()).id));
  const forgetSome = (): void => {
    const current = currentPeriods();
    for (const [owner, { period }] of seen) if (!current.has(period)) seen.delete(owner);
    if (seen.size <= mostShown) return;
    const emptiest = [...seen].sort(([, one], [, other]) => one.ratio - other.ratio);
    for (const [owner] of emptiest.slice(0, seen.size - mostShown)) seen.delete(owner);
  };

  return {
    /** Takes note of a budget that this host has no part of any more: one that is used up between two looks is told, too. */
    leave(budget: OwnedBudget): void {
      left.set(budget.name, budget);
    },
    /**
     * Reads some of the accounts, the others when it is called next. A mark that was passed is logged, by one host and
     * once in the period of the budget. Resolves when it is done; never rejects.
     */
    async look(): Promise<void> {
      if (isLooking) return;
      isLooking = true;
      try {
        let readsLeft = mostLeftRead;
        for (const [name, budget] of left) {
          if (readsLeft-- === 0) break;
          await read(budget);
          left.delete(name);
        }
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

const tickMs = 100;
const lookEveryMs = 5000;
/**
 * A slice is a pool divided by this and by the number of workers: all slices of those that serve make a quarter of the
 * pool; while others take their places, twice as much.
 */
const divisorPerWorker = 4;

/** The primary's side of all limits. */
export interface Leases {
  /** A worker is about to be told to start, which it is not to be before this resolves. Never rejects. */
  onStart(child: ChildProcess): Promise<void>;
  /** A worker lacks units, or gives some back. */
  onMessage(child: ChildProcess, message: HolderMessage): void;
  /** The process has ended. */
  onGone(child: ChildProcess): void;
  /**
   * The limits of this config hold once it resolves, for so many workers. Workers are not to hear of it before. One at a time.
   */
  apply(config: ResolvedConfig, workers: number): Promise<void>;
  /** The limits of the keys that are made at run time hold from now on, beside those of the config. */
  applyKeys(change: KeyChange): void;
  /** See `PoolOwner.inspectSteps`. */
  inspect(names: Iterable<string>): Promise<OwnedUnits[]>;
  /** Resolves when units can be had, or it is known that they cannot be: calls before that would wait in vain. */
  readonly ready: Promise<void>;
  /** What operators may see of the stores of limits. */
  gauges(): readonly PrimaryGauge[];
  /** Gives back what no worker holds any more. Resolves when that is done, or cannot be. */
  leave(): Promise<void>;
  stop(): void;
}

interface LeasesOptions {
  readonly config: ResolvedConfig;
  /** Where budgets are kept. */
  readonly store: Pick<WholeStore, 'accounts' | 'create'>;
  /** A mistake of ours: units may be counted that nobody has, or had by somebody and not counted. */
  onFault(where: FaultPlace, fault: unknown): void;
  readonly log: Logger;
}

/** Owns the units of all limits of a config, and leases them to the workers. */
export function createLeases(options: LeasesOptions): Leases {
  const { config, store, log } = options;
  const pools = new PoolsInForce();
  let { outage } = config;
  let sliceDivisor = 0;
  const clock = new HostClock();
  const now = () => clock.now();
  const budgets = createBudgets({
    ...options,
    now,
    whenGone: () => outage.budgets,
    onForgotten: ({ name, limit }) => watch.leave({ name, limit }),
  });
  const rates = createRateShares({ settings: config.store, now, whenGone: () => outage.rates, log });
  const owner = new PoolOwner({
    now,
    shares: bothSources(rates.source, budgets),
    poolOf: (name) => pools.get(name),
    sliceDivisor: () => sliceDivisor,
  });
  const watch = createBudgetWatch({
    store,
    inUse: () => budgets.pools(),
    shareOf: (account) => owner.shareOf(account),
    reserved: (account) => store.accounts.reservedOf(account),
    now: Date.now,
    log,
  });
  const lookTimer = setInterval(() => void watch.look(), lookEveryMs).unref();
  const guarded = <Arguments extends unknown[]>(where: FaultPlace, work: (...args: Arguments) => void) =>
    guard(where, options, work);
  /** A process id may come again, and these do not. */
  const numbers = new Map<ChildProcess, number>();
  let count = 0;
  const timer = setInterval(
    guarded('timer', () => owner.tick()),
    tickMs,
  ).unref();
  // The first one reaches for the store of rates.
  owner.tick();

  const numberOf = (child: ChildProcess): number => {
    const known = numbers.get(child);
    if (known !== undefined) return known;
    const number = ++count;
    numbers.set(child, number);
    return number;
  };
  const join = async (child: ChildProcess): Promise<void> => {
    try {
      await inSlices(owner.joinSteps(numberOf(child), (message) => tell(child, message)));
    } catch (fault) {
      options.onFault('ipc', fault);
    }
  };

  return {
    onStart: join,
    onMessage: guarded('ipc', (child, message) => {
      // What a process has sent may arrive after its end is known.
      if (child.exitCode !== null || child.signalCode !== null) return;
      owner.receive(numberOf(child), message);
    }),
    onGone: guarded('ipc', (child) => {
      const number = numbers.get(child);
      if (number === undefined) return;
      numbers.delete(child);
      inSlices(owner.goneSteps(number)).catch((fault: unknown) => options.onFault('ipc', fault));
    }),
    async apply(next, workers) {
      const changed = await inSlices(pools.configSteps(await inSlices(poolSteps(next))));
      outage = next.outage;
      sliceDivisor = workers * divisorPerWorker;
      await inSlices(owner.reloadSteps(changed));
    },
    applyKeys: (change) => owner.reload(pools.changeKeys(change)),
    inspect: (names) => inSlices(owner.inspectSteps(names)),
    ready: rates.ready,
    gauges: () => [
      primaryGauge('gateway_budgets_store_available', budgets.isAvailable ? 1 : 0),
      watch.gauge(),
      ...rates.gauges(),
    ],
    async leave() {
      clearInterval(timer);
      clearInterval(lookTimer);
      await Promise.all([budgets.leave(), rates.close()]);
    },
    stop() {
      clearInterval(timer);
      clearInterval(lookTimer);
      void rates.close();
    },
  };
}

function createBudgets({
  store,
  log,
  now,
  whenGone,
  onForgotten,
}: LeasesOptions & Pick<BudgetSourceOptions, 'now' | 'whenGone' | 'onForgotten'>) {
  return new BudgetSource({
    accounts: store.accounts,
    now,
    whenGone,
    onForgotten,
    onAvailable(isAvailable) {
      if (isAvailable) log.info('budget accounts are reachable again');
      else log.warn({ budgets: whenGone() }, 'cannot reach the budget accounts');
    },
  });
}

interface RateSharesOptions {
  readonly settings: StoreSettings;
  /** The host's clock. */
  readonly now: () => number;
  /** See the options of `ShareKeeper`. */
  readonly whenGone: () => 'open' | 'closed';
  readonly log: Logger;
}

/**
 * Where this host has the units of rate limits from: joins the other hosts that share the store of a config, or has all
 * limits to itself where its store is its own.
 */
function createRateShares({ settings, now, whenGone, log }: RateSharesOptions) {
  const store = createShareStore(settings);
  if (store === null) {
    const none = Promise.resolve();
    return { source: undivided, ready: none, gauges: (): PrimaryGauge[] => [], close: () => none };
  }
  let onHeard = (): void => {};
  const ready = new Promise<void>((resolve) => {
    onHeard = resolve;
  });
  const keeper = new ShareKeeper({
    now,
    host: randomBytes(12).toString('base64url'),
    whenGone,
    exchange(statement, onAnswer) {
      store
        .exchange(statement)
        .then(onAnswer, () => onAnswer(null))
        .finally(onHeard);
    },
    onAvailable(isAvailable) {
      if (isAvailable) log.info('the store of limits is reachable again: limits apply across hosts');
      else log.error({ rates: whenGone() }, meaningOf[whenGone()]);
    },
  });
  return {
    source: keeper,
    /** Resolves when the store was first asked, with or without an answer: before that nothing can be granted. */
    ready,
    /** Whether the store is there, where hosts share one. */
    gauges: () => [primaryGauge('gateway_limits_store_available', keeper.isAvailable ? 1 : 0)],
    /** Gives back what is free, and ends the connection. */
    close() {
      keeper.leave();
      return store.close();
    },
  };
}

const meaningOf = {
  open: 'the store of limits cannot be reached: this host counts alone, with the whole limits',
  closed:
    'the store of limits cannot be reached: this host has what it was given, and refuses what is beyond that',
} as const;
