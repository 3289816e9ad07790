import type { Budget, Key, Model, RateLimits } from '../config/types.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';
import type { Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import type { Demand, Pool, PoolKind } from './pool.js';
import { RateLines } from './rate-headers.js';

/**
 * Pools whose units a call takes together. Before the body is read, these are the requests and the concurrent calls of
 * its key and groups. Once its model is known, these are all others.
 */
export interface CallPools {
  /**
   * One unit of each pool. A call demands exactly these; `demandsOf` sets the tokens of those at `tokenIndexes`. The
   * key's own pools come first, so that a key that has exhausted its own limits does not wait for shared ones.
   */
  readonly demands: readonly Demand[];
  /** Indexes of the demands of tokens. */
  readonly tokenIndexes: readonly number[];
  /** Writes the rate-limit headers for these calls, of the limits that are known by then. */
  readonly rateLines: RateLines;
}

/** The pools of the calls of one key. */
class KeyPools {
  /** For a call whose body has not been read. */
  readonly beforeModel: CallPools;
  #concurrentOnly: CallPools | null = null;
  /** For all models without limits. */
  #unlimitedModel: CallPools | null = null;
  /** For models with limits. Null before the first call for one. */
  #byModel: Map<Model, CallPools> | null = null;

  constructor(key: Key) {
    const pools = distinct(ownAndGroupPools(key));
    this.beforeModel = makeCallPools(
      pools.filter((pool) => !countsTokens(pool)),
      rateLinesOf(pools),
    );
  }

  /** Replaces `beforeModel` for a call that counts as a concurrent call but not as a request. */
  get concurrentOnly(): CallPools {
    this.#concurrentOnly ??= concurrentOf(this.beforeModel);
    return this.#concurrentOnly;
  }

  /** For a call whose model is known: what it takes in addition. */
  forModel(model: Model): CallPools {
    if (model.limits === null) {
      this.#unlimitedModel ??= onceKnown(this.beforeModel, noPools);
      return this.#unlimitedModel;
    }
    this.#byModel ??= new Map();
    let pools = this.#byModel.get(model);
    if (pools === undefined) {
      pools = onceKnown(this.beforeModel, modelPools(model));
      this.#byModel.set(model, pools);
    }
    return pools;
  }
}

/**
 * Returns the pools of a key's calls. They are stored on the key, since a map lookup among thousands of keys takes a
 * tenth of the time of all limits of a call.
 */
export function poolsOfKey(key: Key): KeyPools {
  const { pools } = key;
  if (pools instanceof KeyPools) return pools;
  const made = new KeyPools(key);
  key.pools = made;
  return made;
}

/** Pools of tokens are left out before the body is read, since a call's tokens are unknown until then. */
function countsTokens({ kind }: Pool): boolean {
  return kind === 'tokens';
}

function concurrentOf({ demands, rateLines }: CallPools): CallPools {
  const pools = demands.map(({ pool }) => pool);
  return makeCallPools(
    pools.filter(({ kind }) => kind === 'concurrent'),
    rateLines,
  );
}

/** Makes the pools that a call takes in addition once its model is known. */
function onceKnown({ rateLines: known }: CallPools, ofModel: readonly Pool[]): CallPools {
  const rateLines = ofModel.length === 0 ? known : rateLinesOf([...known.pools, ...ofModel]);
  return makeCallPools([...known.tokens, ...ofModel], rateLines);
}

/** Removes duplicates: a group that is named twice has its limits once. */
function distinct(pools: readonly Pool[]): Pool[] {
  return [...new Map(pools.map((pool) => [pool.name, pool])).values()];
}

/**
 * Returns what a call demands.
 * @param tokens an estimate of what it will use, in whole tokens. At least one is demanded, since a used-up pool must
 * not admit a call of unknown size. At most the whole pool is demanded, since a mere estimate must not deny a call
 * forever
 */
export function demandsOf({ demands, tokenIndexes }: CallPools, tokens: number): readonly Demand[] {
  if (tokenIndexes.length === 0) return demands;
  const demanded = demands.slice();
  for (const index of tokenIndexes) {
    const { pool } = demands[index] as Demand;
    demanded[index] = { pool, amount: Math.min(Math.max(1, tokens), pool.limit) };
  }
  return demanded;
}

/** Separates the subject from the period in the name of a budget's pool. */
export const budgetMark = ':budget:';
/**
 * How long the store keeps the account of a budget, in milliseconds. Longer than a period, so that late reports find
 * it.
 */
export const budgetKeptMs = 40 * 24 * 60 * 60 * 1000;

/**
 * Makes the pool of what a subject may spend in one period.
 * @param subject as in the names of its other pools: `key:team-a`, `group:default` or `model:gpt-x`
 * @param period distinguishes the pool from those of other periods
 */
export function budgetPool(subject: string, { usd }: Budget, period: string): Pool {
  const limit = Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, Math.round(usd * nanosPerDollar)));
  return makePool(`${subject}${budgetMark}${period}`, 'budget', limit);
}

