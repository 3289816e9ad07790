import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import { tokenIn, tokenMarks } from '../../conversation/signature.js';
import { changedObjects, type JsonObject } from '../../wire/json.js';
import { signatureBeside } from './carried.js';

/** Marks of tokens in ids or beside calls; see `Translation.carriedMarks`. */
export const carriedMarks = [carryingMark, ...tokenMarks];

/**
 * Prepares a body for an upstream of this protocol; see `Translation.restore`. Removes the signatures of other
 * upstreams from the ids of calls, since vendors limit the length of ids.
 */
export function restore(body: JsonObject): JsonObject | null {
  const messages = changedObjects(body.messages, restoreMessage);
  return messages === null ? null : { ...body, messages };
}

function restoreMessage(message: JsonObject): JsonObject {
  const restored = withBareId(message, 'tool_call_id');
  const calls = changedObjects(message.tool_calls, restoreCall);
  return calls === null ? restored : { ...restored, tool_calls: calls };
}

function restoreCall(call: JsonObject): JsonObject {
  const restored = withBareId(call, 'id');
  const carried = signatureBeside(call);
  if (carried === null || tokenIn(carried) === null) return restored;
  const { extra_content: _, ...rest } = restored;
  return rest;
}
