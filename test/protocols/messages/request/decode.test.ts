import { test } from 'tap';
import { carryInId } from '../../../../src/conversation/carrying-id.js';
import { noSignature } from '../../../../src/conversation/signature.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { refusalOf } from '../../../support/refusal.js';
import { decode, encode, token } from '../samples.js';

const turnsOf = (...messages: object[]) => decode({ messages }).turns;
const partsOf = (role: string, ...content: object[]) => {
  const [turn] = decode({ messages: [{ role, content }] }).turns;
  return turn !== undefined && 'parts' in turn ? turn.parts : [];
};
const text = (text: string) => ({ kind: 'text', text });
const call = { type: 'tool_use', id: 'c1', name: 'f', input: { a: [1, 'b'] } };

const refusal = (body: JsonObject) => refusalOf(() => decode(body));

test('settings are read', async (t) => {
  const request = decode(
    {
      max_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 3,
      stop_sequences: ['a', '', 'b'],
      metadata: { user_id: 'u' },
      service_tier: 'auto',
      speed: 'fast',
    },
    true,
  );
  t.match(request, {
    from: 'messages',
    stream: true,
    maxTokens: 7,
    temperature: 0.5,
    topP: 0.9,
    topK: 3,
    stop: ['a', 'b'],
    user: 'u',
    includeUsage: true,
    candidates: 1,
    reasoning: null,
    format: null,
    toolChoice: null,
    parallelCalls: null,
  });
  t.equal(decode({ metadata: { user_id: '' } }).user, null);
  t.equal(decode({ max_tokens: 0 }).maxTokens, 1, 'elsewhere no answer is as short');
  t.equal(decode({ max_tokens: undefined }).maxTokens, null);
});

test('system prompts are strings, blocks, or messages before all others', async (t) => {
  t.same(decode({ system: 'a' }).system, ['a']);
  t.same(decode({ system: '' }).system, []);
  const blocks = [
    { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'b' },
  ];
  t.same(decode({ system: blocks }).system, ['a', 'b']);
  t.same(decode({ system: blocks }).systemCache, [{ ttl: null }, null]);
  const request = decode({
    system: 'a',
    messages: [
      { role: 'system', content: 'b' },
      { role: 'user', content: 'hi' },
      { role: 'system', content: blocks },
    ],
  });
  t.same(request.system, ['a', 'b']);
  t.same(request.turns, [
    { role: 'user', parts: [text('hi')] },
    { role: 'system', text: 'a\n\nb', cache: { ttl: null } },
  ]);
});

test('a system message whose text is over does not reach the model, one for the last message does', (t) => {
  const user = { role: 'user', content: 'hi' };
  const once = { role: 'system', content: 'b', clear_at: 'next_user_message' };
  const rolesOf = (...messages: JsonObject[]) => decode({ messages }).turns.map(({ role }) => role);
  t.same(rolesOf(user, once, { role: 'assistant', content: 'a' }, user), ['user', 'assistant', 'user']);
  t.same(rolesOf(user, once), ['user', 'system']);
  t.same(rolesOf(user, { ...once, clear_at: 'never' }, user), ['user', 'system', 'user']);
  t.same(decode({ messages: [once, user] }).system, []);
  t.same(decode({ messages: [user, once, user] }).leftOut, [], 'nothing is lost');
  t.end();
});

test('a system message changes the effort of the input before or behind it, until the next', (t) => {
  const user = { role: 'user', content: 'hi' };
  const answer = { role: 'assistant', content: 'a' };
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] };
  const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] };
  const set = (effort: string) => ({ role: 'system', output_config: { effort } });
  const effortOf = (...messages: JsonObject[]) =>
    decode({ messages, output_config: { effort: 'high' } }).reasoning?.effort;
  t.equal(effortOf(user, answer, set('low'), user), 'low');
  t.equal(effortOf(user, answer, user, set('low')), 'low');
  t.equal(effortOf(user, set('low'), answer, user, answer, user), 'low');
  t.equal(effortOf(user, set('low'), answer, user, set('max')), 'max');
  t.equal(effortOf(user, call, set('low'), result), 'high', 'results are no new input');
  t.equal(effortOf(user, call, result, set('low')), 'high');
  t.equal(effortOf(user, call, result, set('low'), answer, user), 'low');
  t.equal(effortOf(user, { ...set('low'), output_config: {}, content: 'b' }), 'high');
  t.same(decode({ messages: [user, answer, set('low'), user] }).leftOut, []);
  t.match(refusal({ messages: [user, set('')] }), { param: 'messages[1].output_config.effort' });
  t.end();
});

