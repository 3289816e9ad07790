import { test } from 'tap';
import { plainSearch } from '../../../../src/conversation/web-search.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { decode, refusal } from '../samples.js';

test('settings are read, and what no other protocol has is dropped', async (t) => {
  const request = decode(
    {
      max_completion_tokens: 5,
      max_tokens: 6,
      temperature: 0.5,
      top_p: 0.25,
      n: 2,
      stop: 'a',
      seed: 3,
      presence_penalty: 1,
      frequency_penalty: -1,
      logit_bias: { 7: 1 },
      logprobs: true,
      top_logprobs: 4,
      verbosity: 'low',
      user: 'u',
      safety_identifier: 's',
      stream_options: { include_usage: true },
      parallel_tool_calls: false,
      reasoning_effort: 'high',
      metadata: { a: 'b' },
      store: true,
      service_tier: 'flex',
      prediction: {},
      prompt_cache_key: 'k',
      modalities: ['text'],
      whatever: 1,
    },
    true,
  );
  t.strictSame(request, {
    from: 'chat',
    stream: true,
    leftOut: ['store', 'whatever', 'user'],
    system: [],
    systemCache: undefined,
    turns: [{ role: 'user', parts: [{ kind: 'text', text: 'hi' }] }],
    tools: [],
    hostedTools: [],
    search: undefined,
    toolChoice: null,
    parallelCalls: false,
    format: null,
    reasoning: { effort: 'high', budget: null, show: true, summary: null },
    maxTokens: 5,
    temperature: 0.5,
    topP: 0.25,
    topK: null,
    stop: ['a'],
    candidates: 2,
    seed: 3,
    presencePenalty: 1,
    frequencyPenalty: -1,
    logitBias: { 7: 1 },
    logprobs: 4,
    verbosity: 'low',
    user: 's',
    userMember: 'safety_identifier',
    serving: { service_tier: 'flex', prompt_cache_key: 'k', metadata: { a: 'b' } },
    includeUsage: true,
    functionForm: false,
    echo: null,
    compaction: null,
  });
});

test('settings that are null or empty are as good as absent', async (t) => {
  const settings = ['max_tokens', 'n', 'stop', 'tools', 'tool_choice', 'functions', 'function_call', 'seed'];
  const more = ['response_format', 'reasoning_effort', 'stream_options', 'modalities', 'web_search_options'];
  const nulls = Object.fromEntries([...settings, ...more].map((name) => [name, null]));
  t.strictSame(decode(nulls), decode({}));
  t.strictSame(decode({ stop: ['', 'b'], logit_bias: {}, top_logprobs: 3 }), decode({ stop: ['b'] }));
  t.equal(decode({ logprobs: true }).logprobs, 0);
  t.equal(decode({ max_tokens: 6 }).maxTokens, 6);
  for (const unlimited of [{ max_tokens: -1 }, { max_completion_tokens: -1 }])
    t.equal(decode(unlimited).maxTokens, null);
  for (const zero of [{ max_tokens: 0 }, { max_completion_tokens: 5, max_tokens: 0 }])
    t.throws(() => decode(zero), { code: 'invalid_value', message: /'max_tokens'/ });
  t.equal(decode({ user: 'u' }).user, 'u');
  for (const empty of [{ user: '' }, { safety_identifier: '' }]) t.equal(decode(empty).user, null);
  t.equal(decode({ user: 'u', safety_identifier: '' }).user, 'u');
});

test('the format of the answer is read, and one without a schema is any object', async (t) => {
  const format = (value: JsonObject) => decode({ response_format: value }).format;
  t.equal(format({ type: 'text' }), null);
  t.strictSame(format({ type: 'json_object' }), { kind: 'object' });
  const schema = { type: 'object' };
  t.strictSame(
    format({ type: 'json_schema', json_schema: { name: 'n', description: 'd', schema, strict: true } }),
    { kind: 'schema', name: 'n', description: 'd', schema, strict: true },
  );
  t.strictSame(format({ type: 'json_schema', json_schema: { name: 'n' } }), { kind: 'object' });
  for (const type of ['json_object', 'json_schema'])
    t.strictSame(
      format({ type, schema }),
      { kind: 'schema', name: null, description: null, schema, strict: null },
      `a schema beside ${type}, as clients of Together and Fireworks send it`,
    );
  t.match(format({ type: 'json_schema', json_schema: { schema } }), { kind: 'schema', name: null, schema });
  for (const type of ['json_object', 'json_schema'])
    t.strictSame(format({ type, schema: {} }), { kind: 'object' }, 'an empty schema says nothing');
  t.strictSame(format({ type: 'json_schema', json_schema: { name: 'n', schema: {} } }), { kind: 'object' });
  t.match(format({ type: 'json_schema', json_schema: { name: 'n' }, schema }), { kind: 'schema', schema });
});

