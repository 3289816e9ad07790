import type { TextProtocolName } from '../../src/conversation/request.js';
import type { JsonObject } from '../../src/wire/json.js';

/** A body that says something, and the same without it: what both are laid over is `bases`. */
export type Sample = readonly [says: string, body: JsonObject, without?: JsonObject];

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const closed = { ...schema, additionalProperties: false };
const mark = { cache_control: { type: 'ephemeral' } };
const place = { type: 'approximate', country: 'NO' };
const image = 'data:image/png;base64,iVBORw0KGgo=';
const pdf = 'JVBERi0xLjQ=';
const pdfUrl = `data:application/pdf;base64,${pdf}`;

export const bases: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'm', input: 'hi' },
  messages: { model: 'm', max_tokens: 9000, messages: [{ role: 'user', content: 'hi' }] },
  generateContent: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};

const chatTool = (more: JsonObject = {}, beside: JsonObject = {}): JsonObject => ({
  tools: [
    { type: 'function', function: { name: 'f', description: 'd', parameters: closed, ...more }, ...beside },
  ],
});
const chatCall = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"city":"Oslo"}' } };
const chatLoop = (more: JsonObject, called: JsonObject = chatCall): JsonObject => ({
  ...chatTool(),
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [called], ...more },
    { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
  ],
});
const chatSays = (content: unknown, more: JsonObject = {}): JsonObject => ({
  messages: [{ role: 'user', content, ...more }],
});
const chatPart = (part: JsonObject): JsonObject => chatSays([{ type: 'text', text: 'hi' }, part]);
const chatFormat = (more: JsonObject = {}, format: JsonObject = {}): JsonObject => ({
  response_format: { type: 'json_schema', json_schema: { name: 'n', schema: closed, ...more }, ...format },
});

const endless = (more: JsonObject = {}): JsonObject =>
  chatFormat({ schema: { type: 'object', properties: { a: { $ref: '#' } } }, ...more });

