import { isObject, listOf, objectOf, textOf } from './json.js';
import {
  type AnswerReader,
  addArguments,
  addReasoning,
  addText,
  callOf,
  nameCall,
  openAiTokens,
  type TextAnswer,
} from './text-answer.js';

/** Reads answers of the responses protocol. Text is read from deltas; events that repeat it in full are ignored. */
export const responsesReader: AnswerReader = {
  event(answer, data) {
    const event = objectOf(data);
    switch (event.type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        addText(answer, event.delta);
        break;
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        addReasoning(answer, event.delta);
        break;
      case 'response.output_item.added': {
        const item = objectOf(event.item);
        if (isCall(item)) nameCall(callOf(answer, `${event.output_index}`), item.call_id, item.name);
        break;
      }
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        addArguments(callOf(answer, `${event.output_index}`), event.delta);
        break;
      case 'response.output_item.done':
        readUnsaid(answer, event);
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        readEnd(answer, objectOf(event.response));
        break;
      case 'error':
        answer.error =
          textOf(event.message) ||
          textOf(objectOf(event.error).message) ||
          'The stream broke off with an error.';
        break;
    }
  },
  whole(answer, body) {
    const response = objectOf(body);
    listOf(response.output).forEach((item, index) => {
      readItem(answer, objectOf(item), `${index}`);
    });
    readEnd(answer, response);
  },
};

type Members = Readonly<Record<string, unknown>>;

function isCall({ type }: Members): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}

/** Reads the arguments of a call from its last event, since some upstreams send them only there. */
function readUnsaid(answer: TextAnswer, { item, output_index: index }: Members): void {
  const said = objectOf(item);
  if (!isCall(said)) return;
  const call = callOf(answer, `${index}`);
  nameCall(call, said.call_id, said.name);
  if (call?.arguments === '') addArguments(call, said.arguments ?? said.input);
}

function readItem(answer: TextAnswer, item: Members, key: string): void {
  if (isCall(item)) {
    const call = callOf(answer, key);
    nameCall(call, item.call_id, item.name);
    addArguments(call, item.arguments ?? item.input);
  }
  const add = item.type === 'reasoning' ? addReasoning : addText;
  for (const part of [...listOf(item.summary), ...listOf(item.content)]) {
    add(answer, objectOf(part).text);
    add(answer, objectOf(part).refusal);
  }
}

function readEnd(answer: TextAnswer, response: Members): void {
  const { usage, status, error, incomplete_details: why } = response;
  if (isObject(usage)) answer.tokens = openAiTokens(usage, { input: 'input', output: 'output' });
  answer.finish = textOf(objectOf(why).reason) || textOf(status) || answer.finish;
  if (isObject(error)) answer.error = textOf(error.message) || 'The response failed.';
}
