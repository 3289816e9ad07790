import { test } from 'tap';
import { fitStrictTools } from '../../../src/conversation/fit/strict-tools.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { Tool } from '../../../src/conversation/request.js';
import { anthropicSchemas, openaiSchemas } from '../../../src/protocols/schema-rules.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plain, target } from '../../protocols/messages/samples.js';
import { anything, fittedBy } from './rules.js';

const openai = { ...anything, ...openaiSchemas };
const anthropic = { ...anything, ...anthropicSchemas };
const toolOf = (parameters: JsonObject | null, strict: boolean | null = true): Tool => ({
  name: 'f',
  description: null,
  parameters,
  strict,
});

function fitted(rules: typeof openai, tools: readonly Tool[], leftOut = new LeftOut()): readonly Tool[] {
  return fittedBy(fitStrictTools, { ...plain, from: 'messages', tools }, rules, target, leftOut).request
    .tools;
}

/** @returns the schema of a tool that stays strict, or null */
function strictly(rules: typeof openai, parameters: JsonObject | null): JsonObject | null {
  const leftOut = new LeftOut();
  const [tool] = fitted(rules, [toolOf(parameters)], leftOut);
  if (tool?.strict === true) {
    if (leftOut.names.length > 0) throw new Error('Nothing is lost of it.');
    return tool.parameters;
  }
  if (leftOut.names.join() !== 'strict' || tool?.parameters !== parameters)
    throw new Error('The loss has its name, and the schema stays.');
  return null;
}

const text = { type: 'string' };
const open = { type: 'object', properties: { a: text }, required: ['a'] };
const shut = { ...open, additionalProperties: false };
const holding = (a: unknown): JsonObject => ({ ...shut, properties: { a } });

test('objects that say nothing of other members are closed, for both vendors', async (t) => {
  for (const rules of [openai, anthropic]) {
    t.strictSame(strictly(rules, open), shut);
    t.strictSame(
      strictly(rules, holding({ ...open, type: ['object', 'null'] })),
      holding({ ...shut, type: ['object', 'null'] }),
    );
    t.strictSame(
      strictly(rules, holding({ anyOf: [open, { type: 'null' }] })),
      holding({ anyOf: [shut, { type: 'null' }] }),
    );
    t.strictSame(strictly(rules, { ...holding({ $ref: '#/$defs/b' }), $defs: { b: open } }), {
      ...holding({ $ref: '#/$defs/b' }),
      $defs: { b: shut },
    });
    t.strictSame(strictly(rules, null), { type: 'object', properties: {}, additionalProperties: false });
  }
});

test('a tool whose schema would have to mean something else is not strict, and that is said', async (t) => {
  for (const rules of [openai, anthropic]) {
    t.equal(strictly(rules, { ...open, additionalProperties: true }), null);
    t.equal(strictly(rules, { ...open, additionalProperties: { type: 'string' } }), null);
    t.equal(strictly(rules, holding({ type: 'object' })), null, 'it may have any members');
    t.equal(strictly(rules, holding({ oneOf: [text] })), null);
    t.equal(strictly(rules, { ...shut, patternProperties: {} }), null);
  }
});

test('a strict tool has no format that is not listed, and no pattern that looks around', async (t) => {
  for (const rules of [openai, anthropic]) {
    t.equal(strictly(rules, holding({ ...text, format: 'color' })), null);
    t.equal(strictly(rules, holding({ ...text, pattern: '^(?!a)' })), null);
    const plainly = holding({ ...text, format: 'email', pattern: '^a{2}$' });
    t.strictSame(strictly(rules, plainly), plainly);
  }
});

test('OpenAI wants every member required, and each schema to have a type', async (t) => {
  const optional = { ...shut, required: [] };
  t.equal(strictly(openai, optional), null);
  t.equal(strictly(openai, holding(optional)), null);
  t.strictSame(strictly(anthropic, optional), optional);
  t.equal(strictly(openai, holding({ description: 'anything' })), null);
  t.strictSame(
    strictly(anthropic, holding({ description: 'anything' })),
    holding({ description: 'anything' }),
  );
});

test('Anthropic knows no bounds and no recursion', async (t) => {
  const recursive = [
    holding({ $ref: '#' }),
    {
      ...holding({ $ref: '#/$defs/a' }),
      $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }, text] }, b: { $ref: '#/$defs/a' } },
    },
    holding({ $ref: '#/properties/a' }),
  ];
  const bounded = [
    { type: 'integer', minimum: 1 },
    { type: 'string', maxLength: 5 },
    { type: 'array', items: text, minItems: 2 },
  ].map(holding);
  for (const schema of [...recursive, ...bounded]) {
    t.equal(strictly(anthropic, schema), null, JSON.stringify(schema));
    t.strictSame(strictly(openai, schema), schema);
  }
  const plainly = {
    ...holding({ $ref: '#/definitions/a' }),
    definitions: { a: { $ref: '#/definitions/b' }, b: text },
  };
  t.strictSame(strictly(anthropic, plainly), plainly);
  const one = holding({ type: 'array', items: text, minItems: 1 });
  t.strictSame(strictly(anthropic, one), one);
});

test('Anthropic takes so many strict tools, optional members and unions in a request: the first ones', async (t) => {
  const strictOnes = (parameters: JsonObject, count: number): number =>
    fitted(anthropic, Array<Tool>(count).fill(toolOf(parameters))).filter(({ strict }) => strict === true)
      .length;
  t.equal(strictOnes(shut, 30), 20);
  t.equal(strictOnes({ ...shut, properties: { a: text, b: text, c: text } }, 20), 12);
  t.equal(strictOnes(holding({ type: ['string', 'null'] }), 20), 16);
  const large = { ...shut, properties: Object.fromEntries(Array.from({ length: 30 }, (_, n) => [n, text])) };
  const [first, second] = fitted(anthropic, [toolOf(large), toolOf(shut)]);
  t.equal(first?.strict, null);
  t.equal(second?.strict, true, 'one that is too large takes nothing from the others');
  const [many] = fitted(openai, Array<Tool>(200).fill(toolOf(shut))).slice(-1);
  t.equal(many?.strict, true);
});

test('tools that are not strict, and targets that have no strict ones, are left alone', async (t) => {
  const request = { ...plain, tools: [toolOf(open, false), toolOf(null, null)] };
  t.equal(fittedBy(fitStrictTools, request, openai, target, new LeftOut()).request, request);
  const strict = { ...plain, tools: [toolOf(open)] };
  t.equal(fittedBy(fitStrictTools, strict, anything, target, new LeftOut()).request, strict);
});
