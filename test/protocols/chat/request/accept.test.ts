import { test } from 'tap';
import { chatBody, prose } from '../../../../bench/bodies.js';
import { passedChatRequest } from '../../../../src/protocols/chat/request/schema.js';

/*
 * The full check would answer for these as well, only slower: nothing else would show that the fast one had ceased
 * to know them.
 */

const user = { role: 'user', content: 'What is the weather in Zürich? 漢字 "quoted"\n' };
const parameters = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    city: { type: 'string', description: 'A "city"\nby name', pattern: '^[\\w\\s]+$' },
    days: { type: 'integer', minimum: 1, maximum: 1e2, default: 1.5 },
    unit: { anyOf: [{ type: 'string', enum: ['c', 'f'] }, { type: 'null' }] },
  },
  patternProperties: { '^\\d+$': {} },
  required: ['city'],
  additionalProperties: false,
};
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'Looks it up.', parameters, strict: true },
};
const call = {
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Zürich"}' },
};
const image = `data:image/png;base64,${'iVBORw0KGgo'.repeat(2000)}`;

const bodies: Record<string, object> = {
  'one message': { model: 'gpt-4o', messages: [user] },
  'every setting': {
    model: 'org/model-7b:free',
    messages: [
      { role: 'system', content: 'Be brief.' },
      user,
      { role: 'developer', content: 'x', name: 'me' },
    ],
    temperature: 0.7,
    top_p: 0.95,
    presence_penalty: -0.5,
    frequency_penalty: 0,
    n: 1,
    stop: ['\n', '###'],
    seed: 123_456_789,
    max_tokens: 4096,
    max_completion_tokens: null,
    logit_bias: { 50256: -100 },
    logprobs: true,
    top_logprobs: 5,
    user: 'user-1',
    metadata: { purpose: 'a test' },
    response_format: { type: 'text' },
    reasoning_effort: 'low',
    service_tier: 'auto',
    store: false,
    modalities: ['text'],
  },
  'a stream with usage': {
    model: 'gpt-4o',
    messages: [user],
    stream: true,
    stream_options: { include_usage: true },
  },
  'nulls for what is not set': {
    model: 'gpt-4o',
    messages: [user],
    stream: null,
    stream_options: null,
    tools: null,
    stop: null,
    temperature: null,
    response_format: null,
  },
  'tools and their calls': {
    model: 'gpt-4o',
    messages: [
      user,
      { role: 'assistant', content: null, tool_calls: [call], refusal: null },
      { role: 'tool', tool_call_id: 'call_1', content: '{"c":21.5}' },
      { role: 'assistant', content: 'It is 21.5 °C.' },
      { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{}' } },
      { role: 'function', name: 'weather', content: '21' },
    ],
    tools: [weather, { type: 'custom', custom: { name: 'c', description: null } }, { type: 'web_search' }],
    tool_choice: { type: 'function', function: { name: 'weather' } },
    parallel_tool_calls: true,
  },
  'parts of every type': {
    model: 'gpt-4o',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?', cache_control: { type: 'ephemeral' } },
          { type: 'image_url', image_url: { url: image, detail: 'high' } },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
          { type: 'file', file: { file_id: 'file-1' } },
          { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
        ],
      },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    ],
  },
  'a JSON schema for the answer': {
    model: 'gpt-4o',
    messages: [user],
    response_format: { type: 'json_schema', json_schema: { name: 'w', strict: true, schema: parameters } },
  },
  'content before the role': {
    model: 'gpt-4o',
    messages: ['system', 'user', 'assistant'].map((role) => ({ content: prose(500), role })),
  },
  'an agent with fields of its own': {
    max_tokens: 8192,
    reasoning: { effort: 'high', exclude: false },
    provider: { order: ['a', 'b'], 'odd "key"': 1e300 },
    messages: Array.from({ length: 40 }, (_, turn) => [
      { role: 'user', content: [{ type: 'text', text: prose(100 + 20 * turn) }] },
      { role: 'assistant', content: prose(20 * turn), reasoning_content: 'Hm.', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '{"ok":true}' }] },
    ]).flat(),
    tools: Array.from({ length: 14 }, () => weather),
    tool_choice: 'auto',
    model: 'anthropic/claude-sonnet-4',
    stream: true,
    stream_options: { include_usage: true, include_obfuscation: false },
    usage: { include: true },
  },
};

for (const [name, body] of Object.entries(bodies)) {
  test(`accepted without a parse: ${name}`, (t) => {
    const expected = {
      model: (body as { model: string }).model,
      stream: 'stream' in body && body.stream === true,
      includeUsage: 'stream_options' in body && body.stream_options !== null,
    };
    t.match(passedChatRequest.accept(Buffer.from(JSON.stringify(body))), expected, 'as JavaScript writes it');
    t.match(passedChatRequest.accept(Buffer.from(JSON.stringify(body, null, 2))), expected, 'indented');
    t.match(passedChatRequest.accept(Buffer.from(spaced(body))), expected, 'as Python writes it');
    t.end();
  });
}

test('accepted without a parse: the bodies of the bench', (t) => {
  for (const size of [400, 1024, 8192, 65_536, 318_000]) {
    for (const stream of [false, true]) {
      t.match(passedChatRequest.accept(Buffer.from(chatBody(size, stream))), {
        stream,
        includeUsage: stream,
      });
    }
  }
  t.end();
});

/** With a space after colons and commas, and all but ASCII escaped. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, member]) => `${spaced(key)}: ${spaced(member)}`);
    return `{${members.join(', ')}}`;
  }
  return JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
