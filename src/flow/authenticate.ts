import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import { checkVendorcVersion, presentedKey, unwritableHeader } from '../protocols/credentials/credentials.js';
import type { Route } from '../routes.js';
import type { AuthenticatedCall, Call } from './call.js';

const unknownKey = new GatewayError('invalid_api_key', 'The API key is not known here.');
const notKnownYet = new GatewayError(
  'store_unavailable',
  'The API key is not in the config, and the keys of the store are not known yet: try again shortly.',
  { retryAfter: 1 },
);
const expiredKey = new GatewayError('invalid_api_key', 'The API key has expired.');

/**
 * Finds the key of a call.
 * @returns the call
 * @throws {GatewayError} `invalid_api_key` when there is none, none in the right place, or none that is valid;
 * `store_unavailable` when it may be one that is not known yet; status 400 when the protocol wants a version header and
 * gets none, and for a header that an upstream would be sent and cannot.
 */
export function authenticate(call: Call, route: Route): AuthenticatedCall {
  call.route = route;
  const presented = presentedKey(route.auth, call.exchange.head);
  if (typeof presented !== 'string') throw presented;
  const key = call.running.keys.find(presented);
  if (key === null) throw call.running.keys.isComplete ? unknownKey : notKnownYet;
  if (key.expiresAt !== null && key.expiresAt <= Date.now()) throw expiredKey;
  call.key = key;
  call.authenticatedAt = performance.now();
  call.bodyAt = call.authenticatedAt;
  const { unwritable, vendorcVersion } = call.exchange.head;
  if (unwritable !== '') throw unwritableHeader(unwritable);
  const refusal = checkVendorcVersion(route.auth, vendorcVersion);
  if (refusal !== null) throw refusal;
  return call as AuthenticatedCall;
}