test("the line for the vendor's accounts is no part of the prompt, in either place", async (t) => {
  const line = 'x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;';
  t.same(decode({ system: `${line}\n\na` }).system, ['a']);
  const blocks = [line, 'a'].map((each) => ({ type: 'text', text: each }));
  t.same(decode({ system: blocks }).system, ['a']);
  const marked = decode({ system: [...blocks, { ...blocks[1], cache_control: { type: 'ephemeral' } }] });
  t.same(marked.system, ['a', 'a']);
  t.same(marked.systemCache, [null, { ttl: null }], 'marks keep their places');
  t.same(decode({ messages: [{ role: 'system', content: blocks }] }).system, ['a']);
});

test('each message is a turn, and one without content is none', async (t) => {
  t.same(
    turnsOf(
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b', citations: [] }] },
      { role: 'assistant', content: [{ type: 'text', text: '' }] },
      { role: 'assistant', content: 'c' },
    ),
    [
      { role: 'user', parts: [text('a')] },
      { role: 'user', parts: [text('b')] },
      { role: 'assistant', parts: [text('c')] },
    ],
  );
});

test('media are read from data and URLs', async (t) => {
  const at = 'messages[0].content[0]';
  const media = (kind: string, source: object, name: string | null = null) => [
    { kind, source, detail: null, name, at },
  ];
  const image = (source: object) => partsOf('user', { type: 'image', source });
  const document = (source: object, more = {}) => partsOf('user', { type: 'document', source, ...more });
  t.same(
    image({ type: 'base64', media_type: 'IMAGE/JPG', data: 'AA' }),
    media('image', { kind: 'data', mediaType: 'image/jpeg', data: 'AA' }),
  );
  t.same(
    image({ type: 'url', url: 'https://x/y' }),
    media('image', { kind: 'url', url: 'https://x/y', mediaType: null }),
  );
  t.same(
    document({ type: 'base64', media_type: 'application/pdf', data: 'AA' }, { title: 'a.pdf' }),
    media('document', { kind: 'data', mediaType: 'application/pdf', data: 'AA' }, 'a.pdf'),
  );
  t.same(
    document({ type: 'url', url: 'http://x/y' }),
    media('document', { kind: 'url', url: 'http://x/y', mediaType: 'application/pdf' }),
  );
  const pdf = { kind: 'data', mediaType: 'application/pdf', data: 'AA' };
  const bytes = { type: 'base64', media_type: 'application/pdf', data: 'AA' };
  t.same(document(bytes, { title: 'Report' }), media('document', pdf, 'Report.pdf'), 'with an ending');
  t.same(document(bytes, { title: 'A.PDF' }), media('document', pdf, 'A.PDF'));
  t.same(document(bytes, { title: '' }), media('document', pdf));
  t.same(
    document(bytes, { context: 'of 1999' }),
    [text('of 1999'), ...media('document', pdf)],
    'what is said of it stands before it',
  );
  t.match(document({ type: 'url', url: 'http://x/y' }, { context: 'C', title: 'T' }), [
    text('C'),
    { kind: 'document', name: 'T.pdf' },
  ]);
});

test('documents of text and search results are texts', async (t) => {
  const document = (source: object, more = {}) => partsOf('user', { type: 'document', source, ...more });
  t.same(document({ type: 'text', media_type: 'text/plain', data: 'a' }), [text('a')]);
  t.same(document({ type: 'text', data: 'a' }, { title: 'T', context: 'C' }), [text('T\nC\n\na')]);
  t.same(document({ type: 'content', content: 'a' }, { title: 'T' }), [text('T'), text('a')]);
  t.match(
    document({
      type: 'content',
      content: [
        { type: 'text', text: 'a' },
        { type: 'image', source: { type: 'url', url: 'https://x' } },
      ],
    }),
    [text('a'), { kind: 'image', at: 'messages[0].content[0].source.content[1]' }],
  );
  const found = [
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b' },
  ];
  t.same(partsOf('user', { type: 'search_result', title: 'T', source: 'https://x', content: found }), [
    text('T\nhttps://x\n\na\n\nb'),
  ]);
});

