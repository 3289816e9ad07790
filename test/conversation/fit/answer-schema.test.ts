import { isDeepStrictEqual } from 'node:util';
import { transformJSONSchema } from 'anthropic1/lib/transform-json-schema.mjs';
import { test } from 'tap';
import { fitAnswerSchema } from '../../../src/conversation/fit/answer-format.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest, OutputFormat } from '../../../src/conversation/request.js';
import { anthropicSchemas, googleSchemas, openaiSchemas } from '../../../src/protocols/schema-rules.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { fc } from '../../support/seed.js';
import { anything, fittedBy } from './rules.js';

const anthropic = { ...anything, ...anthropicSchemas };
const openai = { ...anything, ...openaiSchemas };
type SchemaFormat = Extract<OutputFormat, { readonly kind: 'schema' }>;

const withSchema = (schema: JsonObject, strict: boolean | null = null): ConversationRequest => ({
  ...plain,
  format: { kind: 'schema', name: null, description: null, schema, strict },
});

function fitted(
  rules: typeof anthropic,
  schema: JsonObject,
  { strict = null, leftOut = new LeftOut() }: { strict?: boolean | null; leftOut?: LeftOut } = {},
): SchemaFormat {
  const { format } = fittedBy(fitAnswerSchema, withSchema(schema, strict), rules, target, leftOut).request;
  if (format?.kind !== 'schema') throw new Error('It stays a schema.');
  return format;
}

const closed = (schema: JsonObject, leftOut = new LeftOut()) => fitted(anthropic, schema, { leftOut }).schema;
const open = { type: 'object', properties: {} };
const shut = { ...open, additionalProperties: false };
const text = { type: 'string' };

test('each object in a schema for messages says that it has no other members', async (t) => {
  t.strictSame(
    closed({
      type: ['object', 'null'],
      properties: { a: open, b: { type: 'array', items: open }, c: { anyOf: [open, { type: 'null' }] } },
      $defs: { d: { allOf: [{ $ref: '#/$defs/e' }, open] }, e: { properties: { type: { type: 'string' } } } },
      default: { type: 'object', properties: {} },
    }),
    {
      type: ['object', 'null'],
      properties: { a: shut, b: { type: 'array', items: shut }, c: { anyOf: [shut, { type: 'null' }] } },
      $defs: {
        d: { allOf: [{ $ref: '#/$defs/e' }, shut] },
        e: { properties: { type: { type: 'string' } }, additionalProperties: false },
      },
      default: { type: 'object', properties: {} },
      additionalProperties: false,
    },
  );
});

test('where a schema allowed other members, that is said to be left out', async (t) => {
  const leftOut = new LeftOut();
  t.strictSame(closed({ ...open, additionalProperties: { type: 'string' } }, leftOut), shut);
  t.strictSame(leftOut.names, ['additionalProperties']);
});

test('what messages models are not held to is told in the description, and named', async (t) => {
  const leftOut = new LeftOut();
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      age: { type: 'integer', minimum: 18, maximum: 99, description: 'In years.' },
      tags: { type: 'array', items: { ...text, pattern: '^(?!x)' }, minItems: 2 },
      one: { type: 'array', items: text, minItems: 1 },
      at: { ...text, format: 'date-time' },
      color: { ...text, format: 'color' },
      either: { oneOf: [text, { type: 'null' }] },
      other: { $ref: '#/$defs/other', description: 'told elsewhere' },
      words: { type: 'array', not: { type: 'array', not: { const: 1 } } },
    },
    required: ['age'],
    $defs: { other: { ...text, maxLength: 3 } },
  };
  t.strictSame(closed(schema, leftOut), {
    type: 'object',
    properties: {
      age: { type: 'integer', description: 'In years.\n\n{minimum: 18, maximum: 99}' },
      tags: {
        type: 'array',
        items: { ...text, description: '{pattern: "^(?!x)"}' },
        description: '{minItems: 2}',
      },
      one: { type: 'array', items: text, minItems: 1 },
      at: { ...text, format: 'date-time' },
      color: { ...text, description: '{format: "color"}' },
      either: { anyOf: [text, { type: 'null' }] },
      other: { $ref: '#/$defs/other' },
      words: { type: 'array', description: '{not: {"type":"array","not":{"const":1}}}' },
    },
    required: ['age'],
    $defs: { other: { ...text, description: '{maxLength: 3}' } },
    additionalProperties: false,
  });
  t.strictSame([...leftOut.names].sort(), [
    'format',
    'maxLength',
    'maximum',
    'minItems',
    'minimum',
    'not',
    'oneOf',
    'pattern',
  ]);
});

