import { isList, isObject, type JsonObject, listOf } from '../../wire/json.js';
import type { Answer, AnswerPart, StreamEvent } from '../answer.js';
import { clientTraitsOf } from '../client-traits.js';
import type { AnswerSchemaRules, StrictRules } from '../codec.js';
import type { ConversationRequest, OutputFormat, Turn } from '../request.js';
import { isSetByClient, leaveOut } from '../setting-names.js';
import type { AnswerRestorer, FitContext, Fitted } from './fitted.js';
import { type MemberReader, MemberText, MemberValue } from './member-reader.js';
import { allowsObject, mapSchemas } from './schema.js';
import { strictSchema, without } from './strict-tools.js';

/*
 * The requested format of an answer: its schema, the type at the root of the schema, and JSON objects without a schema.
 */

type SchemaFormat = Extract<OutputFormat, { readonly kind: 'schema' }>;

/**
 * Vendors constrain a model to the schema of an answer, and each refuses some keywords. As in the vendors' own SDKs,
 * such keywords are moved into the description of their value, and objects are closed. If a schema would be refused
 * nevertheless, the model is given all of it, in a schema that is not strict or in the instructions, and the client
 * validates the answer. Clients of the target's own protocol write what its vendor accepts.
 */
export function fitAnswerSchema(
  request: ConversationRequest,
  { rules: { protocol, answerSchema: rules, strictTools }, leftOut }: FitContext,
): Fitted | null {
  const { format } = request;
  if (rules === null || format?.kind !== 'schema' || request.from === protocol) return null;
  if (rules.onlyStrict && !(format.strict ?? clientTraitsOf(request).strictAnswers)) return null;
  const moved: string[] = [];
  const schema = asStrict(moveKeywords(format.schema, rules, moved), rules, strictTools);
  if (schema === null) {
    leaveOut(request, 'strict', leftOut);
    if (rules.onlyStrict)
      return { request: { ...request, format: { ...format, strict: null } }, restorer: null };
    if (isSetByClient(request, 'formatDescription')) leaveOut(request, 'formatDescription', leftOut);
    return { request: instructed(request, format.schema), restorer: null };
  }
  for (const name of moved) leftOut.add(name);
  const strict = rules.onlyStrict ? true : format.strict;
  return { request: { ...request, format: { ...format, schema, strict } }, restorer: null };
}

function instructed(request: ConversationRequest, schema: JsonObject): ConversationRequest {
  const words = `The JSON object has to fit this JSON Schema:\n${JSON.stringify(schema)}`;
  return { ...request, system: [...request.system, words], format: { kind: 'object' } };
}

const nothing: ReadonlySet<string> = new Set();

/** @returns null for a schema that cannot be made strict */
function asStrict(
  schema: JsonObject,
  { onlyStrict }: AnswerSchemaRules,
  strict: StrictRules | null,
): JsonObject | null {
  if (strict === null) return schema;
  // If every schema is enforced, only allowed keywords are left in it.
  const found = strictSchema(schema, onlyStrict ? strict : { ...strict, refused: nothing });
  return found === null || without(strict.most, found.counts) === null ? null : found.schema;
}

/** Keywords that do not describe a value. */
const annotations: ReadonlySet<string> = new Set(['$schema', '$id', '$comment']);
/** Keywords whose values are schemas by name. */
const named: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
const closing = 'additionalProperties';

/**
 * Moves keywords that are not allowed into descriptions. Works from the outside in, so that each is moved once, as the
 * client wrote it, and the schema grows by at most its own length.
 * @param moved receives the names of the keywords that were moved
 */
function moveKeywords(schema: JsonObject, rules: AnswerSchemaRules, moved: string[]): JsonObject {
  const kept: [string, unknown][] = [];
  const words: string[] = [];
  const isReference = typeof schema.$ref === 'string';
  for (const [name, value] of Object.entries(schema)) {
    if (annotations.has(name)) continue;
    // A reference stays alone: both vendors refuse keywords beside it.
    if (isReference && name !== '$ref' && name !== '$defs' && name !== 'definitions') continue;
    if (isAnyOf(name, value, schema)) {
      if (name === 'oneOf') moved.push(name);
      kept.push(['anyOf', moveKeywordsOfEach(value, rules, moved)]);
    } else if (!isAllowed(name, value, rules)) {
      moved.push(name);
      words.push(`${name}: ${JSON.stringify(value)}`);
    } else kept.push([name, within(name, value, rules, moved)]);
  }
  // Not by assignment: a client's property may be named `__proto__`.
  const fitted: JsonObject = Object.fromEntries(kept);
  const said = typeof fitted.description === 'string' ? `${fitted.description}\n\n` : '';
  const described = words.length === 0 ? fitted : { ...fitted, description: `${said}{${words.join(', ')}}` };
  if (isReference) return described;
  return rules.onlyStrict ? withNullable(described) : closed(described, moved);
}

