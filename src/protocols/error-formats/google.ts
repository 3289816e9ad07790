import type { GatewayError } from '../../errors.js';
import { type ErrorFormat, type ErrorWords, plainFormat, wordOf } from './error-format.js';

/** Names of google.rpc.Code, which specifies the HTTP status of each. */
const statuses: ErrorWords<string> = {
  kinds: {},
  statuses: {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    408: 'DEADLINE_EXCEEDED',
    409: 'ABORTED',
    429: 'RESOURCE_EXHAUSTED',
    499: 'CANCELLED',
    501: 'UNIMPLEMENTED',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  },
  client: 'INVALID_ARGUMENT',
  server: 'INTERNAL',
};

function errorBody(error: GatewayError): string {
  const details =
    error.kind === 'rate_limit_exceeded' && error.retryAfter !== null
      ? `,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"${error.retryAfter}s"}]`
      : '';
  return `{"error":{"code":${error.status},"message":${JSON.stringify(error.message)},"status":"${wordOf(statuses, error.kind)}"${details}}}`;
}

const sdkName = 'google-genai-sdk/';

/**
 * Version 1 of Google's SDK returns an error event as a chunk without text; version 2 and later raise it. The behaviour
 * of other clients of generateContent is unknown.
 */
function readsErrorEvents(userAgent: string): boolean {
  const at = userAgent.indexOf(sdkName);
  return at !== -1 && Number.parseInt(userAgent.slice(at + sdkName.length), 10) >= 2;
}

/** generateContent and everything else under `/v1beta`. */
export const google: ErrorFormat = {
  // The SDK drops a block that does not begin with `data:`.
  ...plainFormat('google', errorBody),
  readsErrorEvents,
};
