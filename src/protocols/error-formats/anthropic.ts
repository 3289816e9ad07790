import type { ErrorKind, GatewayError } from '../../errors.js';
import { type ErrorFormat, type ErrorWords, wordOf } from './error-format.js';

/** https://platform.claude.com/docs/en/api/errors */
const errorTypes: ErrorWords<string> = {
  kinds: { overloaded: 'overloaded_error' },
  statuses: {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    408: 'timeout_error',
    409: 'conflict_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    504: 'timeout_error',
  },
  client: 'invalid_request_error',
  server: 'api_error',
};

/** Kinds that the SDK's threads recognise by `error.details.error_code`, and handle on their own. */
const detailed: ReadonlySet<ErrorKind> = new Set(['thread_not_found', 'thread_unsupported_request']);

function errorBody(error: GatewayError, requestId: string): string {
  const details = detailed.has(error.kind) ? `,"details":{"error_code":${JSON.stringify(error.code)}}` : '';
  return `{"type":"error","error":{"type":"${wordOf(errorTypes, error.kind)}","message":${JSON.stringify(error.message)}${details}},"request_id":${JSON.stringify(requestId)}}`;
}

/** The messages protocol. */
export const anthropic: ErrorFormat = {
  name: 'anthropic',
  keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  requestIdHeader: 'request-id',
  rateHeaders: 'messages',
  readsErrorEvents: null,
  errorBody,
  // The SDK skips an event without an `event:` line.
  errorEvent: (error, requestId) => `event: error\ndata: ${errorBody(error, requestId)}\n\n`,
};
