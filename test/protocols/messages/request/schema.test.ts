import assert from 'node:assert/strict';
import { test } from 'tap';
import { countTokensRequest, messagesRequest } from '../../../../src/protocols/messages/request/schema.js';
import { scanBody } from '../../../../src/wire/json-scan.js';
import { parseBody } from '../../../../src/wire/skeleton.js';
import { cases, fc } from '../../../support/seed.js';

const user = { role: 'user', content: 'hi' };
const body = (more: object = {}) => ({ model: 'm', max_tokens: 10, messages: [user], ...more });
const withBlocks = (...content: unknown[]) => body({ messages: [{ role: 'user', content }] });

const everything = {
  model: 'm',
  max_tokens: 0,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        { type: 'image', source: { type: 'url', url: 'https://x/y' } },
        { type: 'image', source: { type: 'file', file_id: 'f' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' }, title: 't' },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }] } },
        { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'x' }] },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'x' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'x', citations: [] },
        { type: 'tool_use', id: 'c1', name: 'f', input: { a: 1 } },
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c1', content: 'x', is_error: true },
        { type: 'tool_result', tool_use_id: 'c1' },
        {
          type: 'tool_result',
          tool_use_id: 'c1',
          content: [
            { type: 'text', text: 'x' },
            { type: 'tool_reference', tool_name: 'x' },
          ],
        },
      ],
    },
    { role: 'system', content: 'be kind' },
  ],
  system: [{ type: 'text', text: 'x' }],
  stream: true,
  stop_sequences: ['x'],
  temperature: 1,
  top_p: 0,
  top_k: 5,
  tools: [
    { name: 'f', description: 'd', input_schema: { type: 'object' }, strict: true, cache_control: {} },
    { type: 'custom', name: 'g', input_schema: {} },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 5 },
  ],
  tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
  thinking: { type: 'enabled', budget_tokens: 1024, display: 'omitted' },
  output_config: { effort: 'high', format: { type: 'json_schema', schema: {} } },
  metadata: { user_id: 'u' },
  service_tier: 'auto',
  container: { id: 'x' },
};

test('every documented member is accepted', (t) => {
  t.equal(messagesRequest.check(everything), true, messagesRequest.explain(everything).message);
  t.equal(messagesRequest.check(body({ system: 'be kind', tool_choice: { type: 'any' } })), true);
  t.equal(messagesRequest.check(body({ thinking: { type: 'adaptive' } })), true);
  const { max_tokens: _, ...question } = everything;
  t.equal(countTokensRequest.check(question), true, 'a question for tokens needs no limit');
  t.end();
});

test('every optional member may be null', (t) => {
  for (const key of Object.keys(everything)) {
    if (key === 'model' || key === 'messages' || key === 'max_tokens') continue;
    t.equal(messagesRequest.check(body({ [key]: null })), true, key);
  }
  t.end();
});

test('the unknown passes: members, roles, blocks, tools, thinking, efforts', (t) => {
  const unknown = [
    body({ context_management: { edits: [] }, betas: ['x'], mcp_servers: [] }),
    body({ messages: [{ role: 'critic', verdict: 5 }] }),
    withBlocks({ type: 'video', source: 7 }),
    body({ tools: [{ type: 'memory_20250818' }, { type: 'toolset', name: 5 }] }),
    body({
      thinking: { type: 'between_tools' },
      output_config: { effort: 'ultra', format: { type: 'grammar' } },
      tool_choice: { type: 'all' },
    }),
  ];
  for (const value of unknown)
    t.equal(messagesRequest.check(value), true, messagesRequest.explain(value).message);
  t.end();
});

test('a system message may consist of an effort alone', (t) => {
  const messages = [user, { role: 'system', output_config: { effort: 'high' } }, user];
  t.equal(messagesRequest.check(body({ messages })), true);
  t.equal(countTokensRequest.check({ model: 'm', messages }), true);
  t.equal(messagesRequest.check(body({ messages: [{ role: 'user' }] })), false);
  t.end();
});

