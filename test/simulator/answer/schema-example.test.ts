import { test } from 'tap';
import { Check, type XSchema } from 'typebox/schema';
import { patternExample } from '../../../src/simulator/answer/pattern.js';
import { schemaExample } from '../../../src/simulator/answer/schema-example.js';
import { cases, fc } from '../../support/seed.js';

const filling = { text: () => 'Simulated answer to: Hello, world', numbers: [42] };

function isValid(schema: unknown, value: unknown): boolean {
  return Check(schema as XSchema, value);
}

const byHand: Readonly<Record<string, unknown>> = {
  'nested object': {
    type: 'object',
    properties: {
      a: { type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] },
      c: { type: 'null' },
    },
    required: ['a', 'c'],
    additionalProperties: false,
  },
  'required without a property': {
    type: 'object',
    required: ['x'],
    additionalProperties: { type: 'boolean' },
  },
  'own names of the prototype': {
    type: 'object',
    properties: { constructor: { type: 'string' }, toString: { type: 'number' } },
    required: ['constructor', 'toString'],
  },
  'const of every kind': {
    type: 'array',
    prefixItems: [{ const: null }, { const: { a: [1] } }, { const: false }],
    minItems: 3,
  },
  'enum narrowed by a bound': { enum: [1, 5, 'x'], minimum: 3, type: 'number' },
  'bounds of numbers': { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.5 },
  'negative integers': { type: 'integer', maximum: -7, multipleOf: 5 },
  'text bounds': { type: 'string', minLength: 80, maxLength: 90 },
  'short text': { type: 'string', maxLength: 3 },
  'empty text': { type: 'string', maxLength: 0 },
  'pattern with a length': { type: 'string', pattern: '^[a-c]+-\\d*$', minLength: 12 },
  'unique items': { type: 'array', items: { type: 'boolean' }, minItems: 2, uniqueItems: true },
  'unique numbers': { type: 'array', items: { type: 'integer', minimum: 3 }, minItems: 9, uniqueItems: true },
  contains: { type: 'array', items: { type: 'integer' }, contains: { minimum: 100 } },
  'no items': { type: 'array', items: false },
  'oneOf that overlaps': { oneOf: [{ type: 'integer' }, { type: 'number' }] },
  'anyOf with a base': {
    type: 'object',
    required: ['a'],
    anyOf: [{ properties: { a: { const: 1 } } }, { required: ['b'] }],
  },
  'allOf that narrows': {
    allOf: [
      { type: ['string', 'number'], minimum: 2 },
      { type: ['number', 'null'], maximum: 3 },
    ],
  },
  'allOf of objects': {
    allOf: [
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      { properties: { a: { minLength: 40 }, b: { type: 'integer' } }, required: ['b'] },
    ],
  },
  not: { type: 'integer', not: { minimum: 10 } },
  'references with escapes': {
    $ref: '#/$defs/a~1b',
    $defs: { 'a/b': { type: 'array', items: { $ref: '#/$defs/c' } }, c: { enum: ['c'] } },
  },
  'linked list': {
    $defs: {
      node: {
        type: 'object',
        properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
        required: ['next'],
      },
    },
    $ref: '#/$defs/node',
  },
  'wide tree': {
    $defs: {
      node: {
        type: 'object',
        properties: Object.fromEntries(
          'abcdefgh'.split('').map((name) => [name, { type: 'array', items: { $ref: '#/$defs/node' } }]),
        ),
        required: ['a'],
      },
    },
    $ref: '#/$defs/node',
  },
  true: true,
  nothing: {},
};

for (const [name, schema] of Object.entries(byHand)) {
  test(`an example fits its schema: ${name}`, async (t) => {
    const value = schemaExample(schema, filling);
    t.ok(isValid(schema, value), JSON.stringify(value));
    t.strictSame(schemaExample(schema, filling), value, 'and is the same again');
  });
}

test('a schema that nothing fits has no example, and costs a bounded amount of work', async (t) => {
  const loops = [
    false,
    { $ref: '#' },
    { anyOf: [{ $ref: '#' }, { $ref: '#' }] },
    { oneOf: [{ $ref: '#' }, { $ref: '#' }], type: 'string' },
    { type: 'object', properties: { a: { $ref: '#' }, b: { $ref: '#' } }, required: ['a', 'b'] },
    { type: 'integer', minimum: 3, maximum: 2 },
    { type: 'string', pattern: '(?=a)b' },
  ];
  for (const schema of loops) {
    t.equal(schemaExample(schema, filling), undefined, JSON.stringify(schema));
  }
});

