import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import { tokenIn, tokenMarks } from '../../conversation/signature.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { signatureBeside } from './carried.js';

/** Of tokens in ids or beside calls; see `Translation.carriedMarks`. */
export const carriedMarks = [carryingMark, ...tokenMarks];

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
  const restored = withBareId(message, 'tool_call_id');
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return restored;
  const own = calls.map((call: unknown) => (isObject(call) ? restoreCall(call) : call));
  return own.some((call, index) => call !== calls[index]) ? { ...restored, tool_calls: own } : restored;
}

function restoreCall(call: JsonObject): JsonObject {
  const restored = withBareId(call, 'id');
  const carried = signatureBeside(call);
  if (carried === null || tokenIn(carried) === null) return restored;
  const { extra_content: _, ...rest } = restored;
  return rest;
}
