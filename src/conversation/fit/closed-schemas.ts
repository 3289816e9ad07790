import type { JsonObject } from '../../wire/json.js';
import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest } from '../request.js';
import type { Fitted } from './fitted.js';
import { allowsObject, mapSchemas } from './schema.js';

const member = 'additionalProperties';

/**
 * The messages API holds answers to a schema only where each object in it says that it has no other members
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations").
 */
export function fitClosedSchemas(
  request: ConversationRequest,
  { closedSchemas }: RequestRules,
  _target: TargetOptions,
  leftOut: LeftOut,
): Fitted | null {
  const { format } = request;
  if (!closedSchemas || format?.kind !== 'schema') return null;
  const schema = closed(format.schema, leftOut);
  return { request: { ...request, format: { ...format, schema } }, restorer: null };
}

function closed(schema: JsonObject, leftOut: LeftOut): JsonObject {
  return mapSchemas(schema, (each) => {
    if (!allowsObject(each) || each[member] === false) return each;
    if (each[member] !== undefined) leftOut.add(member);
    return { ...each, [member]: false };
  });
}
