import { isObject, listOf, numberOf, objectOf, textOf } from './json.js';
import {
  type AnswerReader,
  addArguments,
  addReasoning,
  addText,
  callOf,
  nameCall,
  type TextAnswer,
} from './text-answer.js';

/** Reads answers of the messages protocol. */
export const messagesReader: AnswerReader = {
  event(answer, data) {
    const event = objectOf(data);
    switch (event.type) {
      case 'message_start':
        readUsage(answer, objectOf(event.message).usage);
        break;
      case 'content_block_start':
        readBlock(answer, objectOf(event.content_block), `${event.index}`, false);
        break;
      case 'content_block_delta': {
        const delta = objectOf(event.delta);
        addText(answer, delta.text);
        addReasoning(answer, delta.thinking);
        if (delta.type === 'input_json_delta')
          addArguments(callOf(answer, `${event.index}`), delta.partial_json);
        break;
      }
      case 'message_delta':
        answer.finish = textOf(objectOf(event.delta).stop_reason) || answer.finish;
        readUsage(answer, event.usage);
        break;
      case 'error':
        answer.error = textOf(objectOf(event.error).message) || 'The stream broke off with an error.';
        break;
    }
  },
  whole(answer, body) {
    const message = objectOf(body);
    listOf(message.content).forEach((block, index) => {
      readBlock(answer, objectOf(block), `${index}`, true);
    });
    answer.finish = textOf(message.stop_reason) || null;
    readUsage(answer, message.usage);
  },
};

type Members = Readonly<Record<string, unknown>>;

/** @param isWhole whether the block is complete; in a stream, the input of a call is empty here and follows in deltas */
function readBlock(answer: TextAnswer, block: Members, key: string, isWhole: boolean): void {
  addText(answer, block.text);
  addReasoning(answer, block.thinking);
  if (block.type !== 'tool_use') return;
  const call = callOf(answer, key);
  nameCall(call, block.id, block.name);
  if (isWhole) addArguments(call, JSON.stringify(block.input ?? {}));
}

/** Each report replaces the members of earlier ones that it has. Its `input_tokens` exclude cached tokens. */
function readUsage(answer: TextAnswer, usage: unknown): void {
  if (!isObject(usage)) return;
  const before = answer.tokens ?? { input: 0, output: 0, cached: 0, reasoning: 0 };
  const cached = numberOf(usage.cache_read_input_tokens);
  const isInputSaid = typeof usage.input_tokens === 'number';
  const input = numberOf(usage.input_tokens) + cached + numberOf(usage.cache_creation_input_tokens);
  answer.tokens = {
    input: isInputSaid ? input : before.input,
    output: typeof usage.output_tokens === 'number' ? usage.output_tokens : before.output,
    cached: isInputSaid ? cached : before.cached,
    reasoning: numberOf(objectOf(usage.output_tokens_details).thinking_tokens) || before.reasoning,
  };
}