test('numbers of the filling are used where they fit', async (t) => {
  t.equal(schemaExample({ type: 'integer' }, filling), 42);
  t.equal(schemaExample({ type: 'integer', maximum: 10 }, filling), 1);
});

test('every format has the form it names', async (t) => {
  const names = [
    'date-time',
    'date',
    'time',
    'email',
    'hostname',
    'ipv4',
    'ipv6',
    'uri',
    'uuid',
    'json-pointer',
    'regex',
    'duration',
  ];
  for (const format of names) {
    t.ok(isValid({ type: 'string', format }, schemaExample({ type: 'string', format }, filling)), format);
  }
});

const bounds = fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 6 }));
const patterns = [
  '^[A-Z]{2}\\d{3}$',
  '^(?:ab|cd)+$',
  '[^a-z]x?',
  '^\\w+@\\w+\\.com$',
  '^\\p{Lu}.*',
  '^$|^x{2,4}$',
  '\\u0041\\x42',
];

const { schema: anySchema } = fc.letrec<{ schema: object; leaf: object }>((tie) => ({
  leaf: fc.oneof(
    bounds.map(([min, more]) => ({ type: 'string', minLength: min, maxLength: min + more })),
    fc.constantFrom(...patterns).map((pattern) => ({ type: 'string', pattern })),
    bounds.map(([min, more]) => ({ type: 'integer', minimum: min - 3, maximum: min - 3 + more })),
    bounds.map(([min, more]) => ({
      type: 'number',
      exclusiveMinimum: min,
      exclusiveMaximum: min + more + 0.5,
    })),
    bounds.map(([min]) => ({ type: 'number', minimum: min, multipleOf: 0.5 })),
    fc.constantFrom(
      { type: 'boolean' },
      { type: 'null' },
      { type: ['string', 'null'] },
      { enum: ['a', 1, null] },
      { const: [1] },
    ),
    fc.constant({ $ref: '#/$defs/tree' }),
  ),
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.tuple(tie('schema'), bounds).map(([items, [min, more]]) => ({
      type: 'array',
      items,
      minItems: min % 3,
      maxItems: (min % 3) + more,
    })),
    fc
      .tuple(
        fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__x'), tie('schema'), { maxKeys: 3 }),
        fc.nat(7),
        fc.boolean(),
      )
      .map(([properties, mask, closed]) => ({
        type: 'object',
        properties: { ...properties },
        required: Object.keys(properties).filter((_, index) => (mask >> index) & 1),
        ...(closed ? { additionalProperties: false } : {}),
      })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc
      .tuple(tie('schema'), tie('schema'))
      .map(([inner, other]) => ({ allOf: [inner, { anyOf: [inner, other] }] })),
  ),
}));

const tree = {
  type: 'object',
  properties: { label: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/tree' } } },
  required: ['label', 'children'],
};

test('examples of random schemas fit them, by the judgement of another validator', async (t) => {
  fc.assert(
    fc.property(anySchema, (schema) => {
      const document = { ...schema, $defs: { tree } };
      const value = schemaExample(document, filling);
      return value !== undefined && isValid(document, JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: cases(400) },
  );
  t.pass();
});

test('a pattern gets a text that it matches, or null where it is beyond the generator', async (t) => {
  const good = [
    ...patterns,
    '^a{3}b{0,2}c{1,}$',
    '^(?<year>\\d{4})-\\d\\d$',
    '^[\\]\\-x]$',
    '^[^\\s"]+$',
    '\\bword\\b',
    '^.{5}$',
  ];
  for (const pattern of good) {
    const text = patternExample(pattern, 0);
    t.ok(text !== null && new RegExp(pattern, 'u').test(text), `${pattern}: ${text}`);
  }
  for (const pattern of ['(', '(?=a)b', '(a)\\1', '(?<!x)y']) {
    t.equal(patternExample(pattern, 0), null, pattern);
  }
});