test('tools, hosted tools and choices among them', async (t) => {
  const { tools, hostedTools, search } = decode({
    tools: [
      {
        type: 'function',
        function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
      },
      { type: 'web_search' },
      { type: 'custom', custom: { name: 'g', format: { type: 'text' } } },
      {
        type: 'custom',
        custom: { name: 'h', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } },
      },
    ],
    web_search_options: {
      search_context_size: 'low',
      user_location: { type: 'approximate', approximate: { city: 'Bern', country: 'CH' } },
    },
  });
  const rest = { description: null, parameters: null, strict: null };
  t.strictSame(tools, [
    { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
    { name: 'g', ...rest, custom: { format: null } },
    { name: 'h', ...rest, custom: { format: { type: 'grammar', syntax: 'lark', definition: 'x' } } },
  ]);
  t.strictSame(hostedTools, [{ type: 'web_search', at: 'tools[1]' }]);
  t.strictSame(search, {
    ...plainSearch('web_search_options', 'web_search_options'),
    contextSize: 'low',
    location: { city: 'Bern', region: null, country: 'CH', timezone: null },
  });
  const choice = (value: unknown) => decode({ tool_choice: value }).toolChoice;
  t.strictSame(choice('auto'), { mode: 'auto' });
  t.strictSame(choice('any'), { mode: 'required' }, "the word of Mistral's clients");
  t.strictSame(choice({ type: 'function', function: { name: 'f' } }), { mode: 'named', name: 'f' });
  t.strictSame(choice({ type: 'function', name: 'f' }), { mode: 'named', name: 'f' });
  t.strictSame(choice({ type: 'custom', custom: { name: 'g' } }), { mode: 'named', name: 'g' });
  const allowed = [
    { type: 'function', function: { name: 'f' } },
    { type: 'custom', custom: { name: 'g' } },
  ];
  t.strictSame(choice({ type: 'allowed_tools', allowed_tools: { mode: 'required', tools: allowed } }), {
    mode: 'allowed',
    names: ['f', 'g'],
    required: true,
  });
});

test('settings that cannot be meant or translated are refused by their name', async (t) => {
  const cases: [JsonObject, string, string][] = [
    [{ modalities: ['text', 'audio'] }, 'unsupported_parameter', 'modalities'],
    [{ reasoning_effort: 'much '.repeat(20) }, 'invalid_value', 'reasoning_effort'],
    [{ response_format: { type: 'grammar' } }, 'unsupported_parameter', 'response_format'],
    [{ response_format: { type: 'json_schema' } }, 'missing_parameter', 'response_format.json_schema'],
    [{ tool_choice: 'maybe' }, 'invalid_value', 'tool_choice'],
    [{ tool_choice: { type: 'mcp' } }, 'unsupported_parameter', 'tool_choice'],
    [{ tool_choice: { type: 'function', function: {} } }, 'invalid_value', 'tool_choice.function.name'],
    [{ tool_choice: { type: 'allowed_tools' } }, 'invalid_value', 'tool_choice.allowed_tools'],
    [
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'any', tools: [] } } },
      'invalid_value',
      'tool_choice.allowed_tools.mode',
    ],
    [
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'mcp' }] } } },
      'unsupported_parameter',
      'tool_choice.allowed_tools.tools[0]',
    ],
    [{ function_call: 'f' }, 'invalid_value', 'function_call'],
    [{ tools: [{ type: 'function' }] }, 'missing_parameter', 'tools[0].function'],
    [{ tools: [{ type: 'custom', custom: {} }] }, 'missing_parameter', 'tools[0].custom.name'],
    [{ functions: [{}] }, 'missing_parameter', 'functions[0].name'],
    [{ messages: 'x' }, 'invalid_request', 'messages'],
    [{ messages: ['x'] }, 'invalid_request', 'messages[0]'],
    [{ messages: [{ role: 'x' }, 'x'] }, 'invalid_request', 'messages[1]'],
  ];
  for (const [more, kind, param] of cases)
    t.strictSame(
      refusal(() => decode(more)),
      { kind, param },
      JSON.stringify(more),
    );
});

test('what a model of Mistral has thought is no part of the history elsewhere', async (t) => {
  const content = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
    { type: 'text', text: 'so' },
  ];
  const request = decode({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'and' },
    ],
  });
  t.match(request.turns[1], { role: 'assistant', parts: [{ kind: 'text', text: 'so' }] });
  t.match(request.leftOut, ['thinking']);
});
