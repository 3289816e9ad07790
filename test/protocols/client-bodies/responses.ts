import { fc } from '../../support/seed.js';
import {
  anyText,
  type Exchange,
  exchanges,
  flag,
  maybe,
  maybeNull,
  objectOf,
  pdf,
  pictureUrl,
  schema,
  share,
  toolName,
} from './parts.js';

/* Bodies of `POST /v1/responses` (types of `openai` 7, `resources/responses`). */

const inputText = objectOf({ type: fc.constant('input_text'), text: anyText });
const inputImage = objectOf({
  type: fc.constant('input_image'),
  detail: maybeNull(fc.constantFrom('auto', 'low', 'high')),
  image_url: pictureUrl,
  file_id: maybe(fc.constant(null)),
});
const inputFile = objectOf({
  type: fc.constant('input_file'),
  file_data: pdf.map((data) => `data:application/pdf;base64,${data}`),
  filename: maybe(fc.constantFrom('a.pdf')),
  file_id: maybe(fc.constant(null)),
});
const inputParts = fc.array(fc.oneof(inputText, inputImage, inputFile), { minLength: 1, maxLength: 3 });
const status = maybe(fc.constantFrom('completed', 'incomplete', 'in_progress'));
const nullableStatus = maybeNull(fc.constantFrom('completed', 'incomplete', 'in_progress'));
const type = maybe(fc.constant('message'));

