import type { JsonObject } from '../wire/json.js';
import { type TextProtocolName, textProtocols } from './request.js';

/** How the events of a protocol are known. */
interface EventMarks {
  /** How their types begin. */
  readonly types: readonly string[];
  /** What their `object` is. */
  readonly objects: readonly unknown[];
  /** Members at the top of those that have no types. */
  readonly members: readonly string[];
}

const marks: Readonly<Record<TextProtocolName, EventMarks>> = {
  responses: { types: ['response.'], objects: [], members: [] },
  messages: { types: ['message_', 'content_block_'], objects: [], members: [] },
  chat: { types: [], objects: ['chat.completion.chunk', 'text_completion'], members: ['choices'] },
  generateContent: { types: [], objects: [], members: ['candidates', 'promptFeedback', 'usageMetadata'] },
};

/**
 * Whether an event is one of a server's own, which no protocol has: it says nothing of the answer, while an event of
 * another protocol says that the stream is not what was asked for. One without a type is none, nor is what may be an
 * error in words of the server's own: those are looked into.
 * @param type its `type`, or its name where it has none
 * @param body its parsed data
 */
export function isServersOwn(type: string | null, body: JsonObject): boolean {
  if (type === null || body.object === 'error' || type.toLowerCase().includes('error')) return false;
  return protocolOfEvent(type, body) === null;
}

/**
 * The protocol that an event of a stream is known to be of.
 * @param type its `type`, or its name where it has none
 * @param body its parsed data
 * @returns null for an event that is not known; `chat` stands for the older completions, too
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
