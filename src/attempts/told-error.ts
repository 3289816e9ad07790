import { type ErrorKind, GatewayError, type UpstreamFailureReason } from '../errors.js';
import type { ResponseHead, UpstreamFailure } from '../upstream/types.js';
import { isObject, type JsonObject, parseJson, textOf, textOrNull } from '../wire/json.js';

const longestMessage = 2000;
/** Milliseconds as they are written in a header. */
const decimal = /^\d{1,12}(?:\.\d+)?$/;
/** A duration of Protocol Buffers in JSON. */
const retryDelay = /^(\d{1,9}(?:\.\d{1,9})?)s$/;

const told: Record<UpstreamFailureReason, readonly [ErrorKind, string]> = {
  connect_failed: ['upstream_error', 'The upstream cannot be reached.'],
  connect_timeout: ['upstream_timeout', 'The upstream did not accept a connection in time.'],
  proxy_failed: ['upstream_error', 'The upstream cannot be reached.'],
  tls_failed: ['upstream_error', 'The upstream could not be trusted: its TLS handshake failed.'],
  queue_full: ['overloaded', 'Too many requests are under way to this upstream, try again shortly.'],
  no_room: [
    'overloaded',
    "There is no memory for the upstream's answer: let other calls of your key end, and try again.",
  ],
  reset: ['upstream_error', 'The upstream closed the connection before its answer was complete.'],
  first_byte_timeout: ['upstream_timeout', 'The upstream did not begin to answer in time.'],
  idle_timeout: ['upstream_timeout', 'The upstream fell silent in the middle of its answer.'],
  total_timeout: ['upstream_timeout', 'The upstream did not finish its answer in time.'],
  malformed_answer: ['upstream_error', 'The upstream gave an answer that is not valid HTTP.'],
  answer_too_large: ['upstream_error', "The upstream's answer is too large."],
  truncated: ['upstream_error', 'The upstream ended its answer before it was complete.'],
  closed: ['overloaded', 'The gateway is shutting down, try again.'],
};

/**
 * What a caller is told of an upstream's failure; the detail is for the log alone.
 * @param unrepeatable the upstream may have done what was asked for
 */
export function failureError(failure: UpstreamFailure, unrepeatable = false): GatewayError {
  const [kind, message] = told[failure.reason];
  return new GatewayError(kind, message, {
    unrepeatable,
    cause: `${failure.reason}: ${failure.detail}`,
    retryAfter: kind === 'overloaded' ? 1 : null,
  });
}

const kinds: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  401: 'invalid_api_key',
  403: 'permission_denied',
  404: 'not_found',
  408: 'upstream_timeout',
  409: 'conflict',
  413: 'request_too_large',
  415: 'unsupported_media_type',
  422: 'invalid_request',
  429: 'rate_limit_exceeded',
  503: 'overloaded',
  504: 'upstream_timeout',
  529: 'overloaded',
};

/**
 * What a caller is told of an upstream's error status where the answer itself cannot be handed on: its own 200 has
 * left, or the upstream speaks another protocol. The status is the upstream's.
 * @param unrepeatable the upstream may have done what was asked for
 */
export function statusError(head: ResponseHead, body: Buffer, unrepeatable = false): GatewayError {
  const { status } = head;
  const parsed = parseErrorBody(body);
  const { message, code } = wordsOf(parsed);
  const retryAfterMs = retryAfterMsOf(head, parsed);
  return new GatewayError(
    kinds[status] ?? (status < 500 ? 'invalid_request' : 'upstream_error'),
    message ?? `The upstream answered with status ${status}.`,
    {
      answered: { status, code },
      retryAfter: retryAfterMs === null ? null : Math.ceil(retryAfterMs / 1000),
      unrepeatable,
    },
  );
}

/**
 * Milliseconds after which an upstream wants to be asked again, by `retry-after-ms`, which Azure's OpenAI service sends,
 * `retry-after` where that is no number above zero, or what the error itself says; null where nothing says anything.
 * @param parsed its body, by `parseErrorBody`
 */
export function retryAfterMsOf(head: ResponseHead, parsed: unknown): number | null {
  const text = head.get('retry-after-ms') ?? '';
  const ms = decimal.test(text) ? Number(text) : 0;
  if (ms > 0) return ms;
  const seconds = secondsOf(head.get('retry-after'));
  return seconds === null ? retryDelayMsOf(parsed) : seconds * 1000;
}

/** Milliseconds of the `RetryInfo` (google.rpc, error_details.proto) that Google's errors have in place of a header, or null. */
function retryDelayMsOf(parsed: unknown): number | null {
  const error = firstObject(parsed)?.error;
  const details = isObject(error) && Array.isArray(error.details) ? error.details : [];
  for (const detail of details) {
    const [, seconds] = retryDelay.exec(isObject(detail) ? textOf(detail.retryDelay) : '') ?? [];
    if (seconds !== undefined) return Number(seconds) * 1000;
  }
  return null;
}

/** Whole seconds of a `retry-after` (RFC 9110 section 10.2.3), which may be a date; null where it says nothing. */
function secondsOf(value: string | null): number | null {
  if (value === null || value === '') return null;
  const seconds = Number(value);
  const waited = Number.isNaN(seconds) ? (Date.parse(value) - Date.now()) / 1000 : seconds;
  return Number.isFinite(waited) ? Math.max(0, Math.ceil(waited)) : null;
}

/**
 * Parses the body of an error, as much of it as has come.
 * @returns null for what is no JSON object, and no list with one: some upstreams put theirs into one
 */
export function parseErrorBody(body: Buffer): unknown {
  const value = body.length === 0 ? null : parseJson(body.toString('utf8'));
  return firstObject(value) === null ? null : value;
}

function firstObject(parsed: unknown): JsonObject | null {
  const first: unknown = Array.isArray(parsed) ? parsed.find(isObject) : parsed;
  return isObject(first) ? first : null;
}

/** Every protocol has the message of an error in the same place. */
function wordsOf(parsed: unknown): { readonly message: string | null; readonly code: string | null } {
  const answer = firstObject(parsed);
  const error = isObject(answer?.error) ? answer.error : answer;
  const message = textOrNull(error?.message) ?? textOrNull(answer?.error) ?? textOrNull(answer?.detail);
  return { message: message?.slice(0, longestMessage) ?? null, code: textOrNull(error?.code) };
}
