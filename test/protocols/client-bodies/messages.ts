import { fc } from '../../support/seed.js';
import {
  anyText,
  callInput,
  type Exchange,
  exchanges,
  flag,
  maybe,
  maybeNull,
  objectOf,
  pdf,
  png,
  schema,
  share,
  someText,
  toolName,
} from './parts.js';

/* Bodies of `POST /v1/messages` (types of `@anthropic-ai/sdk` 1, `resources/messages`). */

const cache_control = maybeNull(
  fc.constantFrom<object>({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }),
);
const textBlock = objectOf({
  type: fc.constant('text'),
  text: someText,
  citations: maybeNull(fc.constant([])),
  cache_control,
});
const imageSource = fc.oneof(
  png.map((data) => ({ type: 'base64', media_type: 'image/png', data })),
  fc.constant({ type: 'url', url: 'https://example.com/a.png' }),
);
const imageBlock = objectOf({ type: fc.constant('image'), source: imageSource, cache_control });
const documentBlock = objectOf({
  type: fc.constant('document'),
  source: fc.oneof(
    pdf.map((data) => ({ type: 'base64', media_type: 'application/pdf', data })),
    someText.map((data) => ({ type: 'text', media_type: 'text/plain', data })),
    someText.map((content) => ({ type: 'content', content })),
    fc.array(fc.oneof(textBlock, imageBlock), { minLength: 1, maxLength: 2 }).map((content) => ({
      type: 'content',
      content,
    })),
  ),
  title: maybeNull(anyText),
  context: maybeNull(anyText),
  citations: maybeNull(fc.constantFrom({ enabled: true }, { enabled: false })),
  cache_control,
});
const searchResult = objectOf({
  type: fc.constant('search_result'),
  source: fc.constant('https://example.com'),
  title: someText,
  content: fc.array(textBlock, { minLength: 1, maxLength: 2 }),
  citations: maybe(fc.constant({ enabled: true })),
  cache_control,
});
const userBlock = fc.oneof(
  { weight: 3, arbitrary: textBlock },
  imageBlock,
  documentBlock,
  searchResult,
  fc.constant({ type: 'container_upload', file_id: 'file_1' }),
);
const thinking = fc.oneof(
  objectOf({ type: fc.constant('thinking'), thinking: anyText, signature: fc.constantFrom('', 'c2ln') }),
  fc.constant({ type: 'redacted_thinking', data: 'ZGF0YQ==' }),
);
const served = fc.constantFrom<object[]>(
  [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [
        {
          type: 'web_search_result',
          title: 't',
          url: 'https://example.com',
          encrypted_content: 'e',
          page_age: null,
        },
      ],
    },
  ],
  [
    { type: 'server_tool_use', id: 'srvtoolu_2', name: 'code_execution', input: { code: '1' } },
    {
      type: 'code_execution_tool_result',
      tool_use_id: 'srvtoolu_2',
      content: { type: 'code_execution_result', stdout: '', stderr: '', return_code: 0, content: [] },
    },
  ],
  [
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_3',
      content: { type: 'web_search_tool_result_error', error_code: 'unavailable' },
    },
  ],
  [
    { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'n', server_name: 's', input: {} },
    {
      type: 'mcp_tool_result',
      tool_use_id: 'mcptoolu_1',
      is_error: false,
      content: [{ type: 'text', text: 't' }],
    },
  ],
  [{ type: 'compaction', content: 'what was said', encrypted_content: null }],
  [],
);

const said = fc.array(textBlock, { minLength: 1, maxLength: 2 });
const answer = fc.oneof(
  someText,
  fc.tuple(fc.array(thinking, { maxLength: 2 }), served, said).map((parts) => parts.flat()),
);
const message = (role: string, content: fc.Arbitrary<unknown>) =>
  content.map((given) => ({ role, content: given }));
const asked = message('user', fc.oneof(someText, fc.array(userBlock, { minLength: 1, maxLength: 3 })));

const resultContent = fc.oneof(
  anyText,
  fc.array(fc.oneof({ weight: 2, arbitrary: textBlock }, imageBlock, documentBlock, searchResult), {
    maxLength: 2,
  }),
  fc.constant([{ type: 'tool_reference', tool_name: 'f' }]),
);

