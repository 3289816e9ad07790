import type { RequestRules } from '../conversation/codec.js';

/* What vendors accept as schemas of a tool's arguments and of an answer. */

type SchemaRules = Pick<RequestRules, 'toolRoot' | 'strictTools' | 'answerSchema'>;

/** Keywords that neither vendor enforces. */
const notHeldTo = [
  ...['oneOf', 'allOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'],
  ...['patternProperties', 'propertyNames', 'minProperties', 'maxProperties', 'unevaluatedProperties'],
  ...['prefixItems', 'contains', 'minContains', 'maxContains', 'uniqueItems', 'unevaluatedItems'],
];
const { POSITIVE_INFINITY: unlimited } = Number;

/** Keywords that both enforce in an answer. Composition is tried, and may fail. */
const answerKeywords = [
  ...['type', 'enum', 'const', 'anyOf', 'allOf', '$ref', '$defs', 'definitions', 'description', 'title'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'format'],
];
const formats = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'];
/** Look-around and back-references of a regular expression. */
const lookaround = /\(\?<?[=!]|\\[1-9k]/;
/** "look-around, including look-ahead and look-behind, is not supported" (the regex library behind it). */
const isPlain = (pattern: string): boolean => !lookaround.test(pattern);

/**
 * https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". The root is refused where a tool is
 * not strict, too: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top
 * level" (https://github.com/langchain-ai/langchainjs/issues/9804).
 */
export const openaiSchemas: SchemaRules = {
  toolRoot: ['anyOf', 'oneOf', 'allOf', 'enum', 'const', 'not'],
  strictTools: {
    typed: true,
    recursion: true,
    refused: new Set(notHeldTo),
    mostMinItems: unlimited,
    formats: new Set(formats),
    pattern: isPlain,
    most: { tools: unlimited, optional: 0, unions: unlimited },
  },
  answerSchema: {
    onlyStrict: true,
    keywords: new Set([
      ...answerKeywords,
      ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'maxItems'],
    ]),
    formats: new Set(formats),
    pattern: isPlain,
    mostMinItems: unlimited,
  },
};

/**
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations". The root: "input_schema
 * does not support oneOf, allOf, or anyOf at the top level" (https://github.com/anthropics/claude-code/issues/5973).
 */
export const anthropicSchemas: SchemaRules = {
  toolRoot: ['anyOf', 'oneOf', 'allOf'],
  strictTools: {
    typed: false,
    recursion: false,
    refused: new Set([
      ...notHeldTo,
      ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
      ...['minLength', 'maxLength', 'maxItems'],
    ]),
    mostMinItems: 1,
    formats: new Set([...formats, 'uri']),
    pattern: isPlain,
    most: { tools: 20, optional: 24, unions: 16 },
  },
  // As the vendor's own SDK changes them (`transformJSONSchema`).
  answerSchema: {
    onlyStrict: false,
    keywords: new Set([...answerKeywords, 'default']),
    formats: new Set([...formats, 'uri']),
    pattern: () => false,
    mostMinItems: 1,
  },
};

/**
 * https://ai.google.dev/api/caching#FunctionDeclaration: the schema is one of an object, whose properties are the
 * parameters. Vertex AI refuses any other schema, and any keyword beside a choice.
 */
export const googleSchemas: SchemaRules = {
  toolRoot: ['anyOf', 'oneOf', 'allOf'],
  strictTools: null,
  answerSchema: null,
};
