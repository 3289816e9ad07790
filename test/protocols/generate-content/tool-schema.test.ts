import assert from 'node:assert/strict';
import { test } from 'tap';
import { decodeSchema } from '../../../src/protocols/generate-content/request/decode.js';
import { encodeSchema, schemaSpare } from '../../../src/protocols/generate-content/schema-encode.js';
import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { cases, fc } from '../../support/seed.js';

/** What stands for an object of which nothing is known: the API refuses one without properties. */
const anyObject = {
  type: 'OBJECT',
  properties: { _: { type: 'STRING', description: 'Unused: any other names will do.' } },
};

test('JSON Schema becomes the vendor’s, without what that does not know', async (t) => {
  t.same(
    encodeSchema({
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      title: 'T',
      description: 'd',
      properties: {
        city: { type: 'string', pattern: '^a', minLength: 1, format: 'uri', examples: ['x'] },
        when: { type: 'string', format: 'date-time', default: 'now' },
        days: { type: 'integer', minimum: 1, maximum: 7, exclusiveMinimum: 0 },
        unit: { type: ['string', 'null'], enum: ['c', 'f', null] },
        level: { type: 'integer', enum: [1, 2], description: 'Level.' },
        kind: { const: 'x' },
        list: { type: 'array', items: { type: 'number' }, maxItems: 3, uniqueItems: true },
        any: {},
        loose: { type: 'array' },
        pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] },
      },
      required: ['city', 'gone', 'city'],
      additionalProperties: false,
    }),
    {
      type: 'OBJECT',
      title: 'T',
      description: 'd',
      properties: {
        city: { type: 'STRING', pattern: '^a', minLength: '1' },
        when: { type: 'STRING', format: 'date-time', default: 'now' },
        days: { type: 'INTEGER', minimum: 1, maximum: 7 },
        unit: { type: 'STRING', nullable: true, enum: ['c', 'f'] },
        level: { type: 'INTEGER', description: 'Level. One of: 1, 2.' },
        kind: { type: 'STRING', enum: ['x'] },
        list: { type: 'ARRAY', maxItems: '3', items: { type: 'NUMBER' } },
        any: { type: 'STRING' },
        loose: { type: 'ARRAY', items: { type: 'STRING' } },
        pair: { type: 'ARRAY', items: { anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }] } },
      },
      required: ['city'],
    },
  );
});

test('a union with null is nullable, others are choices', async (t) => {
  t.same(encodeSchema({ anyOf: [{ type: 'null' }] }), { type: 'STRING', nullable: true }, 'no empty choice');
  t.same(encodeSchema({ anyOf: [{ type: 'string' }, { type: 'null' }], description: 'd', default: null }), {
    type: 'STRING',
    description: 'd',
    nullable: true,
  });
  t.same(
    encodeSchema({ oneOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }], description: 'd' }),
    {
      anyOf: [
        { type: 'STRING', nullable: true, description: 'd' },
        { type: 'INTEGER', nullable: true },
      ],
    },
  );
  t.same(encodeSchema({ type: ['string', 'number'], description: 'd' }), {
    anyOf: [{ type: 'STRING', description: 'd' }, { type: 'NUMBER' }],
  });
  const properties = { a: { type: 'string' }, b: { type: 'string' } };
  t.same(
    encodeSchema({ type: 'object', properties, anyOf: [{ required: ['a'] }, { required: ['b'] }] }),
    { type: 'OBJECT', properties: { a: { type: 'STRING' }, b: { type: 'STRING' } } },
    'which of its properties are there is not for the model to know',
  );
  t.match(encodeSchema({ properties, anyOf: [{ properties: { c: {} } }, { properties: { d: {} } }] }), {
    type: 'OBJECT',
    properties: { a: {}, b: {} },
    anyOf: [{ properties: { c: {} } }, { properties: { d: {} } }],
  });
  t.same(
    encodeSchema({
      allOf: [{ $ref: '#/$defs/a' }, { required: ['b'], properties: { b: {} } }],
      $defs: { a: { required: ['a'], properties } },
    }),
    {
      type: 'OBJECT',
      properties: { a: { type: 'STRING' }, b: { type: 'STRING' } },
      required: ['a', 'b'],
    },
  );
});

