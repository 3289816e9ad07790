import assert from 'node:assert/strict';
import { test } from 'tap';
import { chatRequest } from '../../../../src/protocols/chat/request/schema.js';
import { scanBody } from '../../../../src/wire/json-scan.js';
import { parseBody } from '../../../../src/wire/skeleton.js';
import { cases, fc } from '../../../support/seed.js';
import { damage, type Json } from '../../damage.js';

const user = { role: 'user', content: 'hi' };
const body = (more: object = {}) => ({ model: 'm', messages: [user], ...more });
const withContent = (...content: unknown[]) => body({ messages: [{ role: 'user', content }] });

const everything = {
  model: 'm',
  messages: [
    { role: 'system', content: 'be kind', name: 's' },
    { role: 'developer', content: [{ type: 'text', text: 'x' }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: '' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'file', file: { file_id: 'f', filename: null } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      refusal: null,
      reasoning_content: 'hm',
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'c2', type: 'custom', custom: { name: 'g', input: 'x' } },
      ],
    },
    { role: 'assistant', tool_calls: null, function_call: { name: 'f', arguments: '{}' } },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }], audio: { id: 'a' } },
    { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'done' }] },
    { role: 'function', name: 'f', content: 'done' },
  ],
  stream: true,
  stream_options: { include_usage: true, include_obfuscation: false },
  max_completion_tokens: 1,
  max_tokens: null,
  temperature: 2,
  top_p: 0,
  presence_penalty: -2,
  frequency_penalty: 2,
  n: 128,
  stop: ['a', 'b', 'c', 'd', 'e'],
  seed: -5,
  logit_bias: { '50256': -100 },
  logprobs: true,
  top_logprobs: 20,
  user: 'u',
  metadata: { a: 'b' },
  tools: [
    {
      type: 'function',
      function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
    },
    { type: 'custom', custom: { name: 'g', format: { type: 'text' } } },
  ],
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
  parallel_tool_calls: false,
  functions: [{ name: 'f' }],
  function_call: { name: 'f' },
  response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: null } },
  reasoning_effort: 'xhigh',
  verbosity: 'low',
  modalities: ['text', 'audio'],
  audio: { format: 'wav', voice: 'x' },
  prediction: { type: 'content', content: 'x' },
  service_tier: 'auto',
  store: true,
};

test('every documented member is accepted', (t) => {
  t.equal(chatRequest.check(everything), true, chatRequest.explain(everything).message);
  t.equal(
    chatRequest.check(body({ tool_choice: 'required', stop: 'x', function_call: 'auto', stream: false })),
    true,
  );
  t.equal(chatRequest.check(body({ response_format: { type: 'json_object' } })), true);
  const unnamed = { type: 'json_schema', json_schema: { schema: {} } };
  t.equal(chatRequest.check(body({ response_format: unnamed })), true, 'as clients of Perplexity send it');
  const beside = { type: 'json_schema', schema: {} };
  t.equal(chatRequest.check(body({ response_format: beside })), true, 'as clients of Together send it');
  const both = { ...beside, json_schema: { name: 'n', schema: 'x' } };
  t.equal(chatRequest.check(body({ response_format: both })), false, 'the named one is checked, too');
  t.end();
});

test('every optional member may be null', (t) => {
  for (const key of Object.keys(everything)) {
    if (key === 'model' || key === 'messages') continue;
    t.equal(chatRequest.check(body({ [key]: null })), true, key);
  }
  t.equal(chatRequest.check(body({ stream_options: { include_usage: null } })), true);
  t.end();
});

test('the unknown passes: members, roles, parts, tools, formats, efforts', (t) => {
  const unknown = [
    body({ context_management: [{ type: 'x' }], top_k: 5, stop: [] }),
    body({
      messages: [
        { role: 'critic', verdict: 5 },
        { role: 'user', content: null, mood: 'odd' },
      ],
    }),
    withContent({ type: 'video_url', video_url: 7 }, { type: 'text', text: 'x', cache_control: {} }),
    body({ tools: [{ type: 'web_search' }, { type: 'namespace', name: 5 }] }),
    body({ response_format: { type: 'grammar' }, reasoning_effort: 'ultra', tool_choice: 'any', tier: null }),
  ];
  for (const value of unknown) t.equal(chatRequest.check(value), true, chatRequest.explain(value).message);
  t.end();
});

