import type { AttemptFailure } from '../errors.js';

/** The result of an attempt at an upstream, as counted. */
export type AttemptResult =
  | 'ok'
  | 'refused'
  | 'proxy_failed'
  | 'tls_failed'
  | 'queue_full'
  | 'reset'
  | 'timeout'
  | 'truncated'
  | 'malformed'
  | 'too_large'
  | 'canceled'
  | 'status_429'
  | 'status_4xx'
  | 'status_5xx';

const resultOfReason: Readonly<Record<AttemptFailure, AttemptResult>> = {
  connect_failed: 'refused',
  connect_timeout: 'timeout',
  proxy_failed: 'proxy_failed',
  tls_failed: 'tls_failed',
  queue_full: 'queue_full',
  no_room: 'too_large',
  reset: 'reset',
  first_byte_timeout: 'timeout',
  idle_timeout: 'timeout',
  total_timeout: 'timeout',
  malformed_answer: 'malformed',
  answer_too_large: 'too_large',
  truncated: 'truncated',
  closed: 'canceled',
  unusable_answer: 'malformed',
  first_token_timeout: 'timeout',
  gateway_fault: 'canceled',
};

/** The result of an attempt without an answer, or without a whole or usable one. */
export function resultOfFailure(reason: AttemptFailure): AttemptResult {
  return resultOfReason[reason];
}

/** The result of an attempt with a whole answer. */
export function resultOfStatus(status: number): AttemptResult {
  if (status === 429) return 'status_429';
  if (status >= 500) return 'status_5xx';
  return status >= 400 ? 'status_4xx' : 'ok';
}
