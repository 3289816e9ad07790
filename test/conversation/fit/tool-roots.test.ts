import { test } from 'tap';
import { fitToolRoots } from '../../../src/conversation/fit/tool-roots.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const rules = { ...anything, toolRoot: ['anyOf', 'oneOf', 'allOf', 'not'] };
const text = { type: 'string' };
const count = { type: 'integer' };

function fitted(parameters: JsonObject | null, leftOut = new LeftOut()): JsonObject | null {
  const tools = [{ name: 'f', description: null, parameters, strict: null }];
  const { request } = fittedBy(fitToolRoots, { ...plain, tools }, rules, target, leftOut);
  return request.tools[0]?.parameters ?? null;
}

test('a choice of objects becomes one with the members of them all, of which those are required that all want', async (t) => {
  for (const keyword of ['anyOf', 'oneOf']) {
    const leftOut = new LeftOut();
    const merged = fitted(
      {
        description: 'd',
        [keyword]: [
          {
            type: 'object',
            properties: { kind: { const: 'a' }, id: text, a: text },
            required: ['kind', 'id'],
          },
          { properties: { kind: { const: 'b' }, id: text, b: count }, required: ['b', 'kind', 'id'] },
          { type: 'null' },
          false,
        ],
      },
      leftOut,
    );
    t.strictSame(merged, {
      description: 'd',
      type: 'object',
      properties: { kind: { anyOf: [{ const: 'a' }, { const: 'b' }] }, id: text, a: text, b: count },
      required: ['kind', 'id'],
    });
    t.strictSame(leftOut.names, [keyword]);
  }
});

test('what the root says of its own stays, as where branches only require', async (t) => {
  const own = { type: 'object', properties: { a: text, b: text }, additionalProperties: false };
  const branches = [{ required: ['a'] }, { required: ['b'] }];
  t.strictSame(fitted({ ...own, anyOf: branches }), own);
  t.strictSame(fitted({ ...own, required: ['a'], oneOf: [{ properties: { a: count } }], not: {} }), {
    ...own,
    required: ['a'],
  });
});

test('of parts that hold together all is required', async (t) => {
  t.strictSame(
    fitted({
      allOf: [
        { properties: { a: text }, required: ['a'] },
        { anyOf: [{ required: ['b', 'c'] }, { required: ['c'] }], properties: { b: text, c: text } },
      ],
    }),
    { type: 'object', properties: { a: text, b: text, c: text }, required: ['a', 'c'] },
  );
});

test('branches may be definitions, and have parts in common', async (t) => {
  const $defs = {
    Base: { type: 'object', properties: { id: text }, required: ['id'] },
    'A/x': { allOf: [{ $ref: '#/$defs/Base' }, { properties: { a: text }, required: ['a'] }] },
    B: { allOf: [{ $ref: '#/$defs/Base' }, { $ref: '#/$defs/B' }, { properties: { b: text } }] },
  };
  t.strictSame(fitted({ $defs, oneOf: [{ $ref: '#/$defs/A~1x' }, { $ref: '#/$defs/B' }] }), {
    $defs,
    type: 'object',
    properties: { id: text, a: text, b: text },
    required: ['id'],
  });
  t.strictSame(
    fitted({
      anyOf: [{ required: ['a'] }, { $ref: 'https://example.com/schema' }, { $ref: '#/$defs/None' }],
    }),
    { type: 'object', properties: {} },
  );
});

test('definitions may stand where OpenAPI has them', async (t) => {
  const components = { schemas: { A: { properties: { a: text }, required: ['a'] } } };
  t.strictSame(fitted({ components, allOf: [{ $ref: '#/components/schemas/A' }] }), {
    components,
    type: 'object',
    properties: { a: text },
    required: ['a'],
  });
});

test('a place in a branch can still be referred to', async (t) => {
  const branch = { properties: { id: text, next: { $ref: '#/anyOf/1/properties/id' } } };
  t.strictSame(fitted({ $defs: { x: text }, anyOf: [branch, { properties: { id: count } }, true] }), {
    $defs: { x: text, 'anyOf.1': { properties: { id: count } } },
    type: 'object',
    properties: {
      id: { anyOf: [text, count] },
      next: { $ref: '#/$defs/anyOf.1/properties/id' },
    },
  });
});

test('other tools stay what they are', async (t) => {
  const tools = [
    { name: 'f', description: null, parameters: null, strict: null },
    {
      name: 'g',
      description: null,
      parameters: { type: 'object', properties: { anyOf: text } },
      strict: null,
    },
  ];
  const request = { ...plain, tools };
  t.equal(fittedBy(fitToolRoots, request, rules, target, new LeftOut()).request, request);
});

test('a member that a client calls __proto__ is one like any other', async (t) => {
  const schema = JSON.parse(
    '{"anyOf":[{"properties":{"__proto__":{}},"required":["__proto__"]}]}',
  ) as JsonObject;
  t.equal(
    JSON.stringify(fitted(schema)),
    '{"type":"object","properties":{"__proto__":{}},"required":["__proto__"]}',
  );
});

test('references that stand for more than there is memory cost little, and what they hide is not required', async (t) => {
  const doubled = (name: string) => ({ anyOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] });
  const $defs: Record<string, unknown> = { d0: { properties: { a: text }, required: ['a'] } };
  for (let index = 1; index <= 40; index++) $defs[`d${index}`] = doubled(`d${index - 1}`);
  t.strictSame(fitted({ $defs, ...doubled('d40') }), { $defs, type: 'object', properties: {} });

  const wide = Object.fromEntries(Array.from({ length: 4000 }, (_, index) => [`p${index}`, text]));
  const W = { properties: wide, required: Object.keys(wide) };
  const branches = Array(100_000).fill({ $ref: '#/$defs/W' });
  const merged = fitted({ $defs: { W }, anyOf: branches });
  t.strictSame(merged?.properties, wide);
  t.equal(merged?.required, undefined);

  const deep = JSON.stringify({ x: 'y'.repeat(1000) });
  const large = JSON.parse(`{"properties":{"a":${deep}}}`) as JsonObject;
  const written = JSON.stringify(
    fitted({ $defs: { L: large }, oneOf: Array(1000).fill({ $ref: '#/$defs/L' }) }),
  );
  t.ok(written.length < 3000, `${written.length}`);
});
