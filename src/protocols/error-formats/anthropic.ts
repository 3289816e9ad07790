import type { ErrorKind, GatewayError } from '../../errors.js';
import type { ErrorFormat } from './error-format.js';

type AnthropicErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'conflict_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'timeout_error'
  | 'api_error'
  | 'overloaded_error';

const errorTypes: Readonly<Record<ErrorKind, AnthropicErrorType>> = {
  invalid_request: 'invalid_request_error',
  invalid_value: 'invalid_request_error',
  missing_parameter: 'invalid_request_error',
  previous_response_not_found: 'invalid_request_error',
  unsupported_parameter: 'invalid_request_error',
  thread_unsupported_request: 'invalid_request_error',
  invalid_json: 'invalid_request_error',
  invalid_request_body: 'invalid_request_error',
  invalid_api_key: 'authentication_error',
  permission_denied: 'permission_error',
  model_not_found: 'not_found_error',
  not_found: 'not_found_error',
  item_not_found: 'not_found_error',
  thread_not_found: 'not_found_error',
  unknown_url: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  conflict: 'conflict_error',
  request_timeout: 'timeout_error',
  request_too_large: 'request_too_large',
  unsupported_media_type: 'invalid_request_error',
  upgrade_required: 'invalid_request_error',
  range_not_satisfiable: 'invalid_request_error',
  rate_limit_exceeded: 'rate_limit_error',
  budget_exceeded: 'rate_limit_error',
  client_closed: 'invalid_request_error',
  internal_error: 'api_error',
  not_implemented: 'api_error',
  overloaded: 'overloaded_error',
  store_unavailable: 'api_error',
  upstream_error: 'api_error',
  unsupported_stream_event: 'api_error',
  upstream_timeout: 'timeout_error',
};

/** Kinds that the SDK's threads know by `error.details.error_code`, and get over by themselves. */
const detailed: ReadonlySet<ErrorKind> = new Set(['thread_not_found', 'thread_unsupported_request']);

function errorBody(error: GatewayError, requestId: string): string {
  const details = detailed.has(error.kind) ? `,"details":{"error_code":${JSON.stringify(error.code)}}` : '';
  return `{"type":"error","error":{"type":"${errorTypes[error.kind]}","message":${JSON.stringify(error.message)}${details}},"request_id":${JSON.stringify(requestId)}}`;
}

/** The messages protocol. */
export const anthropic: ErrorFormat = {
  name: 'anthropic',
  keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  requestIdHeader: 'request-id',
  rateHeaders: 'messages',
  readsErrorEvents: null,
  errorBody,
  // The SDK skips an event without its `event:` line.
  errorEvent: (error, requestId) => `event: error\ndata: ${errorBody(error, requestId)}\n\n`,
};
