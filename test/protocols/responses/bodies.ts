import { prose } from '../../../bench/bodies.js';

/** JSON Schema of a tool's arguments, with what real ones hold. */
const parameters = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    city: { type: 'string', description: 'A "city"\nby name', pattern: '^[\\w\\s]+$' },
    days: { type: 'integer', minimum: 1, maximum: 1e2 },
  },
  required: ['city'],
  additionalProperties: false,
};

const shell = { type: 'function', name: 'shell', description: 'Runs it.', parameters, strict: false };

/** What a coding agent sends: a long history, many tools, and every setting that it has. */
export const agentBody = {
  model: 'org/model-7b:free',
  instructions: prose(4000),
  input: [
    {
      type: 'message',
      role: 'developer',
      content: [{ type: 'input_text', text: '<permissions>read only</permissions>' }],
    },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Find the "bug"\n漢字' }] },
    ...Array.from({ length: 20 }, (_, turn) => [
      { type: 'reasoning', summary: [], content: null, encrypted_content: `gAAAA${turn}`.repeat(50) },
      { type: 'function_call', name: 'shell', arguments: '{"command":["ls"]}', call_id: `call_${turn}` },
      { type: 'function_call_output', call_id: `call_${turn}`, output: prose(50 * turn) },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: prose(100) }],
        phase: 'commentary',
      },
    ]).flat(),
    { role: 'user', content: 'Go on.' },
  ],
  tools: [
    ...Array.from({ length: 11 }, (_, index) => ({ ...shell, name: `shell_${index}` })),
    { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
    { type: 'namespace', name: 'files', description: 'd', tools: [{ ...shell, defer_loading: true }] },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium', summary: 'auto' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '0199b5e2-0d62-7aa1-9d3c-0c5c4d9c6a01',
  text: { verbosity: 'low' },
  client_metadata: { 'x-session': 'abc' },
};

/** Every documented member and item. */
export const everything = {
  model: 'm',
  input: [
    { role: 'system', content: 'x' },
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'x' }] },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'x' },
        { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
        { type: 'input_image', file_id: 'file_1' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
        { type: 'input_file', file_url: 'https://example.com/a.pdf' },
      ],
    },
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'x' }],
      content: [{ type: 'reasoning_text', text: 'x' }],
      encrypted_content: null,
    },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [
        { type: 'output_text', text: 'x', annotations: [], logprobs: [] },
        { type: 'refusal', refusal: 'x' },
      ],
    },
    { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{}', status: 'completed' },
    { type: 'function_call_output', call_id: 'c1', output: 'x' },
    { type: 'custom_tool_call', call_id: 'c2', name: 'g', input: 'x' },
    { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'x' }] },
    { type: 'item_reference', id: 'msg_2' },
    { type: 'compaction', encrypted_content: 'x', id: null },
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
  ],
  instructions: 'x',
  max_output_tokens: 16,
  temperature: 2,
  top_p: 0,
  tools: [
    {
      type: 'function',
      name: 'f',
      parameters: { type: 'object', properties: {} },
      strict: null,
      description: 'd',
    },
    { type: 'custom', name: 'g', format: { type: 'text' } },
    { type: 'web_search' },
  ],
  tool_choice: { type: 'function', name: 'f' },
  parallel_tool_calls: true,
  text: { format: { type: 'json_schema', name: 'n', schema: {}, strict: true }, verbosity: 'low' },
  reasoning: { effort: 'xhigh', summary: 'auto', generate_summary: null },
  stream: true,
  stream_options: { include_obfuscation: false },
  include: ['reasoning.encrypted_content'],
  top_logprobs: 20,
  truncation: 'auto',
  metadata: { a: 'b' },
  store: true,
  previous_response_id: 'resp_1',
  conversation: { id: 'conv_1' },
  background: false,
  prompt: { id: 'pmpt_1', version: '1', variables: { a: 'x' } },
  max_tool_calls: 3,
  service_tier: 'auto',
  user: 'u',
  safety_identifier: 's',
  prompt_cache_key: 'k',
  prompt_cache_options: {},
  prompt_cache_retention: '24h',
  context_management: [{ type: 'compaction', compact_threshold: 1000 }],
  moderation: { model: 'omni' },
};