test('OpenAI models are held to bounds; look-around and unknown formats are told, where strictness is asked for', async (t) => {
  const leftOut = new LeftOut();
  const schema = {
    type: 'object',
    properties: {
      age: { type: 'integer', minimum: 18 },
      name: { ...text, pattern: '^[A-Z]' },
      code: { ...text, pattern: '^(?=A)' },
      url: { ...text, format: 'uri' },
      either: { oneOf: [text, { type: 'null' }] },
    },
    required: ['age', 'name', 'code', 'url', 'either'],
  };
  const { age, name } = schema.properties;
  t.strictSame(fitted(openai, schema, { strict: true, leftOut }), {
    kind: 'schema',
    name: null,
    description: null,
    strict: true,
    schema: {
      type: 'object',
      properties: {
        age,
        name,
        code: { ...text, description: '{pattern: "^(?=A)"}' },
        url: { ...text, description: '{format: "uri"}' },
        either: { anyOf: [text, { type: 'null' }] },
      },
      required: schema.required,
      additionalProperties: false,
    },
  });
  t.strictSame([...leftOut.names].sort(), ['format', 'oneOf', 'pattern']);
  for (const strict of [null, false]) {
    const lenient = new LeftOut();
    t.equal(fitted(openai, schema, { strict, leftOut: lenient }).schema, schema);
    t.strictSame(lenient.names, []);
  }
});

test('a schema of which OpenAI could make no strict one is sent whole, and not as a strict one', async (t) => {
  for (const schema of [
    { type: 'object', properties: { a: text }, required: [] },
    { type: 'object', additionalProperties: text },
    { type: 'object', properties: { a: { not: text, pattern: '(?=a)' } }, required: ['a'] },
  ]) {
    const leftOut = new LeftOut();
    const format = fitted(openai, schema, { strict: true, leftOut });
    t.equal(format.schema, schema);
    t.equal(format.strict, null);
    t.strictSame(leftOut.names, ['strict']);
  }
});

test('a schema to which Anthropic cannot hold a model stands in the instructions', async (t) => {
  const names = Array.from({ length: 25 }, (_each, index) => `m${index}`);
  for (const schema of [
    { type: 'object', properties: { a: { $ref: '#' } } },
    { type: 'object', properties: { a: { type: 'object', additionalProperties: text } } },
    { type: 'object', properties: Object.fromEntries(names.map((name) => [name, text])) },
  ]) {
    const leftOut = new LeftOut();
    const { request } = fittedBy(fitAnswerSchema, withSchema(schema), anthropic, target, leftOut);
    t.strictSame(request.format, { kind: 'object' });
    t.ok(request.system.at(-1)?.endsWith(JSON.stringify(schema)));
    t.strictSame(leftOut.names, ['strict']);
  }
});

test('for OpenAI members that may be null are required, and lengths are told', async (t) => {
  const either = { anyOf: [text, { type: 'null' }] };
  const other = { type: ['string', 'null'], minLength: 2 };
  const schema = { type: 'object', properties: { a: text, either, other }, required: ['a'] };
  t.strictSame(fitted(openai, schema, { strict: true }).schema, {
    ...schema,
    properties: { a: text, either, other: { type: other.type, description: '{minLength: 2}' } },
    required: ['a', 'either', 'other'],
    additionalProperties: false,
  });
});

