import { isList, isObject, type JsonObject, listOf } from '../../wire/json.js';
import type { AnswerSchemaRules, RequestRules, StrictRules, TargetOptions } from '../codec.js';
import type { LeftOut } from '../left-out.js';
import type { ConversationRequest } from '../request.js';
import { leaveOut } from '../setting-names.js';
import type { Fitted } from './fitted.js';
import { allowsObject } from './schema.js';
import { strictSchema, without } from './strict-tools.js';

/**
 * A model is held to the schema of an answer, and each vendor refuses some of what a schema can say. As the vendors' own
 * SDKs do, that is told in the description of the value in its place, and objects are closed. Where a strict schema is
 * refused all the same, it is sent as one that is not: the model is told all of it, and the client checks what it says.
 */
export function fitAnswerSchema(
  request: ConversationRequest,
  { answerSchema: rules, strictTools }: RequestRules,
  _target: TargetOptions,
  leftOut: LeftOut,
): Fitted | null {
  const { format } = request;
  if (rules === null || format?.kind !== 'schema') return null;
  if (rules.onlyStrict && format.strict !== true) return null;
  const told: string[] = [];
  const schema = strictly(telling(format.schema, rules, told), rules, strictTools);
  if (schema === null) {
    leaveOut(request, 'strict', leftOut);
    return { request: { ...request, format: { ...format, strict: null } }, restorer: null };
  }
  for (const name of told) leftOut.add(name);
  return { request: { ...request, format: { ...format, schema } }, restorer: null };
}

/** @returns null for a schema that cannot be a strict one */
function strictly(
  schema: JsonObject,
  { onlyStrict }: AnswerSchemaRules,
  strict: StrictRules | null,
): JsonObject | null {
  if (!onlyStrict || strict === null) return schema;
  const found = strictSchema(schema, strict);
  return found === null || without(strict.most, found.counts) === null ? null : found.schema;
}

/** They say nothing of a value. */
const annotations: ReadonlySet<string> = new Set(['$schema', '$id', '$comment']);
/** Members whose values are schemas by names. */
const named: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
const closing = 'additionalProperties';

/**
 * A schema in which the descriptions tell what its keywords may not. From the outside in, so that what is told is told
 * once, as the client wrote it, and the schema grows by no more than its own length.
 * @param told takes the names of keywords that were told
 */
function telling(schema: JsonObject, rules: AnswerSchemaRules, told: string[]): JsonObject {
  const kept: [string, unknown][] = [];
  const words: string[] = [];
  const isReference = typeof schema.$ref === 'string';
  for (const [name, value] of Object.entries(schema)) {
    if (annotations.has(name)) continue;
    // A reference stands alone: both vendors refuse words beside it.
    if (isReference && name !== '$ref' && name !== '$defs' && name !== 'definitions') continue;
    if (name === 'oneOf' && schema.anyOf === undefined && isList(value)) {
      told.push(name);
      kept.push(['anyOf', tellingEach(value, rules, told)]);
    } else if (!isHeld(name, value, rules)) {
      told.push(name);
      words.push(`${name}: ${JSON.stringify(value)}`);
    } else kept.push([name, within(name, value, rules, told)]);
  }
  // Not by assignment: a client may call a member `__proto__`.
  const fitted: JsonObject = Object.fromEntries(kept);
  const said = typeof fitted.description === 'string' ? `${fitted.description}\n\n` : '';
  const described = words.length === 0 ? fitted : { ...fitted, description: `${said}{${words.join(', ')}}` };
  return rules.onlyStrict || isReference ? described : closed(described, told);
}

function within(name: string, value: unknown, rules: AnswerSchemaRules, told: string[]): unknown {
  if (name === 'anyOf' || name === 'allOf') return tellingEach(listOf(value), rules, told);
  if (!isObject(value)) return value;
  if (name === 'items') return telling(value, rules, told);
  if (!named.has(name)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([each, inner]) => [each, tellingOne(inner, rules, told)]),
  );
}

function tellingEach(schemas: readonly unknown[], rules: AnswerSchemaRules, told: string[]): unknown[] {
  return schemas.map((each) => tellingOne(each, rules, told));
}

function tellingOne(schema: unknown, rules: AnswerSchemaRules, told: string[]): unknown {
  return isObject(schema) ? telling(schema, rules, told) : schema;
}

/** Whether a model can be held to what a keyword says. */
function isHeld(
  name: string,
  value: unknown,
  { keywords, formats, pattern, mostMinItems }: AnswerSchemaRules,
): boolean {
  if (name === 'format') return typeof value === 'string' && formats.has(value);
  if (name === 'pattern') return typeof value === 'string' && pattern(value);
  if (name === 'minItems') return typeof value === 'number' && value <= mostMinItems;
  if (name === 'enum') return listOf(value).every((each) => !isObject(each) && !isList(each));
  return keywords === null || keywords.has(name);
}

function closed(schema: JsonObject, told: string[]): JsonObject {
  if (!allowsObject(schema) || schema[closing] === false) return schema;
  if (schema[closing] !== undefined) told.push(closing);
  return { ...schema, [closing]: false };
}
