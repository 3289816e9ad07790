import type { JsonObject } from '../wire/json.js';
import { type TextProtocolName, textProtocols } from './request.js';

/** What identifies the events of a protocol. */
interface EventMarks {
  /** Prefixes of their types. */
  readonly types: readonly string[];
  /** Values of their `object`. */
  readonly objects: readonly unknown[];
  /** Top-level members of events without a type. */
  readonly members: readonly string[];
}

const marks: Readonly<Record<TextProtocolName, EventMarks>> = {
  responses: { types: ['response.'], objects: [], members: [] },
  messages: { types: ['message_', 'content_block_'], objects: [], members: [] },
  chat: { types: [], objects: ['chat.completion.chunk', 'text_completion'], members: ['choices'] },
  generateContent: { types: [], objects: [], members: ['candidates', 'promptFeedback', 'usageMetadata'] },
};

/**
 * Returns whether an event is a server's own addition that no protocol has. Such an event says nothing about the
 * answer, while an event of another protocol shows that the stream is not the requested one. Events without a type, and
 * those that may be errors in the server's own words, do not count as additions: they are inspected.
 * @param type its `type`, or its name if it has no type
 * @param body its parsed data
 */
export function isServersOwn(type: string | null, body: JsonObject): boolean {
  if (type === null || body.object === 'error' || isErrorName(type)) return false;
  if ('code' in body && typeof body.message === 'string') return false;
  return protocolOfEvent(type, body) === null;
}

/** Whether the name or type of an event is that of an error. */
export function isErrorName(name: string): boolean {
  return name.toLowerCase().includes('error');
}

const signsOfLife = /^(?:ping|pong|heart[-_ ]?beat|keep[-_ ]?alive)$/i;

/**
 * Returns whether an event whose data is not a JSON object is only a server's sign of life: it has no data, or its name or its
 * data is that of one. Other words may be an error, and so are any under the name of one.
 * @param event its name
 */
export function isSignOfLife(event: string | null, data: string): boolean {
  const text = data.trim();
  if (text === '' || event === null) return text === '' || signsOfLife.test(text);
  return !isErrorName(event) && (signsOfLife.test(text) || signsOfLife.test(event));
}

/**
 * Returns the protocol to which an event of a stream belongs.
 * @param type its `type`, or its name if it has no type
 * @param body its parsed data
 * @returns null for an unknown event; `chat` also for the older completions
 */
export function protocolOfEvent(type: string | null, body: JsonObject): TextProtocolName | null {
  for (const protocol of textProtocols)
    for (const begin of marks[protocol].types) if (type?.startsWith(begin)) return protocol;
  for (const protocol of textProtocols) {
    const { objects, members } = marks[protocol];
    if (objects.includes(body.object)) return protocol;
    for (const member of members) if (member in body) return protocol;
  }
  return null;
}
