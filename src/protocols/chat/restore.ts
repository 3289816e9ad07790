import { carryingMark, withBareId } from '../../conversation/carrying-id.js';
import { tokenIn, tokenMarks } from '../../conversation/signature.js';
import { changedObjects, type JsonObject } from '../../wire/json.js';
import { signatureBeside } from './carried.js';

/** Of tokens in ids or beside calls; see `Translation.carriedMarks`. */
export const carriedMarks = [carryingMark, ...tokenMarks];

/**
 * Makes a body fit for an upstream of this protocol; see `Translation.restore`. Ids of calls lose the signatures that
 * other upstreams gave them: the vendors bound their length.
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
