import { isObject, type JsonObject, listOf } from '../../wire/json.js';
import type { StrictCounts, StrictRules } from '../codec.js';
import type { ConversationRequest, Tool } from '../request.js';
import { leaveOut } from '../setting-names.js';
import { toolParameters } from '../tool-calls.js';
import type { FitContext, Fitted } from './fitted.js';
import { allowsObject, isRecursive, mapSchemas } from './schema.js';

/**
 * Vendors constrain a model to the schema of a strict tool, and each refuses schemas that it cannot enforce. Objects
 * that do not say whether they have additional properties are closed. If that is not enough, the tool is made
 * non-strict: the model is given its whole schema, and the client validates the arguments.
 */
export function fitStrictTools(
  request: ConversationRequest,
  { rules: { strictTools: rules }, leftOut }: FitContext,
): Fitted | null {
  if (rules === null || !request.tools.some(isStrict)) return null;
  let left = rules.most;
  const tools = request.tools.map((tool) => {
    if (!isStrict(tool)) return tool;
    const found = strictSchema(toolParameters(tool.parameters), rules);
    const rest = found === null ? null : without(left, found.counts);
    if (found === null || rest === null) {
      leaveOut(request, 'strict', leftOut);
      return { ...tool, strict: null };
    }
    left = rest;
    return { ...tool, parameters: found.schema };
  });
  return { request: { ...request, tools }, restorer: null };
}

function isStrict({ strict }: Tool): boolean {
  return strict === true;
}

/** @returns how much more a request may have beside these; null if these exceed it */
export function without(left: StrictCounts, { tools, optional, unions }: StrictCounts): StrictCounts | null {
  const rest = {
    tools: left.tools - tools,
    optional: left.optional - optional,
    unions: left.unions - unions,
  };
  return rest.tools < 0 || rest.optional < 0 || rest.unions < 0 ? null : rest;
}

interface StrictSchema {
  /** The schema with all of its objects closed. */
  readonly schema: JsonObject;
  readonly counts: StrictCounts;
}

/** @returns null for a schema that cannot be made strict */
export function strictSchema(schema: JsonObject, rules: StrictRules): StrictSchema | null {
  let isTaken = rules.recursion || !isRecursive(schema);
  let optional = 0;
  let unions = 0;
  const closed = mapSchemas(schema, (each) => {
    if (!isTaken) return each;
    isTaken = isKnown(each, rules);
    if (each.anyOf !== undefined || Array.isArray(each.type)) unions++;
    if (!allowsObject(each)) return each;
    optional += countOptional(each);
    return each.additionalProperties === false ? each : { ...each, additionalProperties: false };
  });
  return isTaken ? { schema: closed, counts: { tools: 1, optional, unions } } : null;
}

/** Keywords that determine the type of a value. */
const typing = ['type', '$ref', 'anyOf', 'enum', 'const'] as const;

function isKnown(schema: JsonObject, rules: StrictRules): boolean {
  const { refused, typed, mostMinItems, formats, pattern } = rules;
  for (const name of Object.keys(schema)) if (refused.has(name)) return false;
  if (typeof schema.minItems === 'number' && schema.minItems > mostMinItems) return false;
  if (typeof schema.format === 'string' && !formats.has(schema.format)) return false;
  if (typeof schema.pattern === 'string' && !pattern(schema.pattern)) return false;
  if (typed && typing.every((name) => schema[name] === undefined)) return false;
  const { additionalProperties: others, properties } = schema;
  // An object without any restriction may have any properties.
  return others === false || (others === undefined && (!allowsObject(schema) || properties !== undefined));
}

function countOptional({ properties, required }: JsonObject): number {
  if (!isObject(properties)) return 0;
  const wanted = new Set(listOf(required));
  return Object.keys(properties).reduce((count, name) => (wanted.has(name) ? count : count + 1), 0);
}