test('calls and their results', async (t) => {
  const turns = turnsOf(
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [{ type: 'text', text: 'so' }, call, { ...call, id: 'c2', input: {} }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'there' },
        { type: 'tool_result', tool_use_id: 'c1', content: '42' },
        { type: 'tool_result', tool_use_id: 'c2', is_error: true, content: [{ type: 'text', text: 'no' }] },
        { type: 'tool_result', tool_use_id: 'c3' },
      ],
    },
  );
  const at = 'messages[1].content[1]';
  const first = { kind: 'toolCall', id: 'c1', name: 'f', input: '{"a":[1,"b"]}', custom: false, at };
  t.same(turns[1], {
    role: 'assistant',
    parts: [text('so'), first, { ...first, id: 'c2', input: '{}', at: 'messages[1].content[2]' }],
  });
  const result = { kind: 'toolResult', callId: 'c1', name: 'f', content: [text('42')], isError: false };
  t.same(
    turns[2],
    {
      role: 'user',
      parts: [
        { ...result, at: 'messages[2].content[1]' },
        { ...result, callId: 'c2', content: [text('no')], isError: true, at: 'messages[2].content[2]' },
        { ...result, callId: 'c3', name: '', content: [], at: 'messages[2].content[3]' },
        text('there'),
      ],
    },
    'results first',
  );
});

test('thinking keeps the token that stands for its signature', async (t) => {
  t.same(
    partsOf(
      'assistant',
      { type: 'thinking', thinking: 'hm', signature: token('s') },
      { type: 'thinking', thinking: 'hm', signature: '' },
      { type: 'thinking', thinking: 'hm', signature: noSignature },
      { type: 'redacted_thinking', data: 'enc' },
    ),
    [
      { kind: 'reasoning', text: 'hm', signature: token('s') },
      { kind: 'reasoning', text: 'hm', signature: null },
      { kind: 'reasoning', text: 'hm', signature: null },
      { kind: 'reasoning', text: '', signature: 'gw1.r.messages..enc' },
    ],
  );
});

test('the signatures that a call carries stand before it', async (t) => {
  const id = carryInId('c1', [token('s'), token('t')]) ?? '';
  const turns = turnsOf(
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'so' },
        { ...call, id },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'x' }] },
  );
  t.match(turns, [
    {
      parts: [
        text('so'),
        { kind: 'reasoning', text: '', signature: token('s') },
        { kind: 'reasoning', text: '', signature: token('t') },
        { kind: 'toolCall', id: 'c1', name: 'f' },
      ],
    },
    { parts: [{ kind: 'toolResult', callId: 'c1', name: 'f' }] },
  ]);
});

