import type { GatewayError } from '../../errors.js';
import { type ErrorWords, plainFormat, wordOf } from './error-format.js';
import { openaiError } from './openai.js';

/** The vendor's own numbers, by which its native clients distinguish errors. */
const codes: ErrorWords<number> = {
  kinds: {
    invalid_value: 1201,
    missing_parameter: 1201,
    previous_response_not_found: 1201,
    unsupported_parameter: 1201,
    range_not_satisfiable: 1201,
    budget_exceeded: 1102,
  },
  statuses: {
    401: 1000,
    403: 1103,
    404: 1203,
    405: 1202,
    429: 1302,
    501: 1202,
    503: 5001,
    504: 5002,
  },
  client: 1200,
  server: 5000,
};

function errorBody(error: GatewayError, requestId: string): string {
  return `{"error":${openaiError(error)},"code":${wordOf(codes, error.kind)},"message":${JSON.stringify(error.message)},"request_id":${JSON.stringify(requestId)},"data":null}`;
}

/**
 * The vendork video format. Two kinds of clients read it: those that expect the `error` object of the chat family, and
 * native ones that expect the envelope. No names collide, so a body contains both.
 */
export const kling = plainFormat('kling', errorBody);
