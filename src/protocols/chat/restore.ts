import { carryingMark, withoutOwnTokens } from '../../conversation/carrying-id.js';
import { tokenIn, tokenMarks } from '../../conversation/signature.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { signatureBeside } from './carried.js';

const marks = [carryingMark, ...tokenMarks];

/** Tokens in ids or beside calls; see `Translation.mayCarry`. */
export function mayCarry(body: Buffer): boolean {
  return marks.some((mark) => body.includes(mark));
}

/**
 * Makes a body fit for an upstream of this protocol; see `Translation.restore`. Ids of calls lose the signatures that
 * other upstreams gave them: the vendors bound their length.
 */
export function restore(body: JsonObject): JsonObject | null {
  if (!Array.isArray(body.messages)) return null;
  let isChanged = false;
  const messages = body.messages.map((message: unknown) => {
    const restored = isObject(message) ? restoreMessage(message) : message;
    isChanged ||= restored !== message;
    return restored;
  });
  return isChanged ? { ...body, messages } : null;
}

function restoreMessage(message: JsonObject): JsonObject {
  const { tool_call_id: answered, tool_calls: calls } = message;
  let restored = message;
  if (typeof answered === 'string' && withoutOwnTokens(answered) !== answered)
    restored = { ...restored, tool_call_id: withoutOwnTokens(answered) };
  if (!Array.isArray(calls)) return restored;
  const own = calls.map((call: unknown) => (isObject(call) ? restoreCall(call) : call));
  return own.some((call, index) => call !== calls[index]) ? { ...restored, tool_calls: own } : restored;
}

function restoreCall(call: JsonObject): JsonObject {
  const { extra_content: _, ...rest } = call;
  const carried = signatureBeside(call);
  const isOurs = carried !== null && tokenIn(carried) !== null;
  const id = typeof call.id === 'string' ? withoutOwnTokens(call.id) : call.id;
  if (!isOurs && id === call.id) return call;
  return { ...(isOurs ? rest : call), ...(id === undefined ? {} : { id }) };
}
