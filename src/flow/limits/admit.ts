import type { Key, Model, Price, UnpricedRule } from '../../config/types.js';
import { GatewayError, retrySeconds } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import type { Decision, Denial } from '../../limits/admission.js';
import type { Demand, PoolKind } from '../../limits/pool.js';
import { type CallPools, demandsOf, type LimitSubject, poolsOfKey, subjectOf } from '../../limits/pools.js';
import { costsNothing } from '../../usage/cost.js';
import { nanosPerDollar } from '../../wire/nano-dollars.js';
import { backgroundMember } from '../../wire/routed-members.js';
import type { AuthenticatedCall, Call, ResolvedCall } from '../call.js';
import { account } from '../record/account.js';
import { factorOf } from '../record/consumption.js';
import { refuse } from '../refuse.js';
import type { Services } from '../services.js';
import { budgetsOf, CallLimits, type PeriodBudget } from './call-limits.js';
import {
  countCharacters,
  type Expected,
  expectedOf,
  expectedTokens,
  limitsOutput,
  presumeSeconds,
  presumeUnits,
} from './expected-usage.js';
import { reservedCost } from './reserved-cost.js';

/*
 * Checks calls against their limits. This file computes what a call needs, and the `LeaseHolder` of the worker decides
 * (its steps: the head of `limits/lease-holder`). `applyDecision` turns a denial into a 429, or into a 503 if nobody
 * knows what is left.
 *
 * Every place that decides a 429, by cause. Paths are relative to `src`.
 *
 * 1. Limits and budgets of keys, groups and models. This file:
 *    - `admit`: requests and concurrent calls of the key and its groups, before the body is read.
 *    - `admitThen`: the same for a call without a body.
 *    - `admitResolved`: the limits of the model, tokens and budgets, once the model is known.
 *
 * 2. Bounds of one worker, which hold for every key whatever its limits:
 *    - Open sockets of the key, their memory, and the bar of 30 s after sockets were closed for their memory:
 *      `SessionMemory.takeSlot` of `flow/sockets/session-memory`. `flow/sockets/take-slot` delays the response by 0.5
 *      to 1.5 s.
 *    - Messages that wait on a socket for responses: `tooManyWaiting` of `flow/responses-socket/socket`, sent as a
 *      message.
 *    - Concurrent downloads from one source: `Downloads.take` of `flow/video/downloads`.
 *
 * 3. The budget of a running realtime session: `SessionFunds` and `budgetSpent` of `flow/realtime/funds`, sent as an
 *    event by `flow/realtime/bridge`.
 *
 * 4. An upstream's status 429, unless it is about the gateway's own account, which is a 502:
 *    - Passed on unchanged by `flow/answer/relay`, `flow/realtime/open`, `flow/video/create` and
 *      `flow/conversation/by-id`.
 *    - Translated to the client's error format by `statusError` of `attempts/reported-error`. For the file of a video
 *      `problemOf` of `flow/video/content-source` decides that.
 *    - Of an upstream's WebSocket: `socketStreamRules.refusal` of `protocols/responses/socket-message` reads the status
 *      of an error message that arrives before the response. It is then treated like an HTTP status.
 *
 * 5. An upstream's error inside a 200. `isRateLimitCode` of `protocols/error-formats/upstream-error` recognises the codes
 *    and types of all vendors. The error is made by:
 *    - `errorByCode` of the same file, for OpenAI's protocols: called by its `upstreamError`, and by `upstreamError` of
 *      `protocols/responses/upstream-error`.
 *    - `upstreamErrorOf` of the same file, with the protocol's own words from `upstreamError` of
 *      `protocols/messages/upstream-error` and `protocols/generate-content/upstream-error`.
 *    - `failureOf` of `protocols/images/answer-decode`, for DashScope.
 *    - `contentError` of `video/upstream-formats/native-error`, for the codes of vendork and vendorj.
 *    A video task that fails later has no status of its own: `video/failure-codes` gives it the code of the client's
 *    format.
 */

/** Continues a call after a phase, immediately or later. */
export type Next<Of extends Call> = (services: Services, call: Of) => void;