test('a refusal names the place and the fault', (t) => {
  const block = 'messages[0].content[0]';
  const cases: [object, string, string][] = [
    [{ max_tokens: 1, messages: [user] }, 'missing_parameter', 'model'],
    [{ model: 'm', max_tokens: 1 }, 'missing_parameter', 'messages'],
    [{ model: 'm', messages: [user] }, 'missing_parameter', 'max_tokens'],
    [body({ max_tokens: null }), 'invalid_request', 'max_tokens'],
    [body({ max_tokens: -1 }), 'invalid_value', 'max_tokens'],
    [body({ max_tokens: 1.5 }), 'invalid_request', 'max_tokens'],
    [body({ messages: [] }), 'invalid_value', 'messages'],
    [body({ messages: [{ content: 'hi' }] }), 'missing_parameter', 'messages[0].role'],
    [body({ messages: [user, { role: 'user', content: 5 }] }), 'invalid_request', 'messages[1].content'],
    [body({ messages: [{ role: 'user' }] }), 'missing_parameter', 'messages[0].content'],
    [withBlocks({ text: 'x' }), 'missing_parameter', `${block}.type`],
    [withBlocks('x'), 'invalid_request', block],
    [withBlocks({ type: 'text', text: 5 }), 'invalid_request', `${block}.text`],
    [withBlocks({ type: 'image' }), 'missing_parameter', `${block}.source`],
    [
      withBlocks({ type: 'image', source: { type: 'base64', data: 'x' } }),
      'missing_parameter',
      `${block}.source.media_type`,
    ],
    [withBlocks({ type: 'document', source: { type: 'text' } }), 'missing_parameter', `${block}.source.data`],
    [withBlocks({ type: 'tool_use', id: 'x', name: 'f' }), 'missing_parameter', `${block}.input`],
    [withBlocks({ type: 'tool_result' }), 'missing_parameter', `${block}.tool_use_id`],
    [
      withBlocks({ type: 'tool_result', tool_use_id: 'x', content: 5 }),
      'invalid_request',
      `${block}.content`,
    ],
    [
      withBlocks({ type: 'tool_result', tool_use_id: 'x', content: [{ type: 'text' }] }),
      'missing_parameter',
      `${block}.content[0].text`,
    ],
    [withBlocks({ type: 'thinking' }), 'missing_parameter', `${block}.thinking`],
    [withBlocks({ type: 'redacted_thinking' }), 'missing_parameter', `${block}.data`],
    [body({ system: 5 }), 'invalid_request', 'system'],
    [body({ system: [{ type: 'text' }] }), 'missing_parameter', 'system[0].text'],
    [body({ stream: 'true' }), 'invalid_request', 'stream'],
    [body({ temperature: 1.1 }), 'invalid_value', 'temperature'],
    [body({ top_k: -1 }), 'invalid_value', 'top_k'],
    [body({ stop_sequences: 'x' }), 'invalid_request', 'stop_sequences'],
    [body({ tools: [{ name: 'f' }] }), 'missing_parameter', 'tools[0].input_schema'],
    [body({ tools: [{ input_schema: {} }] }), 'missing_parameter', 'tools[0].name'],
    [body({ tool_choice: 'auto' }), 'invalid_request', 'tool_choice'],
    [body({ tool_choice: { type: 'tool' } }), 'missing_parameter', 'tool_choice.name'],
    [body({ thinking: { type: 'enabled' } }), 'missing_parameter', 'thinking.budget_tokens'],
    [body({ thinking: { type: 'enabled', budget_tokens: 5 } }), 'invalid_value', 'thinking.budget_tokens'],
    [
      body({ output_config: { format: { type: 'json_schema' } } }),
      'missing_parameter',
      'output_config.format.schema',
    ],
    [body({ metadata: { user_id: 5 } }), 'invalid_request', 'metadata.user_id'],
  ];
  for (const [value, kind, param] of cases) {
    t.equal(messagesRequest.check(value), false, param);
    const error = messagesRequest.explain(value);
    t.match(error, { kind, param, status: 400 }, `${kind} ${param}: ${error.message}`);
    t.match(error.message, `'${param}'`);
  }
  t.end();
});

test('a body of another endpoint is told where it belongs', (t) => {
  const cases: [object, string][] = [
    [{ model: 'm', input: 'hi' }, 'POST /v1/responses'],
    [{ contents: [] }, 'POST /v1beta/models/{model}:generateContent'],
    [{ model: 'm', prompt: 'hi' }, 'POST /v1/completions'],
  ];
  for (const [value, endpoint] of cases) {
    for (const schema of [messagesRequest, countTokensRequest]) {
      t.equal(schema.check(value), false);
      const error = schema.explain(value);
      t.equal(error.kind, 'invalid_request_body');
      t.match(error.message, endpoint);
    }
  }
  const chat = messagesRequest.explain({ model: 'm', messages: [user], temperature: 1 });
  t.match(chat.message, 'POST /v1/chat/completions', 'a chat body has no limit of tokens');
  t.end();
});

test('a body without its long strings gets the same verdict', (t) => {
  const long = JSON.parse(
    JSON.stringify(everything).replaceAll('"x"', JSON.stringify('long \\"text\n '.repeat(40))),
  ) as Record<string, unknown>;
  const wrong = fc.constantFrom(null, true, -200, '', 'x'.repeat(300), [], {}, [{ type: 'text' }]);
  let refused = 0;
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(long)), wrong, (key, value) => {
      const damaged = { ...long, [key]: value };
      const bytes = Buffer.from(JSON.stringify(damaged));
      const verdict = messagesRequest.check(damaged);
      assert.equal(messagesRequest.check(parseBody(bytes, scanBody(bytes))), verdict);
      assert.equal(messagesRequest.explain(damaged).message === 'The request is not valid.', verdict);
      refused += verdict ? 0 : 1;
    }),
    { numRuns: cases(500) },
  );
  t.ok(refused > cases(100), `${refused} refused`);
  t.end();
});
