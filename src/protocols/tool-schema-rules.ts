import type { RequestRules } from '../conversation/codec.js';

/* What vendors take as the schema of a tool's arguments. */

type ToolSchemaRules = Pick<RequestRules, 'toolRoot' | 'strictTools'>;

/** What neither vendor holds a model to. */
const notHeldTo = [
  ...['oneOf', 'allOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'],
  ...['patternProperties', 'propertyNames', 'minProperties', 'maxProperties', 'unevaluatedProperties'],
  ...['prefixItems', 'contains', 'minContains', 'maxContains', 'uniqueItems', 'unevaluatedItems'],
];
const { POSITIVE_INFINITY: unlimited } = Number;

/**
 * https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". The root is refused where a tool is
 * not strict, too: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top
 * level" (https://github.com/langchain-ai/langchainjs/issues/9804).
 */
export const openaiToolSchemas: ToolSchemaRules = {
  toolRoot: ['anyOf', 'oneOf', 'allOf', 'enum', 'const', 'not'],
  strictTools: {
    typed: true,
    recursion: true,
    refused: new Set(notHeldTo),
    mostMinItems: unlimited,
    most: { tools: unlimited, optional: 0, unions: unlimited },
  },
};

/**
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations". The root: "input_schema
 * does not support oneOf, allOf, or anyOf at the top level" (https://github.com/anthropics/claude-code/issues/5973).
 */
export const anthropicToolSchemas: ToolSchemaRules = {
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
    most: { tools: 20, optional: 24, unions: 16 },
  },
};

/**
 * https://ai.google.dev/api/caching#FunctionDeclaration: the schema is one of an object, whose properties are the
 * parameters. Vertex AI refuses another, and anything beside a choice.
 */
export const googleToolSchemas: ToolSchemaRules = {
  toolRoot: ['anyOf', 'oneOf', 'allOf'],
  strictTools: null,
};
