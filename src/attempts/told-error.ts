import { type ErrorKind, GatewayError } from '../errors.js';
import type { ResponseHead, UpstreamFailure, UpstreamFailureReason } from '../upstream/client.js';
import { isObject, type JsonObject, parseJson, parseObject, textOrNull } from '../wire/json.js';

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
  queue_full: ['overloaded', 'Too many requests wait for this upstream, try again shortly.'],
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
  const { message, code } = wordsOf(body);
  const retryAfterMs = retryAfterMsOf(head, body);
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
 * @param body as much of it as has come
 */
export function retryAfterMsOf(head: ResponseHead, body: Buffer): number | null {
  const text = head.get('retry-after-ms') ?? '';
  const ms = decimal.test(text) ? Number(text) : 0;
  if (ms > 0) return ms;
  const seconds = secondsOf(head.get('retry-after'));
  return seconds === null ? retryDelayMsOf(body) : seconds * 1000;
}

/** Milliseconds of the `RetryInfo` (google.rpc, error_details.proto) that Google's errors have in place of a header, or null. */
function retryDelayMsOf(body: Buffer): number | null {
  if (!body.includes('"retryDelay"')) return null;
  const error = firstObject(body.toString('utf8'))?.error;
  const details = isObject(error) && Array.isArray(error.details) ? error.details : [];
  for (const detail of details) {
    const [, seconds] = retryDelay.exec(isObject(detail) ? (textOrNull(detail.retryDelay) ?? '') : '') ?? [];
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

/** Some upstreams put their error into an array. */
function firstObject(text: string): JsonObject | null {
  const start = text.trimStart();
  if (!start.startsWith('[')) return parseObject(start);
  const value = parseJson(start);
  return Array.isArray(value) ? (value.find(isObject) ?? null) : null;
}

/** Every protocol has the message of an error in the same place. */
function wordsOf(body: Buffer): { readonly message: string | null; readonly code: string | null } {
  const parsed = firstObject(body.toString('utf8'));
  const error = isObject(parsed?.error) ? parsed.error : parsed;
  const message = textOrNull(error?.message) ?? textOrNull(parsed?.error) ?? textOrNull(parsed?.detail);
  return { message: message?.slice(0, longestMessage) ?? null, code: textOrNull(error?.code) };
}
