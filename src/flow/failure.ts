import { type ErrorKind, GatewayError } from '../errors.js';
import type { UpstreamFailure, UpstreamFailureReason } from '../upstream/client.js';

const told: Record<UpstreamFailureReason, readonly [ErrorKind, string]> = {
  connect_failed: ['upstream_error', 'The upstream cannot be reached.'],
  connect_timeout: ['upstream_timeout', 'The upstream did not accept a connection in time.'],
  tls_failed: ['upstream_error', 'The upstream could not be trusted: its TLS handshake failed.'],
  queue_full: ['overloaded', 'Too many requests wait for this upstream, try again shortly.'],
  reset: ['upstream_error', 'The upstream closed the connection before its answer was complete.'],
  first_byte_timeout: ['upstream_timeout', 'The upstream did not begin to answer in time.'],
  idle_timeout: ['upstream_timeout', 'The upstream fell silent in the middle of its answer.'],
  total_timeout: ['upstream_timeout', 'The upstream did not finish its answer in time.'],
  malformed_answer: ['upstream_error', 'The upstream gave an answer that is not valid HTTP.'],
  truncated: ['upstream_error', 'The upstream ended its answer before it was complete.'],
  closed: ['overloaded', 'The gateway is shutting down, try again.'],
};

/** What a caller is told of an upstream's failure; the detail is for the log alone. */
export function failureError(failure: UpstreamFailure): GatewayError {
  const [kind, message] = told[failure.reason];
  return new GatewayError(kind, message, {
    cause: `${failure.reason}: ${failure.detail}`,
    retryAfter: kind === 'overloaded' ? 1 : null,
  });
}

/** What a caller is told of an upstream's error status once its own 200 has left, so that only an event can say it. */
export function statusError(status: number, body: Buffer): GatewayError {
  const message = messageOf(body) ?? `The upstream answered with status ${status}.`;
  if (status === 429) return new GatewayError('rate_limit_exceeded', message);
  if (status === 504 || status === 408) return new GatewayError('upstream_timeout', message);
  if (status === 503) return new GatewayError('overloaded', message);
  return new GatewayError(status === 400 ? 'invalid_request' : 'upstream_error', message);
}

function messageOf(body: Buffer): string | null {
  try {
    const parsed = JSON.parse(body.toString('utf8')) as { error?: { message?: unknown } } | null;
    const message = parsed?.error?.message;
    return typeof message === 'string' ? message : null;
  } catch {
    return null;
  }
}