test('references are put in their place, and a cycle becomes any object', async (t) => {
  t.same(
    encodeSchema({
      type: 'object',
      properties: {
        a: { $ref: '#/$defs/a~1b', description: 'here' },
        tree: { $ref: '#/definitions/tree' },
        gone: { $ref: '#/$defs/gone' },
        far: { $ref: 'https://a/schema' },
        self: { $ref: '#' },
      },
      $defs: { 'a/b': { type: 'string', description: 'there' } },
      definitions: {
        tree: {
          type: 'object',
          properties: { left: { $ref: '#/definitions/tree' }, value: { type: 'number' } },
        },
      },
    })?.properties,
    {
      a: { type: 'STRING', description: 'here' },
      tree: { type: 'OBJECT', properties: { left: anyObject, value: { type: 'NUMBER' } } },
      gone: anyObject,
      far: anyObject,
      self: {
        type: 'OBJECT',
        properties: {
          a: { type: 'STRING', description: 'here' },
          tree: { type: 'OBJECT', properties: { left: anyObject, value: { type: 'NUMBER' } } },
          gone: anyObject,
          far: anyObject,
          self: anyObject,
        },
      },
    },
  );
});

test('a schema that stands for a huge one stays small', async (t) => {
  const $defs: Record<string, object> = { d0: { type: 'string', description: 'x'.repeat(10_000) } };
  for (let n = 1; n < 40; n++) {
    const $ref = `#/$defs/d${n - 1}`;
    $defs[`d${n}`] = { type: 'object', properties: { a: { $ref }, b: { $ref } } };
  }
  const schema = { $ref: '#/$defs/d39', $defs };
  t.ok(JSON.stringify(encodeSchema(schema)).length < 2_500_000);
  const a = { properties: { child: { allOf: [{ $ref: '#/$defs/a' }] } } };
  t.same(encodeSchema({ allOf: [{ $ref: '#/$defs/a' }], $defs: { a } }), {
    type: 'OBJECT',
    properties: { child: anyObject },
  });
  const chain = Array.from({ length: 20_000 }, (_, n) => [`d${n}`, { items: { $ref: `#/$defs/d${n + 1}` } }]);
  t.ok(
    JSON.stringify(encodeSchema({ $ref: '#/$defs/d0', $defs: Object.fromEntries(chain) })).length < 10_000,
  );
});

test('an object of which nothing is known', async (t) => {
  for (const given of [
    {},
    { type: 'object' },
    { type: 'object', properties: {}, description: 'd' },
    { type: 'object', additionalProperties: { type: 'string' } },
    { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
    { $ref: '#' },
    { allOf: [{ type: 'object' }] },
  ])
    t.equal(encodeSchema(given), null, `as the root it is left out: ${JSON.stringify(given)}`);
  t.same(
    encodeSchema({
      properties: {
        a: { type: 'object', description: 'd' },
        b: { type: 'object', properties: {} },
        c: { additionalProperties: true },
        d: { type: ['object', 'null'] },
        e: false,
        list: { type: 'array', items: { type: 'object' } },
        either: { anyOf: [{ type: 'object' }, { type: 'string' }] },
        rest: { type: 'object', properties: {}, anyOf: [{ type: 'string' }, { type: 'number' }] },
      },
    })?.properties,
    {
      a: { ...anyObject, description: 'd' },
      b: anyObject,
      c: anyObject,
      d: { ...anyObject, nullable: true },
      e: anyObject,
      list: { type: 'ARRAY', items: anyObject },
      either: { anyOf: [anyObject, { type: 'STRING' }] },
      rest: { anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }] },
    },
  );
  t.same(
    encodeSchema({
      properties: {
        any: true,
        some: { description: 'd' },
        list: { type: 'array', items: true },
        loose: { type: 'array', items: {} },
        fixed: { const: { a: 1 } },
      },
    })?.properties,
    {
      any: { type: 'STRING' },
      some: { type: 'STRING', description: 'd' },
      list: { type: 'ARRAY', items: { type: 'STRING' } },
      loose: { type: 'ARRAY', items: { type: 'STRING' } },
      fixed: { ...anyObject, description: 'One of: {"a":1}.' },
    },
    'a value of any type may be a text',
  );
});

