import { test } from 'tap';
import { plainSearch } from '../../../../src/conversation/web-search.js';
import { responsesCodec } from '../../../../src/protocols/responses/index.js';
import { refusalOf } from '../../../support/refusal.js';
import { agentBody } from '../bodies.js';
import { decode, plain, sealer } from '../conversation.js';

const turnsOf = (...input: unknown[]) => decode({ input }).turns;
const user = { role: 'user', content: 'hi' };
const userTurn = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
const call = (id: string, name = 'f') => ({ type: 'function_call', call_id: id, name, arguments: '{"a":1}' });
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: '42' });
const result = (callId: string, at: string) => ({
  kind: 'toolResult',
  callId,
  name: 'f',
  content: [{ kind: 'text', text: '42' }],
  isError: false,
  at,
});

test('a text is a turn of the user, and settings that are not there are null', async (t) => {
  t.same(decode({}), { ...plain, from: 'responses', echo: {}, turns: [userTurn], returnsEncrypted: false });
  t.equal(decode({}, true).stream, true);
});

test('instructions and the messages before the first turn are the system, later ones are turns', async (t) => {
  const request = decode({
    instructions: 'a',
    input: [
      { role: 'system', content: 'b' },
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'c' }] },
      user,
      { role: 'developer', content: 'd' },
      { role: 'developer', content: '' },
    ],
  });
  t.same(request.system, ['a', 'b', 'c']);
  t.same(request.turns, [userTurn, { role: 'system', text: 'd' }]);
});

test('adjacent items of the assistant are one turn, and so are the outputs of its calls', async (t) => {
  const turns = turnsOf(
    user,
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'a' }, { text: 'b' }] },
    {
      role: 'assistant',
      content: [
        { type: 'output_text', text: 'x' },
        { type: 'refusal', refusal: 'y' },
      ],
    },
    call('c1'),
    { type: 'custom_tool_call', call_id: 'c2', name: 'f', input: 'free text' },
    output('c1'),
    { type: 'custom_tool_call_output', call_id: 'c2', output: '42' },
    user,
    user,
    { type: 'reasoning', summary: [], encrypted_content: 'gw1.token' },
    { role: 'assistant', content: 'z' },
  );
  t.same(turns, [
    userTurn,
    {
      role: 'assistant',
      parts: [
        { kind: 'reasoning', text: 'a\n\nb', signature: null },
        { kind: 'text', text: 'x' },
        { kind: 'refusal', text: 'y' },
        { kind: 'toolCall', id: 'c1', name: 'f', input: '{"a":1}', custom: false, at: 'input[3]' },
        { kind: 'toolCall', id: 'c2', name: 'f', input: 'free text', custom: true, at: 'input[4]' },
      ],
    },
    { role: 'user', parts: [result('c1', 'input[5]'), result('c2', 'input[6]')] },
    userTurn,
    userTurn,
    {
      role: 'assistant',
      parts: [
        { kind: 'reasoning', text: '', signature: 'gw1.token' },
        { kind: 'text', text: 'z' },
      ],
    },
  ]);
});

test('calls and outputs in turn stay in turn', async (t) => {
  const turns = turnsOf(call('c1'), output('c1'), call('c2'), output('c2'));
  t.same(
    turns.map(({ role }) => role),
    ['assistant', 'user', 'assistant', 'user'],
  );
});

test('a call without arguments has an empty object', async (t) => {
  t.match(turnsOf({ ...call('c1'), arguments: '' }), [{ parts: [{ input: '{}' }] }]);
});

test('the output of a tool may hold images and files', async (t) => {
  const turns = turnsOf(call('c1'), {
    ...output('c1'),
    output: [
      { type: 'input_text', text: 'see' },
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
    ],
  });
  t.match(turns[1], {
    parts: [
      {
        content: [
          { kind: 'text', text: 'see' },
          { kind: 'image', at: 'input[1].output[1]' },
        ],
      },
    ],
  });
});

