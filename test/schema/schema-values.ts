import { asSchema, type SchemaNode } from '../../src/schema/node.js';
import { fc } from '../support/seed.js';
import { anyJson, anyText } from '../wire/json-text.js';

const anyNumber = fc.oneof(
  fc.integer({ min: -3, max: 130 }),
  fc.double({ min: -101, max: 101, noNaN: true }),
  fc.constantFrom(0, 1, 2, 0.7, 1e21, 1e-9, -0, 123_456_789_012_345),
);

const anyName = fc.constantFrom('user', 'text', 'function', 'custom', 'x', '');

const plain = fc.oneof(
  anyName,
  fc.integer({ min: 1, max: 300 }).map((length) => 'x'.repeat(length)),
);

/** Values that are mostly of a schema, and now and then near it: with unknown members, bounds passed, wrong types. */
export function valuesOf(schema: unknown): fc.Arbitrary<unknown> {
  const node = asSchema(typeof schema === 'boolean' ? {} : schema);
  return fc.oneof({ weight: 60, arbitrary: fitting(node) }, { weight: 1, arbitrary: anyJson });
}

function fitting(node: SchemaNode): fc.Arbitrary<unknown> {
  if (node.anyOf !== undefined) return fc.oneof(...node.anyOf.map(valuesOf));
  if ('const' in node) return fc.constant(node.const);
  if (node.enum !== undefined) return fc.constantFrom(...node.enum);
  const types = node.type === undefined || typeof node.type === 'string' ? [node.type] : node.type;
  return fc.oneof(...types.map((type) => ofType(type, node)));
}

function ofType(type: string | undefined, node: SchemaNode): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return node.minLength === undefined
        ? fc.oneof(anyText, plain)
        : fc.oneof({ weight: 1, arbitrary: anyText }, { weight: 6, arbitrary: anyName });
    case 'number':
    case 'integer':
      return fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(0, 1, 2) },
        { weight: 1, arbitrary: anyNumber },
      );
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valuesOf(node.items ?? true), { minLength: node.minItems ?? 0, maxLength: 3 });
    case 'object':
      return objectOf(node);
    default:
      return anyJson;
  }
}

/** The required members, some others, in any order. */
function objectOf(node: SchemaNode): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties = true } = node;
  const optional = Object.keys(properties).filter((name) => !required.includes(name));
  const rest =
    additionalProperties === false
      ? fc.constant<[string, unknown][]>([])
      : fc.array(fc.tuple(anyKey, valuesOf(additionalProperties)), { maxLength: 2 });
  return fc
    .tuple(
      fc.tuple(...required.map((name) => fc.tuple(fc.constant(name), valuesOf(properties[name] ?? true)))),
      optional.length === 0
        ? fc.constant([])
        : fc.subarray(optional, { maxLength: Math.min(3, optional.length) }).chain(membersOf(properties)),
      rest,
      fc.nat(7),
    )
    .map(([must, may, more, turn]) => {
      const members: [string, unknown][] = [...more, ...must, ...may];
      return Object.fromEntries([
        ...members.slice(turn % members.length),
        ...members.slice(0, turn % members.length),
      ]);
    });
}

const anyKey = fc.oneof(
  { weight: 1, arbitrary: anyText },
  {
    weight: 9,
    arbitrary: fc.constantFrom('k', 'q', 'model', 'stream', 'stream_options', 'include_usage', 'role'),
  },
);

const membersOf = (properties: NonNullable<SchemaNode['properties']>) => (names: string[]) =>
  fc.tuple(...names.map((name) => fc.tuple(fc.constant(name), valuesOf(properties[name] ?? true))));