/** Finds a pool among those of `poolSteps`, which have one pool without a period for all periods of a budget. */
export function findPool(pools: Pick<PoolsByName, 'get'>, name: string): Pool | undefined {
  const found = pools.get(name);
  const budget = ofAnyPeriod(name);
  // The name of a model may look like that of a budget's pool.
  if (found !== undefined || budget === null) return found;
  const known = pools.get(budget);
  return known === undefined ? undefined : makePool(name, known.kind, known.limit);
}

/**
 * Returns the name under which `poolSteps` has the pool of a budget's period, or null if the name does not look like a
 * budget's.
 */
export function ofAnyPeriod(name: string): string | null {
  const mark = name.lastIndexOf(budgetMark);
  return mark === -1 ? null : name.slice(0, mark + budgetMark.length);
}

/** The parts of a config that have limits. */
interface LimitedParts {
  readonly keys: Iterable<OwnLimits & { readonly id: string }>;
  readonly groups: Iterable<OwnLimits & { readonly name: string }>;
  readonly models: Iterable<OwnLimits & { readonly name: string }>;
}

interface OwnLimits {
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
}

/** Pools by name. There may be several hundred thousand. */
export type PoolsByName = WideMap<Pool>;

/** Collects all pools of a config by name, for the primary, which owns them. */
export function* poolSteps({ keys, groups, models }: LimitedParts): Steps<PoolsByName> {
  const pools = new WideMap<Pool>();
  const add = (subject: string, own: OwnLimits): void => {
    for (const pool of poolsOfSubject(subject, own)) pools.set(pool.name, pool);
  };
  for (const key of keys) {
    add(`key:${key.id}`, key);
    yield;
  }
  for (const group of groups) {
    add(`group:${group.name}`, group);
    yield;
  }
  for (const model of models) {
    add(`model:${model.name}`, model);
    yield;
  }
  return pools;
}

/** @param subject kind and name of the owner: `key:team-a` */
export function poolsOfSubject(subject: string, { limits, budget }: OwnLimits): Pool[] {
  const pools = ratePools(subject, limits);
  if (budget !== null) pools.push(budgetPool(subject, budget, ''));
  return pools;
}

function ownAndGroupPools({ id, limits, groupLimits }: Key): Pool[] {
  return [
    ...ratePools(`key:${id}`, limits),
    ...groupLimits.flatMap((each) => ratePools(`group:${each.group}`, each.limits)),
  ];
}

function modelPools({ name, limits }: Model): Pool[] {
  return ratePools(`model:${name}`, limits);
}

function makePool(name: string, kind: PoolKind, limit: number): Pool {
  return { name, kind, limit, held: null };
}

/** What a pool limits: the first word of its name. */
export type LimitSubject = 'key' | 'group' | 'model';

export function subjectOf({ name }: Pool): LimitSubject {
  if (name.startsWith('key:')) return 'key';
  return name.startsWith('group:') ? 'group' : 'model';
}

/** @param subject kind and name of the owner: `key:team-a` */
function ratePools(subject: string, limits: RateLimits | null): Pool[] {
  const pools: Pool[] = [];
  if (limits === null) return pools;
  const { requestsPerMinute, tokensPerMinute, concurrent } = limits;
  if (requestsPerMinute !== null) pools.push(makePool(`${subject}:requests`, 'requests', requestsPerMinute));
  if (tokensPerMinute !== null) pools.push(makePool(`${subject}:tokens`, 'tokens', tokensPerMinute));
  if (concurrent !== null) pools.push(makePool(`${subject}:concurrent`, 'concurrent', concurrent));
  return pools;
}

function makeCallPools(pools: readonly Pool[], rateLines: RateLines): CallPools {
  const tokenIndexes = sharedIndexes(pools.flatMap((pool, index) => (countsTokens(pool) ? [index] : [])));
  return { demands: pools.map((pool) => ({ pool, amount: 1 })), tokenIndexes, rateLines };
}

/** Nearly all lists of indexes are one of these. They are shared, since each key has two lists. */
const usualIndexes: readonly (readonly number[])[] = [[], [0], [0, 1]];

function sharedIndexes(indexes: readonly number[]): readonly number[] {
  return usualIndexes.find((usual) => usual.join() === indexes.join()) ?? indexes;
}

const noPools: readonly Pool[] = [];

/** @param pools the pools that headers may report */
function rateLinesOf(pools: readonly Pool[]): RateLines {
  const of = (counted: PoolKind) => pools.filter(({ kind }) => kind === counted);
  return new RateLines(of('requests'), of('tokens'));
}

/** A key that may have limits. */
export type LimitedKey = LimitedParts['keys'] extends Iterable<infer Each> ? Each : never;
