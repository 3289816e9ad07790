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
import { bothSources, unsharedSource } from '../limits/share-source.js';
import { ShareKeeper } from '../limits/shares.js';
import { type PrimaryGauge, primaryGauge } from '../metrics/exposition.js';
import { createShareStore } from '../store/create.js';
import type { Store, WholeStore } from '../store/store.js';
import { budgetPeriod } from '../usage/budget.js';
import { entryOf } from '../wire/entry-of.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';
import { inSlices } from '../wire/steps.js';
import { sendMessage } from './keep.js';

/** Collection of the store with the marks that budgets have passed. Existing stores contain this name. */
const collection = 'budget-marks';
/** Percentages of a budget. Reaching one is logged once a period. */
const marks = [50, 80, 100] as const;
/**
 * Ratio from which a budget counts as fully used. If less is left than the amount reserved at a time, calls that need
 * more are refused.
 */
const fullRatio = 0.99;
/** Most budgets shown, the fullest ones. */
const mostShown = 1000;
/** Most budgets whose accounts are read in one look. */
const mostRead = 200;
/**
 * Most budgets read in one look of which this host no longer has a part. More than these accumulate only if far more
 * are in use.
 */
const mostLeftRead = 200;

interface BudgetWatchOptions {
  readonly store: Pick<Store, 'create'>;
  /** The pools of the budgets of which this host has a part. */
  inUse(): IterableIterator<OwnedBudget>;
  /** Limit of a budget in nano-dollars; undefined if it is no longer in force. */
  limitOf(account: string): number | undefined;
  /** Part of a budget that this host has reserved and not spent, in nano-dollars. */
  shareOf(account: string): number;
  /**
   * Part of a budget that all hosts together have reserved, in nano-dollars.
   * @throws {GatewayError} of the store
   */
  reserved(account: string): Promise<number>;
  /** Unix milliseconds. */
  now(): number;
  readonly log: Logger;
}

/** A budget as this host knows it, in nano-dollars. */
type OwnedBudget = Pick<OwnedPool, 'name' | 'limit'>;

interface SeenBudget {
  /** Name of its pool, which includes the period. */
  readonly account: string;
  readonly period: string;
  readonly ratio: number;
  /** Number of the round that has read it. */
  readonly round: number;
  /** The highest mark known to be logged. 0 for none. */
  readonly told: number;
}

/** Tracks the used part of each budget that calls at this host use. Reads nothing before the first look. */
export function createBudgetWatch(options: BudgetWatchOptions) {
  const { store, now, log } = options;
  /** By owner, such as `key:team-a`. */
  const seen = new Map<string, SeenBudget>();
  let rounds = 0;
  /**
   * The budgets in use, and those that are shown and no longer in use: other hosts spend of them, and tasks that have
   * ended are charged anew.
   */
  function* everyBudget(): Generator<OwnedBudget, void, undefined> {
    rounds++;
    yield* options.inUse();
    for (const [owner, { account, round }] of [...seen]) {
      if (round === rounds) continue;
      const limit = options.limitOf(account);
      if (limit === undefined) seen.delete(owner);
      else yield { name: account, limit };
    }
  }
  /** The rest of the current round through them. */
  let round = everyBudget();
  /** By name: budgets of which this host has held a part since they were last read, and holds none now. */
  const left = new Map<string, OwnedBudget>();
  let isLooking = false;

  const read = async ({ name, limit }: OwnedBudget): Promise<void> => {
    // The budget may be in use again.
    const share = options.shareOf(name);
    const at = name.lastIndexOf(budgetMark);
    const owner = name.slice(0, at);
    const period = name.slice(at + budgetMark.length);
    // This host's reserved and unspent part counts as unspent.
    const used = Math.max(0, (await options.reserved(name)) - Math.max(0, share));
    const ratio = used / limit;
    const before = seen.get(owner);
    let told = before?.account === name ? before.told : 0;
    for (const mark of marks) {
      if (mark <= told || ratio < (mark === 100 ? fullRatio : mark / 100)) continue;
      // The host that creates the record logs the mark. Other hosts, and this one after a restart, find the record.
      const isFirst = await store.create(collection, `${name}:${mark}`, '1', budgetKeptMs);
      told = mark;
      if (!isFirst) continue;
      const usd = { budgetUsd: limit / nanosPerDollar, usedUsd: used / nanosPerDollar };
      log.warn({ budget: owner, period, percent: mark, ...usd }, `${mark} % of a budget is used`);
    }
    // A budget of an ended period may be read after that of the next period.
    const isOver = before !== undefined && before.account !== name && !currentPeriods().has(period);
    if (!isOver) seen.set(owner, { account: name, period, ratio, round: rounds, told });
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
    /**
     * Records a budget of which this host no longer has a part, so that one used up between two looks is logged, too.
     */
    leave(budget: OwnedBudget): void {
      left.set(budget.name, budget);
    },
    /**
     * Reads some of the accounts, and the others on the next calls. A passed mark is logged by one host, once in the
     * budget's period. Resolves when done. Never rejects.
     */
    async look(): Promise<void> {
      if (isLooking) return;
      isLooking = true;
      try {
        let readsLeft = mostLeftRead;
        for (const [name, budget] of left) {
          if (readsLeft-- === 0) break;
          await read({ name, limit: options.limitOf(name) ?? budget.limit });
          left.delete(name);
        }
        for (let reads = 0; reads < mostRead; reads++) {
          let step = round.next();
          if (step.done === true && reads === 0) {
            round = everyBudget();
            step = round.next();
          }
          if (step.done === true) break;
          await read(step.value);
        }
      } catch {
        // An unreachable store is logged elsewhere. The last values remain until it is back.
      } finally {
        forgetSome();
        isLooking = false;
      }
    },
    gauge: () => usedGauge(seen),
  };
}

