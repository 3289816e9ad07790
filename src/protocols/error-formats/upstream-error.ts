import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';
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
  return tellsOfLimit(error) ? upstreamLimit(message) : new GatewayError('upstream_error', message);
}

/** Whether an error in OpenAI's form is one of too many requests. */
export function tellsOfLimit({ code, type }: JsonObject): boolean {
  return limitCodes.includes(code) || limitCodes.includes(type);
}

/** The error for a limit that is the upstream's own, not one of the gateway's. */
export function upstreamLimit(message: string): GatewayError {
  return new GatewayError('rate_limit_exceeded', message, { answered: { status: 429, code: null } });
}
