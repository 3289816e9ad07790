import { GatewayError } from '../../errors.js';
import { poolsOfKey } from '../../limits/pools.js';
import { isFree } from '../../usage/cost.js';
import { backgroundMember } from '../../wire/routed-members.js';
import type { ResolvedCall } from '../call.js';
import { limitsOutput } from '../limits/expected-usage.js';
import { hasBudget } from '../limits/limited-call.js';
import { factorOf } from '../record/consumption.js';

/* What limits and budgets ask of a call that is answered in the background. */

/**
 * Refuses a call whose answer comes to another request, which is no call, where what it uses has a price or a limit.
 * @throws {GatewayError} of status 400, naming the member that asks for it
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
 * Refuses a call that ends after its answer, is paid for by a budget or counted by a limit of tokens, and does not say how
 * long it may become: what it has used is known once it has ended, and any number of others may have been let in by then.
 * @throws {GatewayError} of status 400, naming the member that is missing
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
  return price !== null && !isFree(price);
}

function hasTokenLimits({ key, model }: ResolvedCall): boolean {
  return poolsOfKey(key).forModel(model).tokenIndexes.length > 0;
}