test('a refusal names the place and the fault', (t) => {
  const cases: [object, string, string][] = [
    [{ messages: [user] }, 'missing_parameter', 'model'],
    [{ model: 'm' }, 'missing_parameter', 'messages'],
    [body({ model: '' }), 'invalid_value', 'model'],
    [body({ model: null }), 'invalid_request', 'model'],
    [body({ messages: [] }), 'invalid_value', 'messages'],
    [body({ messages: 'hi' }), 'invalid_request', 'messages'],
    [body({ messages: [user, 'hi'] }), 'invalid_request', 'messages[1]'],
    [body({ messages: [{ content: 'hi' }] }), 'missing_parameter', 'messages[0].role'],
    [body({ messages: [{ role: 5, content: 'hi' }] }), 'invalid_request', 'messages[0].role'],
    [
      body({ messages: [user, user, { role: 'user', content: 5 }] }),
      'invalid_request',
      'messages[2].content',
    ],
    [body({ messages: [{ role: 'user' }] }), 'missing_parameter', 'messages[0].content'],
    [body({ messages: [{ role: 'tool' }] }), 'missing_parameter', 'messages[0].content'],
    [
      body({ messages: [{ role: 'tool', content: 'x', tool_call_id: 5 }] }),
      'invalid_request',
      'messages[0].tool_call_id',
    ],
    [
      body({ messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: {} } }] }] }),
      'invalid_request',
      'messages[0].tool_calls[0].function.arguments',
    ],
    [withContent({ type: 'text' }), 'missing_parameter', 'messages[0].content[0].text'],
    [
      withContent({ type: 'text', text: 'x' }, { type: 'text', text: 5 }),
      'invalid_request',
      'messages[0].content[1].text',
    ],
    [withContent({ text: 'x' }), 'missing_parameter', 'messages[0].content[0].type'],
    [withContent('x'), 'invalid_request', 'messages[0].content[0]'],
    [withContent({ type: 'image_url', image_url: 7 }), 'invalid_request', 'messages[0].content[0].image_url'],
    [
      withContent({ type: 'image_url', image_url: { url: '' } }),
      'invalid_value',
      'messages[0].content[0].image_url.url',
    ],
    [body({ stream: 'true' }), 'invalid_request', 'stream'],
    [body({ stream_options: { include_usage: 1 } }), 'invalid_request', 'stream_options.include_usage'],
    [body({ temperature: 2.1 }), 'invalid_value', 'temperature'],
    [body({ temperature: '1' }), 'invalid_request', 'temperature'],
    [body({ n: 0 }), 'invalid_value', 'n'],
    [body({ max_tokens: 1.5 }), 'invalid_request', 'max_tokens'],
    [body({ max_tokens: -2 }), 'invalid_value', 'max_tokens'],
    [body({ stop: ['a', 5] }), 'invalid_request', 'stop[1]'],
    [body({ logit_bias: { '5': 101 } }), 'invalid_value', 'logit_bias["5"]'],
    [body({ tools: [{ function: { name: 'f' } }] }), 'missing_parameter', 'tools[0].type'],
    [body({ tools: [{ type: 'function' }] }), 'missing_parameter', 'tools[0].function'],
    [body({ tools: [{ type: 'function', function: {} }] }), 'missing_parameter', 'tools[0].function.name'],
    [
      body({ tools: [{ type: 'function', function: { name: '' } }] }),
      'invalid_value',
      'tools[0].function.name',
    ],
    [body({ tool_choice: {} }), 'missing_parameter', 'tool_choice.type'],
    [body({ response_format: { type: 'json_schema' } }), 'missing_parameter', 'response_format.json_schema'],
    [body({ response_format: 'json' }), 'invalid_request', 'response_format'],
  ];
  for (const [value, kind, param] of cases) {
    t.equal(chatRequest.check(value), false, param);
    const error = chatRequest.explain(value);
    t.match(error, { kind, param, status: 400 }, `${kind} ${param}: ${error.message}`);
    t.match(error.message, `'${param}'`);
  }
  t.end();
});

test('the words fit what a caller did', (t) => {
  const words = (value: object) => chatRequest.explain(value).message;
  t.equal(
    words(body({ messages: [{ role: 'user', content: 5 }] })),
    "Invalid type for 'messages[0].content': expected a string, an array or null, found a number.",
  );
  t.equal(
    words(withContent({ text: 'x' })),
    "Missing required parameter 'messages[0].content[0].type': expected a string.",
  );
  t.equal(
    words(body({ temperature: 5 })),
    "Invalid value for 'temperature': expected a number between 0 and 2, found 5.",
  );
  t.end();
});

test('a body of another endpoint is told where it belongs', (t) => {
  const cases: [object, string][] = [
    [{ model: 'm', input: 'hi' }, 'POST /v1/responses'],
    [{ contents: [] }, 'POST /v1beta/models/{model}:generateContent'],
    [{ model: 'm', prompt: 'hi' }, 'POST /v1/completions'],
  ];
  for (const [value, endpoint] of cases) {
    t.equal(chatRequest.check(value), false);
    const error = chatRequest.explain(value);
    t.equal(error.kind, 'invalid_request_body');
    t.match(error.message, endpoint);
  }
  t.equal(chatRequest.check(body({ input: 'x' })), true);
  t.end();
});

test('a damaged body gets the same verdict from skeleton and whole, and every refusal an explanation', (t) => {
  const long = JSON.parse(
    JSON.stringify(everything).replaceAll('"x"', JSON.stringify('long \\"text\n '.repeat(40))),
  ) as Json;
  const wrong = fc.constantFrom<Json | undefined>(
    undefined,
    null,
    true,
    0,
    1.5,
    -200,
    '',
    'text',
    'tool',
    'x'.repeat(300),
    [],
    {},
    ['x'],
    { type: 'text' },
    { role: 'user' },
    [{ type: 'function' }],
  );
  let refused = 0;
  fc.assert(
    fc.property(fc.array(fc.nat(1000), { minLength: 1, maxLength: 7 }), wrong, (turns, by) => {
      const value = damage(long, turns, by);
      const bytes = Buffer.from(JSON.stringify(value));
      const skeleton = parseBody(bytes, scanBody(bytes));
      const verdict = chatRequest.check(value);
      assert.equal(chatRequest.check(skeleton), verdict);
      assert.equal(chatRequest.explain(skeleton).param, chatRequest.explain(value).param);
      assert.equal(chatRequest.explain(value).message === 'The request is not valid.', verdict);
      refused += verdict ? 0 : 1;
    }),
    { numRuns: cases(3000) },
  );
  t.ok(refused > cases(300), `${refused} refused`);
  t.end();
});
