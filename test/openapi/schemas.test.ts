import { test } from 'tap';
import { type TSchema, Type } from 'typebox';
import { writeSchemas } from '../../src/openapi/schemas.js';

const long = (word: string) => Type.String({ description: word.repeat(200) });
const write = (schema: object) => writeSchemas([{ name: 'Root', schema }]).Root;
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);

test('nothing of TypeBox is left', async (t) => {
  t.strictSame(write(Type.Object({ a: Type.Optional(Type.String({ minLength: 1 })) })), {
    type: 'object',
    properties: { a: { type: 'string', minLength: 1 } },
  });
  t.strictSame(write(Type.Unsafe({ type: 'string', expected: 'a word', '~kind': 'Mine' })), {
    type: 'string',
  });
  t.strictSame(write(Type.Array(Type.Unsafe(true as never))), { type: 'array', items: {} });
  t.strictSame(write({ type: 'object', additionalProperties: false, properties: {} }), {
    type: 'object',
    additionalProperties: false,
  });
});

test('a value or null is one schema of two types where that says the same', async (t) => {
  t.strictSame(write(orNull(Type.Integer({ minimum: 1 }))), { type: ['integer', 'null'], minimum: 1 });
  t.strictSame(write(Type.Union([Type.Null(), Type.Boolean()])), { type: ['boolean', 'null'] });
  for (const schema of [
    orNull(Type.Literal('a')),
    orNull(Type.Enum(['a', 'b'])),
    orNull(Type.Union([Type.String(), Type.Number()])),
    orNull(Type.Unsafe({ type: 'string', not: { enum: ['a'] } })),
    Type.Union([Type.String(), Type.Null()], { description: 'Mine.' }),
  ]) {
    t.strictSame(write(schema), JSON.parse(JSON.stringify(schema)));
  }
});

test('what is used more than once is written once', async (t) => {
  const part = Type.Object({ type: Type.Literal('text_part'), text: long('a') });
  const schemas = writeSchemas([
    { name: 'AskRequest', schema: Type.Object({ parts: Type.Array(part), last: orNull(part) }) },
    { name: 'TellRequest', schema: Type.Object({ lists: orNull(Type.Array(Type.Array(part))) }) },
  ]);
  const reference = { $ref: '#/components/schemas/AskPartTextPart' };
  t.strictSame(Object.keys(schemas), ['AskRequest', 'TellRequest', 'AskPartTextPart']);
  t.match(schemas.AskRequest, {
    properties: {
      parts: { type: 'array', items: reference },
      last: { anyOf: [reference, { type: 'null' }] },
    },
  });
  t.match(schemas.TellRequest, {
    properties: { lists: { type: ['array', 'null'], items: { type: 'array', items: reference } } },
  });
});

test('a root that stands in another is referred to, and small schemas are not', async (t) => {
  const small = Type.Object({ a: Type.String() });
  const inner = Type.Object({ one: small, two: small });
  const schemas = writeSchemas([
    { name: 'Outer', schema: Type.Object({ inner }) },
    { name: 'Inner', schema: inner },
  ]);
  t.match(schemas.Outer, { properties: { inner: { $ref: '#/components/schemas/Inner' } } });
  t.match(schemas.Inner, { properties: { one: { properties: { a: { type: 'string' } } } } });
  t.strictSame(Object.keys(schemas), ['Outer', 'Inner']);
});

test('two schemas that would have one name get two', async (t) => {
  const [one, two] = [long('a'), long('b')];
  const schemas = writeSchemas([
    {
      name: 'Root',
      schema: Type.Object({ a: Type.Object({ x: one, y: one }), b: Type.Object({ x: two, y: two }) }),
    },
    { name: 'RootX3', schema: Type.Object({ x: Type.String() }) },
  ]);
  t.strictSame(Object.keys(schemas), ['Root', 'RootX3', 'RootX', 'RootX2']);
  t.throws(
    () =>
      writeSchemas([
        { name: 'A', schema: one },
        { name: 'A', schema: two },
      ]),
    /the name A/,
  );
});

test('the document can be changed without harm to the schemas it was made from', async (t) => {
  const schema = Type.Object({ a: Type.Enum(['x', 'y']) });
  const written = write(schema) as { required: string[]; properties: { a: { enum: string[] } } };
  written.required.push('b');
  written.properties.a.enum.push('z');
  t.strictSame(write(schema), { type: 'object', required: ['a'], properties: { a: { enum: ['x', 'y'] } } });
});
