import { GatewayError } from '../../errors.js';
import { isObject, textOrNull } from '../../wire/json.js';
import { vendorAccountFailure } from './vendor-account.js';

/** What upstreams call too many requests, in `code` or in `type`. */
const limitCodes: readonly unknown[] = [429, '429', 'rate_limit_exceeded', 'rate_limit_error'];

/**
 * What the `error` member of an answer or of a stream's event means, in the protocols of OpenAI: an object or, from
 * some upstreams, the message alone.
 * @returns null for a member that is absent or says nothing
 */
export function upstreamError(error: unknown): GatewayError | null {
  const ofVendorAccount = vendorAccountFailure(error);
  if (ofVendorAccount !== null) return ofVendorAccount;
  if (typeof error === 'string') return error === '' ? null : new GatewayError('upstream_error', error);
  if (!isObject(error)) return null;
  const message = textOrNull(error.message) || 'The upstream answered with an error.';
  const limited = limitCodes.includes(error.code) || limitCodes.includes(error.type);
  if (!limited) return new GatewayError('upstream_error', message);
  // The limit is the upstream's own, not one of the gateway's.
  return new GatewayError('rate_limit_exceeded', message, { answered: { status: 429, code: null } });
}