/** Notified of whether a waiting call is admitted. */
export interface AdmissionListener {
  onAdmitted(): void;
  /** Called instead of `onAdmitted`: `rate_limit_exceeded`, `budget_exceeded` or `store_unavailable`. */
  onNotAdmitted(refusal: GatewayError): void;
}

/**
 * Takes what a call needs of the limits of its key and groups that are known before its body: requests and concurrent
 * calls. The call holds them to its end, whatever its body turns out to be.
 * @param listener notified later if the call is not admitted immediately
 * @param needed `concurrentOnly` for a download of what an earlier call has made: it counts as a concurrent call, but
 * not as a request
 * @returns whether the call is admitted immediately
 * @throws {GatewayError} `rate_limit_exceeded` or `store_unavailable`, if that is known immediately
 */
export function admit(
  services: Services,
  call: AuthenticatedCall,
  listener: AdmissionListener,
  needed: 'beforeModel' | 'concurrentOnly' = 'beforeModel',
): boolean {
  const { key } = call;
  if (key.limits === null && key.groupLimits.length === 0) return true;
  const { demands, rateLines } = poolsOfKey(key)[needed];
  const limits = new CallLimits(services.limits, rateLines);
  call.limits = limits;
  if (demands.length === 0) return true;
  limits.beforeModel = services.limits.take(demands, services.hostClock.at(call.authenticatedAt));
  return (
    limits.beforeModel !== null || admitOrWait(services, { limits, part: 'beforeModel', demands, listener })
  );
}

/** The units that a call takes together: before its body is read, or when its model is known. */
type Part = 'beforeModel' | 'forModel';

/** A call, or part of one, for which the worker holds too few units. */
interface Short {
  readonly limits: CallLimits;
  readonly part: Part;
  readonly demands: readonly Demand[];
  readonly listener: AdmissionListener;
}

/**
 * @returns whether the call is admitted immediately; if not, it waits and the listener is notified
 * @throws {GatewayError} the refusal, if the call is denied immediately
 */
function admitOrWait(services: Services, { limits, part, demands, listener }: Short): boolean {
  const decision = services.limits.acquire(demands, (later) => {
    if (limits.isOver) {
      if (later.outcome === 'admitted') later.release();
      return;
    }
    const refusal = applyDecision(limits, part, later);
    if (refusal === null) listener.onAdmitted();
    else listener.onNotAdmitted(refusal);
  });
  if (decision.outcome === 'pending') {
    limits[part] = decision;
    return false;
  }
  const refusal = applyDecision(limits, part, decision);
  if (refusal !== null) throw refusal;
  return true;
}

/** Like `admit`, for a call without a body. It continues with `next` when it is admitted. */
export function admitThen(
  services: Services,
  call: AuthenticatedCall,
  next: Next<AuthenticatedCall>,
  needed: 'beforeModel' | 'concurrentOnly' = 'beforeModel',
): void {
  const queued = new Queued(services, call, next);
  if (admit(services, call, queued, needed)) next(services, call);
  else call.exchange.listener = queued;
}

/**
 * Takes what a call needs of its other limits (of tokens and of its model) and of its budgets, and continues:
 * immediately if this worker has enough of them, else when it is decided. The call's model is known by then.
 * @throws {GatewayError} `rate_limit_exceeded` or `budget_exceeded` if it is known immediately that too little is left;
 * `permission_denied` if a budget would have to pay for a model without a price; `store_unavailable` if it cannot be
 * decided; and whatever `next` throws immediately. Later errors are answered here
 */
