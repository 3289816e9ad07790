import type { Answer } from '../answer/prompt.js';
import { seal } from '../answer/seal.js';
import { clip } from '../answer/tokens.js';
import { findDirective } from '../faults/directives.js';
import { isObject } from '../http/json.js';
import type { MessagesRequest } from './request.js';

/** A block of an answer; `json` is the text of a call's input, which may be cut or empty. */
export type AnswerBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly json: string };

/** The blocks of an answer in the order in which they stand. */
export function answerBlocks(asked: MessagesRequest, answer: Answer): readonly AnswerBlock[] {
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

/** A block as it stands in an answer that is not streamed. */
export function wholeBlock(block: AnswerBlock): object {
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

/** A call's input; an empty object where its text is cut or empty. */
function inputOf(json: string): object {
  try {
    const input: unknown = JSON.parse(json);
    return isObject(input) ? input : {};
  } catch {
    return {};
  }
}

/** How an answer ended: `stop_reason` and what belongs to it. */
export function ending(answer: Answer): object {
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

/** The `usage` of an answer, once `output` tokens of it are there. */
export function messagesUsage(asked: MessagesRequest, answer: Answer, output: number): object {
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