const chatSamples: readonly Sample[] = [
  ['max_completion_tokens', { max_completion_tokens: 50 }],
  ['max_tokens', { max_tokens: 50 }],
  ['temperature', { temperature: 0.3 }],
  ['top_p', { top_p: 0.3 }],
  ['top_k', { top_k: 3 }],
  ['presence_penalty', { presence_penalty: 0.5 }],
  ['frequency_penalty', { frequency_penalty: 0.5 }],
  ['n', { n: 2 }],
  ['stop', { stop: ['END'] }],
  ['seed', { seed: 7 }],
  ['logit_bias', { logit_bias: { 5: 1 } }],
  ['logprobs', { logprobs: true }],
  ['top_logprobs', { logprobs: true, top_logprobs: 3 }, { logprobs: true }],
  ['user', { user: 'u' }],
  ['safety_identifier', { safety_identifier: 's' }],
  ['user beside it', { user: 'u', safety_identifier: 's' }, { safety_identifier: 's' }],
  ['metadata', { metadata: { a: 'b' } }],
  ['tools', chatTool()],
  ['strict', chatTool({ strict: true }), chatTool()],
  ['description', chatTool(), chatTool({ description: undefined })],
  ['cache_control of a tool', chatTool({}, mark), chatTool()],
  ['custom tool', { tools: [{ type: 'custom', custom: { name: 'c', description: 'd' } }] }],
  [
    'format of a custom tool',
    {
      tools: [
        {
          type: 'custom',
          custom: { name: 'c', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } },
        },
      ],
    },
    { tools: [{ type: 'custom', custom: { name: 'c' } }] },
  ],
  ['another tool', { tools: [{ type: 'mcp', server_label: 'x' }] }],
  ['tool_choice', { ...chatTool(), tool_choice: 'required' }, chatTool()],
  [
    'tool_choice of some',
    {
      ...chatTool(),
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
    },
    chatTool(),
  ],
  ['parallel_tool_calls', { ...chatTool(), parallel_tool_calls: false }, chatTool()],
  ['functions', { functions: [{ name: 'f', parameters: schema }] }],
  [
    'function_call',
    { functions: [{ name: 'f', parameters: schema }], function_call: { name: 'f' } },
    { functions: [{ name: 'f', parameters: schema }] },
  ],
  [
    'response_format',
    { ...chatSays('hi JSON'), response_format: { type: 'json_object' } },
    chatSays('hi JSON'),
  ],
  ['json_schema', chatFormat()],
  ['json_schema.name', chatFormat({ name: 'other' }), chatFormat()],
  ['json_schema.description', chatFormat({ description: 'd' }), chatFormat()],
  ['description of an endless schema', endless({ description: 'd' }), endless()],
  ['json_schema.strict', chatFormat({ strict: true }), chatFormat()],
  ['reasoning_effort', { reasoning_effort: 'high' }],
  ['verbosity', { verbosity: 'low' }],
  ['modalities', { modalities: ['text', 'audio'] }],
  ['audio', { audio: { voice: 'x', format: 'wav' } }],
  ['prediction', { prediction: { type: 'content', content: 'x' } }],
  ['web_search_options', { web_search_options: { search_context_size: 'high' } }],
  [
    'search_context_size',
    { web_search_options: { search_context_size: 'high' } },
    { web_search_options: {} },
  ],
  [
    'user_location',
    { web_search_options: { user_location: { type: 'approximate', approximate: { country: 'NO' } } } },
    { web_search_options: {} },
  ],
  ['service_tier', { service_tier: 'flex' }],
  ['store', { store: true }],
  ['prompt_cache_key', { prompt_cache_key: 'k' }],
  ['prompt_cache_retention', { prompt_cache_retention: '24h' }],
  ['prompt_cache_options', { prompt_cache_options: { ttl: '1h' } }],
  ['moderation', { moderation: { model: 'x' } }],
  ['an unknown member', { of_tomorrow: 1 }],
  ['name', chatSays('hi', { name: 'Ann' })],
  [
    'system',
    {
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: 'hi' },
      ],
    },
  ],
  [
    'detail',
    chatPart({ type: 'image_url', image_url: { url: image, detail: 'low' } }),
    chatPart({ type: 'image_url', image_url: { url: image } }),
  ],
  [
    'input_audio',
    chatPart({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
    chatSays([{ type: 'text', text: 'hi' }]),
  ],
  [
    'file',
    chatPart({ type: 'file', file: { file_data: pdfUrl, filename: 'a.pdf' } }),
    chatSays([{ type: 'text', text: 'hi' }]),
  ],
  [
    'filename',
    chatPart({ type: 'file', file: { file_data: pdfUrl, filename: 'a.pdf' } }),
    chatPart({ type: 'file', file: { file_data: pdfUrl } }),
  ],
  [
    'cache_control of a part',
    chatPart({ type: 'text', text: 'x', ...mark }),
    chatPart({ type: 'text', text: 'x' }),
  ],
  ['cache_control of a message', chatSays('hi', mark)],
  [
    'another part',
    chatPart({ type: 'video_url', video_url: { url: 'https://example.com/v' } }),
    chatSays([{ type: 'text', text: 'hi' }]),
  ],
  ['reasoning_content', chatLoop({ reasoning_content: 'I think' }), chatLoop({})],
  ['refusal', chatLoop({ refusal: 'no' }), chatLoop({})],
  ['audio of an answer', chatLoop({ audio: { id: 'a' } }), chatLoop({})],
  ['name of an assistant', chatLoop({ name: 'Ann' }), chatLoop({})],
  [
    'extra_content',
    chatLoop({}, { ...chatCall, extra_content: { google: { thought_signature: 'c2ln' } } }),
    chatLoop({}),
  ],
  ['a member of a call', chatLoop({}, { ...chatCall, of_tomorrow: 1 }), chatLoop({})],
];

const responsesTool = (more: JsonObject = {}): JsonObject => ({
  tools: [{ type: 'function', name: 'f', description: 'd', parameters: closed, ...more }],
});
const responsesCall = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"city":"Oslo"}' };
const responsesLoop = (
  items: readonly JsonObject[],
  call: JsonObject = {},
  output: string | readonly JsonObject[] = 'sunny',
): JsonObject => ({
  ...responsesTool(),
  input: [
    { role: 'user', content: 'hi' },
    ...items,
    { ...responsesCall, ...call },
    { type: 'function_call_output', call_id: 'call_1', output },
  ],
});
const responsesOutput = (part: JsonObject): JsonObject => responsesLoop([], {}, [part]);
const file = { type: 'input_file', file_data: pdfUrl };
const picture = { type: 'input_image', image_url: image };
const namespaces = ['n', 'o'].map((name) => ({ type: 'namespace', name, ...responsesTool() }));
const responsesPart = (part?: JsonObject): JsonObject => ({
  input: [
    { role: 'user', content: [{ type: 'input_text', text: 'hi' }, ...(part === undefined ? [] : [part])] },
  ],
});
const responsesFormat = (more: JsonObject = {}): JsonObject => ({
  text: { format: { type: 'json_schema', name: 'n', schema: closed, ...more } },
});
const responsesSearch = (more: JsonObject = {}): JsonObject => ({ tools: [{ type: 'web_search', ...more }] });

