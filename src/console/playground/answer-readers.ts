import { readEvents, type StreamEvent } from '../sse.js';
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
 * @param data data of the event; anything but JSON, such as `[DONE]`, is ignored
 */
export function addEvent(protocol: TextProtocol, answer: TextAnswer, data: string): void {
  const value = parseJson(data);
  if (value !== undefined) readers[protocol].event(answer, value);
}

/**
 * Adds the events of a stream as they arrive. An error event ends it, whether the connection then ends regularly or
 * breaks.
 * @param onEvent called with each event after it was added
 * @throws the error that breaks the stream before an error event
 */
export async function readStream(
  protocol: TextProtocol,
  answer: TextAnswer,
  body: ReadableStream<Uint8Array>,
  onEvent: (event: StreamEvent) => void,
): Promise<void> {
  try {
    for await (const event of readEvents(body)) {
      addEvent(protocol, answer, event.data);
      onEvent(event);
    }
  } catch (fault) {
    if (answer.error === null) throw fault;
  }
}

/**
 * Adds a whole answer.
 * @param body text of the body
 * @returns false if it is not JSON
 */
export function addWhole(protocol: TextProtocol, answer: TextAnswer, body: string): boolean {
  const value = parseJson(body);
  if (value !== undefined) readers[protocol].whole(answer, value);
  return value !== undefined;
}