export function admitResolved(
  services: Services,
  call: ResolvedCall,
  next: Next<ResolvedCall>,
  expect: (call: ResolvedCall) => Expected = expectedOf,
): void {
  const { key, model } = call;
  const { endpoint } = call.route;
  if (endpoint?.metering.seconds != null) {
    presumeSeconds(call);
    countCharacters(call);
  }
  if (endpoint?.countedList != null) presumeUnits(call);
  // No vendor bills a count of tokens.
  if (endpoint?.translation?.answerHere != null) call.units = 0;
  const price = hasBudget(key, model) ? priceToPay(call, call.running.snapshot.unpriced) : null;
  if (call.limits === null && model.limits === null && price === null) {
    next(services, call);
    return;
  }
  const pools = poolsOfKey(key).forModel(model);
  call.limits ??= new CallLimits(services.limits, pools.rateLines);
  const { limits } = call;
  limits.rateLines = pools.rateLines;
  if (pools.demands.length === 0 && price === null) {
    limits.isAdmitted = true;
    next(services, call);
    return;
  }
  const demands =
    price === null
      ? demandsOf(pools, pools.tokenIndexes.length > 0 ? expectedTokens(call) : 0)
      : demandsWithBudgets(call, limits, pools, { price, ...expect(call) });
  limits.forModel = services.limits.take(demands, services.hostClock.at(call.validatedAt));
  if (limits.forModel === null) {
    const queued = new Queued(services, call, next);
    if (!admitOrWait(services, { limits, part: 'forModel', demands, listener: queued })) {
      call.exchange.listener = queued;
      return;
    }
  }
  limits.isAdmitted = true;
  next(services, call);
}

/** Whether any budget pays for the calls of a key for a model. */
function hasBudget({ budget, groupBudgets }: Key, model: Model): boolean {
  return budget !== null || groupBudgets.length > 0 || model.budget !== null;
}

/**
 * Returns the price that the budgets of a call have to pay, or null if the call costs nothing.
 * @throws {GatewayError} `permission_denied` if the price is unknown, and the config does not let such calls be free
 */
function priceToPay({ key, model }: ResolvedCall, unpriced: UnpricedRule): Price | null {
  const { price } = model;
  if (price !== null) return costsNothing(price) || factorOf({ key }) === 0 ? null : price;
  if (unpriced === 'free') return null;
  throw new GatewayError(
    'permission_denied',
    `The model '${model.name}' has no price here, and so no budget can pay for it: ask whoever runs the gateway for one.`,
    { param: 'model' },
  );
}

function demandsWithBudgets(
  call: ResolvedCall,
  limits: CallLimits,
  pools: CallPools,
  { price, ...expected }: Expected & { readonly price: Price },
): readonly Demand[] {
  const { key, model } = call;
  const { usage } = expected;
  const cost = Math.max(1, reservedCost(call, price, expected));
  limits.budgets = budgetsOf(key, model, Date.now());
  // At most the limit of the budget: an exhausted budget admits no call, but an estimate above the limit must not
  // refuse the call for ever.
  const ofBudgets = limits.budgets.map(({ pool }) => ({ pool, amount: Math.min(cost, pool.limit) }));
  // Tokens of a session are counted when it ends, those of an upload when it is answered.
  const tokens = call.body === null ? 0 : usage.input + usage.output;
  return [...demandsOf(pools, tokens), ...ofBudgets];
}

/**
 * Gives a call the units that were decided for it, immediately or after a wait.
 * @returns why it is not admitted; null if it is
 */
function applyDecision(limits: CallLimits, part: Part, decision: Decision): GatewayError | null {
  limits[part] = decision.outcome === 'admitted' ? decision : null;
  if (decision.outcome === 'admitted') return null;
  if (decision.reason === 'unknown') return undecided;
  const { pool } = decision;
  const budget = limits.budgets.find((each) => each.pool === pool);
  return budget === undefined ? overLimit(decision) : overBudget(budget, decision);
}

/** The vendors' SDKs do not heed a longer wait, and would try again at once. */
const mostRetrySeconds = 60;

/** The error for a call for which a limit has too few units left. */
function overLimit({ pool, retryAfterMs }: Denial): GatewayError {
  const retryAfter = Math.min(mostRetrySeconds, retrySeconds(retryAfterMs ?? 0));
  const message = `The limit of ${pool.limit} ${unitTexts[pool.kind]} for ${subjectTexts[subjectOf(pool)]} is reached: try again in ${retryAfter} s.`;
  return new GatewayError('rate_limit_exceeded', message, { retryAfter, limit: pool.kind });
}

