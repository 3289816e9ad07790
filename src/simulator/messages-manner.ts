import { askedForStatus, type Manner } from './reply.js';

/** `error.type` by status. */
const types: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** SSE text of an event, which names its type twice. */
export function messagesEvent(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

/** How the messages protocol words errors and events. */
export function messagesManner(requestId: string | null): Manner {
  const members = (type: string, message: string): object => ({
    error: { type, message },
    request_id: requestId,
  });
  return {
    errorBody: (status, message) => {
      const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
      return JSON.stringify({ type: 'error', ...members(type, message ?? askedForStatus(status)) });
    },
    errorEvent: () =>
      messagesEvent('error', members('api_error', 'The simulator was asked for an error in the stream.')),
    contentEvent: (text) =>
      messagesEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    eventsBeforeContent: 3,
    foreign: 'chat',
  };
}
