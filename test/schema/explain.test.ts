import assert from 'node:assert/strict';
import { test } from 'tap';
import { type TSchema, Type } from 'typebox';
import { compileSchema } from '../../src/schema/compile.js';
import { cases, fc } from '../support/seed.js';

const told = (schema: TSchema, value: unknown) => {
  const { kind, param, message } = compileSchema(schema).explain(value);
  return { kind, param, message };
};
const one = (schema: TSchema, value: unknown) => told(Type.Object({ x: schema }), { x: value }).message;

test('a missing member, a wrong type and a wrong value are told apart', (t) => {
  const schema = Type.Object({
    n: Type.Integer({ minimum: 1, maximum: 128 }),
    size: Type.Optional(Type.Enum(['small', 'large'])),
  });
  t.same(told(schema, {}), {
    kind: 'missing_parameter',
    param: 'n',
    message: "Missing required parameter 'n': expected an integer between 1 and 128.",
  });
  t.same(told(schema, { n: '1' }), {
    kind: 'invalid_request',
    param: 'n',
    message: "Invalid type for 'n': expected an integer between 1 and 128, found a string.",
  });
  t.same(told(schema, { n: 0 }), {
    kind: 'invalid_value',
    param: 'n',
    message: "Invalid value for 'n': expected an integer between 1 and 128, found 0.",
  });
  t.same(told(schema, { n: 1, size: 'huge' }), {
    kind: 'invalid_value',
    param: 'size',
    message: `Invalid value for 'size': expected "small" or "large", found "huge".`,
  });
  t.match(told(schema, { n: 1, size: 3 }), { kind: 'invalid_request', param: 'size' });
  t.match(told(schema, [1]), { kind: 'invalid_request', param: null });
  t.match(told(schema, [1]).message, 'for the request body: expected an object, found an array of 1 item');
  t.end();
});

test('a number beyond a double is an invalid value, whatever else may be there', (t) => {
  const n = Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]));
  t.match(
    told(Type.Object({ any: Type.Unknown(), n }), {
      any: Number.POSITIVE_INFINITY,
      n: Number.NEGATIVE_INFINITY,
    }),
    {
      kind: 'invalid_value',
      param: 'n',
      message: /found a number out of range/,
    },
  );
  t.end();
});

test('bounds of every sort are named', (t) => {
  const cases: [TSchema, unknown, string][] = [
    [Type.Number({ minimum: 2 }), 1, 'a number of at least 2, found 1'],
    [Type.Number({ maximum: 2 }), 3, 'a number of at most 2, found 3'],
    [Type.Number(), Number.POSITIVE_INFINITY, 'a number, found a number out of range'],
    [Type.Integer(), 1.5, 'an integer, found a number'],
    [Type.String({ minLength: 1 }), '', 'a non-empty string, found an empty string'],
    [Type.Array(Type.Null(), { minItems: 1 }), [], 'an array of at least 1 item, found an empty array'],
    [
      Type.Array(Type.Null(), { minItems: 2 }),
      [null],
      'an array of at least 2 items, found an array of 1 item',
    ],
    [
      Type.Array(Type.Null(), { maxItems: 1 }),
      [null, null],
      'an array of at most 1 item, found an array of 2 items',
    ],
    [
      Type.Array(Type.Null(), { minItems: 1, maxItems: 2 }),
      [],
      'an array of 1 to 2 items, found an empty array',
    ],
    [
      Type.Unsafe({ type: 'object', maxProperties: 1 }),
      { a: 1, b: 2 },
      'an object of at most 1 member, found an object',
    ],
    [Type.Boolean(), null, 'a boolean, found null'],
    [Type.Null(), true, 'null, found true'],
    [Type.Unsafe({ type: 'string', not: { enum: ['a'] } }), 'a', 'a string other than "a", found "a"'],
  ];
  for (const [schema, value, words] of cases) t.match(one(schema, value), `expected ${words}`);
  t.end();
});

test('long values and long names are never quoted', (t) => {
  const secret = 'secret '.repeat(40);
  t.notMatch(one(Type.Enum(['a']), secret), 'secret');
  t.notMatch(one(Type.Number(), secret), 'secret');
  const map = Type.Unsafe({ type: 'object', additionalProperties: { type: 'number' } });
  t.ok(one(map, { [secret]: 'x' }).length < 200);
  t.end();
});

