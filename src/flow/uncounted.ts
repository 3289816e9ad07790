import { GatewayError } from '../errors.js';
import { poolsOfKey } from '../limits/pools.js';
import type { Endpoint } from '../protocols/endpoint.js';
import { isFree } from '../usage/cost.js';
import type { ResolvedCall } from './call.js';

/**
 * Refuses a call whose answer comes to another request, which is no call, where what it uses has a price or a limit.
 * @param uncounted of the call's endpoint
 * @throws {GatewayError} of status 400, naming the member that asks for it
 */
export function refuseUncounted(call: ResolvedCall, uncounted: NonNullable<Endpoint['uncounted']>): void {
  const member = uncounted(call.wholeBody());
  if (member === null || !isCounted(call)) return;
  throw new GatewayError(
    'unsupported_parameter',
    `'${member}' is not served for this model and key: nobody would count what an answer uses that is asked for later. Leave it out.`,
    { param: member },
  );
}

function isCounted({ key, model }: ResolvedCall): boolean {
  const { price } = model;
  return (price !== null && !isFree(price)) || poolsOfKey(key).rest(model).tokens.length > 0;
}
