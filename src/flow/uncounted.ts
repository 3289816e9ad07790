import { GatewayError } from '../errors.js';
import { poolsOfKey } from '../limits/pools.js';
import { isFree } from '../usage/cost.js';
import { backgroundMember } from '../wire/routed-members.js';
import type { ResolvedCall } from './call.js';

/**
 * Refuses a call whose answer comes to another request, which is no call, where what it uses has a price or a limit.
 * @throws {GatewayError} of status 400, naming the member that asks for it
 */
export function refuseUncounted({ key, model }: ResolvedCall): void {
  const { price } = model;
  const isPriced = price !== null && !isFree(price);
  if (!isPriced && poolsOfKey(key).rest(model).tokens.length === 0) return;
  throw new GatewayError(
    'unsupported_parameter',
    `'${backgroundMember}' is not served for this model and key: nobody would count what an answer uses that is asked for later. Leave it out.`,
    { param: backgroundMember },
  );
}
