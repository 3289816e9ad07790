import { composeAnswer } from '../answer/answer.js';
import type { Answer } from '../answer/prompt.js';
import { seal } from '../answer/seal.js';
import { clip, countTokens, pieces, words } from '../answer/tokens.js';
import { findDirective } from '../faults/directives.js';
import { isObject } from '../http/json.js';
import { type AnswerFormat, type Reply, type Route, type Step, streamReply } from '../http/reply.js';
import { type JsonRequest, jsonReply, jsonRoutes } from '../http/route.js';
import { type MessagesRequest, readMessagesRequest } from './request.js';

/** The routes of the messages protocol. */
export const messagesRoutes: readonly Route[] = [
  ...routesOf('/v1/messages', create),
  ...routesOf('/v1/messages/count_tokens', count),
];

function routesOf(path: string, answer: (request: JsonRequest) => Reply): Route[] {
  return jsonRoutes({
    path,
    answerFormat: (digest) => messagesFormat(requestId(digest)),
    headers: (digest) => ({ 'request-id': requestId(digest) }),
    answer,
  });
}

function requestId(digest: string): string {
  return `req_${digest.slice(0, 24)}`;
}

function create(request: JsonRequest): Reply {
  const { answerFormat, digest } = request;
  const asked = readMessagesRequest(request, 'message');
  const answer = composeAnswer(asked.prompt, 0);
  const { directives } = asked.prompt;
  const head = { id: `msg_${digest.slice(0, 24)}`, type: 'message', role: 'assistant', model: asked.model };
  if (asked.stream) {
    return streamReply({ events: messagesEvents(head, asked, answer), answerFormat, directives });
  }
  return jsonReply(
    { answerFormat, directives },
    {
      ...head,
      content: answerBlocks(asked, answer).map(wholeBlock),
      ...ending(answer),
      usage: messagesUsage(asked, answer, answer.outputTokens),
    },
  );
}

function count(request: JsonRequest): Reply {
  const { directives, inputTokens } = readMessagesRequest(request, 'count').prompt;
  return jsonReply({ answerFormat: request.answerFormat, directives }, { input_tokens: inputTokens });
}

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

/** The answer format of the messages protocol. */
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

/** The events of a streamed message: its head, a ping, its blocks, the stop reason, and its end. */
function* messagesEvents(head: object, asked: MessagesRequest, answer: Answer): Generator<Step> {
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
  /** The part of the answer's text in it. */
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

/** The pieces of an input, starting with an empty one as on the real server; an empty input has none. */
function jsonPieces(json: string, answer: Answer): readonly string[] {
  if (json === '') {
    return [];
  }
  return answer.callDelivery === 'at-once' ? [json] : ['', ...pieces(json, jsonPiece)];
}

/** A block of an answer; `json` is the text of a call's input, possibly cut or empty. */
type AnswerBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly json: string };

/** The blocks of an answer in order. */
function answerBlocks(asked: MessagesRequest, answer: Answer): readonly AnswerBlock[] {
  const blocks: AnswerBlock[] = [];
  if (answer.reasoning !== '') {
    const thinking = asked.thinking.shown ? answer.reasoning : '';
    blocks.push({ type: 'thinking', thinking, signature: seal('thinking', answer.reasoning) });
  }
  if (findDirective(asked.prompt.directives, 'redacted') !== undefined) {
    const data = seal('redacted thinking', clip(asked.prompt.plainText, 200));
    blocks.push({ type: 'redacted_thinking', data });
  }
  const text = answer.text + answer.refusal;
  if (text !== '') {
    blocks.push({ type: 'text', text });
  }
  for (const { id, name, input } of answer.calls) {
    blocks.push({ type: 'tool_use', id: id.replace('call_', 'toolu_'), name, json: input });
  }
  return blocks;
}

/** A block in the form of an answer without streaming. */
function wholeBlock(block: AnswerBlock): object {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, citations: null };
    case 'tool_use': {
      const { type, id, name, json } = block;
      return { type, id, name, input: inputOf(json), caller: { type: 'direct' } };
    }
    default:
      return block;
  }
}

/** A call's input; an empty object if its text is cut or empty. */
function inputOf(json: string): object {
  try {
    const input: unknown = JSON.parse(json);
    return isObject(input) ? input : {};
  } catch {
    return {};
  }
}

/** The end of an answer: `stop_reason` and related members. */
function ending(answer: Answer): object {
  const refused = answer.refusal !== '';
  return {
    stop_reason: answer.finishWord ?? stopReason(answer),
    stop_sequence: answer.stopSequence,
    stop_details: refused ? { type: 'refusal', category: null, explanation: answer.refusal } : null,
  };
}

function stopReason({ finish, refusal, stopSequence }: Answer): string {
  if (finish === 'length') {
    return 'max_tokens';
  }
  if (finish === 'tools') {
    return 'tool_use';
  }
  return refusal !== '' ? 'refusal' : stopSequence === null ? 'end_turn' : 'stop_sequence';
}

/** The `usage` of an answer after `output` tokens. */
function messagesUsage(asked: MessagesRequest, answer: Answer, output: number): object {
  return {
    input_tokens: asked.prompt.inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    output_tokens: output,
    output_tokens_details: answer.reasoning === '' ? null : { thinking_tokens: answer.reasoningTokens },
    service_tier: 'standard',
  };
}
