import type { GatewayError } from '../../errors.js';
import { type ErrorFormat, type ErrorWords, plainFormat, wordOf } from './error-format.js';

const errorTypes: ErrorWords<string> = {
  kinds: { budget_exceeded: 'insufficient_quota', not_implemented: 'invalid_request_error' },
  statuses: { 403: 'permission_error', 429: 'rate_limit_error' },
  client: 'invalid_request_error',
  server: 'server_error',
};

/** The JSON text of the `error` object of chat-family bodies. */
export function openaiError(error: GatewayError): string {
  // The SDKs' users look at `param` to tell a wrong model from a wrong path: both are 404.
  const param = error.param ?? (error.kind === 'model_not_found' ? 'model' : null);
  return `{"message":${JSON.stringify(error.message)},"type":"${wordOf(errorTypes, error.kind)}","param":${JSON.stringify(param)},"code":${JSON.stringify(error.code)}}`;
}

/** Everything OpenAI-shaped: chat, responses and the rest of `/v1`, and every path that is nobody else's. */
export const openai: ErrorFormat = {
  // Its event is without an `event:` line (the 4.x SDK wraps a chunk that has one) and without `[DONE]` after it.
  ...plainFormat('openai', (error) => `{"error":${openaiError(error)}}`),
  rateHeaders: 'chat',
};

/** `/v1/rerank` and `/v1/embed`: the chat family's, with the message at the top as well, where Cohere's clients look for it. */
export const rerank: ErrorFormat = {
  ...openai,
  errorBody: (error) => `{"message":${JSON.stringify(error.message)},"error":${openaiError(error)}}`,
};

/**
 * The error event of a responses stream. The members stand in the event itself, as the protocol has them, and once
 * more under `error`: without that one version of the SDK takes it for an event like any other and does not raise it.
 * @param sequence number of the event in its stream
 */
export function responsesErrorEvent(error: GatewayError, sequence: number): string {
  const param = JSON.stringify(error.param);
  return (
    `event: error\ndata: {"type":"error","sequence_number":${sequence},"code":${JSON.stringify(error.code)},` +
    `"message":${JSON.stringify(error.message)},"param":${param},"error":${openaiError(error)}}\n\n`
  );
}

/** The responses endpoints: bodies as all of OpenAI's, and streams with named events. */
export const responses: ErrorFormat = {
  ...openai,
  errorEvent: (error, _requestId, number) => responsesErrorEvent(error, number),
};