test('ids of calls that were changed for the client are changed back', async (t) => {
  const id = 'functions.f:0';
  const history = (callId: string) =>
    encode({
      turns: [
        { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
        {
          role: 'assistant',
          parts: [{ kind: 'toolCall', id: callId, name: 'f', input: '{}', custom: false, at: '' }],
        },
        {
          role: 'user',
          parts: [{ kind: 'toolResult', callId, name: 'f', content: [], isError: false, at: '' }],
        },
      ],
    });
  const changed = history(id);
  t.notMatch(JSON.stringify(changed), id, 'the protocol knows letters and digits');
  t.match(decode({ messages: changed.messages }).turns, [
    {},
    { parts: [{ id }] },
    { parts: [{ callId: id }] },
  ]);
  const long = history('x.'.repeat(100));
  const [, spoken, answered] = decode({ messages: long.messages }).turns as unknown as {
    parts: JsonObject[];
  }[];
  t.equal(
    spoken?.parts[0]?.id,
    answered?.parts[0]?.callId,
    'too long to be changed back, but still the same',
  );
  t.match(spoken?.parts[0]?.id, /^[\w-]{1,64}$/);
});

test('tools that the client runs are functions, whose schema only the vendor’s models know', async (t) => {
  const { tools, hostedTools } = decode({
    tools: [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250124', name: 'str_replace_editor' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 9000 },
      { type: 'memory_20250818', name: 'memory' },
      { type: 'computer_20250124', name: 'computer', display_width_px: 9, display_height_px: 9 },
    ],
  });
  t.match(tools, [
    { name: 'bash', parameters: { properties: { command: {}, restart: {} } } },
    {
      parameters: {
        properties: { command: { enum: ['view', 'create', 'str_replace', 'insert', 'undo_edit'] } },
      },
    },
    {
      description: /9000/,
      parameters: { properties: { command: { enum: ['view', 'create', 'str_replace', 'insert'] } } },
    },
    { name: 'memory', parameters: { properties: { insert_text: {}, old_path: {} }, required: ['command'] } },
  ]);
  t.same(hostedTools, [{ type: 'computer_20250124', at: 'tools[4]' }]);
});

test('tools and the choice among them', async (t) => {
  const schema = { type: 'object' };
  const request = decode({
    tools: [
      { name: 'f', description: 'd', input_schema: schema, strict: true },
      { type: 'custom', name: 'g', input_schema: schema, cache_control: {} },
      { type: 'code_execution_20250825', name: 'code_execution' },
    ],
  });
  t.same(request.tools, [
    { name: 'f', description: 'd', parameters: schema, strict: true },
    { name: 'g', description: null, parameters: schema, strict: null },
  ]);
  t.same(request.hostedTools, [{ type: 'code_execution_20250825', at: 'tools[2]' }]);
  const choices: [object, object][] = [
    [{ type: 'auto' }, { toolChoice: { mode: 'auto' }, parallelCalls: null }],
    [{ type: 'none' }, { toolChoice: { mode: 'none' } }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { toolChoice: { mode: 'required' }, parallelCalls: false },
    ],
    [
      { type: 'tool', name: 'f', disable_parallel_tool_use: false },
      { toolChoice: { mode: 'named', name: 'f' }, parallelCalls: true },
    ],
  ];
  for (const [tool_choice, expected] of choices) t.match(decode({ tool_choice }), expected);
});

test('a choice of a tool that only the vendor runs is left out with the tool, and one of any other tool stays', (t) => {
  const tools = [
    { name: 'f', input_schema: { type: 'object' } },
    { type: 'code_execution_20250825', name: 'code_execution' },
    { type: 'bash_20250124', name: 'bash' },
  ];
  const chosen = (name: string) => decode({ tools, tool_choice: { type: 'tool', name } });
  const hosted = chosen('code_execution');
  t.equal(hosted.toolChoice, null);
  t.same(hosted.leftOut, ['tool_choice']);
  for (const name of ['f', 'bash']) {
    t.same(chosen(name).toolChoice, { mode: 'named', name });
    t.same(chosen(name).leftOut, []);
  }
  t.end();
});

test('thinking and its budget are read as an effort', async (t) => {
  const cases: [object, object | null][] = [
    [{}, null],
    [
      { thinking: { type: 'enabled', budget_tokens: 10_000 } },
      { effort: 'medium', budget: 10_000, show: true, summary: null },
    ],
    [
      { thinking: { type: 'enabled', budget_tokens: 1024, display: 'omitted' } },
      { effort: 'low', show: false },
    ],
    [{ thinking: { type: 'adaptive' } }, { effort: null, budget: null, show: true }],
    [
      { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'max' } },
      { effort: 'max', show: true },
    ],
    [
      { thinking: { type: 'disabled' }, output_config: { effort: 'high' } },
      { effort: 'none', show: false },
    ],
    [
      { thinking: null, output_config: { effort: 'low' } },
      { effort: 'low', show: false },
    ],
  ];
  for (const [body, expected] of cases)
    t.match(decode(body as JsonObject).reasoning, expected, JSON.stringify(body));
});

test('a schema is read as the format of the answer', async (t) => {
  const format = { type: 'json_schema', schema: { type: 'object' } };
  t.same(decode({ output_config: { format } }).format, {
    kind: 'schema',
    name: null,
    description: null,
    schema: { type: 'object' },
    strict: null,
  });
});

test('the format stands in the body itself for clients of its beta', async (t) => {
  const format = { type: 'json_schema', schema: { type: 'object' } };
  const older = decode({ output_format: format });
  t.match(older.format, { kind: 'schema', schema: { type: 'object' } });
  t.strictSame(older.leftOut, []);
  const newer = { type: 'json_schema', schema: { type: 'object', title: 'x' } };
  t.match(decode({ output_format: format, output_config: { format: newer } }).format, {
    schema: { title: 'x' },
  });
});

