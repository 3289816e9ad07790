import { answeredAs, type ErrorKind, GatewayError } from '../../errors.js';
import { isObject, type JsonObject, textOrNull } from '../../wire/json.js';
import { nameOfType } from '../../wire/reading.js';
import { vendorAccountErrorIn } from './vendor-account.js';

/**
 * What vendors call too many requests, in lower case, with spaces, in capitals: `rate_limit_error`, `RateLimitReached`,
 * `too_many_requests`, `concurrency_limit`, DashScope's `Throttling.RateQuota` and `limit_requests`. Not all that is too
 * many: images or tools may be, of one request.
 */
const limitWord =
  /^429$|rate[_ -]?limit|too[_ -]?many[_ -]?(?:request|call|task|job|concurren)|concurren|throttl|limit[_ -]?requests/i;

/** What an upstream says of a request that is at fault itself: it would fail again, at any other, too. */
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

/** The same as the status that others put into `code`, as a number or a text. */
const faultStatuses: ReadonlyMap<unknown, ErrorKind> = new Map([
  ['400', 'invalid_request'],
  ['404', 'not_found'],
  ['413', 'request_too_large'],
  ['422', 'invalid_request'],
]);

/**
 * What the `error` member of an answer or of a stream's event means, in the protocols of OpenAI: an object or, from
 * some upstreams, the message alone.
 * @returns null for a member that is absent or says nothing
 */
export function upstreamError(error: unknown): GatewayError | null {
  const ofVendorAccount = vendorAccountErrorIn(error);
  if (ofVendorAccount !== null) return ofVendorAccount;
  if (typeof error === 'string') return error === '' ? null : new GatewayError('upstream_error', error);
  if (!isObject(error)) return null;
  return toldAs(error, wordsOf(error.message));
}

/**
 * What the error of an upstream of another vendor means.
 * @param known its kind, where its protocol has a word for that
 */
export function upstreamErrorOf(error: JsonObject, known: ErrorKind | undefined): GatewayError {
  const kind = known ?? (tellsOfLimit(error) ? 'rate_limit_exceeded' : 'upstream_error');
  return vendorAccountErrorIn(error) ?? answeredAs(kind, wordsOf(error.message));
}

/** The message of an error, or one in place of what is none. */
export function wordsOf(message: unknown): string {
  return textOrNull(message) || 'The upstream answered with an error.';
}

/** What an error in OpenAI's form means that is not about the gateway's account, by its `code` or `type`. */
export function toldAs(error: JsonObject, message: string): GatewayError {
  if (tellsOfLimit(error)) return answeredAs('rate_limit_exceeded', message);
  return requestFault(error, message) ?? new GatewayError('upstream_error', message);
}

/** The error for what an upstream calls a mistake of the request, by its `code` or `type`; null for any other. */
function requestFault({ code, type }: JsonObject, message: string): GatewayError | null {
  const kind = faultStatuses.get(typeof code === 'number' ? `${code}` : code);
  if (kind !== undefined) return answeredAs(kind, message);
  if (!faultWords.has(code) && !faultWords.has(type)) return null;
  return answeredAs('invalid_request', message, textOrNull(code));
}

/** Whether an error is one of too many requests, by its `code` or `type`: whatever it came in, it is a 429 then. */
export function tellsOfLimit({ code, type }: JsonObject): boolean {
  return isLimitWord(code) || isLimitWord(type);
}

/** Whether a code or a type is one of too many requests, in any vendor's words. */
export function isLimitWord(code: unknown): boolean {
  return typeof code === 'string' ? limitWord.test(code) : code === 429;
}

/** The error for an event that is none of the protocol's. @param untyped what it is where it has no type */
export function foreignEvent(
  protocol: string,
  type: string | null,
  untyped = 'an event without a type',
): GatewayError {
  return foreignStream(protocol, type === null ? untyped : `an event of type ${nameOfType(type)}`);
}

/** The same for one that is no JSON object. */
export function brokenEvent(protocol: string): GatewayError {
  return foreignStream(protocol, 'an event that is not a JSON object');
}

/** The error for a stream of another protocol than the upstream's. @param what it has, in words */
export function foreignStream(protocol: string, what: string): GatewayError {
  return new GatewayError(
    'unsupported_stream_event',
    `The upstream's stream is not of the ${protocol} protocol: it has ${what}.`,
  );
}