/** The store or the primary did not answer, or not in time, or is gone. A worker cannot tell which. */
const undecided = new GatewayError(
  'store_unavailable',
  'The gateway cannot determine what is left of your limits at the moment: try again shortly.',
  { retryAfter: 1 },
);

/**
 * The error for a call that a budget cannot pay for. The budget is refilled at its next period. Before that, it gets
 * back only what calls in flight have reserved and do not use.
 */
function overBudget({ pool, endsAt }: PeriodBudget, { retryAfterMs }: Denial): GatewayError {
  const budget = `The budget of ${subjectTexts[subjectOf(pool)]}, of ${pool.limit / nanosPerDollar} USD,`;
  if (retryAfterMs !== null) {
    const retryAfter = retrySeconds(retryAfterMs);
    const message = `${budget} is taken by calls under way: try again in ${retryAfter} s.`;
    return new GatewayError('budget_exceeded', message, { retryAfter, limit: 'budget' });
  }
  const message = `${budget} is used up, or has too little left for this call; the next one begins at ${new Date(endsAt).toISOString()}.`;
  const retryAfter = retrySeconds(endsAt - Date.now());
  return new GatewayError('budget_exceeded', message, { retryAfter, limit: 'budget', unrepeatable: true });
}

const unitTexts: Readonly<Record<PoolKind, string>> = {
  requests: 'requests per minute',
  tokens: 'tokens per minute',
  concurrent: 'calls at once',
  budget: 'USD',
};
const subjectTexts: Readonly<Record<LimitSubject, string>> = {
  key: 'your key',
  group: "your key's group",
  model: 'the model',
};

/** A call that waits for units that its worker does not have. */
class Queued<Of extends Call> implements AdmissionListener, ExchangeListener {
  readonly #services: Services;
  readonly #call: Of;
  readonly #next: Next<Of>;

  constructor(services: Services, call: Of, next: Next<Of>) {
    this.#services = services;
    this.#call = call;
    this.#next = next;
  }

  onAdmitted(): void {
    const { limits } = this.#call;
    if (limits?.forModel != null) limits.isAdmitted = true;
    try {
      this.#next(this.#services, this.#call);
    } catch (fault) {
      this.#call.onFault('ipc', fault);
    }
  }

  onNotAdmitted(refusal: GatewayError): void {
    refuse(this.#services, this.#call, refusal);
  }

  onClientGone(): void {
    account(this.#services, this.#call, 'client_gone');
  }

  /** No-op: nothing is written before the decision. */
  onDrained(): void {}
}

/**
 * Refuses a call whose answer is fetched by a later request, if its usage has a price or a limit. The later request is
 * not a call, so nothing would count that usage.
 * @throws {GatewayError} with status 400 and the name of the member that causes it
 */
export function refuseUncounted(call: ResolvedCall): void {
  if (!isPriced(call) && !hasTokenLimits(call)) return;
  throw new GatewayError(
    'unsupported_parameter',
    `'${backgroundMember}' is not served for this model and key: nobody would count what an answer uses that is asked for later. Leave it out.`,
    { param: backgroundMember },
  );
}

/**
 * Refuses a call that continues after its answer and sets no limit on its output, if a budget pays for it or a token
 * limit counts it. Its usage is known only at its end, and any number of other calls may be admitted before.
 * @throws {GatewayError} with status 400 and the name of the missing member
 */
export function requireOutputLimit(call: ResolvedCall): void {
  const { key, model } = call;
  const isBudgeted = isPriced(call) && factorOf(call) > 0 && hasBudget(key, model);
  if ((!isBudgeted && !hasTokenLimits(call)) || limitsOutput(call)) return;
  throw new GatewayError(
    'missing_parameter',
    `'${backgroundMember}' needs 'max_output_tokens' here: a budget or a limit of tokens counts this call, and what it uses is known only when it has ended.`,
    { param: 'max_output_tokens' },
  );
}

function isPriced({ model: { price } }: ResolvedCall): boolean {
  return price !== null && !costsNothing(price);
}

function hasTokenLimits({ key, model }: ResolvedCall): boolean {
  return poolsOfKey(key).forModel(model).tokenIndexes.length > 0;
}