const responsesTools = (type: string, more: JsonObject = {}): JsonObject => ({
  input: [
    { role: 'user', content: 'hi' },
    { type, call_id: 'call_1', tools: [{ type: 'function', name: 'f', parameters: closed, ...more }] },
  ],
});

const responsesSamples: readonly Sample[] = [
  ['instructions', { instructions: 's' }],
  ['max_output_tokens', { max_output_tokens: 50 }],
  ['temperature', { temperature: 0.3 }],
  ['top_p', { top_p: 0.3 }],
  ['tools', responsesTool()],
  ['strict', responsesTool({ strict: true }), responsesTool({ strict: false })],
  ['custom tool', { tools: [{ type: 'custom', name: 'c', description: 'd' }] }],
  ['another tool', { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] }],
  ['web_search', responsesSearch()],
  ['search_context_size', responsesSearch({ search_context_size: 'high' }), responsesSearch()],
  ['user_location', responsesSearch({ user_location: place }), responsesSearch()],
  ['allowed_domains', responsesSearch({ filters: { allowed_domains: ['a.example'] } }), responsesSearch()],
  ['blocked_domains', responsesSearch({ filters: { blocked_domains: ['a.example'] } }), responsesSearch()],
  ['external_web_access', responsesSearch({ external_web_access: false }), responsesSearch()],
  ...['additional_tools', 'tool_search_output'].map(
    (type): Sample => [
      `defer_loading in ${type}`,
      responsesTools(type, { defer_loading: true }),
      responsesTools(type),
    ],
  ),
  ['tool_choice', { ...responsesTool(), tool_choice: 'required' }, responsesTool()],
  ['parallel_tool_calls', { ...responsesTool(), parallel_tool_calls: false }, responsesTool()],
  ['text', { text: { verbosity: 'low' } }],
  ['text.format', responsesFormat()],
  ['text.format.name', responsesFormat({ name: 'other' }), responsesFormat()],
  ['text.format.description', responsesFormat({ description: 'd' }), responsesFormat()],
  ['filename in an output', responsesOutput({ ...file, filename: 'a.pdf' }), responsesOutput(file)],
  ['detail in an output', responsesOutput({ ...picture, detail: 'low' }), responsesOutput(picture)],
  ['text.format.strict', responsesFormat({ strict: true }), responsesFormat({ strict: false })],
  ['reasoning', { reasoning: { effort: 'high' } }],
  [
    'reasoning.summary',
    { reasoning: { effort: 'high', summary: 'detailed' } },
    { reasoning: { effort: 'high' } },
  ],
  ['reasoning.context', { reasoning: { effort: 'high', context: 'all' } }, { reasoning: { effort: 'high' } }],
  ['truncation', { truncation: 'auto' }],
  ['stream_options', { stream_options: { include_obfuscation: false } }],
  ['include', { include: ['file_search_call.results'] }],
  ['include of log probabilities', { include: ['message.output_text.logprobs'] }],
  [
    'top_logprobs',
    { include: ['message.output_text.logprobs'], top_logprobs: 3 },
    { include: ['message.output_text.logprobs'] },
  ],
  ['metadata', { metadata: { a: 'b' } }],
  ['store', { store: true }],
  ['background', { background: true }],
  ['conversation', { conversation: 'conv_1' }],
  ['prompt', { prompt: { id: 'p' } }],
  ['max_tool_calls', { max_tool_calls: 3 }],
  ['user', { user: 'u' }],
  ['safety_identifier', { safety_identifier: 's' }],
  ['user beside it', { user: 'u', safety_identifier: 's' }, { safety_identifier: 's' }],
  ['context_management', { context_management: [{ type: 'compaction', compact_threshold: 1000 }] }],
  ['moderation', { moderation: { model: 'x' } }],
  ['prompt_cache_key', { prompt_cache_key: 'k' }],
  ['prompt_cache_options', { prompt_cache_options: { ttl: '1h' } }],
  ['prompt_cache_retention', { prompt_cache_retention: '24h' }],
  ['service_tier', { service_tier: 'flex' }],
  ['an unknown member', { of_tomorrow: 1 }],
  ['detail', responsesPart({ ...picture, detail: 'low' }), responsesPart(picture)],
  ['input_file', responsesPart({ ...file, filename: 'a.pdf' }), responsesPart()],
  [
    'a member of a part of a result',
    responsesLoop([], {}, [
      { type: 'input_text', text: 'sunny', prompt_cache_breakpoint: { mode: 'explicit' } },
    ]),
    responsesLoop([], {}, [{ type: 'input_text', text: 'sunny' }]),
  ],
  ['another part', responsesPart({ type: 'input_video', url: 'https://example.com/v' }), responsesPart()],
  [
    'a member of a part',
    responsesPart({ type: 'input_text', text: 'x', of_tomorrow: 1 }),
    responsesPart({ type: 'input_text', text: 'x' }),
  ],
  [
    'phase',
    responsesLoop([{ role: 'assistant', content: 'Let me see.', phase: 'commentary' }]),
    responsesLoop([{ role: 'assistant', content: 'Let me see.' }]),
  ],
  [
    'reasoning in the history',
    responsesLoop([
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'I think' }],
        encrypted_content: 'x',
      },
    ]),
    responsesLoop([]),
  ],
  [
    'another item',
    responsesLoop([{ type: 'file_search_call', id: 'fs_1', status: 'completed', queries: [] }]),
    responsesLoop([]),
  ],
  [
    'namespace of a call',
    { ...responsesLoop([], { namespace: 'n' }), tools: namespaces },
    { ...responsesLoop([], { namespace: 'o' }), tools: namespaces },
  ],
];

