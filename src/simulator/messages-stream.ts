import { type AnswerBlock, answerBlocks, ending, messagesUsage } from './messages-answer.js';
import { messagesEvent } from './messages-manner.js';
import type { MessagesRequest } from './messages-request.js';
import type { Answer } from './prompt.js';
import type { Step } from './reply.js';
import { countTokens, pieces, words } from './tokens.js';

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
