import { test } from 'tap';
import { prose } from '../../../../bench/bodies.js';
import {
  messagesRequest,
  passedCountTokensRequest,
  passedMessagesRequest,
} from '../../../../src/protocols/messages/request/schema.js';

/*
 * The full check would answer for these as well, only slower: nothing else would show that the fast one had ceased
 * to know them.
 */

const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    file_path: { type: 'string', description: 'The "absolute" path\nof the file' },
    limit: { type: 'number', exclusiveMinimum: 0, default: 1.5 },
    edits: { type: 'array', items: { anyOf: [{ type: 'object' }, { type: 'null' }] } },
  },
  required: ['file_path'],
  additionalProperties: false,
};
const read = { name: 'Read', description: prose(900), input_schema: schema };
const ephemeral = { type: 'ephemeral', ttl: '1h' };
const image = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo'.repeat(2000) };

const agent = {
  model: 'claude-sonnet-4-5-20250929',
  messages: Array.from({ length: 30 }, (_, turn) => [
    {
      role: 'user',
      content: [
        { type: 'text', text: `<system-reminder>\n${prose(200 + 20 * turn)}</system-reminder>` },
        { type: 'text', text: 'Fix it. 漢字 "quoted"', cache_control: ephemeral },
      ],
    },
    { role: 'system', content: 'The file has changed.' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: prose(300), signature: 'EqQB'.repeat(100) },
        { type: 'redacted_thinking', data: 'EqQB'.repeat(50) },
        { type: 'text', text: 'I shall read it.' },
        { type: 'tool_use', id: `toolu_${turn}`, name: 'Read', input: { file_path: '/a/b', limit: 1e2 } },
      ],
    },
    {
      role: 'user',
      content: [
        { tool_use_id: `toolu_${turn}`, type: 'tool_result', content: prose(2000), is_error: false },
        { type: 'tool_result', content: [{ type: 'text', text: prose(50) }], tool_use_id: 'toolu_x' },
      ],
    },
  ]).flat(),
  system: [
    { type: 'text', text: 'You are an agent.', cache_control: ephemeral },
    { type: 'text', text: prose(8000), cache_control: ephemeral },
  ],
  tools: [...Array.from({ length: 16 }, () => read), { type: 'web_search_20250305', name: 'web_search' }],
  metadata: { user_id: 'user_1_account__session_2' },
  max_tokens: 32_000,
  thinking: { budget_tokens: 31_999, type: 'enabled' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'medium' },
  stream: true,
};

const bodies: Record<string, object> = {
  'one message': { model: 'm', max_tokens: 1024, messages: [{ role: 'user', content: 'Hello' }] },
  'every setting': {
    max_tokens: 0,
    messages: [{ content: 'Hello', role: 'user' }],
    model: 'org/model-7b:free',
    system: 'Be brief.',
    temperature: 0.7,
    top_p: 0.95,
    top_k: 40,
    stop_sequences: ['###'],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    thinking: { type: 'adaptive', display: 'summarized' },
    output_config: { effort: 'max', format: { type: 'json_schema', schema } },
    service_tier: 'standard_only',
    metadata: null,
    stream: false,
  },
  'blocks of every type': {
    model: 'm',
    max_tokens: 10,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: image },
          { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
          { type: 'document', source: { ...image, media_type: 'application/pdf' }, title: 'a.pdf' },
          { type: 'document', source: { type: 'file', file_id: 'file_1' }, citations: { enabled: true } },
          { type: 'search_result', source: 'a', title: 'b', content: [{ type: 'text', text: 'c' }] },
          { type: 'container_upload', file_id: 'file_1' },
          { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: image }] },
        ],
      },
    ],
    tool_choice: { name: 'Read', type: 'tool' },
    tools: [read],
  },
  'a coding agent in the middle of its work': agent,
};

for (const [name, body] of Object.entries(bodies)) {
  test(`accepted without a parse: ${name}`, (t) => {
    const expected = {
      model: (body as { model: string }).model,
      stream: 'stream' in body && body.stream === true,
    };
    t.equal(messagesRequest.check(body), true, messagesRequest.explain(body).message);
    t.match(
      passedMessagesRequest.accept(Buffer.from(JSON.stringify(body))),
      expected,
      'as JavaScript writes it',
    );
    t.match(passedMessagesRequest.accept(Buffer.from(JSON.stringify(body, null, 2))), expected, 'indented');
    const { max_tokens: _, ...question } = body as Record<string, unknown>;
    const bytes = Buffer.from(JSON.stringify(question));
    t.match(passedCountTokensRequest.accept(bytes), { model: expected.model }, 'as a question for tokens');
    t.end();
  });
}