const messagesTool = (more: JsonObject = {}): JsonObject => ({
  tools: [{ name: 'f', description: 'd', input_schema: closed, ...more }],
});
const messagesSays = (...content: readonly JsonObject[]): JsonObject => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, ...content] }],
});
const messagesLoop = (
  blocks: readonly JsonObject[],
  call: JsonObject = {},
  result: JsonObject = {},
): JsonObject => ({
  ...messagesTool(),
  messages: [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: [...blocks, { type: 'tool_use', id: 'toolu_1', name: 'f', input: { city: 'Oslo' }, ...call }],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny', ...result }] },
  ],
});
const document = (more: JsonObject = {}): JsonObject => ({
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: pdf },
  ...more,
});
const messagesResult = (block: JsonObject): JsonObject => messagesLoop([], {}, { content: [block] });
const messagesDocument = (more: JsonObject = {}): JsonObject => messagesSays(document(more));
const messagesSearch = (more: JsonObject = {}): JsonObject => ({
  tools: [{ type: 'web_search_20250305', name: 'web_search', ...more }],
});
const thinking = { type: 'enabled', budget_tokens: 2048 };
const messagesFormat = { type: 'json_schema', schema: closed };
const result = (more: JsonObject = {}): JsonObject => ({
  type: 'search_result',
  source: 'https://example.com',
  title: 't',
  content: [{ type: 'text', text: 'x' }],
  ...more,
});

