import type { JsonObject } from '../../wire/json.js';
import type { RequestRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest, OutputFormat, Tool } from '../request.js';
import type { Fitted } from './fitted.js';
import { mapSchemas } from './schema.js';

const member = 'additionalProperties';

/**
 * The messages API holds answers and strict tools to a schema only where each object in it says that it has no other
 * members (https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations").
 */
export function fitClosedSchemas(
  request: ConversationRequest,
  { closedSchemas }: RequestRules,
  _target: TargetOptions,
  leftOut: LeftOut,
): Fitted | null {
  const { format, tools } = request;
  if (!closedSchemas || (format?.kind !== 'schema' && !tools.some(isStrict))) return null;
  return {
    request: {
      ...request,
      format: closedFormat(format, leftOut),
      tools: tools.map((tool) =>
        isStrict(tool) ? { ...tool, parameters: closed(tool.parameters, leftOut) } : tool,
      ),
    },
    restorer: null,
  };
}

function isStrict(tool: Tool): tool is Tool & { readonly parameters: JsonObject } {
  return tool.strict === true && tool.parameters !== null;
}

function closedFormat(format: OutputFormat | null, leftOut: LeftOut): OutputFormat | null {
  return format?.kind === 'schema' ? { ...format, schema: closed(format.schema, leftOut) } : format;
}

function closed(schema: JsonObject, leftOut: LeftOut): JsonObject {
  return mapSchemas(schema, (each) => {
    if (!isOfObject(each) || each[member] === false) return each;
    if (each[member] !== undefined) leftOut.add(member);
    return { ...each, [member]: false };
  });
}

function isOfObject({ type, properties }: JsonObject): boolean {
  if (type === undefined) return properties !== undefined;
  return type === 'object' || (Array.isArray(type) && type.includes('object'));
}
