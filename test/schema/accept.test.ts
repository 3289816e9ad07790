import { isDeepStrictEqual } from 'node:util';
import { test } from 'tap';
import { type TSchema, Type } from 'typebox';
import { chatMixedBody, passedChatRequest } from '../../src/protocols/chat/request/schema.js';
import { type Accepted, validateBody } from '../../src/schema/accept.js';
import { compileSchema } from '../../src/schema/compile.js';
import { given, metered, name, nullable, record, streaming, text } from '../../src/schema/members.js';
import { usualCost } from '../../src/wire/json.js';
import type { Span } from '../../src/wire/json-scan.js';
import { cases, fc } from '../support/seed.js';
import { noise, writeJson } from '../wire/json-text.js';
import { valuesOf } from './schema-values.js';

/** The schema of an untouched body, with members of each kind that such schemas have. */
const untouched = Type.Object({
  model: name,
  messages: given,
  ...streaming,
  max_completion_tokens: metered,
  max_tokens: metered,
  n: nullable(Type.Integer({ minimum: 1, maximum: 100 })),
  user: text,
  metadata: record,
  tags: Type.Optional(Type.Array(Type.Object({ x: Type.Boolean() }))),
  count: nullable(Type.Union([Type.Integer(), Type.String()])),
});

/** Schemas with what those do not have: the values that need it are left to the full check. */
const others: readonly TSchema[] = [
  Type.Object({
    a: Type.Union([
      Type.Object({ x: Type.Array(Type.Object({ y: Type.Boolean() })), kind: Type.Literal(1) }),
      Type.Object({ x: Type.Unknown() }),
    ]),
    b: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
    c: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    d: Type.Optional(Type.Enum(['one', 'two'])),
  }),
  Type.Object({
    model: Type.Optional(Type.Unknown()),
    toString: Type.Optional(Type.Integer()),
    k: Type.Optional(Type.String({ minLength: 2 })),
  }),
  Type.Unsafe({ type: 'object', additionalProperties: { type: 'integer', minimum: 2 }, maxProperties: 3 }),
];

/** The findings of the full check, or null for a refusal. */
function checked(body: Buffer, schema: ReturnType<typeof compileSchema>): unknown {
  try {
    const { scan, model, stream, includeUsage, goesOn, inBackground, itemTools, members } = validateBody(
      body,
      { ...schema, accept: () => null },
      usualCost,
    );
    const { open, streamOptions, includeUsage: usageSpan } = scan;
    const spans = { open, model: scan.model, streamOptions, includeUsage: usageSpan };
    return { scan: spans, model, stream, includeUsage, goesOn, inBackground, itemTools, members };
  } catch {
    return null;
  }
}

