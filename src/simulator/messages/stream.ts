import type { Answer } from '../answer/prompt.js';
import { countTokens, pieces, words } from '../answer/tokens.js';
import type { AnswerFormat, Step } from '../http/reply.js';
import { type AnswerBlock, answerBlocks, ending, messagesUsage } from './answer.js';
import type { MessagesRequest } from './request.js';

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
function messagesEvent(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

/** How the messages protocol words errors and events. */
export function messagesFormat(requestId: string | null): AnswerFormat {
  const members = (type: string, message: string, code?: string | null): object => ({
    error: {
      type,
      message,
      ...(code?.startsWith('thread_') === true ? { details: { error_code: code } } : {}),
    },
    request_id: requestId,
  });
  return {
    errorBody: ({ status, message, code }) => {
      const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
      return JSON.stringify({ type: 'error', ...members(type, message, code) });
    },
    errorEvent: () =>
      messagesEvent('error', members('api_error', 'The simulator was asked for an error in the stream.')),
    contentEvent: (text) =>
      messagesEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    eventsBeforeContent: 3,
    foreign: 'chat',
  };
}

const jsonPiece = 12;

/** The events of a streamed message: its head, a ping, block after block, how it ended, its end. */
export function* messagesEvents(head: object, asked: MessagesRequest, answer: Answer): Generator<Step> {
  const message = {
    ...head,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: messagesUsage(asked, answer, 1),
  };
  yield event('message_start', { message });
  yield event('ping', {});
  for (const [index, block] of answerBlocks(asked, answer).entries()) {
    yield event('content_block_start', { index, content_block: opening(block) });
    for (const { delta, text } of deltas(block, answer)) {
      yield event('content_block_delta', { index, delta }, countTokens(text));
    }
    yield event('content_block_stop', { index });
  }
  const usage = messagesUsage(asked, answer, answer.outputTokens);
  yield event('message_delta', { delta: ending(answer), usage });
  yield event('message_stop', {});
}

function event(type: string, members: object, tokens = 0): Step {
  return { kind: 'data', bytes: messagesEvent(type, members), tokens };
}

function opening(block: AnswerBlock): object {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'redacted_thinking':
      return block;
    case 'text':
      return { type: 'text', text: '' };
    case 'tool_use': {
      const { type, id, name } = block;
      return { type, id, name, input: {}, caller: { type: 'direct' } };
    }
  }
}

interface Delta {
  readonly delta: object;
  /** What it brings of the answer's text. */
  readonly text: string;
}

function* deltas(block: AnswerBlock, answer: Answer): Generator<Delta> {
  switch (block.type) {
    case 'thinking':
      for (const thinking of words(block.thinking)) {
        yield { delta: { type: 'thinking_delta', thinking }, text: thinking };
      }
      yield { delta: { type: 'signature_delta', signature: block.signature }, text: '' };
      return;
    case 'redacted_thinking':
      return;
    case 'text':
      for (const text of words(block.text)) {
        yield { delta: { type: 'text_delta', text }, text };
      }
      return;
    case 'tool_use':
      for (const json of jsonPieces(block.json, answer)) {
        yield { delta: { type: 'input_json_delta', partial_json: json }, text: json };
      }
  }
}

/** An input begins with an empty piece, as the protocol's own server has it; an empty one has none. */
function jsonPieces(json: string, answer: Answer): readonly string[] {
  if (json === '') {
    return [];
  }
  return answer.callDelivery === 'at-once' ? [json] : ['', ...pieces(json, jsonPiece)];
}
