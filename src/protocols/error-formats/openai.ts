import type { GatewayError } from '../../errors.js';
import { type ErrorFormat, type ErrorWords, plainFormat, wordOf } from './error-format.js';

const errorTypes: ErrorWords<string> = {
  kinds: { budget_exceeded: 'insufficient_quota', not_implemented: 'invalid_request_error' },
  statuses: { 403: 'permission_error', 429: 'rate_limit_error' },
  client: 'invalid_request_error',
  server: 'server_error',
};

/** Returns the JSON text of the `error` object in bodies of the chat family. */
export function openaiError(error: GatewayError): string {
  // Users of the SDKs read `param` to distinguish a wrong model from a wrong path: both are 404.
  const param = error.param ?? (error.kind === 'model_not_found' ? 'model' : null);
  return `{"message":${JSON.stringify(error.message)},"type":"${wordOf(errorTypes, error.kind)}","param":${JSON.stringify(param)},"code":${JSON.stringify(error.code)}}`;
}

/** Every OpenAI-shaped endpoint: chat, responses and the rest of `/v1`, and every path of no other format. */
export const openai: ErrorFormat = {
  // The event has no `event:` line, since the 4.x SDK wraps a chunk that has one, and no `[DONE]` after it. The stream
  // ends orderly, since the AI SDK reads on after the event: it would raise a broken connection in place of the error.
  ...plainFormat('openai', (error) => `{"error":${openaiError(error)}}`),
  rateHeaders: 'chat',
};

/**
 * `/v1/rerank` and `/v1/embed`: the body of the chat family, with the message at the top level as well, where Cohere's
 * clients read it.
 */
export const rerank: ErrorFormat = {
  ...openai,
  errorBody: (error) => `{"message":${JSON.stringify(error.message)},"error":${openaiError(error)}}`,
};

/**
 * Returns the error event of a responses stream. Its members stand in the event itself, as the protocol requires, and
 * again under `error`: without that, one version of the SDK treats it as any other event and does not raise it.
 * @param sequence number of the event in its stream
 */
export function responsesErrorEvent(error: GatewayError, sequence: number): string {
  const param = JSON.stringify(error.param);
  return (
    `event: error\ndata: {"type":"error","sequence_number":${sequence},"code":${JSON.stringify(error.code)},` +
    `"message":${JSON.stringify(error.message)},"param":${param},"error":${openaiError(error)}}\n\n`
  );
}

/** The responses endpoints: bodies like all of OpenAI's, and streams with named events. */
export const responses: ErrorFormat = {
  ...openai,
  errorEvent: (error, _requestId, number) => responsesErrorEvent(error, number),
};
