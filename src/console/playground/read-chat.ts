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

/** Reads the first choice of chat completions. */
export const chatReader: AnswerReader = {
  event(answer, data) {
    const chunk = objectOf(data);
    readCommon(answer, chunk);
    const choice = objectOf(listOf(chunk.choices)[0]);
    readMessage(answer, choice, objectOf(choice.delta));
  },
  whole(answer, body) {
    const completion = objectOf(body);
    readCommon(answer, completion);
    const choice = objectOf(listOf(completion.choices)[0]);
    readMessage(answer, choice, objectOf(choice.message));
  },
};

type Members = Readonly<Record<string, unknown>>;

function readCommon(answer: TextAnswer, { usage, error }: Members): void {
  if (isObject(usage)) answer.tokens = openAiTokens(usage, { input: 'prompt', output: 'completion' });
  if (isObject(error)) answer.error = textOf(error.message) || 'The stream broke off with an error.';
}

/** A delta and a message have the same members. */
function readMessage(answer: TextAnswer, choice: Members, message: Members): void {
  addReasoning(answer, message.reasoning_content ?? message.reasoning);
  addText(answer, message.content);
  addText(answer, message.refusal);
  listOf(message.tool_calls).forEach((each, position) => {
    const piece = objectOf(each);
    const called = objectOf(piece.function ?? piece.custom);
    const call = callOf(answer, `${piece.index ?? position}`);
    nameCall(call, piece.id, called.name);
    addArguments(call, called.arguments ?? called.input);
  });
  if (typeof choice.finish_reason === 'string') answer.finish = choice.finish_reason;
}