test('schemas that hold together are merged in one go', async (t) => {
  t.same(
    encodeSchema({
      description: 'base',
      properties: { a: { type: 'string' } },
      allOf: [
        { allOf: [{ $ref: '#/$defs/b' }, { properties: { a: { type: 'number' } }, required: ['c'] }] },
        { $ref: '#/$defs/b', description: 'other' },
        { properties: { __proto__: {}, c: {} }, required: 'c' },
      ],
      $defs: { b: { properties: { b: { $ref: '#/$defs/b' } }, required: ['b', 'a'] } },
    }),
    {
      type: 'OBJECT',
      description: 'base',
      properties: { a: { type: 'STRING' }, b: anyObject, c: { type: 'STRING' } },
      required: ['b', 'a', 'c'],
    },
  );
  // 200 000 properties: to copy what was merged so far for each part would take minutes.
  const allOf = Array.from({ length: 9_000 }, (_, part) => {
    const names = Array.from({ length: 20 }, (_, number) => `p${part}_${number}`);
    return { properties: Object.fromEntries(names.map((name) => [name, true])), required: names };
  });
  const merged = encodeSchema({ allOf });
  t.equal(Object.keys(merged?.properties as object).length, 180_000);
  t.equal((merged as { required: unknown[] }).required.length, 180_000);
});

test('a schema that is used over and over is not worked on forever', async (t) => {
  // Each use copies, joins or sorts out 50 000 names: 10 000 uses would take minutes.
  const names = Array.from({ length: 50_000 }, (_, number) => `p${number}`);
  const $defs = {
    keys: { type: 'string', ...Object.fromEntries(names.map((name) => [name, 0])) },
    required: { type: 'object', properties: { a: {} }, required: names },
    types: { type: names },
    branches: { anyOf: [{ type: 'object', properties: { b: {} } }], properties: { a: {} }, oneOf: names },
    path: { $ref: `#/${'a/'.repeat(50_000)}` },
  };
  for (const name of Object.keys($defs)) {
    const uses = Array.from({ length: 10_000 }, () => ({ $ref: `#/$defs/${name}` }));
    t.ok(encodeSchema({ type: 'object', properties: Object.fromEntries(Object.entries(uses)), $defs }));
    encodeSchema({ allOf: uses, $defs });
  }
});

test('the vendor’s schema becomes JSON Schema', async (t) => {
  t.same(
    decodeSchema({
      type: 'OBJECT',
      properties: {
        type: { type: 'STRING', nullable: true, enum: ['a'], max_length: '5' },
        list: { type: 'ARRAY', items: { type: 'INTEGER', format: 'int32' }, minItems: '1', maxItems: 2 },
        either: { anyOf: [{ type: 'STRING' }, { type: 'NUMBER' }], nullable: true },
        plain: { any_of: [{ type: 'TYPE_UNSPECIFIED' }], example: 1, description: null },
        map: { type: 'OBJECT', additionalProperties: { type: 'STRING', format: 'enum', enum: ['a'] } },
        maps: { type: 'OBJECT', additional_properties: { type: 'OBJECT', additionalProperties: false } },
      },
      required: ['type'],
      propertyOrdering: ['type', 'list'],
    }),
    {
      type: 'object',
      properties: {
        type: { type: ['string', 'null'], enum: ['a', null], maxLength: 5 },
        list: { type: 'array', items: { type: 'integer', format: 'int32' }, minItems: 1, maxItems: 2 },
        either: { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }] },
        plain: { anyOf: [{}] },
        map: { type: 'object', additionalProperties: { type: 'string', enum: ['a'] } },
        maps: { type: 'object', additionalProperties: { type: 'object', additionalProperties: false } },
      },
      required: ['type'],
    },
  );
});

