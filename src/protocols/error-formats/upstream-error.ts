import { GatewayError } from '../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';
import { vendorAccountFailure } from './vendor-account.js';

/**
 * What vendors call too many requests, in lower case, with spaces, in capitals: `rate_limit_error`, `RateLimitReached`,
 * `too_many_requests`, `concurrency_limit`, DashScope's `Throttling.RateQuota` and `limit_requests`. Not all that is too
 * many: images or tools may be, of one request.
 */
const limitWord =
  /^429$|rate[_ -]?limit|too[_ -]?many[_ -]?(?:request|call|task|job|concurren)|concurren|throttl|limit[_ -]?requests/i;

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

/** Whether an error is one of too many requests, by its `code` or `type`: whatever it came in, it is a 429 then. */
export function tellsOfLimit({ code, type }: JsonObject): boolean {
  return isLimitWord(code) || isLimitWord(type);
}

/** Whether a code or a type is one of too many requests, in any vendor's words. */
export function isLimitWord(code: unknown): boolean {
  return typeof code === 'string' ? limitWord.test(code) : code === 429;
}

/** The error for a limit that is the upstream's own, not one of the gateway's. */
export function upstreamLimit(message: string): GatewayError {
  return new GatewayError('rate_limit_exceeded', message, { answered: { status: 429, code: null } });
}