const userItem = objectOf({
  type,
  role: fc.constant('user'),
  content: fc.oneof(anyText, inputParts),
  status,
});
const instructionItem = objectOf({
  type,
  role: fc.constantFrom('system', 'developer'),
  content: fc.oneof(anyText, fc.array(inputText, { minLength: 1, maxLength: 2 })),
});
const outputPart = fc.oneof(
  objectOf({
    type: fc.constant('output_text'),
    text: anyText,
    annotations: maybe(
      fc.constantFrom<unknown>(
        [],
        [{ type: 'url_citation', url: 'https://example.com', title: 't', start_index: 0, end_index: 1 }],
      ),
    ),
    logprobs: maybe(fc.constant([])),
  }),
  objectOf({ type: fc.constant('refusal'), refusal: anyText }),
);
const answerItem = fc.oneof(
  objectOf({
    type,
    role: fc.constant('assistant'),
    content: anyText,
    phase: maybeNull(fc.constant('commentary')),
  }),
  objectOf({
    type: fc.constant('message'),
    id: fc.constant('msg_1'),
    role: fc.constant('assistant'),
    status: fc.constant('completed'),
    phase: maybeNull(fc.constant('final_answer')),
    content: fc.array(outputPart, { minLength: 1, maxLength: 2 }),
  }),
);
const reasoningItem = objectOf({
  type: fc.constant('reasoning'),
  id: fc.constant('rs_1'),
  summary: fc.array(objectOf({ type: fc.constant('summary_text'), text: anyText }), { maxLength: 2 }),
  content: maybe(
    fc.array(objectOf({ type: fc.constant('reasoning_text'), text: anyText }), { maxLength: 1 }),
  ),
  encrypted_content: maybeNull(fc.constant('Z0FBQUE=')),
  status: nullableStatus,
});
/** What tools of the vendor left in the history. */
const servedItem = fc.constantFrom<object>(
  { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
  { type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['q'], results: null },
  {
    type: 'code_interpreter_call',
    id: 'ci_1',
    status: 'completed',
    code: null,
    container_id: 'c',
    outputs: null,
  },
  { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: null },
  { type: 'mcp_list_tools', id: 'mcp_1', server_label: 's', tools: [], error: null },
  { type: 'mcp_approval_request', id: 'mcpr_1', server_label: 's', name: 'n', arguments: '{}' },
  { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true, reason: null },
  {
    type: 'computer_call',
    id: 'cu_1',
    call_id: 'cu_1',
    status: 'completed',
    pending_safety_checks: [],
    action: { type: 'wait' },
  },
  {
    type: 'shell_call',
    call_id: 'sh_1',
    action: { commands: ['ls'], timeout_ms: null, max_output_length: null },
    status: null,
  },
  {
    type: 'apply_patch_call',
    call_id: 'ap_1',
    status: 'completed',
    operation: { type: 'delete_file', path: 'a' },
  },
  {
    type: 'local_shell_call',
    id: 'ls_1',
    call_id: 'ls_1',
    status: 'completed',
    action: { type: 'exec', command: ['ls'], env: {} },
  },
  { type: 'local_shell_call_output', id: 'ls_1', call_id: 'ls_1', output: '{}' },
  {
    type: 'tool_search_call',
    call_id: 'ts_1',
    execution: 'client',
    status: 'completed',
    arguments: { query: 'q' },
  },
  { type: 'tool_search_output', call_id: 'ts_1', execution: 'client', status: 'completed', tools: [] },
  {
    type: 'additional_tools',
    role: 'developer',
    tools: [{ type: 'function', name: 'late', parameters: {} }],
  },
  { type: 'compaction', id: 'cmp_1', encrypted_content: 'Z0FBQUE=' },
  { type: 'mcp_call', id: 'mcp_2', server_label: 's', name: 'n', arguments: '{}', output: null, error: null },
);
const output = fc.oneof(anyText, inputParts);

function calling({ calls }: Exchange): fc.Arbitrary<object[]> {
  const pairs = calls.map(({ id, name, input }) =>
    fc.boolean().chain((isCustom) => {
      const text = JSON.stringify(input);
      const called = isCustom
        ? { type: 'custom_tool_call', call_id: id, name, input: text }
        : { type: 'function_call', call_id: id, name, arguments: text };
      return fc.tuple(
        objectOf({ ...constants(called), id: maybe(fc.constant(`fc_${id}`)), status }),
        objectOf({
          type: fc.constant(isCustom ? 'custom_tool_call_output' : 'function_call_output'),
          call_id: fc.constant(id),
          output,
          id: maybeNull(fc.constant(`fco_${id}`)),
          status: nullableStatus,
        }),
      );
    }),
  );
  return fc
    .tuple(fc.array(reasoningItem, { maxLength: 1 }), fc.boolean(), ...pairs)
    .map(([reasons, isMixed, ...each]) =>
      isMixed
        ? [...reasons, ...each.flat()]
        : [...reasons, ...each.map(([called]) => called), ...each.map(([, result]) => result)],
    );
}

const constants = (value: object): Record<string, fc.Arbitrary<unknown>> =>
  Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fc.constant(each)]));

const items: fc.Arbitrary<object[]> = exchanges.chain((all) =>
  fc
    .tuple(
      fc.array(instructionItem, { maxLength: 1 }),
      ...all.map((exchange) =>
        fc
          .tuple(
            fc.array(userItem, { maxLength: 2 }),
            exchange.calls.length > 0
              ? calling(exchange)
              : fc
                  .tuple(fc.array(fc.oneof(reasoningItem, servedItem), { maxLength: 2 }), answerItem)
                  .map((parts) => parts.flat()),
            fc.array(instructionItem, { maxLength: 1 }),
          )
          .map((parts) => parts.flat()),
      ),
      fc.array(userItem, { maxLength: 1 }),
    )
    .map((parts) => parts.flat())
    .filter((list) => list.length > 0),
);

