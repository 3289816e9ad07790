import type { JsonObject } from '../wire/json.js';
import type { TextProtocolName } from './request.js';

/** Members that stand at the top of the events that have no types. */
const untyped: readonly (readonly [member: string, protocol: TextProtocolName])[] = [
  ['choices', 'chat'],
  ['candidates', 'generateContent'],
  ['promptFeedback', 'generateContent'],
  ['usageMetadata', 'generateContent'],
];
const chunkObjects: readonly unknown[] = ['chat.completion.chunk', 'text_completion'];

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
  if (type?.startsWith('response.')) return 'responses';
  if (type?.startsWith('message_') || type?.startsWith('content_block_')) return 'messages';
  if (chunkObjects.includes(body.object)) return 'chat';
  return untyped.find(([member]) => member in body)?.[1] ?? null;
}
