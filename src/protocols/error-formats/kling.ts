import type { ErrorKind, GatewayError } from '../../errors.js';
import type { ErrorFormat } from './error-format.js';
import { openaiError } from './openai.js';

/** The vendor's own numbers, which its native clients switch on. */
const codes: Readonly<Record<ErrorKind, number>> = {
  invalid_request: 1200,
  invalid_value: 1201,
  missing_parameter: 1201,
  previous_response_not_found: 1201,
  unsupported_parameter: 1201,
  thread_unsupported_request: 1200,
  invalid_json: 1200,
  invalid_request_body: 1200,
  invalid_api_key: 1000,
  permission_denied: 1103,
  model_not_found: 1203,
  not_found: 1203,
  item_not_found: 1203,
  thread_not_found: 1203,
  unknown_url: 1203,
  method_not_allowed: 1202,
  conflict: 1200,
  request_timeout: 1200,
  request_too_large: 1200,
  unsupported_media_type: 1200,
  upgrade_required: 1200,
  range_not_satisfiable: 1201,
  rate_limit_exceeded: 1302,
  budget_exceeded: 1102,
  client_closed: 1200,
  internal_error: 5000,
  not_implemented: 1202,
  overloaded: 5001,
  store_unavailable: 5001,
  upstream_error: 5000,
  unsupported_stream_event: 5000,
  upstream_timeout: 5002,
};

function errorBody(error: GatewayError, requestId: string): string {
  return `{"error":${openaiError(error)},"code":${codes[error.kind]},"message":${JSON.stringify(error.message)},"request_id":${JSON.stringify(requestId)},"data":null}`;
}

/**
 * The vendork video format. Clients of two kinds read it: those that expect the chat-family `error` object and native
 * ones that expect the envelope. No name collides, so a body holds both.
 */
export const kling: ErrorFormat = {
  name: 'kling',
  keepAlive: ': keep-alive\n\n',
  requestIdHeader: null,
  rateHeaders: null,
  readsErrorEvents: null,
  errorBody,
  errorEvent: (error, requestId) => `data: ${errorBody(error, requestId)}\n\n`,
};