/**
 * Returns whether a keyword can be written as `anyOf`: `oneOf` is the closest that a vendor can enforce, as is `allOf`
 * with one schema.
 */
function isAnyOf(name: string, value: unknown, { anyOf, oneOf }: JsonObject): value is readonly unknown[] {
  if (!isList(value) || anyOf !== undefined) return false;
  return name === 'oneOf' || (name === 'allOf' && value.length === 1 && oneOf === undefined);
}

/**
 * Makes properties required, as OpenAI demands: those that may be null can be required (`toStrictJsonSchema` of
 * `openai`). For the others, the model would have to invent a value.
 */
function withNullable(schema: JsonObject): JsonObject {
  const { properties, required } = schema;
  if (!isObject(properties)) return schema;
  const names = new Set(listOf(required));
  const count = names.size;
  for (const [name, each] of Object.entries(properties)) if (isNullable(each)) names.add(name);
  return names.size === count ? schema : { ...schema, required: [...names] };
}

function isNullable(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { type, anyOf, enum: values } = schema;
  if (isList(values) && !values.includes(null)) return false;
  return [type, ...listOf(anyOf).map((each) => (isObject(each) ? each.type : null))].some(
    (each) => each === 'null' || (isList(each) && each.includes('null')),
  );
}

function within(name: string, value: unknown, rules: AnswerSchemaRules, moved: string[]): unknown {
  if (name === 'anyOf' || name === 'allOf') return moveKeywordsOfEach(listOf(value), rules, moved);
  if (!isObject(value)) return value;
  if (name === 'items') return moveKeywords(value, rules, moved);
  if (!named.has(name)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([each, inner]) => [each, moveKeywordsOf(inner, rules, moved)]),
  );
}

function moveKeywordsOfEach(
  schemas: readonly unknown[],
  rules: AnswerSchemaRules,
  moved: string[],
): unknown[] {
  return schemas.map((each) => moveKeywordsOf(each, rules, moved));
}

function moveKeywordsOf(schema: unknown, rules: AnswerSchemaRules, moved: string[]): unknown {
  return isObject(schema) ? moveKeywords(schema, rules, moved) : schema;
}

/** Returns whether a model can be constrained by a keyword. */
function isAllowed(
  name: string,
  value: unknown,
  { keywords, formats, pattern, mostMinItems }: AnswerSchemaRules,
): boolean {
  if (name === 'format') return typeof value === 'string' && formats.has(value);
  if (name === 'pattern') return typeof value === 'string' && pattern(value);
  if (name === 'minItems') return typeof value === 'number' && value <= mostMinItems;
  if (name === 'enum') return listOf(value).every((each) => !isObject(each) && !isList(each));
  return keywords.has(name);
}

function closed(schema: JsonObject, moved: string[]): JsonObject {
  if (!allowsObject(schema) || schema[closing] === false) return schema;
  // A closed object without properties would have to be empty.
  if (schema[closing] !== undefined && schema.properties === undefined) return schema;
  if (schema[closing] !== undefined) moved.push(closing);
  return { ...schema, [closing]: false };
}

/** Property of the object that wraps another value. */
const member = 'value';
/** Keywords with definitions, which stay at the root because references name their path. */
const shared = ['$defs', 'definitions'] as const;

/**
 * The root of an answer's schema may have any type for generateContent, but must be an object for the other protocols
 * (https://platform.openai.com/docs/guides/structured-outputs, "Root objects must not be anyOf and must be an object").
 * Any other value is requested as a property of an object, and extracted from the answer.
 */
export function fitOutputRoot(
  request: ConversationRequest,
  { rules: { outputRoot } }: FitContext,
): Fitted | null {
  const { format } = request;
  if (outputRoot === 'any' || format?.kind !== 'schema' || isOfObject(format.schema)) return null;
  return {
    request: { ...request, format: wrapped(format) },
    restorer: new MemberTaker(format.bare === true),
  };
}

