import assert from 'node:assert/strict';
import { test } from 'tap';
import type {
  AssistantPart,
  Effort,
  Reasoning,
  Tool,
  Turn,
  UserPart,
} from '../../../src/conversation/request.js';
import { messagesRequest } from '../../../src/protocols/messages/request/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { cases, fc } from '../../support/seed.js';
import { decode, encodeText, plain, target, token } from './samples.js';

const words = fc.string({ minLength: 1, unit: 'binary' }).map((text) => `${text}.`);
const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
/** Members that are no word of JSON Schema, of which a vendor holds no model to some. */
const named = (value: fc.Arbitrary<unknown>) => fc.dictionary(words, value, { maxKeys: 3 });
const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
const unheardOf = named(fc.oneof(scalar, fc.array(scalar, { maxLength: 2 }), named(scalar)));
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Leaves out what is undefined, as JSON does. */
const bare = (value: object) => JSON.parse(JSON.stringify(value)) as JsonObject;

const textBlock = words.map((text) => ({ type: 'text', text }));
const imageBlock = fc
  .constantFrom<object>(
    { type: 'base64', media_type: 'image/webp', data: 'AAAA' },
    { type: 'url', url: 'https://x/y.png' },
  )
  .map((source) => ({ type: 'image', source }));
const documentBlock = fc.constantFrom(
  { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA' }, title: 'a.pdf' },
  { type: 'document', source: { type: 'url', url: 'https://x/y.pdf' } },
);
const userBlock = fc.oneof(textBlock, imageBlock, documentBlock);
const thinkingBlock = fc.oneof(
  fc.record({ type: fc.constant('thinking'), thinking: fc.string(), signature: words }),
  words.map((data) => ({ type: 'redacted_thinking', data })),
);
/** The content of a result and its `is_error`, beside which the protocol allows only texts. */
const resultOf = fc.oneof(
  fc.tuple(words, maybe(fc.constant(true))),
  fc.tuple(fc.tuple(imageBlock, textBlock), fc.constant(undefined)),
);

/** Makes, by its number, a turn of the user, one of the assistant that thinks, speaks and calls, and the results. */
const exchange = fc
  .record({
    asked: fc.array(userBlock, { minLength: 1, maxLength: 3 }),
    thought: fc.array(thinkingBlock, { minLength: 1, maxLength: 2 }),
    said: fc.array(textBlock, { maxLength: 1 }),
    calls: fc.array(json, { minLength: 1, maxLength: 2 }),
    results: fc.array(resultOf, { minLength: 2, maxLength: 2 }),
    last: textBlock,
  })
  .map(({ asked, thought, said, calls, results, last }) => (number: number) => [
    { role: 'user', content: asked },
    {
      role: 'assistant',
      content: [
        ...thought,
        ...said,
        ...calls.map((input, index) => ({
          type: 'tool_use',
          id: `toolu_${number}${index}`,
          name: 'f',
          input,
        })),
      ],
    },
    {
      role: 'user',
      content: calls.map((_, index) => {
        const [content, is_error] = results[index] ?? ['x', undefined];
        return { type: 'tool_result', tool_use_id: `toolu_${number}${index}`, content, is_error };
      }),
    },
    { role: 'assistant', content: [last] },
  ]);

const tool = fc
  .record({ description: maybe(fc.string()), properties: unheardOf, strict: maybe(fc.constant(true)) })
  .map(({ description, properties, strict }) => ({
    name: 'f',
    description,
    input_schema: strict
      ? { type: 'object', properties, additionalProperties: false }
      : { type: 'object', properties },
    strict,
  }));

const sampling = fc
  .record({
    warmth: fc.oneof(
      fc.record({
        temperature: maybe(fc.double({ min: 0, max: 1, noNaN: true }).map((number) => number + 0)),
      }),
      fc.record({ top_p: fc.constantFrom(0.1, 0.95, 1) }),
    ),
    top_k: maybe(fc.nat()),
  })
  .map(({ warmth, top_k }) => ({ ...warmth, top_k, thinking: undefined }));
const withThinking = fc.record({
  thinking: fc.record({
    type: fc.constant('enabled'),
    budget_tokens: fc.integer({ min: 1024, max: 7999 }),
    display: maybe(fc.constant('omitted')),
  }),
});

const body = fc
  .record({
    max_tokens: fc.integer({ min: 8000, max: 64_000 }),
    stream: maybe(fc.constant(true)),
    stop_sequences: maybe(fc.array(words, { minLength: 1, maxLength: 6 })),
    metadata: maybe(fc.record({ user_id: fc.string({ minLength: 1 }) })),
    output_config: maybe(unheardOf.map((schema) => ({ format: { type: 'json_schema', schema } }))),
    system: maybe(fc.array(textBlock, { minLength: 1, maxLength: 2 })),
    tools: fc.array(tool, { minLength: 1, maxLength: 1 }),
    tool_choice: maybe(fc.constantFrom({ type: 'auto', disable_parallel_tool_use: true }, { type: 'none' })),
    exchanges: fc.array(exchange, { maxLength: 3 }),
    asked: textBlock,
    variable: fc.oneof(sampling, withThinking),
  })
  .map(({ exchanges, asked, variable, ...settings }) =>
    bare({
      model: 'up',
      ...settings,
      ...variable,
      messages: [...exchanges.flatMap((make, number) => make(number)), { role: 'user', content: [asked] }],
    }),
  );

/** The body as a client holds it: signatures are tokens there. */
function atClient(upstream: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(upstream), (_key, value) => {
    if (value?.type === 'thinking') return { ...value, signature: token(value.signature) };
    return value?.type === 'redacted_thinking' ? { ...value, data: token(value.data, true) } : value;
  }) as JsonObject;
}

