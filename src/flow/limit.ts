import type { Budget, Key, Model, Price } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { ExchangeListener } from '../http/exchange-host.js';
import type { Decision, Denial, Pending } from '../limits/decision.js';
import type { Demand, Pool } from '../limits/kinds.js';
import { demandsOf } from '../limits/pools.js';
import { costOf, isFree } from '../usage/cost.js';
import { account } from './account.js';
import { budgetOf, type PeriodBudget } from './budget.js';
import type { Call } from './call.js';
import { expectedSeconds, expectedTokens, expectedUsage } from './expected-usage.js';
import { LimitedCall } from './limited-call.js';
import { refuse } from './refuse.js';
import type { Services } from './services.js';

const nanosOfDollar = 1e9;

/** What a call does once its limits let it. */
export type Next = (services: Services, call: Call) => void;

/**
 * Takes what a call needs of the limits of its key, its groups and its model, and goes on: at once, where this worker
 * has enough of them, and else when it knows. The call's model is known by then.
 * @throws {GatewayError} `rate_limit_exceeded` or `budget_exceeded` when it is known at once that there is too little,
 * `store_unavailable` when nobody knows, and whatever `next` throws at once; what comes later is answered here
 */
export function limit(services: Services, call: Call, next: Next): void {
  const key = call.key as Key;
  const model = call.model as Model;
  const price = priceOf(key, model);
  if (key.limits === null && model.limits === null && key.groupLimits.length === 0 && price === null) {
    next(services, call);
    return;
  }
  const limited = new LimitedCall(services.limits, call.running.pools.of(key, model));
  call.limited = limited;
  const now = services.hostClock.at(call.validatedAt);
  const demands =
    price === null
      ? limited.takeAlike(limited.countsTokens ? expectedTokens(call) : 0, now)
      : limited.take(demandsWithBudget(call, limited, key, price), now);
  if (demands === null) {
    next(services, call);
    return;
  }
  const queued = new Queued(services, call, limited, next);
  const decision = services.limits.acquire(demands, queued.decide);
  if (decision.outcome === 'pending') {
    queued.wait(decision);
    return;
  }
  enter(services, limited, decision);
  next(services, call);
}

/** What a call costs its key's budget; null where there is none to be kept to. */
function priceOf({ budget }: Key, { price }: Model): Price | null {
  return budget === null || price === null || isFree(price) ? null : price;
}

function demandsWithBudget(call: Call, limited: LimitedCall, key: Key, price: Price): readonly Demand[] {
  const { pools } = limited;
  const budget = key.budget as Budget;
  const usage = expectedUsage(call);
  const demands = demandsOf(pools, usage.input + usage.output);
  limited.budget = budgetOf(key, budget, Date.now());
  const { pool } = limited.budget;
  const cost = costOf(price, { usage, seconds: expectedSeconds(call), calls: call.units });
  // Whatever is expected: a budget that is used up lets no call in, and a guess beyond it refuses none for ever.
  return [...demands, { pool, amount: Math.min(Math.max(1, cost), pool.limit) }];
}

/** @throws {GatewayError} for a call that is not let in */
function enter(services: Services, limited: LimitedCall, decision: Decision): void {
  if (decision.outcome === 'admitted') {
    limited.admission = decision;
    return;
  }
  const { budget } = limited;
  const isBudget = decision.pool === budget?.pool;
  if (decision.reason === 'unknown') throw unknown;
  services.reportLimit(isBudget ? 'budget' : unitOf(decision.pool));
  throw isBudget ? overBudget(budget as PeriodBudget) : denied(decision);
}

/** A call that waits for units which its worker does not have. */
class Queued implements ExchangeListener {
  readonly #services: Services;
  readonly #call: Call;
  readonly #limited: LimitedCall;
  readonly #next: Next;

  constructor(services: Services, call: Call, limited: LimitedCall, next: Next) {
    this.#services = services;
    this.#call = call;
    this.#limited = limited;
    this.#next = next;
  }

  wait(pending: Pending): void {
    this.#limited.pending = pending;
    this.#call.exchange.listener = this;
  }

  readonly decide = (decision: Decision): void => {
    this.#limited.pending = null;
    try {
      enter(this.#services, this.#limited, decision);
      this.#next(this.#services, this.#call);
    } catch (fault) {
      refuse(this.#services, this.#call, fault);
    }
  };

  onClientGone(): void {
    account(this.#services, this.#call, 'client_gone');
  }

  /** Nothing is written before the decision. */
  onDrained(): void {}
}

function denied({ pool, retryAfterMs }: Denial): GatewayError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new GatewayError(
    'rate_limit_exceeded',
    `The limit of ${limitText(pool)} is reached: try again in ${seconds} s.`,
    { retryAfter: seconds },
  );
}

const unknown = new GatewayError(
  'store_unavailable',
  'What is left of your limits is not known, since the store of the gateway cannot be reached: try again shortly.',
  { retryAfter: 1 },
);

function overBudget({ pool, endsAt }: PeriodBudget): GatewayError {
  const dollars = pool.limit / nanosOfDollar;
  const until = new Date(endsAt).toISOString();
  return new GatewayError(
    'budget_exceeded',
    `Your key's budget of ${dollars} USD is used up, or taken by calls under way; the next one begins at ${until}.`,
    { retryAfter: Math.max(1, Math.ceil((endsAt - Date.now()) / 1000)), unrepeatable: true },
  );
}

const unitTexts: Readonly<Record<string, string>> = {
  requests: 'requests per minute',
  tokens: 'tokens per minute',
  concurrent: 'calls at once',
};
const ownerTexts: Readonly<Record<string, string>> = {
  key: 'your key',
  group: "your key's group",
  model: 'the model',
};

/** What is counted, by the name of a pool. */
function unitOf({ name }: Pool): string {
  return name.slice(name.lastIndexOf(':') + 1);
}

function limitText(pool: Pool): string {
  const owner = pool.name.slice(0, pool.name.indexOf(':'));
  return `${pool.limit} ${unitTexts[unitOf(pool)]} for ${ownerTexts[owner]}`;
}