const propertyName = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.constantFrom('__proto__', 'type', 'items', '$ref', 'anyOf'),
);
const type = fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'object', 'array');
const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.record(
      { type, description: fc.string(), enum: fc.array(fc.jsonValue({ maxDepth: 0 })) },
      { requiredKeys: [] },
    ),
    fc
      .dictionary(propertyName, tie('schema'), { maxKeys: 4 })
      .map((properties) => ({ type: 'object', properties, required: Object.keys(properties) })),
    tie('schema').map((items) => ({ type: 'array', items })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((oneOf) => ({ oneOf, description: 'd' })),
  ),
}));

/** Names of properties at any depth, with the paths of the objects that they are in. */
function namesIn(value: unknown, names = new Set<string>()): Set<string> {
  if (!isObject(value)) return names;
  if (isObject(value.properties)) {
    for (const [name, inner] of Object.entries(value.properties)) {
      // Stands for the names of an object that has none.
      if (name !== '_') names.add(name);
      namesIn(inner, names);
    }
  }
  namesIn(value.items, names);
  for (const branches of [value.anyOf, value.oneOf])
    if (Array.isArray(branches)) for (const branch of branches) namesIn(branch, names);
  return names;
}

test('a schema keeps the names of all properties, both ways', async () => {
  fc.assert(
    fc.property(schema, (given) => {
      const encoded = encodeSchema(given);
      assert.deepEqual([...namesIn(encoded)].toSorted(), [...namesIn(given)].toSorted());
      if (encoded === null) return;
      assert.deepEqual([...namesIn(decodeSchema(encoded))].toSorted(), [...namesIn(given)].toSorted());
    }),
  );
});

const keyword = fc.constantFrom(
  'type',
  'properties',
  'items',
  'anyOf',
  'oneOf',
  'allOf',
  'enum',
  'const',
  '$ref',
  '$defs',
  'required',
  'description',
  'nullable',
  'minItems',
  'format',
  'prefixItems',
  'any_of',
  'a',
);
const { anything } = fc.letrec<{ anything: unknown }>((tie) => ({
  anything: fc.oneof(
    { maxDepth: 4 },
    fc.jsonValue({ maxDepth: 1 }),
    type,
    fc.constantFrom('#', '#/$defs/a', '#/properties/a', '#/allOf/0', '#/%'),
    fc.array(tie('anything'), { maxLength: 3 }),
    fc.dictionary(keyword, tie('anything'), { maxKeys: 5 }),
  ),
}));

test('whatever is called a schema is converted to something, both ways', async () => {
  fc.assert(
    fc.property(fc.dictionary(keyword, anything, { maxKeys: 6 }), (given) => {
      JSON.stringify(encodeSchema(given));
      JSON.stringify(decodeSchema(given));
    }),
    { numRuns: cases(500) },
  );
});

test('tools whose references stand for more than they say share what they may grow by', async (t) => {
  const choices = Array.from({ length: 13 }, (_, level) => {
    const next = { $ref: `#/$defs/d${level + 1}` };
    return [`d${level}`, { anyOf: [next, next] }] as const;
  });
  const parameters = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/d0' } },
    $defs: { ...Object.fromEntries(choices), d13: { type: 'string' } },
  };
  const spare = schemaSpare();
  const lengths = Array.from({ length: 50 }, () => JSON.stringify(encodeSchema(parameters, spare)).length);
  const least = lengths.at(-1) ?? 0;
  t.ok((lengths[0] ?? 0) > 10 * least, 'the first take what there is');
  t.ok(lengths.slice(5).every((length) => length === least));
  t.same(encodeSchema({ type: 'object', properties: { a: { type: 'string' } } }, spare), {
    type: 'OBJECT',
    properties: { a: { type: 'STRING' } },
  });
});
