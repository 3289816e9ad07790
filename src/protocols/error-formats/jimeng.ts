import type { ErrorKind, GatewayError } from '../../errors.js';
import type { ErrorFormat } from './error-format.js';

/**
 * The numbers that are known of the vendor follow the HTTP status (50429 rate, 50500 internal), and so does the rest
 * here. 50411 to 50413 mean content that its filters refused, so a body that is too large is an ordinary bad request.
 */
const codes: Readonly<Record<ErrorKind, number>> = {
  invalid_request: 50400,
  invalid_value: 50400,
  missing_parameter: 50400,
  previous_response_not_found: 50400,
  unsupported_parameter: 50400,
  thread_unsupported_request: 50400,
  invalid_json: 50400,
  invalid_request_body: 50400,
  invalid_api_key: 50401,
  permission_denied: 50403,
  model_not_found: 50404,
  not_found: 50404,
  item_not_found: 50404,
  thread_not_found: 50404,
  unknown_url: 50404,
  method_not_allowed: 50405,
  conflict: 50409,
  request_timeout: 50408,
  request_too_large: 50400,
  unsupported_media_type: 50415,
  upgrade_required: 50426,
  range_not_satisfiable: 50416,
  rate_limit_exceeded: 50429,
  budget_exceeded: 50429,
  client_closed: 50499,
  internal_error: 50500,
  not_implemented: 50501,
  overloaded: 50503,
  store_unavailable: 50503,
  upstream_error: 50502,
  unsupported_stream_event: 50502,
  upstream_timeout: 50504,
};

function errorBody(error: GatewayError, requestId: string): string {
  return `{"code":${codes[error.kind]},"message":${JSON.stringify(error.message)},"data":{},"request_id":${JSON.stringify(requestId)}}`;
}

/** The vendorj video format. */
export const jimeng: ErrorFormat = {
  name: 'jimeng',
  keepAlive: ': keep-alive\n\n',
  requestIdHeader: null,
  rateHeaders: null,
  readsErrorEvents: null,
  errorBody,
  errorEvent: (error, requestId) => `data: ${errorBody(error, requestId)}\n\n`,
};
