import { checkVendorcVersion, presentedKey } from '../dialects/credentials.js';
import { GatewayError } from '../errors.js';
import type { Route } from '../routes.js';
import type { Call } from './call.js';

const unknownKey = new GatewayError('invalid_api_key', 'The API key is not known here.');
const notKnownYet = new GatewayError(
  'store_unavailable',
  'The API key is not in the config, and the keys of the store are not known yet: try again shortly.',
  { retryAfter: 1 },
);
const expiredKey = new GatewayError('invalid_api_key', 'The API key has expired.');

/**
 * Finds the key of a call.
 * @throws {GatewayError} `invalid_api_key` when there is none, none in the right place, or none that is valid;
 * `store_unavailable` when it may be one that is not known yet; status 400 when the protocol wants a version header and
 * gets none.
 */
export function authenticate(call: Call, route: Route): void {
  const presented = presentedKey(route.auth, call.exchange.head);
  if (typeof presented !== 'string') throw presented;
  const key = call.running.keys.find(presented);
  if (key === null) throw call.running.keys.isComplete ? unknownKey : notKnownYet;
  if (key.expiresAt !== null && key.expiresAt <= Date.now()) throw expiredKey;
  call.key = key;
  call.authenticatedAt = performance.now();
  const refusal = route.auth === 'messages' ? checkVendorcVersion(call.exchange.head.vendorcVersion) : null;
  if (refusal !== null) throw refusal;
}