test('what only an upstream of the protocol can do is refused by its name', async (t) => {
  const item = (value: unknown) => ({ input: [user, value] });
  const cases: [Record<string, unknown>, string][] = [
    [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ conversation: { id: 'c' } }, 'conversation'],
    [{ prompt: { id: 'p' } }, 'prompt'],
    [{ background: true }, 'background'],
    [item({ type: 'item_reference', id: 'x' }), 'input[1]'],
    [item({ id: 'x' }), 'input[1]'],
    [item({ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }), 'input[1].content[0].file_id'],
    [{ tool_choice: { type: 'allowed_tools', tools: [5] } }, 'tool_choice.tools[0]'],
    [{ text: { format: { type: 'grammar' } } }, 'text.format'],
  ];
  for (const [members, param] of cases) {
    const error = refusalOf(() => decode(members));
    t.match(error, { kind: 'unsupported_parameter', param, status: 400 });
    t.match(error?.message, `'${param}'`);
  }
});

test('items and parts that nobody else knows are left out, and named where their types are known', async (t) => {
  const items: [Record<string, unknown>, string][] = [
    [{ type: 'web_search_call', id: 'ws_1', status: 'completed' }, 'web_search_call'],
    [{ type: 'image_generation_call', id: 'ig_1', result: 'AAAA' }, 'image_generation_call'],
    [{ type: 'mcp_list_tools', tools: [] }, 'mcp_list_tools'],
    [{ type: 'agent_message', content: [] }, 'agent_message'],
    [{ type: 'ghost_snapshot', ghost_commit: {} }, 'ghost_snapshot'],
    [{ type: 'compaction', encrypted_content: 'gAAAA' }, 'compaction'],
    [{ type: 'tool_search_call', call_id: null, execution: 'server', arguments: {} }, 'tool_search_call'],
    [{ type: 'local_shell_call', action: {} }, 'local_shell_call'],
    [{ type: 'x_call' }, 'input'],
    [{ type: { toString: 1, valueOf: 1 } }, 'input'],
    [{ type: 5 }, 'input'],
    [{ role: 'critic', content: 'x' }, 'input'],
    [{ role: { toString: 1, valueOf: 1 }, content: 'x' }, 'input'],
    [{ role: 'user', content: [{ type: 'input_video' }] }, 'content'],
    [{ role: 'user', content: [{ type: 'encrypted_content' }] }, 'encrypted_content'],
    [{ role: 'assistant', content: [{ type: 'audio' }] }, 'content'],
    [{ role: 'system', content: [{ type: 'input_image' }] }, 'content'],
  ];
  for (const [value, name] of items) {
    const { turns, leftOut } = decode({ input: [user, value, user] });
    t.strictSame(leftOut, [name], name);
    t.strictSame(turns, [userTurn, userTurn], name);
  }
  const mixed = [{ type: 'input_audio' }, { type: 'input_text', text: 'hi' }];
  t.strictSame(turnsOf({ role: 'user', content: mixed }), [userTurn], 'what is known of a message stays');
});

test('a message’s phase has no place elsewhere', async (t) => {
  const { turns, leftOut } = decode({
    input: [user, { role: 'assistant', content: 'x', phase: 'commentary' }],
  });
  t.strictSame(turns[1], { role: 'assistant', parts: [{ kind: 'text', text: 'x' }] });
  t.strictSame(leftOut, ['phase']);
});

test('an output may name its tool instead of its call', async (t) => {
  const tools = [{ type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'g', parameters: {} }] }];
  const outputs = [
    { type: 'function_call_output', call_id: null, name: 'f', output: 'late' },
    { type: 'custom_tool_call_output', name: 'g', namespace: 'ns', output: 'x' },
    { type: 'function_call_output', call_id: '', output: 'x' },
  ];
  const { turns, tools: declared } = decode({ input: [user, call('c'), ...outputs], tools });
  t.match(turns.at(-1), {
    role: 'user',
    parts: [
      { kind: 'toolResult', callId: '', name: 'f', content: [{ text: 'late' }] },
      { callId: '', name: declared[0]?.name },
      { callId: '', name: '' },
    ],
  });
});