function parse(body: Buffer): Record<string, unknown> | null {
  try {
    return JSON.parse(body.toString('latin1')) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Whether what was found without a parse is what the full check and the parse find. */
function agrees({ output, tools, ...found }: Accepted, expected: unknown, body: Buffer): boolean {
  if (!isDeepStrictEqual(found, expected)) return false;
  const parsed = parse(body);
  // Inside of a long string, which an upstream may refuse.
  if (parsed === null) return true;
  const limits = ['max_completion_tokens', 'max_tokens', 'max_output_tokens'].filter((key) =>
    Object.hasOwn(parsed, key),
  );
  const says = (span: Span | null, key: string | undefined): boolean =>
    span === null
      ? key === undefined || !Object.hasOwn(parsed, key)
      : isDeepStrictEqual(JSON.parse(body.toString('latin1', span.start, span.end)), parsed[key ?? '']);
  const isLimited =
    limits.length === 0
      ? output.maxTokens.length === 0
      : limits.every((key) => output.maxTokens.some((span) => says(span, key)));
  const saysOutput = says(output.choices, 'n') && says(output.config, 'generationConfig');
  return isLimited && saysOutput && says(tools, 'tools');
}

/** A byte put in, taken away, changed, or a stretch sent twice. */
const change = fc.record({
  at: fc.nat(),
  kind: fc.nat(4),
  byte: fc.constantFrom(...Buffer.from('"\\{}[]:,0e-.tu \n\x00\x1f\xffaé', 'latin1')),
  length: fc.integer({ min: 1, max: 40 }),
});

function changed(
  body: Buffer,
  { at, kind, byte, length }: { at: number; kind: number; byte: number; length: number },
): Buffer {
  const place = at % (body.length + 1);
  const rest = body.subarray(place);
  const head = body.subarray(0, place);
  if (kind === 0) return Buffer.concat([head, rest.subarray(0, length), rest]);
  if (kind === 1) return Buffer.concat([head, rest.subarray(length)]);
  if (kind === 2) return Buffer.concat([head, Buffer.of(byte), rest]);
  if (kind === 3) return head;
  return Buffer.concat([head, Buffer.of(byte), rest.subarray(1)]);
}

for (const [index, type] of [untouched, ...others].entries()) {
  test(`what is accepted, the full check accepts with the same findings: schema ${index}`, (t) => {
    const schema = compileSchema(type, index === 0 ? chatMixedBody : null);
    let accepted = 0;
    let good = 0;
    fc.assert(
      fc.property(
        valuesOf(type),
        noise,
        fc.array(change, { minLength: 4, maxLength: 8 }),
        (value, numbers, changes) => {
          const bodies: Buffer[] = [
            Buffer.from(JSON.stringify(value)),
            Buffer.from(writeJson(value, numbers)),
          ];
          for (const each of changes) bodies.push(changed(bodies[each.at % 2] as Buffer, each));
          for (const body of bodies) {
            const expected = checked(body, schema);
            const found = schema.accept(body);
            if (expected !== null) good++;
            if (found === null) continue;
            accepted++;
            if (!agrees(found, expected, body)) throw new Error(`accepted: ${body.toString('latin1')}`);
          }
        },
      ),
      { numRuns: cases(index === 0 ? 2500 : 500) },
    );
    t.ok(index === 0 ? accepted > good / 2 : accepted < good, `${accepted} of ${good} good bodies`);
    t.end();
  });
}

test('an unusual body is left to the full check', (t) => {
  const schema = passedChatRequest;
  const message = '"messages":[{"role":"user","content":"x"}]';
  const body = (members: string) => schema.accept(Buffer.from(`{"model":"m",${message}${members}}`));
  t.not(body(''), null);
  for (const members of [
    ',"model":"n"',
    ',"stream":true,"stream":true',
    ',"stream_options":{"include_usage":true,"include_usage":true}',
    ',"mod\\u0065l":"n"',
    ',"max_tokens":1e0',
    ',"max_tokens":1234567890123456',
    `,"x":${'['.repeat(64)}${']'.repeat(64)}`,
    ',"x":"\x01"',
    ',"x":"\\x"',
    ',"x":01',
    ',"x":1.',
    ',',
  ]) {
    t.equal(body(members), null, members);
  }
  t.not(body(`,"x":${'['.repeat(63)}${']'.repeat(63)}`), null);
  t.equal(schema.accept(Buffer.from(`{"model":"m\\"",${message}}`)), null);
  t.equal(schema.accept(Buffer.from(`{"model":"é",${message}}`)), null);
  t.equal(schema.accept(Buffer.from(`{"model":"${'m'.repeat(129)}",${message}}`)), null);
  t.equal(schema.accept(Buffer.alloc(0)), null);
  t.end();
});

test('it is told where a body limits its answer', (t) => {
  const schema = passedChatRequest;
  const texts = (members: string): unknown => {
    const body = Buffer.from(`{"model":"m","messages":[{"role":"user","content":"x"}]${members}}`);
    const output = schema.accept(body)?.output;
    if (output === undefined) return null;
    const text = (span: Span | null) => span && body.toString('latin1', span.start, span.end);
    return [output.maxTokens.map(text), text(output.choices), text(output.config)];
  };
  t.strictSame(texts(''), [[], null, null]);
  t.strictSame(texts(',"max_tokens":5,"n":2'), [['5'], '2', null]);
  t.strictSame(texts(',"max_tokens":5,"max_completion_tokens":7'), [['5', '7'], null, null]);
  t.strictSame(texts(',"max_completion_tokens":7,"max_tokens":5'), [['7', '5'], null, null]);
  t.strictSame(texts(',"max_tokens":6,"generationConfig":{"a":1}'), [['6'], null, '{"a":1}']);
  t.equal(texts(',"max_tokens":5,"max_tokens":6'), null, 'twice, which the full check refuses');
  t.strictSame(texts(',"user":"max_tokens","metadata":{"n":"3"}'), [[], null, null]);
  t.end();
});

test('strings around the bound of the skeleton', (t) => {
  const schema = passedChatRequest;
  for (const length of [0, 1, 63, 64, 65, 255, 256, 257, 258]) {
    for (const [tail, good] of [
      ['', true],
      ['\\n', true],
      ['\\\\', true],
      ['\\"', true],
      ['\n', false],
      ['\\q', false],
    ] as const) {
      const text = 'x'.repeat(Math.max(0, length - tail.length)) + tail;
      const body = Buffer.from(`{"model":"m","messages":[{"role":"user","content":"${text}"}]}`);
      const found = schema.accept(body);
      t.equal(found !== null, good || text.length > 256, `${text.length} ${JSON.stringify(tail)}`);
      if (found !== null) t.ok(agrees(found, checked(body, schema), body));
    }
  }
  t.end();
});

test('the names of many models stay apart', (t) => {
  const schema = passedChatRequest;
  for (let turn = 0; turn < 2; turn++) {
    for (let i = 0; i < 2000; i++) {
      const body = { model: `model-${i}`, messages: [{ role: 'user', content: 'x' }] };
      if (schema.accept(Buffer.from(JSON.stringify(body)))?.model !== body.model) t.fail(body.model);
    }
  }
  t.pass();
  t.end();
});