/** Returns the used ratio of each budget. */
function usedGauge(seen: ReadonlyMap<string, SeenBudget>): PrimaryGauge {
  const budgets = [...seen];
  return {
    name: 'gateway_budget_used_ratio',
    labelValues: budgets.flatMap(([owner]) => {
      const end = owner.indexOf(':');
      return [owner.slice(0, end), owner.slice(end + 1)];
    }),
    values: budgets.map(([, { ratio }]) => ratio),
  };
}

const tickMs = 100;
const lookEveryMs = 5000;
/**
 * A slice is a pool divided by this and by the number of workers. The slices of all serving workers add up to a quarter
 * of the pool, and to half of it while successors take their places.
 */
const divisorPerWorker = 4;

/** The primary's side of all limits. */
export interface Leases {
  /** Called before a worker is sent its start order, which must wait until this resolves. Never rejects. */
  onStart(child: ChildProcess): Promise<void>;
  /** Handles a worker's request for units, or the return of some. */
  onMessage(child: ChildProcess, message: HolderMessage): void;
  /** Called when a worker has exited. */
  onGone(child: ChildProcess): void;
  /**
   * Puts the limits of a config in force for this number of workers. Workers must not receive the config before it
   * resolves. Calls must not overlap.
   */
  apply(config: ResolvedConfig, workers: number): Promise<void>;
  /** Puts the limits of managed keys in force, beside those of the config. */
  applyKeys(change: KeyChange): void;
  /** See `PoolOwner.inspectSteps`. */
  inspect(names: Iterable<string>): Promise<OwnedUnits[]>;
  /** Resolves when units are available, or are known to be unavailable. Calls before that would wait in vain. */
  readonly ready: Promise<void>;
  /** Metrics of the stores of limits. */
  gauges(): readonly PrimaryGauge[];
  /** Returns everything that no worker holds any more. Resolves when that is done, or has failed. */
  leave(): Promise<void>;
  stop(): void;
}