test('what a call, an output or a file says that no other protocol can is named', async (t) => {
  const file = { type: 'input_file', file_data: 'JVBERi0=', filename: 'a.pdf' };
  const leftOut = (...items: object[]) => decode({ input: [user, ...items] }).leftOut;
  const direct = { caller: { type: 'direct' }, status: 'completed', id: 'x' };
  t.strictSame(
    leftOut({ ...call('c'), ...direct, async: false }, { ...output('c'), ...direct, name: 'f' }),
    [],
  );
  const program = { caller: { type: 'program', caller_id: 'p' } };
  t.strictSame(leftOut({ ...call('c'), ...program, async: true }, { ...output('c'), ...program }), [
    'caller.caller_id',
    'async',
  ]);
  t.strictSame(leftOut({ role: 'user', content: [{ ...file, detail: 'low' }] }), ['detail']);
  t.strictSame(leftOut({ role: 'user', content: [{ ...file, detail: 'auto' }] }), []);
});

test('what is not of the protocol is refused by its name', async (t) => {
  const item = (value: unknown) => ({ input: [user, value] });
  const cases: [Record<string, unknown>, string, string][] = [
    [{ input: undefined }, 'missing_parameter', 'input'],
    [item(5), 'invalid_request', 'input[1]'],
    [item({ role: 'user', content: 5 }), 'invalid_request', 'input[1].content'],
    [item({ role: 'user', content: ['x'] }), 'invalid_request', 'input[1].content[0]'],
    [
      item({ role: 'user', content: [{ type: 'input_image' }] }),
      'missing_parameter',
      'input[1].content[0].image_url',
    ],
    [
      item({ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png,x' }] }),
      'invalid_value',
      'input[1].content[0].image_url',
    ],
    [item({ type: 'function_call', name: 'f' }), 'missing_parameter', 'input[1].call_id'],
    [item({ type: 'function_call', call_id: 'c' }), 'missing_parameter', 'input[1].name'],
    [item({ ...output('c'), output: 5 }), 'invalid_request', 'input[1].output'],
    [{ tool_choice: 'any' }, 'invalid_value', 'tool_choice'],
    [{ tool_choice: { type: 'function' } }, 'missing_parameter', 'tool_choice.name'],
    [{ reasoning: { effort: '' } }, 'invalid_value', 'reasoning.effort'],
    [{ text: { format: { type: 'json_schema' } } }, 'missing_parameter', 'text.format.schema'],
    [
      { input: [{ type: 'configuration_update', reasoning: { effort: '' } }] },
      'invalid_value',
      'input[0].reasoning.effort',
    ],
    [{ input: [{ type: 'compaction_trigger' }, user] }, 'invalid_value', 'input[0]'],
  ];
  for (const [members, kind, param] of cases)
    t.match(
      refusalOf(() => decode(members)),
      { kind, param, status: 400 },
      param,
    );
});

test('functions and custom tools are taken, and those of the upstream are noted', async (t) => {
  const closed = {
    type: 'object',
    properties: {
      a: { type: 'array', items: { type: 'object', properties: {}, additionalProperties: false } },
    },
    required: ['a'],
    additionalProperties: false,
  };
  const open = { ...closed, required: [] };
  const grammar = { type: 'grammar', syntax: 'lark', definition: 'x' };
  const { tools, hostedTools, search } = decode({
    tools: [
      { type: 'function', name: 'a', description: 'd', parameters: closed, strict: false },
      { type: 'function', name: 'b', parameters: closed },
      { type: 'function', name: 'c', parameters: open },
      { type: 'function', name: 'd', parameters: null, strict: null },
      { type: 'web_search' },
      { type: 'custom', name: 'e', format: grammar },
      { type: 'custom', name: 'f', format: { type: 'text' } },
    ],
  });
  t.same(tools, [
    { name: 'a', description: 'd', parameters: closed, strict: false },
    { name: 'b', description: null, parameters: closed, strict: true },
    { name: 'c', description: null, parameters: open, strict: null },
    { name: 'd', description: null, parameters: null, strict: null },
    {
      name: 'e',
      description: null,
      parameters: null,
      strict: null,
      custom: { format: grammar },
    },
    { name: 'f', description: null, parameters: null, strict: null, custom: { format: null } },
  ]);
  t.same(hostedTools, []);
  t.same(search, plainSearch('web_search', 'tools[4]'));
});

test('settings: text, reasoning, log probabilities, the user', async (t) => {
  t.same(decode({ text: { format: { type: 'text' }, verbosity: 'low' } }), {
    ...decode({}),
    verbosity: 'low',
    echo: { text: { format: { type: 'text' }, verbosity: 'low' } },
  });
  t.same(decode({ text: { format: { type: 'json_object' } } }).format, { kind: 'object' });
  t.same(decode({ text: { format: { type: 'json_schema', name: 'n', schema: { a: 1 } } } }).format, {
    kind: 'schema',
    name: 'n',
    description: null,
    schema: { a: 1 },
    strict: null,
  });
  const reasoning = (value: unknown) => decode({ reasoning: value }).reasoning;
  t.same(reasoning({ effort: 'low' }), { effort: 'low', budget: null, show: false, summary: null });
  t.same(reasoning({ summary: 'auto' }), { effort: null, budget: null, show: true, summary: 'auto' });
  t.match(reasoning({ generate_summary: 'concise' }), { show: true, summary: 'concise' });
  t.match(reasoning({ effort: 'high', summary: 'none' }), { show: false, summary: null });
  t.equal(reasoning({}), null);
  const include = ['message.output_text.logprobs'];
  t.equal(decode({ include }).logprobs, 0);
  t.equal(decode({ include, top_logprobs: 5 }).logprobs, 5);
  t.equal(decode({ top_logprobs: 5 }).logprobs, null);
  t.equal(decode({ user: 'u' }).user, 'u');
  for (const empty of [{ user: '' }, { safety_identifier: '' }]) t.equal(decode(empty).user, null);
  t.equal(decode({ user: 'u', safety_identifier: '' }).user, 'u');
  t.equal(decode({ user: 'u', safety_identifier: 's' }).user, 's');
  t.match(decode({ max_output_tokens: 5, temperature: 0.5, top_p: 0.9, parallel_tool_calls: false }), {
    maxTokens: 5,
    temperature: 0.5,
    topP: 0.9,
    parallelCalls: false,
  });
});

test('the last update of the configuration counts, and what it does not name stays', async (t) => {
  const schema = { type: 'json_schema', name: 'n', schema: { a: 1 } };
  const update = (more: object) => ({ type: 'configuration_update', ...more });
  const settingsOf = (...updates: object[]) => {
    const { reasoning, format, turns, leftOut } = decode({
      input: [user, ...updates],
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: schema },
    });
    t.equal(turns.length, 1);
    t.same(leftOut, []);
    return { effort: reasoning?.effort, summary: reasoning?.summary, format: format?.kind };
  };
  const first = { effort: 'low', summary: 'auto', format: 'schema' };
  t.same(settingsOf(), first);
  t.same(settingsOf(update({ reasoning: { effort: 'high' } })), { ...first, effort: 'high' });
  t.same(
    settingsOf(update({ reasoning: { effort: 'high' } }), update({ text: { format: { type: 'text' } } })),
    { ...first, effort: 'high', format: undefined },
  );
  t.same(settingsOf(update({ id: 'c1', reasoning: { effort: null }, text: null })), first);
  const bare = decode({ input: [user, update({ reasoning: { effort: 'high' }, text: { format: schema } })] });
  t.match(bare, { reasoning: { effort: 'high', show: false }, format: { kind: 'schema', name: 'n' } });
});

test('what a response repeats is kept as it was sent, and what means nothing elsewhere is dropped', async (t) => {
  const settings = { instructions: 'i', temperature: 0, metadata: { a: 'b' }, truncation: 'auto' };
  const { echo } = decode({
    ...settings,
    store: true,
    service_tier: null,
    include: [],
    context_management: [],
  });
  t.same(echo, settings);
});

test('the body of a coding agent', async (t) => {
  const request = responsesCodec.decodeRequest(agentBody, true, sealer);
  t.equal(request.tools.length, 13);
  t.same(request.hostedTools, []);
  t.match(request.search, { type: 'web_search', at: 'tools[13]', live: false });
  t.equal(request.system.length, 2);
  t.equal(request.turns.length, 43, 'twenty rounds between a question and the next one');
});

test('the type of a message may be null, or left out', async (t) => {
  for (const type of [{}, { type: null }])
    t.match(decode({ input: [{ ...type, role: 'user', content: 'hi' }] }).turns, [{ role: 'user' }]);
});