const messagesSamples: readonly Sample[] = [
  ['max_tokens', { max_tokens: 50 }],
  ['system', { system: 's' }],
  [
    'cache_control of the system',
    { system: [{ type: 'text', text: 's', ...mark }] },
    { system: [{ type: 'text', text: 's' }] },
  ],
  ['tools', messagesTool()],
  ['strict', messagesTool({ strict: true }), messagesTool()],
  ['cache_control of a tool', messagesTool(mark), messagesTool()],
  ['input_examples', messagesTool({ input_examples: [{ city: 'Oslo' }] }), messagesTool()],
  ['eager_input_streaming', messagesTool({ eager_input_streaming: true }), messagesTool()],
  ['allowed_callers', messagesTool({ allowed_callers: ['direct'] }), messagesTool()],
  ['defer_loading', messagesTool({ defer_loading: true }), messagesTool()],
  ['another tool', { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }],
  ['web_search', messagesSearch()],
  ['max_uses', messagesSearch({ max_uses: 3 }), messagesSearch()],
  ['allowed_domains', messagesSearch({ allowed_domains: ['a.example'] }), messagesSearch()],
  ['blocked_domains', messagesSearch({ blocked_domains: ['a.example'] }), messagesSearch()],
  ['user_location', messagesSearch({ user_location: place }), messagesSearch()],
  ['cache_control of a search', messagesSearch(mark), messagesSearch()],
  ['tool_choice', { ...messagesTool(), tool_choice: { type: 'any' } }, messagesTool()],
  [
    'disable_parallel_tool_use',
    { ...messagesTool(), tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    { ...messagesTool(), tool_choice: { type: 'auto' } },
  ],
  ['thinking', { thinking }],
  ['thinking.display', { thinking: { ...thinking, display: 'omitted' } }, { thinking }],
  ['output_config', { output_config: { effort: 'low' } }],
  ['output_config.format', { output_config: { format: messagesFormat } }],
  [
    'output_config.task_budget',
    { output_config: { effort: 'low', task_budget: { type: 'tokens', total: 9 } } },
    { output_config: { effort: 'low' } },
  ],
  ['output_format', { output_format: messagesFormat }],
  ['stop_sequences', { stop_sequences: ['END'] }],
  ['temperature', { temperature: 0.3 }],
  ['top_p', { top_p: 0.3 }],
  ['top_k', { top_k: 3 }],
  ['metadata', { metadata: { user_id: 'u' } }],
  ['another member of metadata', { metadata: { team: 'u' } }],
  ['service_tier', { service_tier: 'standard_only' }],
  ['speed', { speed: 'fast' }],
  ['inference_geo', { inference_geo: 'us' }],
  ['diagnostics', { diagnostics: { previous_message_id: null, a: 1 } }],
  ['container', { container: 'c' }],
  ['mcp_servers', { mcp_servers: [{ type: 'url', url: 'https://a.example', name: 'm' }] }],
  ['context_management', { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }],
  ['cache_control', { ...mark }],
  ['an unknown member', { of_tomorrow: 1 }],
  [
    'cache_control of a block',
    messagesSays({ type: 'text', text: 'x', ...mark }),
    messagesSays({ type: 'text', text: 'x' }),
  ],
  [
    'citations in the history',
    messagesLoop([{ type: 'text', text: 'x', citations: [{ type: 'char_location', cited_text: 'x' }] }]),
    messagesLoop([{ type: 'text', text: 'x' }]),
  ],
  ['document', messagesDocument(), messagesSays()],
  ['title', messagesDocument({ title: 't' }), messagesDocument()],
  ['title in a result', messagesResult(document({ title: 't' })), messagesResult(document())],
  ['context', messagesDocument({ context: 'c' }), messagesDocument()],
  ['citations of a document', messagesDocument({ citations: { enabled: true } }), messagesDocument()],
  ['search_result', messagesSays(result()), messagesSays()],
  [
    'source of a search_result',
    messagesSays(result({ source: 'https://other.example' })),
    messagesSays(result()),
  ],
  ['title of a search_result', messagesSays(result({ title: 'other' })), messagesSays(result())],
  [
    'citations of a search_result',
    messagesSays(result({ citations: { enabled: true } })),
    messagesSays(result()),
  ],
  [
    'cache_control within a search_result',
    messagesSays(result({ content: [{ type: 'text', text: 'x', ...mark }] })),
    messagesSays(result()),
  ],
  [
    'cache_control within a search_result of a result',
    messagesLoop([], {}, { content: [result({ content: [{ type: 'text', text: 'x', ...mark }] })] }),
    messagesLoop([], {}, { content: [result()] }),
  ],
  [
    'defer_loading of a tool that the vendor knows',
    { tools: [{ type: 'bash_20250124', name: 'bash', defer_loading: true }] },
    { tools: [{ type: 'bash_20250124', name: 'bash' }] },
  ],
  [
    'cache_control within a document',
    messagesDocument({ source: { type: 'content', content: [{ type: 'text', text: 'x', ...mark }] } }),
    messagesDocument({ source: { type: 'content', content: [{ type: 'text', text: 'x' }] } }),
  ],
  ['container_upload', messagesSays({ type: 'container_upload', file_id: 'f' }), messagesSays()],
  ['another block', messagesSays({ type: 'of_tomorrow', a: 1 }), messagesSays()],
  [
    'thinking in the history',
    messagesLoop([{ type: 'thinking', thinking: 'I think', signature: 'x' }]),
    messagesLoop([]),
  ],
  ['redacted_thinking', messagesLoop([{ type: 'redacted_thinking', data: 'x' }]), messagesLoop([])],
  ['caller', messagesLoop([], { caller: { type: 'direct' } }), messagesLoop([])],
  ['is_error', messagesLoop([], {}, { is_error: true }), messagesLoop([])],
  ['cache_control of a result', messagesLoop([], {}, mark), messagesLoop([])],
];

const declares = (more: JsonObject = {}): JsonObject => ({
  tools: [{ functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: closed, ...more }] }],
});
const configured = (generationConfig: JsonObject): JsonObject => ({ generationConfig });
const says = (...parts: readonly JsonObject[]): JsonObject => ({
  contents: [{ role: 'user', parts: [{ text: 'hi' }, ...parts] }],
});
const thinks = (thinkingConfig: JsonObject): JsonObject => configured({ thinkingConfig });
const json = { responseMimeType: 'application/json' };
const generateLoop = (call: JsonObject, response: JsonObject = {}): JsonObject => ({
  ...declares(),
  contents: [
    { role: 'user', parts: [{ text: 'hi' }] },
    { role: 'model', parts: [{ functionCall: { name: 'f', args: { city: 'Oslo' } }, ...call }] },
    {
      role: 'user',
      parts: [{ functionResponse: { name: 'f', response: { output: 'sunny' }, ...response } }],
    },
  ],
});