interface LeasesOptions {
  readonly config: ResolvedConfig;
  /** Where budgets are kept. */
  readonly store: Pick<WholeStore, 'accounts' | 'create'>;
  /** See `WorkerPool.confirm`. */
  confirm(mostMs: number, except: ReadonlySet<ChildProcess>): Promise<readonly ChildProcess[]>;
  /** Called on an internal error. Units may be counted that no worker has, or not counted although one has them. */
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
    limitOf: (account) => pools.get(account)?.limit,
    shareOf: (account) => owner.shareOf(account),
    reserved: (account) => store.accounts.reservedOf(account),
    now: Date.now,
    log,
  });
  const lookTimer = setInterval(() => void watch.look(), lookEveryMs).unref();
  const guarded = <Arguments extends unknown[]>(where: FaultPlace, work: (...args: Arguments) => void) =>
    guard(where, options, work);
  /** Numbers for workers. Unlike process ids, they are never reused. */
  const numbers = new Map<ChildProcess, number>();
  let count = 0;
  const timer = setInterval(
    guarded('timer', () => owner.tick()),
    tickMs,
  ).unref();
  const stopTimers = (): void => {
    for (const each of [timer, lookTimer]) clearInterval(each);
  };
  // The first tick contacts the store of rates.
  owner.tick();

  const numberOf = (child: ChildProcess): number => entryOf(numbers, child, () => ++count);
  const join = async (child: ChildProcess): Promise<void> => {
    try {
      await inSlices(owner.joinSteps(numberOf(child), (message) => sendMessage(child, message)));
    } catch (fault) {
      options.onFault('ipc', fault);
    }
  };

  return {
    onStart: join,
    onMessage: guarded('ipc', (child, message) => {
      // A message of a process may arrive after its exit is known.
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
      await inSlices(owner.reloadSteps(changed), createPace(options));
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
      stopTimers();
      await Promise.all([budgets.leave(), rates.close()]);
    },
    stop() {
      stopTimers();
      void rates.close();
    },
  };
}

/**
 * Messages to each worker that it has not read yet. A worker that waits for the processor reads everything that has
 * accumulated in the channel in one turn of its event loop.
 */
const messagesAhead = 16;
/** Longest wait for a worker to read them. One that is stuck is sent the others without waiting for it again. */
const readMs = 500;

/** @returns a function to await after each message to the workers */
function createPace({ confirm }: Pick<LeasesOptions, 'confirm'>): () => Promise<void> {
  const stuck = new Set<ChildProcess>();
  let left = messagesAhead;
  return async () => {
    if (--left > 0) return;
    left = messagesAhead;
    for (const child of await confirm(readMs, stuck)) stuck.add(child);
  };
}

function createBudgets({
  store,
  log,
  now,
  whenGone,
  onForgotten,
}: Omit<LeasesOptions, 'confirm'> & Pick<BudgetSourceOptions, 'now' | 'whenGone' | 'onForgotten'>) {
  return new BudgetSource({
    accounts: store.accounts,
    now,
    whenGone,
    onForgotten,
    onAvailable(isAvailable, failure) {
      if (isAvailable) log.info('budget accounts are reachable again');
      else log.warn({ err: failure, budgets: whenGone() }, 'cannot reach the budget accounts');
    },
  });
}

interface RateSharesOptions {
  readonly settings: StoreSettings;
  /** Time of the host's clock. */
  readonly now: () => number;
  /** See the options of `ShareKeeper`. */
  readonly whenGone: () => 'open' | 'closed';
  readonly log: Logger;
}

/**
 * Creates this host's source of units of rate limits. Joins the other hosts that share the config's store. If the store
 * is the host's own, the host has all limits to itself.
 */
function createRateShares({ settings, now, whenGone, log }: RateSharesOptions) {
  const store = createShareStore(settings);
  if (store === null) {
    const none = Promise.resolve();
    return { source: unsharedSource, ready: none, gauges: (): PrimaryGauge[] => [], close: () => none };
  }
  let onHeard = (): void => {};
  /** The last of an exchange. */
  let failure: unknown;
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
        .then(onAnswer, (error: unknown) => {
          failure = error;
          onAnswer(null);
        })
        .finally(onHeard);
    },
    onAvailable(isAvailable) {
      if (isAvailable) log.info('the store of limits is reachable again: limits apply across hosts');
      else log.error({ err: failure, rates: whenGone() }, meaningOf[whenGone()]);
    },
  });
  return {
    source: keeper,
    /** Resolves after the first request to the store, with or without an answer. Nothing can be granted before. */
    ready,
    /** Whether the shared store is available. */
    gauges: () => [primaryGauge('gateway_limits_store_available', keeper.isAvailable ? 1 : 0)],
    /** Returns free units, and closes the connection. */
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
