import { parseJson } from './json.js';
import { chatReader } from './read-chat.js';
import { generateContentReader } from './read-generate-content.js';
import { messagesReader } from './read-messages.js';
import { responsesReader } from './read-responses.js';
import type { AnswerReader, TextAnswer } from './text-answer.js';
import type { TextProtocol } from './text-request.js';

const readers: Readonly<Record<TextProtocol, AnswerReader>> = {
  chat: chatReader,
  responses: responsesReader,
  messages: messagesReader,
  generateContent: generateContentReader,
};

/**
 * Adds an event of a stream to an answer.
 * @param data of the event; what is no JSON, such as `[DONE]`, adds nothing
 */
export function addEvent(protocol: TextProtocol, answer: TextAnswer, data: string): void {
  const value = parseJson(data);
  if (value !== undefined) readers[protocol].event(answer, value);
}

/**
 * Adds a whole answer.
 * @param body text of the body
 * @returns false when it is no JSON
 */
export function addWhole(protocol: TextProtocol, answer: TextAnswer, body: string): boolean {
  const value = parseJson(body);
  if (value !== undefined) readers[protocol].whole(answer, value);
  return value !== undefined;
}
