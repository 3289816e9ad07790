import type { Budget, Key, Model, RateLimits } from '../config/types.js';
import { nanosPerDollar } from '../wire/nano-dollars.js';
import type { Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import type { Demand, Pool, PoolKind } from './pool.js';
import { RateLines } from './rate-headers.js';

/**
 * Limits whose units a call takes together: those of requests and of calls at once of its key and groups, before its body
 * is read, and all others, once its model is known.
 */
export interface CallPools {
  /**
   * One unit of each pool. A call demands exactly these; `demandsOf` puts in the tokens for those at `tokenIndexes`.
   * The key's own pools come first, so that a key that has used up its own does not wait in line for what is shared.
   */
  readonly demands: readonly Demand[];
  /** Which of the demands are of tokens. */
  readonly tokenIndexes: readonly number[];
  /** What such calls are told of their requests and tokens, as far as their limits are known by then. */
  readonly rateLines: RateLines;
}

/** The pools of the calls of one key. */
class KeyPools {
  /** What a call takes before its body is read. */
  readonly beforeModel: CallPools;
  #concurrentOnly: CallPools | null = null;
  /** Of all models without limits. */
  #unlimitedModel: CallPools | null = null;
  /** Of models with limits; null until there was a call for one. */
  #byModel: Map<Model, CallPools> | null = null;

  constructor(key: Key) {
    const pools = distinct(ownAndGroupPools(key));
    this.beforeModel = makeCallPools(
      pools.filter((pool) => !countsTokens(pool)),
      rateLinesOf(pools),
    );
  }

  /** What a call takes in place of `beforeModel` that counts among those under way, and as no request. */
  get concurrentOnly(): CallPools {
    this.#concurrentOnly ??= concurrentOf(this.beforeModel);
    return this.#concurrentOnly;
  }

  /** What a call takes once its model is known. */
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
 * The pools of a key's calls. The key remembers them: to look one of thousands up in a map takes a tenth of the time that
 * is spent on all limits of its call.
 */
export function poolsOfKey(key: Key): KeyPools {
  const { pools } = key;
  if (pools instanceof KeyPools) return pools;
  const made = new KeyPools(key);
  key.pools = made;
  return made;
}

/** How many tokens a call needs is not known before its body is. */
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

/** What a call takes besides, once its model is known. */
function onceKnown({ rateLines: known }: CallPools, ofModel: readonly Pool[]): CallPools {
  const rateLines = ofModel.length === 0 ? known : rateLinesOf([...known.pools, ...ofModel]);
  return makeCallPools([...known.tokens, ...ofModel], rateLines);
}

/** A group that is named twice has its limits once. */
function distinct(pools: readonly Pool[]): Pool[] {
  return [...new Map(pools.map((pool) => [pool.name, pool])).values()];
}

/**
 * What a call demands.
 * @param tokens an estimate of what it will use, in whole tokens; of a pool that is smaller, all of it is demanded,
 * since a call must not be refused for ever because of a guess, and one at least, since a pool that is used up lets no
 * call in of which nothing is known
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

/** Stands between the subject and the period in the name of a budget's pool. */
export const budgetMark = ':budget:';
/** What the store knows of a budget outlives its period, for whoever comes late. In milliseconds. */
export const budgetKeptMs = 40 * 24 * 60 * 60 * 1000;

/**
 * The pool of what a subject may spend in one period.
 * @param subject as in the names of its other pools: `key:team-a`, `group:default` or `model:gpt-x`
 * @param period tells it from the others of the subject
 */
export function budgetPool(subject: string, { usd }: Budget, period: string): Pool {
  const limit = Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, Math.round(usd * nanosPerDollar)));
  return makePool(`${subject}${budgetMark}${period}`, 'budget', limit);
}

/** Finds a pool among those of `allPools`, which hold that of a budget for no period, and so for each. */
export function findPool(pools: Pick<PoolsByName, 'get'>, name: string): Pool | undefined {
  const found = pools.get(name);
  const budget = ofAnyPeriod(name);
  // A model may be called as a budget's pool is.
  if (found !== undefined || budget === null) return found;
  const known = pools.get(budget);
  return known === undefined ? undefined : makePool(name, known.kind, known.limit);
}

/** The name under which `allPools` holds the pool of a budget's period, or null for a name that looks like no budget's. */
export function ofAnyPeriod(name: string): string | null {
  const mark = name.lastIndexOf(budgetMark);
  return mark === -1 ? null : name.slice(0, mark + budgetMark.length);
}

/** Whatever of a config has limits. */
interface LimitedParts {
  readonly keys: Iterable<OwnLimits & { readonly id: string }>;
  readonly groups: Iterable<OwnLimits & { readonly name: string }>;
  readonly models: Iterable<OwnLimits & { readonly name: string }>;
}

interface OwnLimits {
  readonly limits: RateLimits | null;
  readonly budget: Budget | null;
}

/** Pools, which may be several hundred thousand. */
export type PoolsByName = WideMap<Pool>;

/** All pools of a config, by name: what the primary, which owns the pools, is to know. */
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

/** @param subject first word and name of whose they are: `key:team-a` */
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

/** For whom a pool counts: the first word of its name. */
export type LimitSubject = 'key' | 'group' | 'model';

export function subjectOf({ name }: Pool): LimitSubject {
  if (name.startsWith('key:')) return 'key';
  return name.startsWith('group:') ? 'group' : 'model';
}

/** @param subject first word and name of whose they are: `key:team-a` */
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

/** Nearly all lists of indexes are one of these: there are two for each key. */
const usualIndexes: readonly (readonly number[])[] = [[], [0], [0, 1]];

function sharedIndexes(indexes: readonly number[]): readonly number[] {
  return usualIndexes.find((usual) => usual.join() === indexes.join()) ?? indexes;
}

const noPools: readonly Pool[] = [];

/** @param pools those of which calls hear */
function rateLinesOf(pools: readonly Pool[]): RateLines {
  const of = (counted: PoolKind) => pools.filter(({ kind }) => kind === counted);
  return new RateLines(of('requests'), of('tokens'));
}

/** A key that may have limits. */
export type LimitedKey = LimitedParts['keys'] extends Iterable<infer Each> ? Each : never;