const generateContentSamples: readonly Sample[] = [
  ['model', { model: 'models/other' }],
  ['systemInstruction', { systemInstruction: { parts: [{ text: 's' }] } }],
  ['tools', declares()],
  ['behavior', declares({ behavior: 'NON_BLOCKING' }), declares()],
  [
    'response of a declaration',
    declares({ response: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } }),
    declares(),
  ],
  ['googleSearch', { tools: [{ googleSearch: {} }] }],
  [
    'timeRangeFilter',
    { tools: [{ googleSearch: { timeRangeFilter: { startTime: 'a' } } }] },
    { tools: [{ googleSearch: {} }] },
  ],
  [
    'excludeDomains',
    { tools: [{ googleSearch: { excludeDomains: ['a.example'] } }] },
    { tools: [{ googleSearch: {} }] },
  ],
  [
    'dynamicRetrievalConfig',
    { tools: [{ googleSearchRetrieval: { dynamicRetrievalConfig: { mode: 'MODE_DYNAMIC' } } }] },
    { tools: [{ googleSearchRetrieval: {} }] },
  ],
  ['codeExecution', { tools: [{ codeExecution: {} }] }],
  ['urlContext', { tools: [{ urlContext: {} }] }],
  ['toolConfig', { ...declares(), toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, declares()],
  [
    'allowedFunctionNames',
    { ...declares(), toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } } },
    { ...declares(), toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
  ],
  ['retrievalConfig', { ...declares(), toolConfig: { retrievalConfig: { languageCode: 'no' } } }, declares()],
  ['safetySettings', { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] }],
  ['cachedContent', { cachedContent: 'cachedContents/x' }],
  ['labels', { labels: { a: 'b' } }],
  ['store', { store: true }],
  ['serviceTier', { serviceTier: 'flex' }],
  ['an unknown member', { ofTomorrow: 1 }],
  ['generationConfig', configured({ temperature: 0.3 })],
  ['topP', configured({ topP: 0.3 })],
  ['topK', configured({ topK: 3 })],
  ['candidateCount', configured({ candidateCount: 2 })],
  ['maxOutputTokens', configured({ maxOutputTokens: 50 })],
  ['stopSequences', configured({ stopSequences: ['END'] })],
  ['presencePenalty', configured({ presencePenalty: 0.5 })],
  ['frequencyPenalty', configured({ frequencyPenalty: 0.5 })],
  ['seed', configured({ seed: 7 })],
  ['responseMimeType', { ...configured(json) }],
  [
    'responseSchema',
    configured({ ...json, responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } }),
    configured(json),
  ],
  ['responseJsonSchema', configured({ ...json, responseJsonSchema: closed }), configured(json)],
  ['_responseJsonSchema', configured({ ...json, _responseJsonSchema: closed }), configured(json)],
  ['responseLogprobs', configured({ responseLogprobs: true })],
  ['logprobs', configured({ responseLogprobs: true, logprobs: 3 }), configured({ responseLogprobs: true })],
  ['responseModalities', configured({ responseModalities: ['AUDIO'] })],
  ['imageConfig', configured({ imageConfig: { aspectRatio: '1:1' } })],
  ['speechConfig', configured({ speechConfig: { languageCode: 'no' } })],
  ['mediaResolution', configured({ mediaResolution: 'MEDIA_RESOLUTION_LOW' })],
  ['audioTimestamp', configured({ audioTimestamp: true })],
  ['enableEnhancedCivicAnswers', configured({ enableEnhancedCivicAnswers: true })],
  ['thinkingBudget', thinks({ thinkingBudget: 2048 })],
  ['thinkingLevel', thinks({ thinkingLevel: 'LOW' })],
  [
    'includeThoughts',
    thinks({ thinkingBudget: 2048, includeThoughts: true }),
    thinks({ thinkingBudget: 2048 }),
  ],
  ['a member of a part', says({ text: 'x', mediaResolution: { level: 'LOW' } }), says({ text: 'x' })],
  [
    'displayName',
    says({ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=', displayName: 'x' } }),
    says({ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }),
  ],
  ['videoMetadata', says({ text: 'x', videoMetadata: { fps: 1 } }), says({ text: 'x' })],
  ['executableCode', says({ executableCode: { language: 'PYTHON', code: '1' } }), says()],
  ['thoughtSignature', generateLoop({ thoughtSignature: 'c2ln' }), generateLoop({})],
  ['scheduling', generateLoop({}, { scheduling: 'SILENT' }), generateLoop({})],
  ['willContinue', generateLoop({}, { willContinue: true }), generateLoop({})],
];

/** What clients say that a translation may lose. */
export const samples: Readonly<Record<TextProtocolName, readonly Sample[]>> = {
  chat: chatSamples,
  responses: responsesSamples,
  messages: messagesSamples,
  generateContent: generateContentSamples,
};
