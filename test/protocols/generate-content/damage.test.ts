import assert from 'node:assert/strict';
import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { generateContentCodec } from '../../../src/protocols/generate-content/index.js';
import { generateContentRequest } from '../../../src/protocols/generate-content/request/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { plainSource } from '../../conversation/plain.js';
import { cases, fc } from '../../support/seed.js';
import { writeRequest } from '../write-request.js';
import { context, decodeBlocks, encodeEvents, sealer, target } from './samples.js';

/** Any JSON, made of the protocol's words. */
function jsonOf(words: readonly string[]): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 6, depthSize: 'large' },
      fc.constantFrom<unknown>(null, true, 0, 1, -1, '', 'user', 'model', 'STOP', 'image/png', 'https://a/b'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('toString', ...words), tie('value'), { maxKeys: 4 }),
    ),
  }));
  return value;
}

const partWords = [
  'parts',
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'name',
  'args',
  'id',
  'role',
];
const part = jsonOf(partWords);
const candidate = fc.record(
  {
    content: fc.oneof(part, fc.record({ parts: fc.array(part, { maxLength: 3 }) })),
    finishReason: fc.constantFrom('STOP', 'OTHER', null, 5),
    index: fc.constantFrom(0, 1, -1, null, 'a'),
    logprobsResult: jsonOf(['chosenCandidates', 'topCandidates', 'candidates', 'token', 'logProbability']),
  },
  { requiredKeys: [] },
);
const answer = fc.record(
  {
    candidates: fc.oneof(part, fc.array(fc.oneof(candidate, part), { maxLength: 3 })),
    promptFeedback: jsonOf(['blockReason']),
    usageMetadata: jsonOf(['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount']),
    error: fc.constantFrom(undefined, null, {}, { code: 429 }, { message: 5 }),
  },
  { requiredKeys: [] },
);

test('whatever an upstream sends is decoded, or is an error of the upstream', async () => {
  fc.assert(
    fc.property(answer, (body) => {
      try {
        JSON.parse(
          generateContentCodec.encodeAnswer(
            generateContentCodec.decodeAnswer(body, { ...plainSource, model: 'g' }),
            context,
          ),
        );
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
      }
    }),
    { numRuns: cases(500) },
  );
});

test('whatever an upstream streams ends once, with an end or an error', async () => {
  fc.assert(
    fc.property(fc.array(answer, { maxLength: 4 }), (blocks) => {
      const events = decodeBlocks(...blocks);
      const last = events.filter(({ kind }) => kind === 'end' || kind === 'error');
      assert.equal(last.length, 1);
      assert.equal(events.at(-1), last[0]);
      const written: unknown = JSON.parse(encodeEvents(events, { framing: 'array' }));
      assert.ok(Array.isArray(written) && written.length > 0);
    }),
    { numRuns: cases(500) },
  );
});

const content = jsonOf([
  ...partWords,
  'inlineData',
  'inline_data',
  'mimeType',
  'data',
  'fileData',
  'fileUri',
  'functionResponse',
  'response',
  'result',
  'error',
]);
const setting = jsonOf([
  'functionDeclarations',
  'name',
  'parameters',
  'type',
  'properties',
  'functionCallingConfig',
  'mode',
  'allowedFunctionNames',
  'thinkingConfig',
  'thinkingLevel',
  'responseSchema',
  'responseModalities',
  'stopSequences',
]);
const sound = fc.constantFrom<JsonObject>(
  { role: 'user', parts: [{ text: 'a' }] },
  { role: 'model', parts: [{ functionCall: { id: 'x', name: 'f', args: {} }, thoughtSignature: 's' }] },
);
const odd = fc.record({
  role: fc.constantFrom<unknown>('user', 'model', 'system', { toString: 1 }),
  parts: fc.array(content, { maxLength: 2 }),
});
/** One thing at a time, so that what is wrong with it does not hide the rest. */
const body = fc.oneof(
  fc.tuple(sound, odd, sound).map((contents) => ({ contents })),
  fc
    .record({
      sound,
      key: fc.constantFrom('systemInstruction', 'tools', 'tool_config', 'generationConfig'),
      value: fc.oneof(setting, content),
    })
    .map(({ sound, key, value }) => ({ contents: [sound], [key]: value })),
);

test('whatever a client sends is translated, or refused with the place that is wrong', async () => {
  let translated = 0;
  fc.assert(
    fc.property(body, fc.boolean(), (given: JsonObject, jsonSchema) => {
      try {
        const request = generateContentCodec.decodeRequest(given, false, sealer);
        JSON.parse(
          writeRequest(generateContentCodec, request, { ...target, jsonSchema, hostedTools: 'drop' }),
        );
        translated++;
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
        assert.equal(error.status, 400);
        assert.notEqual(error.param, null);
      }
      generateContentRequest.check(given);
    }),
    { numRuns: cases(1000) },
  );
  assert.ok(translated > cases(100));
});
