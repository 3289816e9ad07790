import { answeredAs, type ErrorKind, GatewayError } from '../../errors.js';
import { isObject, type JsonObject, nameOfType, textOrNull } from '../../wire/json.js';
import { vendorAccountErrorIn } from './vendor-account.js';

/**
 * Vendors' words for too many requests, in lower case, with spaces or in capitals: `rate_limit_error`,
 * `RateLimitReached`, `too_many_requests`, `concurrency_limit`, DashScope's `Throttling.RateQuota` and
 * `limit_requests`. Not every "too many" counts: a single request may have too many images or tools.
 */
const limitWord =
  /^429$|rate[_ -]?limit|too[_ -]?many[_ -]?(?:request|call|task|job|concurren)|concurren|throttl|limit[_ -]?requests/i;

/** An upstream's words for a faulty request, which would fail again at this and any other upstream. */
const faultWords: ReadonlySet<unknown> = new Set([
  'invalid_request_error',
  'invalid_prompt',
  'context_length_exceeded',
  'invalid_image',
  'invalid_image_format',
  'invalid_base64_image',
  'invalid_image_url',
  'image_too_large',
  'image_too_small',
  'image_parse_error',
  'image_content_policy_violation',
  'invalid_image_mode',
  'image_file_too_large',
  'unsupported_image_media_type',
  'empty_image_file',
  'failed_to_download_image',
  'image_file_not_found',
]);

/** The same, as a status that others put into `code`, as a number or a text. */
const faultStatuses: ReadonlyMap<unknown, ErrorKind> = new Map([
  ['400', 'invalid_request'],
  ['404', 'not_found'],
  ['413', 'request_too_large'],
  ['422', 'invalid_request'],
]);

/**
 * Returns the error for the `error` member of an answer or of a stream's event, in OpenAI's protocols: an object or,
 * from some upstreams, only the message.
 * @returns null for a member that is absent or empty
 */
export function upstreamError(error: unknown): GatewayError | null {
  const ofVendorAccount = vendorAccountErrorIn(error);
  if (ofVendorAccount !== null) return ofVendorAccount;
  if (typeof error === 'string') return error === '' ? null : new GatewayError('upstream_error', error);
  if (!isObject(error)) return null;
  return errorByCode(error, errorMessageOf(error.message));
}

/**
 * Returns the error for an error of another vendor's upstream.
 * @param known its kind, if its protocol has a word for it
 */
export function upstreamErrorOf(error: JsonObject, known: ErrorKind | undefined): GatewayError {
  const kind = known ?? (isRateLimitError(error) ? 'rate_limit_exceeded' : 'upstream_error');
  return vendorAccountErrorIn(error) ?? answeredAs(kind, errorMessageOf(error.message));
}

/** Returns the message of an error, or a default. */
export function errorMessageOf(message: unknown): string {
  return textOrNull(message) || 'The upstream answered with an error.';
}

/** Returns the error for one in OpenAI's form that is not about the gateway's account, by its `code` or `type`. */
export function errorByCode(error: JsonObject, message: string): GatewayError {
  if (isRateLimitError(error)) return answeredAs('rate_limit_exceeded', message);
  return requestFault(error, message) ?? new GatewayError('upstream_error', message);
}

/**
 * Returns the error for what an upstream reports as a fault of the request, by its `code` or `type`; null for any
 * other.
 */
function requestFault({ code, type }: JsonObject, message: string): GatewayError | null {
  const kind = faultStatuses.get(typeof code === 'number' ? `${code}` : code);
  if (kind !== undefined) return answeredAs(kind, message);
  if (!faultWords.has(code) && !faultWords.has(type)) return null;
  return answeredAs('invalid_request', message, textOrNull(code));
}

/**
 * Tells whether an error means too many requests, by its `code` or `type`. Such an error is a 429, whatever the status
 * of the answer.
 */
export function isRateLimitError({ code, type }: JsonObject): boolean {
  return isRateLimitCode(code) || isRateLimitCode(type);
}

/** Tells whether a code or type means too many requests, in any vendor's words. */
export function isRateLimitCode(code: unknown): boolean {
  return typeof code === 'string' ? limitWord.test(code) : code === 429;
}

/** `invalid_filter` or `cache_policy` is a mistake like any other. */
const policyWord =
  /content[_ -]?(?:filter|policy)|filtered|(?:usage|cyber|ai)[_ -]policy|policy[_ -]?(?:violation|blocked)|violates[_ -]policy|moderation|sensitive|safety/i;

/** Tells whether a code means content that a vendor's filters refused, in any vendor's words. */
export function isPolicyCode(code: string | null): boolean {
  return code !== null && policyWord.test(code);
}

/**
 * Returns the error for an event that is not part of the protocol.
 * @param untyped description of the event if it has no type
 */
export function foreignEvent(
  protocol: string,
  type: string | null,
  untyped = 'an event without a type',
): GatewayError {
  return foreignStream(protocol, type === null ? untyped : `an event of type ${nameOfType(type)}`);
}

/** Returns the same for an event that is not a JSON object. */
export function brokenEvent(protocol: string): GatewayError {
  return foreignStream(protocol, 'an event that is not a JSON object');
}

/**
 * Returns the error for a stream of another protocol than the upstream's.
 * @param what description of what it contains
 */
export function foreignStream(protocol: string, what: string): GatewayError {
  return new GatewayError(
    'unsupported_stream_event',
    `The upstream's stream is not of the ${protocol} protocol: it has ${what}.`,
  );
}
