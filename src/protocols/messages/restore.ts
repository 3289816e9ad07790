import { untagSignature } from '../../conversation/signature.js';
import { isList, isObject, type JsonObject } from '../../wire/json.js';

/**
 * Makes a body fit for an upstream of this protocol; see `Translation.restore`. A thinking block with a token gets the
 * signature that is in it, or becomes the encrypted block that it stands for; another vendor's is left out, and so is
 * a message of the assistant that had nothing else.
 */
export function restore(body: JsonObject): JsonObject | null {
  const messages = changed(body.messages, restoreMessage);
  return messages === null ? null : { ...body, messages };
}

/**
 * @param change gives an entry as it is to be, the same one where nothing is to do, or null to leave it out
 * @returns the list with what was changed, or null for one without change, or what is no list
 */
function changed(list: unknown, change: (entry: JsonObject) => JsonObject | null): unknown[] | null {
  if (!isList(list)) return null;
  const entries: unknown[] = [];
  let isChanged = false;
  for (const entry of list) {
    const next = isObject(entry) ? change(entry) : entry;
    isChanged ||= next !== entry;
    if (next !== null || entry === null) entries.push(next);
  }
  return isChanged ? entries : null;
}

function restoreMessage(message: JsonObject): JsonObject | null {
  const content = changed(message.content, restoreBlock);
  if (content === null) return message;
  return content.length === 0 ? null : { ...message, content };
}

function restoreBlock(block: JsonObject): JsonObject | null {
  const isRedacted = block.type === 'redacted_thinking';
  if (block.type !== 'thinking' && !isRedacted) return block;
  const token = isRedacted ? block.data : block.signature;
  const signature = typeof token === 'string' ? untagSignature(token) : null;
  if (signature === null) return block;
  const { protocol, value, redacted } = signature;
  if (protocol !== 'messages') return null;
  if (redacted) return { type: 'redacted_thinking', data: value };
  return isRedacted ? null : { ...block, signature: value };
}