test('a request of a client of this protocol comes through the neutral form as it was', async (t) => {
  fc.assert(
    fc.property(body, (upstream) => {
      const client = atClient(upstream);
      assert.ok(messagesRequest.check(client), messagesRequest.explain(client).message);
      const text = encodeText(decode(client, upstream.stream === true));
      assert.deepEqual(JSON.parse(text), upstream);
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

const textPart = fc.oneof(fc.string(), words).map((text) => ({ kind: 'text', text }) as const);
const spokenPart: fc.Arbitrary<AssistantPart> = fc.oneof(
  textPart,
  fc.string().map((text) => ({ kind: 'refusal', text }) as const),
  fc.record({
    kind: fc.constant('reasoning' as const),
    text: fc.string(),
    signature: fc.constantFrom(token('s'), token('enc', true), 'gw1.s.responses.bQ.x', null),
  }),
);
const callParts = (step: number) =>
  fc.array(json, { maxLength: 2 }).map((inputs) =>
    inputs.map((input, index): AssistantPart & { kind: 'toolCall' } => ({
      kind: 'toolCall',
      id: `call.${step}.${index}`,
      name: 'f',
      input: JSON.stringify(input, null, index),
      custom: false,
      at: '',
    })),
  );
const system: fc.Arbitrary<Turn[]> = fc.array(
  fc.string().map((text) => ({ role: 'system', text }) as const),
  { maxLength: 1 },
);

/** Reasoning that an upstream of this protocol made: thinking can go on after it. */
const ownReasoning: fc.Arbitrary<AssistantPart> = fc.record({
  kind: fc.constant('reasoning' as const),
  text: fc.string(),
  signature: fc.constantFrom(token('s'), token('enc', true)),
});

/**
 * What a conversation grows by: turns of the assistant, and those of the user that follow.
 * @param first what every answer begins with
 */
const growth = (step: number, first: fc.Arbitrary<AssistantPart>): fc.Arbitrary<Turn[]> =>
  fc
    .record({
      first,
      spoken: fc.array(spokenPart, { maxLength: 3 }),
      calls: callParts(step),
      before: system,
      asked: fc.array(textPart, { maxLength: 2 }),
      after: system,
    })
    .map(({ first, spoken, calls, before, asked, after }) => {
      const said: Turn[] = [
        { role: 'assistant', parts: [first, ...spoken, { kind: 'text', text: 'said' }] },
        { role: 'assistant', parts: calls },
      ];
      const results = calls.map(
        ({ id, name, at }): UserPart => ({
          kind: 'toolResult',
          callId: id,
          name,
          content: [{ kind: 'text', text: id }],
          isError: false,
          at,
        }),
      );
      return [
        ...said,
        ...before,
        { role: 'user', parts: results },
        { role: 'user', parts: [...asked, { kind: 'text', text: 'asked' }] },
        ...after,
      ];
    });
const growths = (first: fc.Arbitrary<AssistantPart>) =>
  fc.tuple(...[1, 2, 3, 4].map((step) => growth(step, first)));

const asked = (effort: Effort): Reasoning => ({ effort, budget: null, show: true, summary: null });
const efforts = fc.constantFrom(null, asked('none'), asked('low'), asked('max'));

/** The bodies of a conversation turn by turn. */
function bodies(steps: readonly Turn[][], reasoning: Reasoning | null, isAdaptive: boolean): string[] {
  const tool: Tool = { name: 'f', description: null, parameters: null, strict: null };
  let turns: Turn[] = [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }];
  const encoded = () =>
    encodeText(
      { ...plain, system: ['a'], turns, tools: [tool], reasoning },
      {
        thinking: isAdaptive ? 'adaptive' : 'budget',
      },
    );
  const texts = [encoded()];
  for (const step of steps) {
    turns = [...turns, ...step];
    texts.push(encoded());
  }
  return texts;
}

/** Each text but for its end is what the next one begins with. */
function assertGrowing(texts: readonly string[], end: string): void {
  for (const [index, text] of texts.slice(1).entries()) {
    const before = texts[index] as string;
    assert.ok(text.startsWith(before.slice(0, -end.length)), `${before}\n${text}`);
    assert.ok(text.length > before.length);
  }
}

test('the body of each turn begins with the one before', async (t) => {
  fc.assert(
    fc.property(growths(ownReasoning), efforts, fc.boolean(), (steps, reasoning, adaptive) => {
      const texts = bodies(steps, reasoning, adaptive);
      assertGrowing(texts, ']}');
      const thinks = reasoning !== null && reasoning.effort !== 'none';
      for (const text of texts)
        assert.equal(/"thinking":\{"type":"(enabled|adaptive)"/.test(text), thinks, text);
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

test('where thinking comes and goes, the messages and the limit stay as they were', async (t) => {
  fc.assert(
    fc.property(growths(spokenPart), efforts, fc.boolean(), (steps, reasoning, adaptive) => {
      const texts = bodies(steps, reasoning, adaptive);
      assertGrowing(
        texts.map((text) => text.slice(text.indexOf('"messages":'))),
        ']}',
      );
      const limits = texts.map((text) => (JSON.parse(text) as JsonObject).max_tokens);
      assert.equal(new Set(limits).size, 1, limits.join());
    }),
    { numRuns: cases(300) },
  );
  t.pass();
});

test('the same request is written the same way each time', async (t) => {
  fc.assert(
    fc.property(body, (upstream) => {
      const request = decode(atClient(upstream));
      assert.equal(encodeText(request), encodeText(structuredClone(request), { ...target }));
    }),
    { numRuns: 50 },
  );
  t.pass();
});