test('the path is written as a caller would', (t) => {
  const map = Type.Unsafe<unknown>({ type: 'object', additionalProperties: { type: 'number' } });
  const schema = Type.Object({ list: Type.Array(Type.Object({ 'a-b': map })) });
  t.equal(
    told(schema, { list: [{ 'a-b': {} }, { 'a-b': { '50 "256"': 'x' } }] }).param,
    'list[1].a-b["50 \\"256\\""]',
  );
  t.equal(told(Type.Unsafe({ type: 'object', additionalProperties: false }), { x: 1 }).param, 'x');
  t.match(one(Type.Unsafe({ type: 'object', additionalProperties: false }), { y: 1 }), 'expected nothing');
  t.end();
});

test('of a union the branch with the same type speaks, else the deepest', (t) => {
  const circle = Type.Object({ type: Type.Literal('circle'), r: Type.Number() });
  const path = Type.Object({ type: Type.Literal('path'), points: Type.Array(Type.Number()) });
  const shape = Type.Union([circle, path]);
  t.match(told(Type.Object({ x: shape }), { x: { type: 'path', r: 1 } }), { param: 'x.points' });
  t.match(told(Type.Object({ x: shape }), { x: { type: 'circle', points: ['x'] } }), { param: 'x.r' });
  const named = Type.Union([Type.Object({ name: Type.String() }), circle]);
  t.match(told(Type.Object({ x: named }), { x: { type: 'dot', name: 5 } }), { param: 'x.name' });
  const lists = Type.Union([Type.String(), Type.Array(Type.Object({ a: Type.Array(Type.Number()) }))]);
  t.match(told(Type.Object({ x: lists }), { x: [{ a: [1, 'x'] }] }), { param: 'x[0].a[1]' });
  t.end();
});

test('when no branch fits the type, the union names them all', (t) => {
  const content = Type.Union([Type.String(), Type.Array(Type.Null(), { maxItems: 2 }), Type.Null()]);
  t.match(one(content, 5), 'expected a string, an array or null, found a number');
  t.match(
    one(content, [null, null, null]),
    'expected an array of at most 2 items, found an array of 3 items',
  );
  t.match(one(Type.Union([Type.Literal('a'), Type.Literal('b')]), 'c'), 'expected "a" or "b", found "c"');
  t.match(
    one(Type.Union([content, Type.Boolean()]), 5),
    'expected a string, an array, null or a boolean, found',
  );
  t.end();
});

test('whatever a schema refuses is explained, and nothing that it accepts', (t) => {
  const schema = Type.Object({
    a: Type.Optional(Type.Union([Type.Number({ minimum: 0, maximum: 3 }), Type.Null()])),
    b: Type.Array(
      Type.Union([
        Type.Object({ type: Type.Literal('a'), a: Type.String({ minLength: 1 }) }),
        Type.Object({ type: Type.Unsafe<string>({ type: 'string', not: { enum: ['a'] } }) }),
        Type.Boolean(),
      ]),
      { minItems: 1, maxItems: 3 },
    ),
    c: Type.Optional(
      Type.Unsafe({ type: 'object', maxProperties: 1, additionalProperties: { type: 'integer' } }),
    ),
  });
  const compiled = compileSchema(schema);
  const scalar = fc.constantFrom<unknown>(null, true, '', 'a', 'b', 0, 1.5, 3, -1, [], {});
  const item = fc.oneof(scalar, fc.record({ type: scalar, a: scalar }, { requiredKeys: [] }));
  const value = fc.record(
    {
      a: scalar,
      b: fc.oneof(scalar, fc.array(item, { maxLength: 4 })),
      c: fc.oneof(scalar, fc.dictionary(fc.constantFrom('x', 'y'), scalar)),
    },
    { requiredKeys: [] },
  );
  let refused = 0;
  fc.assert(
    fc.property(value, (candidate) => {
      const explained = compiled.explain(candidate).message !== 'The request is not valid.';
      assert.equal(explained, !compiled.check(candidate));
      refused += explained ? 1 : 0;
    }),
    { numRuns: cases(5000) },
  );
  t.ok(refused > cases(500));
  t.end();
});
