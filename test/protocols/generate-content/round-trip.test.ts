import assert from 'node:assert/strict';
import { test } from 'tap';
import { generateContentCodec } from '../../../src/protocols/generate-content/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { fc } from '../../support/seed.js';
import { writeRequest } from '../write-request.js';
import { sealer, target, token } from './samples.js';

/*
 * Requests in the one spelling that the encoder has for what they mean, so that nothing may differ after a round trip
 * but what is dropped by intent.
 */

const { decodeRequest } = generateContentCodec;
const word = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,11}$/);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const data = fc.constantFrom('AA==', 'AAAA', '/+8=');
const schema = fc.constantFrom<JsonObject>(
  { type: 'object', properties: {} },
  { type: 'object', title: 'é', properties: { a: { type: 'string' } } },
);
/** As it is after a round trip through JSON text, of which the codec makes use. */
const plainObject = fc
  .dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
  .map((object) => JSON.parse(JSON.stringify(object)) as JsonObject);

const textPart = word.map((text) => ({ text }));
const mediaPart = fc.oneof(
  fc
    .record({ mimeType: fc.constantFrom('image/png', 'application/pdf', 'audio/wav', 'video/mp4'), data })
    .map((inlineData) => ({ inlineData })),
  fc
    .record({ fileUri: fc.webUrl(), mimeType: optional(fc.constant('image/png')) })
    .map((fileData) => ({ fileData })),
);
const signed = (part: JsonObject, signature: string | undefined): JsonObject =>
  signature === undefined ? part : { ...part, thoughtSignature: signature };
const response = fc.oneof(
  word.filter((text) => !text.trimStart().startsWith('{')).map((result) => ({ result })),
  word.map((error) => ({ error })),
  plainObject.filter((object) => !['result', 'output', 'error'].some((key) => Object.hasOwn(object, key))),
);

/** One exchange: what the user says, perhaps calls with their results, and the answer. */
const exchange = fc
  .record({
    said: fc.array(fc.oneof(textPart, mediaPart), { minLength: 1, maxLength: 3 }),
    before: optional(word),
    calls: fc.array(fc.record({ name, args: plainObject, signature: optional(word) }), { maxLength: 3 }),
    responses: fc.array(response, { minLength: 3, maxLength: 3 }),
    answer: word,
    thought: optional(word),
    signature: word,
  })
  .map(({ said, before, calls, responses, answer, thought, signature }) => ({
    said,
    before,
    calls,
    responses,
    last: [
      ...(thought === undefined ? [] : [{ text: thought, thought: true }]),
      signed({ text: answer }, thought === undefined ? undefined : signature),
    ],
  }));

const conversation = fc.array(exchange, { minLength: 1, maxLength: 4 }).map((exchanges) => {
  let number = 0;
  return exchanges.map(({ said, before, calls, responses, last }): JsonObject[] => {
    const contents: JsonObject[] = [{ role: 'user', parts: said }];
    const ids = calls.map(() => `id-${number++}`);
    if (calls.length > 0) {
      const parts = calls.map(({ name, args, signature }, index) =>
        signed({ functionCall: { id: ids[index], name, args } }, signature),
      );
      contents.push({ role: 'model', parts: before === undefined ? parts : [{ text: before }, ...parts] });
      contents.push({
        role: 'user',
        parts: calls.map(({ name }, index) => ({
          functionResponse: { id: ids[index], name, response: responses[index] },
        })),
      });
    }
    contents.push({ role: 'model', parts: last });
    return contents;
  });
});

const tools = fc.uniqueArray(
  fc.record({ name, description: optional(fc.string()), parametersJsonSchema: schema }),
  { selector: (tool) => tool.name, minLength: 1, maxLength: 3 },
);
const callingConfig = fc.oneof(
  fc.constantFrom({ mode: 'NONE' }, { mode: 'AUTO' }, { mode: 'ANY' }),
  fc.record({
    mode: fc.constantFrom('ANY', 'VALIDATED'),
    allowedFunctionNames: fc.array(name, { minLength: 1, maxLength: 3 }),
  }),
);
const format = fc.oneof(
  fc.constant({ responseMimeType: 'application/json' }),
  schema.map((responseJsonSchema) => ({ responseMimeType: 'application/json', responseJsonSchema })),
);
const generationConfig = fc
  .tuple(
    fc.record(
      {
        temperature: fc.constantFrom(0, 0.5, 2),
        topP: fc.constantFrom(0, 0.5, 1),
        topK: fc.constantFrom(1, 40),
        candidateCount: fc.integer({ min: 2, max: 8 }),
        maxOutputTokens: fc.integer({ min: 1 }),
        stopSequences: fc.array(word, { minLength: 1, maxLength: 5 }),
        presencePenalty: fc.constantFrom(-1, 0, 1),
        frequencyPenalty: fc.constantFrom(-1, 0, 1),
        seed: fc.integer(),
        responseLogprobs: fc.constant(true),
        thinkingConfig: fc.oneof(
          fc.record({
            thinkingBudget: fc.integer({ min: 1, max: 24_576 }),
            includeThoughts: optional(fc.constant(true)),
          }),
          fc.constant({ thinkingBudget: 0 }),
          fc.constant({ includeThoughts: true }),
        ),
      },
      { requiredKeys: [] },
    ),
    optional(format),
  )
  .map(([settings, form]) => ({ ...settings, ...form }))
  .filter((config) => Object.keys(config).length > 0);

const settings = fc.record(
  {
    systemInstruction: word.map((text) => ({ parts: [{ text }] })),
    generationConfig,
  },
  { requiredKeys: [] },
);
const toolSettings = fc.record(
  {
    tools: tools.map((functionDeclarations) => [{ functionDeclarations }]),
    toolConfig: callingConfig.map((functionCallingConfig) => ({ functionCallingConfig })),
  },
  { requiredKeys: ['tools'] },
);

/** The signatures of a body as a client carries them: sealed. */
function sealed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sealed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === 'thoughtSignature'
        ? token(String(member))
        : key === 'args' || key === 'response'
          ? member
          : sealed(member),
    ]),
  );
}

const bodyOf = (body: JsonObject) =>
  writeRequest(
    generateContentCodec,
    decodeRequest(sealed(JSON.parse(JSON.stringify(body))) as JsonObject, false, sealer),
    target,
  );

test('a request comes back as it was', async () => {
  fc.assert(
    fc.property(settings, optional(toolSettings), conversation, (given, withTools, exchanges) => {
      const body = { ...given, ...withTools, contents: exchanges.flat() };
      assert.deepEqual(JSON.parse(bodyOf(body)), JSON.parse(JSON.stringify(body)));
    }),
  );
});

test('the body of the next turn begins with the bytes of this one', async () => {
  fc.assert(
    fc.property(settings, optional(toolSettings), conversation, (given, withTools, exchanges) => {
      let before = '';
      const contents = exchanges.flat();
      for (let count = 1; count <= contents.length; count++) {
        // Calls are not a request's last words.
        if (JSON.stringify(contents[count - 1]).includes('"functionCall":')) continue;
        const body = bodyOf({ ...given, ...withTools, contents: contents.slice(0, count) });
        assert.ok(body.startsWith(before));
        // But for the brackets of `contents` and of the body.
        before = body.slice(0, -2);
      }
    }),
  );
});