test('all of one schema is any of it, so that nothing stands beside a reference', async (t) => {
  const schema = (a: JsonObject) => ({ ...shut, properties: { a }, required: ['a'], $defs: { b: text } });
  for (const rules of [anthropic, openai])
    t.strictSame(
      fitted(rules, schema({ allOf: [{ $ref: '#/$defs/b' }], title: 'A' }), { strict: true }).schema,
      schema({ anyOf: [{ $ref: '#/$defs/b' }], title: 'A' }),
    );
});

test('a client of messages has its answers held to their schema elsewhere, and untouched at home', async (t) => {
  const own = { ...withSchema({ ...open, minProperties: 1 }), from: 'messages' as const };
  const { format } = fittedBy(fitAnswerSchema, own, openai, target, new LeftOut()).request;
  t.match(format, { strict: true, schema: { ...shut, description: '{minProperties: 1}' } });
  const home = { ...anthropic, protocol: 'messages' as const };
  t.equal(fittedBy(fitAnswerSchema, own, home, target, new LeftOut()).request, own);
});

test('requests without such a schema stay what they are', async (t) => {
  const given = withSchema(open, true);
  const google = { ...anything, ...googleSchemas };
  t.equal(fittedBy(fitAnswerSchema, given, google, target, new LeftOut()).request, given);
  t.equal(fittedBy(fitAnswerSchema, plain, anthropic, target, new LeftOut()).request, plain);
});

test('a member that a client calls __proto__ stays what it is', async (t) => {
  const schema = JSON.parse('{"type":"object","properties":{"__proto__":{}}}') as JsonObject;
  t.equal(
    JSON.stringify(closed(schema)),
    `${JSON.stringify(schema).slice(0, -1)},"additionalProperties":false}`,
  );
});

const bounds = fc.record(
  {
    minimum: fc.integer(),
    minLength: fc.nat(),
    pattern: fc.constantFrom('^a$', '(?!b)'),
    format: fc.constantFrom('email', 'uri', 'color'),
    minItems: fc.nat(3),
    uniqueItems: fc.boolean(),
    description: fc.string(),
  },
  { requiredKeys: [] },
);
const { schema: anySchema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .record({ type: fc.constantFrom('string', 'number', 'boolean', 'null') })
      .chain((type) => bounds.map((more) => ({ ...type, ...more }))),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc
      .dictionary(fc.stringMatching(/^[a-z]{1,4}$/), tie('schema'), { maxKeys: 3 })
      .map((properties) => ({ type: 'object', properties, required: Object.keys(properties) })),
  ),
}));

/** A schema with the descriptions left out, and formats, which the SDK drops where the type is no text. */
const structure = (schema: unknown): unknown =>
  JSON.parse(
    JSON.stringify(schema, (name, value) =>
      name === 'description' || name === 'format' || name === 'minItems' ? undefined : value,
    ),
  );

test('a schema for messages has the structure that the vendor’s own SDK gives it', async () => {
  fc.assert(
    fc.property(anySchema, (schema) =>
      isDeepStrictEqual(structure(closed(schema)), structure(transformJSONSchema(schema))),
    ),
  );
});

test('a schema grows by what it tells and no more, however deep', async (t) => {
  let schema: JsonObject = text;
  for (let depth = 0; depth < 200; depth++)
    schema = {
      type: 'object',
      properties: { a: schema },
      required: ['a'],
      not: { type: 'array', not: schema === text ? text : {} },
    };
  const before = JSON.stringify(schema).length;
  t.ok(JSON.stringify(closed(schema)).length < 2 * before);
  let inner: JsonObject = text;
  for (let depth = 0; depth < 200; depth++) inner = { not: inner };
  t.ok(JSON.stringify(closed({ type: 'array', not: inner })).length < 3 * JSON.stringify(inner).length);
});
