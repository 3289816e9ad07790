import type { AnswerFormat } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';

/** Fixed, so that the same request has the same answer, byte for byte. */
export const created = 1_700_000_000;

/** The members common to all answers of a request. */
export interface ChatBase {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly service_tier: string;
  readonly system_fingerprint: string;
}

/** The head of a chat answer or chunk. */
export function chatBase(id: string, object: string, model: string): ChatBase {
  return { id, object, created, model, service_tier: 'default', system_fingerprint: 'fp_simulator' };
}

/** Type and code of an OpenAI-family error body by status. */
const words: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  402: ['insufficient_quota', 'insufficient_quota'],
  403: ['permission_error', 'insufficient_permissions'],
  404: ['invalid_request_error', 'not_found'],
  405: ['invalid_request_error', 'method_not_allowed'],
  409: ['invalid_request_error', 'conflict'],
  413: ['invalid_request_error', 'request_too_large'],
  415: ['invalid_request_error', 'unsupported_media_type'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  500: ['server_error', 'internal_error'],
  502: ['server_error', 'upstream_error'],
  503: ['server_error', 'service_unavailable'],
  504: ['server_error', 'timeout'],
};

function errorBody({ status, message, param, code }: RequestError): string {
  const [type, usual] = words[status] ?? [status < 500 ? 'invalid_request_error' : 'server_error', null];
  return JSON.stringify({ error: { message, type, param, code: code === undefined ? usual : code } });
}

/** The answer format of the OpenAI family. */
export const openaiFormat: AnswerFormat = {
  errorBody,
  errorEvent: () =>
    `data: ${errorBody(new RequestError(500, 'The simulator was asked for an error in the stream.'))}\n\n`,
  contentEvent(text) {
    const choice = { index: 0, delta: { content: text }, logprobs: null, finish_reason: null };
    const base = chatBase('chatcmpl-simulated', 'chat.completion.chunk', 'sim-text');
    return `data: ${JSON.stringify({ ...base, choices: [choice] })}\n\n`;
  },
  eventsBeforeContent: 1,
  foreign: 'messages',
};