const tool = fc.oneof(
  {
    weight: 3,
    arbitrary: objectOf({
      type: fc.constant('function'),
      name: toolName,
      description: maybeNull(anyText),
      parameters: maybeNull(schema),
      strict: maybeNull(flag),
    }),
  },
  objectOf({
    type: fc.constant('custom'),
    name: toolName,
    description: maybe(anyText),
    format: maybe(
      fc.constantFrom<object>(
        { type: 'text' },
        { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
      ),
    ),
  }),
  fc.constantFrom<object>(
    { type: 'web_search', filters: null, user_location: null, search_context_size: 'low' },
    { type: 'web_search_preview' },
    { type: 'file_search', vector_store_ids: ['vs_1'] },
    { type: 'code_interpreter', container: { type: 'auto' } },
    { type: 'image_generation' },
    { type: 'mcp', server_label: 's', server_url: 'https://example.com' },
    { type: 'local_shell' },
    { type: 'shell' },
    { type: 'apply_patch' },
    {
      type: 'namespace',
      name: 'n',
      description: 'd',
      tools: [{ type: 'function', name: 'g', parameters: {} }],
    },
    {
      type: 'tool_search',
      execution: 'client',
      description: 'd',
      parameters: { type: 'object', properties: {} },
    },
  ),
);
const tools = fc
  .uniqueArray(tool, {
    minLength: 1,
    maxLength: 3,
    selector: (each) => `${Object(each).type} ${Object(each).name}`,
  })
  .chain((declared) =>
    objectOf({
      tools: fc.constant(declared),
      tool_choice: maybe(
        fc.oneof(
          fc.constantFrom('none', 'auto', 'required'),
          ...declared
            .filter((each) => ['function', 'custom'].includes(Object(each).type as string))
            .map((each) => ({ type: Object(each).type as string, name: Object(each).name as string }))
            .map((named) =>
              fc.constantFrom<object>(named, { type: 'allowed_tools', mode: 'required', tools: [named] }),
            ),
        ),
      ),
      parallel_tool_calls: maybeNull(flag),
    }),
  );

const format = fc.oneof(
  fc.constantFrom<object>({ type: 'text' }, { type: 'json_object' }),
  objectOf({
    type: fc.constant('json_schema'),
    name: fc.constant('answer'),
    description: maybe(anyText),
    schema,
    strict: maybeNull(flag),
  }),
);
const settings = objectOf({
  background: maybeNull(fc.constant(false)),
  conversation: maybe(fc.constant(null)),
  include: maybeNull(
    fc.constantFrom<string[]>([], ['reasoning.encrypted_content'], ['file_search_call.results']),
  ),
  instructions: maybeNull(anyText),
  max_output_tokens: maybeNull(fc.integer({ min: 16, max: 100_000 })),
  max_tool_calls: maybeNull(fc.constant(3)),
  metadata: maybeNull(fc.constantFrom({}, { a: 'b' })),
  previous_response_id: maybe(fc.constant(null)),
  prompt: maybe(fc.constant(null)),
  prompt_cache_key: maybe(fc.constant('k')),
  prompt_cache_retention: maybeNull(fc.constant('24h')),
  reasoning: maybeNull(
    objectOf({
      effort: maybeNull(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
      summary: maybeNull(fc.constantFrom('auto', 'concise', 'detailed')),
      generate_summary: maybe(fc.constant(null)),
    }),
  ),
  safety_identifier: maybe(fc.constant('u')),
  service_tier: maybeNull(fc.constantFrom('auto', 'default', 'flex', 'priority')),
  store: maybeNull(flag),
  stream_options: maybe(fc.constant(null)),
  temperature: maybeNull(fc.constantFrom(0, 1, 2)),
  text: maybe(objectOf({ format: maybe(format), verbosity: maybeNull(fc.constantFrom('low', 'high')) })),
  top_logprobs: maybeNull(fc.constant(0)),
  top_p: maybeNull(share),
  truncation: maybeNull(fc.constantFrom('auto', 'disabled')),
  user: maybe(fc.constantFrom('', 'u', 'x'.repeat(64))),
  unheard_of: maybeNull(fc.constant({ a: [1] })),
});

export const responsesBodies: fc.Arbitrary<Record<string, unknown>> = fc
  .tuple(fc.oneof(anyText, { weight: 4, arbitrary: items }), fc.oneof(fc.constant({}), tools), settings)
  .map(([input, declared, set]) => ({ model: 'm', input, ...declared, ...set }));
