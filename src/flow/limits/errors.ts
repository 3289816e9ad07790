import { GatewayError, retrySeconds } from '../../errors.js';
import type { Denial } from '../../limits/admission.js';
import type { PoolKind } from '../../limits/pool.js';
import { type LimitSubject, subjectOf } from '../../limits/pools.js';
import { nanosPerDollar } from '../../wire/nano-dollars.js';
import type { PeriodBudget } from './limited-call.js';

/* What a call is told that its limits do not let in. */

/** A limit has too few units left for a call. */
export function overLimit({ pool, retryAfterMs }: Denial): GatewayError {
  const retryAfter = retrySeconds(retryAfterMs ?? 0);
  const message = `The limit of ${pool.limit} ${unitTexts[pool.kind]} for ${subjectTexts[subjectOf(pool)]} is reached: try again in ${retryAfter} s.`;
  return new GatewayError('rate_limit_exceeded', message, { retryAfter, limit: pool.kind });
}

/** The store did not answer, or not in time, or the primary process did not, or is gone: a worker cannot tell which. */
export const undecided = new GatewayError(
  'store_unavailable',
  'The gateway cannot tell at the moment what is left of your limits: try again shortly.',
  { retryAfter: 1 },
);

/** A budget gives nothing back before its next period, but for what calls under way have taken and may not use. */
export function overBudget({ pool, endsAt }: PeriodBudget, { retryAfterMs }: Denial): GatewayError {
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
