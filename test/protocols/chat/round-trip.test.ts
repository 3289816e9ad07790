import assert from 'node:assert/strict';
import { test } from 'tap';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { cases, fc } from '../../support/seed.js';
import { writeRequest } from '../write-request.js';
import { decode, target } from './samples.js';

/*
 * Requests in the one spelling that the encoder has for what they mean, so that nothing may differ after a round trip
 * but what is dropped by intent.
 */

const word = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/);
const bytes = fc.constantFrom('AA==', 'AAAA', '/+8=');
const schema = fc.constantFrom<JsonObject & { readonly properties: object }>(
  { type: 'object', properties: {} },
  { type: 'object', title: 'é', properties: { a: { type: 'string' } } },
);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

const textPart = word.map((text) => ({ type: 'text', text }));
const mediaPart = fc.oneof(
  fc.record({ bytes, detail: optional(fc.constantFrom('low', 'high', 'auto')) }).map(({ bytes, detail }) => ({
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${bytes}`, detail },
  })),
  fc.webUrl().map((url) => ({ type: 'image_url', image_url: { url } })),
  fc.record({ data: bytes, format: fc.constantFrom('wav', 'mp3') }).map((audio) => ({
    type: 'input_audio',
    input_audio: audio,
  })),
  fc.record({ bytes, filename: name }).map(({ bytes, filename }) => ({
    type: 'file',
    file: { filename, file_data: `data:application/pdf;base64,${bytes}` },
  })),
);
const userContent = fc.oneof(
  word,
  fc.array(fc.oneof(textPart, mediaPart), { minLength: 2, maxLength: 4 }),
  mediaPart.map((part) => [part]),
);

const functionCall = fc.record({
  id: name,
  type: fc.constant('function'),
  function: fc.record({ name, arguments: fc.json() }),
});
const customCall = fc.record({
  id: name,
  type: fc.constant('custom'),
  custom: fc.record({ name, input: fc.string() }),
});

/** One exchange: what the user says, perhaps calls with their results, and the answer. */
const exchange = fc
  .record({
    instruction: optional(word),
    content: userContent,
    said: fc.option(word),
    calls: fc.uniqueArray(fc.oneof(functionCall, customCall), { selector: ({ id }) => id, maxLength: 3 }),
    results: fc.array(fc.string(), { minLength: 3, maxLength: 3 }),
    refusal: optional(word),
    answer: word,
  })
  .map(({ instruction, content, said, calls, results, refusal, answer }): JsonObject[] => {
    const messages: JsonObject[] = [{ role: 'user', content }];
    if (instruction !== undefined) messages.push({ role: 'system', content: instruction });
    if (calls.length > 0) messages.push({ role: 'assistant', content: said, tool_calls: calls });
    for (const [index, { id }] of calls.entries())
      messages.push({ role: 'tool', tool_call_id: id, content: results[index] });
    messages.push({ role: 'assistant', content: answer, refusal });
    return messages;
  });

const tool = fc.oneof(
  fc
    .record({ name, description: optional(fc.string()), parameters: schema, strict: optional(fc.boolean()) })
    .map(({ parameters, ...rest }) => {
      const required = Object.keys(parameters.properties);
      const kept =
        rest.strict === true ? { ...parameters, required, additionalProperties: false } : parameters;
      return { type: 'function', function: { ...rest, parameters: kept } };
    }),
  fc
    .record({
      name,
      description: optional(fc.string()),
      format: optional(fc.constant({ type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } })),
    })
    .map((custom) => ({ type: 'custom', custom })),
);
const toolSettings = fc
  .uniqueArray(tool, {
    selector: (each) => ('custom' in each ? each.custom.name : each.function.name),
    minLength: 1,
    maxLength: 4,
  })
  .chain((tools) => {
    const named = tools.map((each) =>
      'custom' in each
        ? { type: 'custom', custom: { name: each.custom.name } }
        : { type: 'function', function: { name: each.function.name } },
    );
    return fc.record(
      {
        tools: fc.constant(tools),
        tool_choice: fc.oneof(
          fc.constantFrom('none', 'auto', 'required'),
          fc.constantFrom(...named),
          fc
            .record({
              mode: fc.constantFrom('auto', 'required'),
              tools: fc.subarray(named, { minLength: 1 }),
            })
            .map((allowed) => ({ type: 'allowed_tools', allowed_tools: allowed })),
        ),
        parallel_tool_calls: fc.boolean(),
      },
      { requiredKeys: ['tools'] },
    );
  });

const settings = fc.record(
  {
    max_completion_tokens: fc.integer({ min: 1 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }).filter((value) => !Object.is(value, -0)),
    top_p: fc.constantFrom(0, 0.5, 1),
    n: fc.integer({ min: 2, max: 128 }),
    stop: fc.array(word, { minLength: 1, maxLength: 4 }),
    seed: fc.nat(),
    presence_penalty: fc.integer({ min: -2, max: 2 }),
    frequency_penalty: fc.integer({ min: -2, max: 2 }),
    logit_bias: fc.constant({ 50256: -100 }),
    logprobs: fc.constant(true),
    user: word,
    verbosity: fc.constantFrom('low', 'high'),
    reasoning_effort: fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    response_format: fc.oneof(
      fc.constant({ type: 'json_object' }),
      fc
        .record({ name, description: optional(fc.string()), schema, strict: optional(fc.boolean()) })
        .map((named) => ({ type: 'json_schema', json_schema: named })),
    ),
  },
  { requiredKeys: [] },
);

const request = fc
  .record({
    settings,
    toolSettings: optional(toolSettings),
    system: optional(word),
    exchanges: fc.array(exchange, { minLength: 1, maxLength: 4 }),
  })
  .map((parts) => {
    const messages = parts.exchanges.flat();
    if (parts.system !== undefined) messages.unshift({ role: 'system', content: parts.system });
    // As it comes over the wire: without members that are undefined.
    const body = { model: 'up', ...parts.settings, ...parts.toolSettings, messages };
    return JSON.parse(JSON.stringify(body)) as JsonObject;
  });

test('nothing of a request is lost on the way to the neutral types and back', async (t) => {
  fc.assert(
    fc.property(request, (body) => {
      assert.deepEqual(JSON.parse(writeRequest(chatCodec, decode(body), target)), body);
    }),
    { numRuns: cases(500) },
  );
  t.pass();
});

test('what is written is understood as the same', async (t) => {
  fc.assert(
    fc.property(request, (body) => {
      const once = decode(body);
      assert.deepEqual(decode(JSON.parse(writeRequest(chatCodec, once, target))), once);
    }),
    { numRuns: 200 },
  );
  t.pass();
});

test('a longer conversation begins with the bytes of a shorter one', async (t) => {
  const bodies = fc.tuple(settings, toolSettings, fc.array(exchange, { minLength: 2, maxLength: 5 }));
  let withCalls = 0;
  fc.assert(
    fc.property(bodies, ([some, tools, exchanges]) => {
      const messages = exchanges.flat();
      // A request ends where the model is to go on: after the user or the last of some results.
      const ends = messages.flatMap(({ role }, index) =>
        role === 'assistant' && messages[index - 1]?.role !== 'assistant' ? [index] : [],
      );
      const bodyTo = (end: number) =>
        writeRequest(chatCodec, decode({ ...some, ...tools, messages: messages.slice(0, end) }), target);
      const written = ends.map(bodyTo);
      for (const [index, longer] of written.slice(1).entries())
        assert.ok(longer.startsWith((written[index] as string).slice(0, -2)));
      if (messages.some(({ role }) => role === 'tool')) withCalls++;
    }),
    { numRuns: 100 },
  );
  t.ok(withCalls > 0, 'some of them call tools');
});

test('no body that passes the schema in part makes the decoder fail but by a refusal', async (t) => {
  const odd = fc.oneof(fc.jsonValue(), fc.string());
  const message = fc.record(
    {
      role: fc.constantFrom('user', 'assistant', 'tool', 'function', 'system', 'x'),
      content: fc.oneof(
        odd,
        fc.array(
          fc.record(
            { type: fc.constantFrom('text', 'file', 'image_url', 'x'), text: odd, file: odd, image_url: odd },
            { requiredKeys: ['type'] },
          ),
        ),
      ),
      tool_calls: odd,
      function_call: odd,
      tool_call_id: odd,
      name: odd,
      refusal: odd,
    },
    { requiredKeys: ['role'] },
  );
  const body = fc.record(
    {
      messages: fc.array(message),
      tools: odd,
      tool_choice: odd,
      functions: odd,
      stop: odd,
      response_format: odd,
      n: odd,
    },
    { requiredKeys: ['messages'] },
  );
  fc.assert(
    fc.property(body, (each) => {
      try {
        writeRequest(chatCodec, decode(each as JsonObject), target);
      } catch (error) {
        assert.equal((error as Error).name, 'GatewayError');
      }
    }),
    { numRuns: cases(500) },
  );
  t.pass();
});
