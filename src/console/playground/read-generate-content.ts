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

/** Reads the first candidate of generateContent's answers, whose events have the form of whole answers. */
export const generateContentReader: AnswerReader = { event: read, whole: read };

function read(answer: TextAnswer, data: unknown): void {
  const { candidates, usageMetadata, promptFeedback, error } = objectOf(data);
  const candidate = objectOf(listOf(candidates)[0]);
  for (const each of listOf(objectOf(candidate.content).parts)) {
    const part = objectOf(each);
    if (part.thought === true) addReasoning(answer, part.text);
    else addText(answer, part.text);
    if (isObject(part.functionCall)) {
      const { id, name, args } = part.functionCall;
      const call = callOf(answer, `${answer.calls.length}`);
      nameCall(call, id, name);
      addArguments(call, JSON.stringify(args ?? {}));
    }
  }
  answer.finish =
    textOf(candidate.finishReason) || textOf(objectOf(promptFeedback).blockReason) || answer.finish;
  if (isObject(error)) answer.error = textOf(error.message) || 'The stream broke off with an error.';
  if (!isObject(usageMetadata)) return;
  const thoughts = numberOf(usageMetadata.thoughtsTokenCount);
  answer.tokens = {
    input: numberOf(usageMetadata.promptTokenCount) + numberOf(usageMetadata.toolUsePromptTokenCount),
    output: numberOf(usageMetadata.candidatesTokenCount) + thoughts,
    cached: numberOf(usageMetadata.cachedContentTokenCount),
    reasoning: thoughts,
  };
}