function calling({ calls }: Exchange): fc.Arbitrary<object[]> {
  const called = calls.map(({ id, name, input }) =>
    objectOf({
      type: fc.constant('tool_use'),
      id: fc.constant(id),
      name: fc.constant(name),
      input: fc.constant(input),
      caller: maybe(fc.constant({ type: 'direct' })),
      cache_control,
    }),
  );
  const results = calls.map(({ id }) =>
    objectOf({
      type: fc.constant('tool_result'),
      tool_use_id: fc.constant(id),
      content: maybe(resultContent),
      is_error: maybe(flag),
      cache_control,
    }),
  );
  return fc
    .tuple(
      fc.array(thinking, { maxLength: 1 }),
      fc.array(textBlock, { maxLength: 1 }),
      fc.tuple(...called),
      fc.tuple(...results),
      fc.array(userBlock, { maxLength: 2 }),
    )
    .map(([thought, text, uses, answers, more]) => [
      { role: 'assistant', content: [...thought, ...text, ...uses] },
      { role: 'user', content: [...answers, ...more] },
    ]);
}

const list: fc.Arbitrary<object[]> = exchanges.chain((all) =>
  fc
    .tuple(
      ...all.map((exchange) =>
        fc
          .tuple(
            asked,
            exchange.calls.length > 0 ? calling(exchange) : message('assistant', answer),
            fc.array(asked, { maxLength: 1 }),
            fc.array(message('system', someText), { maxLength: 1 }),
          )
          .map((parts) => parts.flat()),
      ),
      asked.map((last) => [last]),
    )
    .map((parts) => parts.flat()),
);

const tool = fc.oneof(
  {
    weight: 3,
    arbitrary: objectOf({
      type: maybeNull(fc.constant('custom')),
      name: toolName,
      description: maybe(anyText),
      input_schema: fc.oneof(
        schema,
        fc.constantFrom<object>({ type: 'object', properties: null, required: null }),
      ),
      strict: maybe(flag),
      defer_loading: maybe(flag),
      eager_input_streaming: maybeNull(flag),
      allowed_callers: maybe(fc.constant(['direct'])),
      input_examples: maybe(fc.array(callInput, { maxLength: 1 })),
      cache_control,
    }),
  },
  fc.constantFrom<object>(
    { type: 'bash_20250124', name: 'bash' },
    { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: null },
    {
      type: 'web_search_20250305',
      name: 'web_search',
      max_uses: null,
      allowed_domains: null,
      user_location: null,
    },
    { type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 3 },
    { type: 'code_execution_20250825', name: 'code_execution' },
    { type: 'memory_20250818', name: 'memory' },
    { type: 'computer_20250124', name: 'computer', display_width_px: 1, display_height_px: 1 },
    { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' },
  ),
);
const tools = fc
  .uniqueArray(tool, { minLength: 1, maxLength: 3, selector: (each) => Object(each).name as string })
  .chain((declared) =>
    objectOf({
      tools: fc.constant(declared),
      tool_choice: maybe(
        fc.constantFrom<object>(
          { type: 'auto' },
          { type: 'auto', disable_parallel_tool_use: true },
          { type: 'any' },
          { type: 'none' },
          { type: 'tool', name: Object(declared[0]).name as string },
        ),
      ),
    }),
  );

const settings = objectOf({
  cache_control,
  container: maybe(fc.constant(null)),
  inference_geo: maybeNull(fc.constant('us')),
  mcp_servers: maybe(fc.constant([])),
  context_management: maybeNull(fc.constant({ edits: [] })),
  metadata: maybe(fc.constantFrom({}, { user_id: null }, { user_id: 'u' }, { user_id: 'x'.repeat(256) })),
  output_config: maybe(
    objectOf({
      effort: maybeNull(fc.constantFrom('low', 'medium', 'high', 'xhigh', 'max')),
      format: maybeNull(objectOf({ type: fc.constant('json_schema'), schema })),
    }),
  ),
  service_tier: maybe(fc.constantFrom('auto', 'standard_only')),
  stop_sequences: maybe(fc.array(someText, { maxLength: 6 })),
  system: maybe(fc.oneof(anyText, fc.array(textBlock, { maxLength: 3 }))),
  temperature: maybe(share),
  thinking: maybe(
    fc.constantFrom<object>(
      { type: 'disabled' },
      { type: 'adaptive' },
      { type: 'adaptive', display: 'omitted' },
      { type: 'enabled', budget_tokens: 1024 },
      { type: 'enabled', budget_tokens: 4000, display: 'summarized' },
    ),
  ),
  top_k: maybe(fc.integer({ min: 1, max: 100 })),
  top_p: maybe(share),
  unheard_of: maybeNull(fc.constant({ a: [1] })),
});

export const messagesBodies: fc.Arbitrary<Record<string, unknown>> = fc
  .tuple(fc.integer({ min: 5000, max: 64_000 }), list, fc.oneof(fc.constant({}), tools), settings)
  .map(([max_tokens, messages, declared, set]) => ({
    model: 'm',
    max_tokens,
    messages,
    ...declared,
    ...set,
  }));
