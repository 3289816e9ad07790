import { pixel } from '../../suites/translation/image.js';
import { fc } from '../../support/seed.js';

/*
 * Members of request bodies as the vendors' own SDKs type them, which the bodies of several protocols have.
 */

type Members = { readonly [name: string]: fc.Arbitrary<unknown> };

/** A text of any kind, also an empty one. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('', ' ', '\n', 'word', '"quoted\\"', 'é😀\u2028', '</s>', '{"a":1}'),
  fc.string({ unit: 'binary' }),
);
/** A text that says something. */
export const someText: fc.Arbitrary<string> = anyText.map((text) => `${text}.`);
/** A name of a tool that every vendor takes. */
export const toolName = fc.constantFrom('f', 'get_weather', 'mcp__files__read-file', 'x'.repeat(64));

/** A member that is left out, null or given. */
export const maybeNull = <T>(given: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, fc.constant(null), given);
/** A member that is left out or given. */
export const maybe = <T>(given: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(given, { nil: undefined });
export const flag = fc.boolean();
export const share = fc.constantFrom(0, 0.1, 0.7, 1);

/** An object with these members, as JSON leaves out those that are not given. */
export function objectOf(members: Members): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(members).map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);
}

export const png = fc.constant(pixel);
export const pictureUrl = fc.constantFrom(
  `data:image/png;base64,${pixel}`,
  'https://example.com/a.png',
  'data:image/jpeg;base64,/9j/4AAQSkZJRg==',
);
export const pdf = fc.constant('JVBERi0xLjQK');

const leaf = fc.constantFrom<object>(
  { type: 'string' },
  { type: 'string', description: 'd', enum: ['a', 'b'] },
  { type: 'integer', minimum: 0 },
  { type: 'number' },
  { type: 'boolean', default: false },
  { type: 'array', items: { type: 'string' } },
  { type: 'object', properties: {} },
  { anyOf: [{ type: 'string' }, { type: 'null' }] },
  { type: ['string', 'null'] },
  { const: 'x' },
  {},
);
/** The schema of arguments or of an answer. */
export const schema: fc.Arbitrary<object> = fc.oneof(
  fc.constantFrom<object>(
    {
      type: 'object',
      properties: {
        at: { type: 'string', format: 'date-time', pattern: '^(?=2)' },
        n: { type: 'integer', multipleOf: 2 },
      },
      required: ['at'],
    },
    { type: 'object', additionalProperties: { type: 'string' }, minProperties: 1 },
    { type: 'object', properties: { a: true, b: { not: {} } }, patternProperties: { '^x': {} } },
    { type: 'object', properties: { self: { $ref: '#' } } },
    {
      type: 'object',
      oneOf: [{ properties: { a: { type: 'string' } }, required: ['a'] }, { properties: { b: {} } }],
    },
    { type: 'object' },
    { type: 'object', properties: {} },
    { type: 'object', properties: {}, required: [], additionalProperties: false },
    { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', additionalProperties: true },
    {
      type: 'object',
      properties: { next: { $ref: '#/$defs/node' } },
      $defs: { node: { type: 'object', properties: { value: { type: 'string' } } } },
    },
  ),
  fc
    .dictionary(fc.constantFrom('a', 'b_c', 'd-e', '$f'), leaf, { maxKeys: 3 })
    .map((properties) => ({ type: 'object', properties, required: Object.keys(properties).slice(0, 1) })),
);
/** Arguments of a call, as an object. */
export const callInput = fc.constantFrom<object>(
  {},
  { city: 'Rome' },
  { a: null, b: [1, { c: '' }], d: 1.5 },
);

/** What a conversation is made of: how the user's turns, answers and calls with their results are written is the protocol's. */
export interface Exchange {
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: object }[];
}

/** Up to three exchanges of a conversation; those with calls have ids that come once. */
export const exchanges: fc.Arbitrary<readonly Exchange[]> = fc
  .array(fc.array(fc.record({ name: toolName, input: callInput }), { maxLength: 3 }), { maxLength: 3 })
  .map((all) =>
    all.map((calls, turn) => ({
      // Ids as servers give them: some long, some with other characters.
      calls: calls.map(({ name, input }, index) => ({
        id: [
          `call_${turn}_${index}`,
          `functions.${name}:${turn}${index}`,
          `chatcmpl-tool-${turn}${index}${'f'.repeat(40)}`,
        ][(turn + index) % 3] as string,
        name,
        input,
      })),
    })),
  );
