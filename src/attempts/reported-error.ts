import { type ErrorKind, GatewayError, type UpstreamFailureReason } from '../errors.js';
import type { ResponseHead, UpstreamFailure } from '../upstream/types.js';
import { isObject, type JsonObject, parseJson, textOf, textOrNull } from '../wire/json.js';

const longestMessage = 2000;
/** Milliseconds in a header. */
const decimal = /^\d{1,12}(?:\.\d+)?$/;
/** A Protocol Buffers duration in JSON. */
const retryDelay = /^(\d{1,9}(?:\.\d{1,9})?)s$/;

/*
 * Inside a stream there is no status, and agents tell by an error's words whether to ask again. pi and opencode know
 * `connection lost` and `response timed out`.
 */
const messages: Record<UpstreamFailureReason, readonly [ErrorKind, string]> = {
  connect_failed: ['upstream_error', 'The upstream cannot be reached.'],
  connect_timeout: ['upstream_timeout', 'The upstream did not accept a connection in time.'],
  proxy_failed: ['upstream_error', 'The upstream cannot be reached.'],
  tls_failed: ['upstream_error', 'The upstream could not be trusted: its TLS handshake failed.'],
  queue_full: ['overloaded', 'Too many requests to this upstream are in progress: try again shortly.'],
  no_room: [
    'overloaded',
    "There is no memory for the upstream's answer: wait for other calls of your key to end, then try again.",
  ],
  reset: ['upstream_error', 'Connection lost: the upstream closed it before its answer was complete.'],
  first_byte_timeout: ['upstream_timeout', 'The upstream did not begin to answer in time.'],
  idle_timeout: [
    'upstream_timeout',
    'Response timed out: the upstream stopped sending in the middle of its answer.',
  ],
  total_timeout: ['upstream_timeout', 'The upstream did not finish its answer in time.'],
  malformed_answer: ['upstream_error', 'The upstream returned an answer that is not valid HTTP.'],
  answer_too_large: ['upstream_error', "The upstream's answer is too large."],
  truncated: ['upstream_error', 'Connection lost: the upstream ended its answer before it was complete.'],
  closed: ['overloaded', 'The gateway is shutting down: try again.'],
};

/**
 * Makes the error for the client of an upstream's failure. The detail goes only to the log.
 * @param unrepeatable the request may have taken effect
 */
export function failureError(failure: UpstreamFailure, unrepeatable = false): GatewayError {
  const [kind, message] = messages[failure.reason];
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
 * Makes the error for the client of an upstream's error status, if the answer itself cannot be passed on: a status of 200 was
 * already sent, or the upstream speaks another protocol. Keeps the upstream's status.
 * @param unrepeatable the request may have taken effect
 */
export function statusError(head: ResponseHead, body: Buffer, unrepeatable = false): GatewayError {
  const { status } = head;
  const parsed = parseErrorBody(body);
  const { message, code } = readError(parsed);
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
 * Returns the milliseconds after which an upstream accepts a retry, or null if it names none. Reads `retry-after-ms`, which Azure's
 * OpenAI service sends, then `retry-after`, then the error itself.
 * @param parsed its body, from `parseErrorBody`
 */
export function retryAfterMsOf(head: ResponseHead, parsed: unknown): number | null {
  const text = head.get('retry-after-ms') ?? '';
  const ms = decimal.test(text) ? Number(text) : 0;
  if (ms > 0) return ms;
  const seconds = secondsOf(head.get('retry-after'));
  return seconds === null ? retryDelayMsOf(parsed) : seconds * 1000;
}

/** Reads the `RetryInfo` (google.rpc, error_details.proto) that Google's errors have instead of a header, in milliseconds. */
function retryDelayMsOf(parsed: unknown): number | null {
  const error = firstObject(parsed)?.error;
  const details = isObject(error) && Array.isArray(error.details) ? error.details : [];
  for (const detail of details) {
    const [, seconds] = retryDelay.exec(isObject(detail) ? textOf(detail.retryDelay) : '') ?? [];
    if (seconds !== undefined) return Number(seconds) * 1000;
  }
  return null;
}

/** Returns the seconds of a `retry-after` header (RFC 9110 section 10.2.3), which may be a date; null if it is not valid. */
function secondsOf(value: string | null): number | null {
  if (value === null || value === '') return null;
  const seconds = Number(value);
  const waited = Number.isNaN(seconds) ? (Date.parse(value) - Date.now()) / 1000 : seconds;
  return Number.isFinite(waited) ? Math.max(0, Math.ceil(waited)) : null;
}

/**
 * Parses the body of an error, which may be incomplete.
 * @returns null unless it is a JSON object, or a list with one, which some upstreams send
 */
export function parseErrorBody(body: Buffer): unknown {
  const value = body.length === 0 ? null : parseJson(body.toString('utf8'));
  return firstObject(value) === null ? null : value;
}

function firstObject(parsed: unknown): JsonObject | null {
  const first: unknown = Array.isArray(parsed) ? parsed.find(isObject) : parsed;
  return isObject(first) ? first : null;
}

/** Reads message and code from `error`, or from the top level or `detail`, where some upstreams put them. */
function readError(parsed: unknown): { readonly message: string | null; readonly code: string | null } {
  const answer = firstObject(parsed);
  const error = isObject(answer?.error) ? answer.error : answer;
  const message = textOrNull(error?.message) ?? textOrNull(answer?.error) ?? textOrNull(answer?.detail);
  return { message: message?.slice(0, longestMessage) ?? null, code: textOrNull(error?.code) };
}
