import type { ErrorKind, GatewayError } from '../../errors.js';
import type { ErrorFormat } from './error-format.js';

/** Names of google.rpc.Code. */
type GoogleStatus =
  | 'INVALID_ARGUMENT'
  | 'UNAUTHENTICATED'
  | 'PERMISSION_DENIED'
  | 'NOT_FOUND'
  | 'ABORTED'
  | 'RESOURCE_EXHAUSTED'
  | 'CANCELLED'
  | 'INTERNAL'
  | 'UNIMPLEMENTED'
  | 'UNAVAILABLE'
  | 'DEADLINE_EXCEEDED';

const statuses: Readonly<Record<ErrorKind, GoogleStatus>> = {
  invalid_request: 'INVALID_ARGUMENT',
  invalid_value: 'INVALID_ARGUMENT',
  missing_parameter: 'INVALID_ARGUMENT',
  previous_response_not_found: 'INVALID_ARGUMENT',
  unsupported_parameter: 'INVALID_ARGUMENT',
  thread_unsupported_request: 'INVALID_ARGUMENT',
  invalid_json: 'INVALID_ARGUMENT',
  invalid_request_body: 'INVALID_ARGUMENT',
  invalid_api_key: 'UNAUTHENTICATED',
  permission_denied: 'PERMISSION_DENIED',
  model_not_found: 'NOT_FOUND',
  not_found: 'NOT_FOUND',
  item_not_found: 'NOT_FOUND',
  thread_not_found: 'NOT_FOUND',
  unknown_url: 'NOT_FOUND',
  method_not_allowed: 'INVALID_ARGUMENT',
  conflict: 'ABORTED',
  request_timeout: 'DEADLINE_EXCEEDED',
  request_too_large: 'INVALID_ARGUMENT',
  unsupported_media_type: 'INVALID_ARGUMENT',
  upgrade_required: 'INVALID_ARGUMENT',
  range_not_satisfiable: 'INVALID_ARGUMENT',
  rate_limit_exceeded: 'RESOURCE_EXHAUSTED',
  budget_exceeded: 'RESOURCE_EXHAUSTED',
  client_closed: 'CANCELLED',
  internal_error: 'INTERNAL',
  not_implemented: 'UNIMPLEMENTED',
  overloaded: 'UNAVAILABLE',
  store_unavailable: 'UNAVAILABLE',
  upstream_error: 'INTERNAL',
  unsupported_stream_event: 'INTERNAL',
  upstream_timeout: 'DEADLINE_EXCEEDED',
};

function errorBody(error: GatewayError): string {
  const details =
    error.kind === 'rate_limit_exceeded' && error.retryAfter !== null
      ? `,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"${error.retryAfter}s"}]`
      : '';
  return `{"error":{"code":${error.status},"message":${JSON.stringify(error.message)},"status":"${statuses[error.kind]}"${details}}}`;
}

const sdkName = 'google-genai-sdk/';

/**
 * Version 1 of Google's SDK gives an error event out as a chunk without text; from version 2 on it raises it. Of what
 * else calls generateContent nothing is known.
 */
function readsErrorEvents(userAgent: string): boolean {
  const at = userAgent.indexOf(sdkName);
  return at !== -1 && Number.parseInt(userAgent.slice(at + sdkName.length), 10) >= 2;
}

/** generateContent and everything else under `/v1beta`. */
export const google: ErrorFormat = {
  name: 'google',
  keepAlive: ': keep-alive\n\n',
  requestIdHeader: null,
  rateHeaders: null,
  readsErrorEvents,
  errorBody,
  // The SDK drops a block that does not begin with `data:`.
  errorEvent: (error) => `data: ${errorBody(error)}\n\n`,
};