test('what cannot be translated is refused with its place', async (t) => {
  const inUser = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] });
  const inAssistant = (...content: unknown[]) => ({ messages: [{ role: 'assistant', content }] });
  const block = 'messages[0].content[0]';
  const refused: [JsonObject, string][] = [
    [{ container: 'x' }, 'container'],
    [{ mcp_servers: [{ url: 'x' }] }, 'mcp_servers'],
    [{ messages: [{ role: 'critic', content: 'x' }] }, 'messages[0]'],
    [inUser({ type: 'image', source: { type: 'file', file_id: 'x' } }), `${block}.source`],
    [inUser({ type: 'document', source: { type: 'file', file_id: 'x' } }), `${block}.source`],
    [inUser(call), block],
    [inUser({ type: 'tool_result', tool_use_id: 'x', content: [call] }), `${block}.content[0]`],
    [inAssistant({ type: 'image', source: { type: 'url', url: 'https://x' } }), block],
    [{ system: [{ type: 'image' }] }, 'system[0]'],
    [{ tool_choice: { type: 'all' } }, 'tool_choice'],
    [{ thinking: { type: 'deep' } }, 'thinking'],
    [{ output_config: { format: { type: 'grammar' } } }, 'output_config.format'],
  ];
  for (const [body, param] of refused) {
    const error = refusal(body);
    t.match(error, { kind: 'unsupported_parameter', param, status: 400 }, param);
    t.match(error?.message, `'${param}'`);
  }
});

test('the input of a call that is no object is put into one', async (t) => {
  for (const [given, input] of [
    [[], '{"input":[]}'],
    ['x', '{"input":"x"}'],
    ['{"a":1}', '{"a":1}'],
    ['', '{}'],
    [null, '{}'],
  ]) {
    const content = [{ type: 'tool_use', id: 'c', name: 'f', input: given }];
    t.match(decode({ messages: [{ role: 'assistant', content }] }).turns, [{ parts: [{ input }] }]);
  }
});

test('odd shapes are refused, not stumbled over', async (t) => {
  const block = 'messages[0].content[0]';
  const odd: [JsonObject, string, string][] = [
    [{ messages: null }, 'invalid_request', 'messages'],
    [{ messages: [5] }, 'invalid_request', 'messages[0]'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'invalid_request', 'messages[0].content'],
    [{ messages: [{ role: 'user', content: [null] }] }, 'invalid_request', block],
    [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'missing_parameter', `${block}.text`],
    [{ messages: [{ role: 'user', content: [{ type: 'image' }] }] }, 'missing_parameter', `${block}.source`],
    [
      {
        messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'file:///x' } }] }],
      },
      'invalid_value',
      `${block}.source.url`,
    ],
    [
      { messages: [{ role: 'assistant', content: [{ type: 'text', text: 5 }] }] },
      'invalid_request',
      `${block}.text`,
    ],
    [
      { messages: [{ role: 'assistant', content: [{ ...call, name: '' }] }] },
      'invalid_value',
      `${block}.name`,
    ],
    [{ messages: [{ role: 'assistant', content: [{ ...call, id: 5 }] }] }, 'invalid_request', `${block}.id`],
    [{ messages: [{ role: 'critic', content: 'x' }, 5] }, 'invalid_request', 'messages[1]'],
    [{ messages: [{ role: 'user', content: [{}] }] }, 'missing_parameter', `${block}.type`],
    [{ tools: [5] }, 'invalid_request', 'tools[0]'],
    [{ tools: [{ input_schema: {} }] }, 'missing_parameter', 'tools[0].name'],
    [{ tool_choice: 'auto' }, 'invalid_request', 'tool_choice'],
    [{ tool_choice: { type: 'tool' } }, 'missing_parameter', 'tool_choice.name'],
    [{ thinking: 'deep' }, 'invalid_request', 'thinking'],
    [{ thinking: { type: 'enabled' } }, 'missing_parameter', 'thinking.budget_tokens'],
    [{ output_config: { effort: '' } }, 'invalid_value', 'output_config.effort'],
    [
      { output_config: { format: { type: 'json_schema' } } },
      'missing_parameter',
      'output_config.format.schema',
    ],
  ];
  for (const [body, kind, param] of odd) t.match(refusal(body), { kind, param, status: 400 }, param);
});