/** A schema without a type is left to the vendor. */
function isOfObject({
  type,
  anyOf,
  oneOf,
  allOf,
  enum: values,
  const: value,
  items,
  $ref,
}: JsonObject): boolean {
  if (type !== undefined) return type === 'object';
  return [anyOf, oneOf, allOf, values, value, items, $ref].every((each) => each === undefined);
}

function wrapped(format: SchemaFormat): SchemaFormat {
  const { $schema: _dialect, $defs, definitions, ...schema } = mapSchemas(format.schema, withMovedRef);
  return {
    ...format,
    schema: {
      type: 'object',
      properties: { [member]: schema },
      required: [member],
      additionalProperties: false,
      ...($defs === undefined ? {} : { $defs }),
      ...(definitions === undefined ? {} : { definitions }),
    },
  };
}

function withMovedRef(schema: JsonObject): JsonObject {
  const { $ref } = schema;
  if (typeof $ref !== 'string' || ($ref !== '#' && !$ref.startsWith('#/'))) return schema;
  if (shared.some((name) => $ref.startsWith(`#/${name}/`))) return schema;
  return { ...schema, $ref: `#/properties/${member}${$ref.slice(1)}` };
}

/** Extracts the value from its object. */
class MemberTaker implements AnswerRestorer {
  readonly changesText = true;
  readonly #isBare: boolean;
  /** By index of the choice. */
  readonly #readers = new Map<number, MemberReader>();

  /** @param isBare the value is a word that the client expects without quotes */
  constructor(isBare: boolean) {
    this.#isBare = isBare;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'text') {
      let reader = this.#readers.get(event.choice);
      if (reader === undefined) {
        reader = this.#reader();
        this.#readers.set(event.choice, reader);
      }
      const text = reader.add(event.text);
      if (text !== '') out.push({ ...event, text });
      return;
    }
    if (event.kind === 'finish') {
      const rest = this.#readers.get(event.choice)?.end() ?? '';
      if (rest !== '') out.push({ kind: 'text', choice: event.choice, text: rest });
    }
    out.push(event);
  }

  answer(answer: Answer): Answer {
    return {
      ...answer,
      choices: answer.choices.map((choice) => ({ ...choice, parts: this.#taken(choice.parts) })),
    };
  }

  #taken(parts: readonly AnswerPart[]): AnswerPart[] {
    const reader = this.#reader();
    const last = parts.findLastIndex(({ kind }) => kind === 'text');
    return parts.map((part, index) => {
      if (part.kind !== 'text') return part;
      return { ...part, text: reader.add(part.text) + (index === last ? reader.end() : '') };
    });
  }

  #reader(): MemberReader {
    return this.#isBare ? new MemberText(member) : new MemberValue(member);
  }
}

const instruction = 'Answer with a single valid JSON object.';
const word = /json/i;

/**
 * OpenAI refuses to answer with any JSON object unless a message contains the word JSON. In the responses protocol, the
 * instructions do not count (https://platform.openai.com/docs/guides/structured-outputs#json-mode). Other vendors have
 * no such rule. Only messages up to the user's first turn are searched, so that a conversation's next turn begins with
 * the same bytes.
 */
export function fitJsonWord(request: ConversationRequest, { rules }: FitContext): Fitted | null {
  if (rules.jsonWord === null || request.format?.kind !== 'object') return null;
  // Clients of the vendor's own protocol receive the vendor's own error.
  if (request.from === rules.protocol) return null;
  const { system, turns } = request;
  if (rules.jsonWord === 'anywhere') {
    const isSaid = system.some((text) => word.test(text)) || isSaidFirst(turns);
    return isSaid ? null : { request: { ...request, system: [...system, instruction] }, restorer: null };
  }
  if (isSaidFirst(turns)) return null;
  return {
    request: { ...request, turns: [{ role: 'system', text: instruction }, ...turns] },
    restorer: null,
  };
}

function isSaidFirst(turns: readonly Turn[]): boolean {
  for (const turn of turns) {
    const texts = turn.role === 'system' ? [turn] : turn.parts;
    if (texts.some((part) => 'text' in part && word.test(part.text))) return true;
    if (turn.role === 'user') return false;
  }
  return false;
}
