import { test } from 'tap';
import type { TargetOptions } from '../../../../src/conversation/codec.js';
import { LeftOut } from '../../../../src/conversation/left-out.js';
import type { ConversationRequest, Effort, MediaPart, Tool } from '../../../../src/conversation/request.js';
import { messagesCodec } from '../../../../src/protocols/messages/index.js';
import { refusalOf } from '../../../support/refusal.js';
import { writeRequest } from '../../write-request.js';
import { encode, encodeText, plain, target, token } from '../samples.js';

const f: Tool = { name: 'f', description: null, parameters: null, strict: null };
const reasoning = (effort: Effort | null, budget: number | null = null, show = true) => ({
  reasoning: { effort, budget, show, summary: null },
});
const results = {
  turns: [
    ...plain.turns,
    {
      role: 'assistant',
      parts: [{ kind: 'toolCall', id: 'c1', name: 'f', input: '{}', custom: false, at: '' }],
    },
    {
      role: 'user',
      parts: [{ kind: 'toolResult', callId: 'c1', name: 'f', content: [], isError: false, at: '' }],
    },
  ] as ConversationRequest['turns'],
};

const refusal = (changes: Partial<ConversationRequest>, options: Partial<TargetOptions> = {}) =>
  refusalOf(() => encode(changes, options));

test('a plain request, the conversation last', async (t) => {
  t.equal(
    encodeText(plain),
    '{"model":"up","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}',
  );
});

test('settings that the protocol has are written', async (t) => {
  t.match(
    encode({
      stream: true,
      maxTokens: 7,
      temperature: 1.5,
      topK: 40.5,
      stop: ['a'],
      user: 'u',
      seed: 5,
      presencePenalty: 1,
      frequencyPenalty: 1,
      verbosity: 'low',
      system: ['a', ' \n', 'b'],
    }),
    {
      max_tokens: 7,
      stream: true,
      temperature: 1,
      top_p: undefined,
      top_k: 41,
      stop_sequences: ['a'],
      metadata: { user_id: 'u' },
      system: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      seed: undefined,
      presence_penalty: undefined,
      verbosity: undefined,
    },
  );
});

test('temperature and top_p never go together, and the one that says more goes', async (t) => {
  const cases: [number | null, number | null, number | undefined, number | undefined][] = [
    [1, 1, 1, undefined],
    [0.5, 1, 0.5, undefined],
    [1, 0.9, undefined, 0.9],
    [1.5, 0.9, undefined, 0.9],
    [0.5, 0.9, 0.5, undefined],
    [null, 1, undefined, 1],
    [0.5, null, 0.5, undefined],
    [1, null, 1, undefined],
  ];
  for (const [temperature, topP, ...expected] of cases) {
    const body = encode({ temperature, topP });
    t.strictSame([body.temperature, body.top_p], expected, `${temperature} and ${topP}`);
  }
});

test('a schema is the format of the answer, and any object is asked for in words', async (t) => {
  const schema = { type: 'object' };
  const format = { kind: 'schema', name: 'n', description: 'd', schema, strict: true } as const;
  t.same(encode({ format }).output_config, {
    format: { type: 'json_schema', schema: { ...schema, additionalProperties: false } },
  });
  const asked = encode({ format: { kind: 'object' }, system: ['a'] });
  t.match(asked.system, [{ text: 'a' }, { type: 'text', text: /JSON object/ }]);
  t.notOk(asked.output_config);
});

test('tools have a schema of an object, closed where they are strict', async (t) => {
  const parameters = { properties: { a: { type: 'string' } } };
  t.same(encode({ tools: [f, { ...f, name: 'g', description: 'd', parameters, strict: true }] }).tools, [
    { name: 'f', input_schema: { type: 'object', properties: {} } },
    {
      name: 'g',
      description: 'd',
      input_schema: { type: 'object', ...parameters, additionalProperties: false },
      strict: true,
    },
  ]);
});

test('the choice among tools', async (t) => {
  const tools = [f, { ...f, name: 'g' }];
  const cases: [Partial<ConversationRequest>, object | undefined][] = [
    [{}, undefined],
    [{ parallelCalls: true }, undefined],
    [{ parallelCalls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [{ toolChoice: { mode: 'auto' }, parallelCalls: true }, { type: 'auto' }],
    [{ toolChoice: { mode: 'none' }, parallelCalls: false }, { type: 'none' }],
    [{ toolChoice: { mode: 'required' } }, { type: 'any' }],
    [
      { toolChoice: { mode: 'named', name: 'g' }, parallelCalls: false },
      { type: 'tool', name: 'g', disable_parallel_tool_use: true },
    ],
    [{ toolChoice: { mode: 'allowed', names: ['f', 'g'], required: false } }, { type: 'auto' }],
  ];
  for (const [changes, expected] of cases) t.same(encode({ tools, ...changes }).tool_choice, expected);
  const some = encode({ tools, toolChoice: { mode: 'allowed', names: ['g', 'x'], required: true } });
  t.match(some, { tools: [{ name: 'g' }], tool_choice: { type: 'any' } });
  t.equal((some.tools as unknown[]).length, 1);
  t.notOk(encode({ toolChoice: { mode: 'required' } }).tool_choice, 'without tools there is no choice');
});

test('a choice of tools that are not there is left out', async (t) => {
  const tools = [f, { ...f, name: 'g' }];
  t.equal(encode({ tools, toolChoice: { mode: 'named', name: 'x' } }).tool_choice, undefined);
  const none = encode({
    tools,
    toolChoice: { mode: 'allowed', names: ['x'], required: true },
    parallelCalls: false,
  });
  t.match(none, { tools: [{ name: 'f' }, { name: 'g' }] });
  t.strictSame(none.tool_choice, { type: 'auto', disable_parallel_tool_use: true });
});

test('tools of another vendor are refused or dropped', async (t) => {
  const hostedTools = [{ type: 'web_search', at: 'tools[1]' }];
  t.match(refusal({ hostedTools }), { kind: 'unsupported_parameter', param: 'tools[1]' });
  t.notOk(encode({ hostedTools }, { hostedTools: 'drop' }).tools);
});

test('every effort has its budget, below the limit', async (t) => {
  const budgets: [Effort, number][] = [
    ['minimal', 1024],
    ['low', 2048],
    ['medium', 8192],
    ['high', 16_384],
    ['xhigh', 24_576],
    ['max', 32_000],
  ];
  for (const [effort, budget] of budgets) {
    t.match(encode(reasoning(effort)), {
      thinking: { type: 'enabled', budget_tokens: budget, display: undefined },
      max_tokens: Math.max(4096, budget + 1024),
      output_config: undefined,
    });
  }
  t.notOk(encode(reasoning('none')).thinking);
  t.notOk(encode(reasoning(null)).thinking, 'as the upstream thinks fit');
  t.match(encode(reasoning('minimal', 512)).thinking, { budget_tokens: 1024 });
  t.match(encode({ ...reasoning('medium', 5000), maxTokens: 5001 }), {
    thinking: { budget_tokens: 5000 },
    max_tokens: 5001,
  });
  t.match(encode({ ...reasoning('high'), maxTokens: 4000 }), {
    thinking: { budget_tokens: 2976 },
    max_tokens: 4000,
  });
  t.match(encode({ ...reasoning('medium', 5000), maxTokens: 5000 }).thinking, { budget_tokens: 3976 });
  t.notOk(encode({ ...reasoning('high'), maxTokens: 2000 }).thinking, 'nothing sensible fits');
  t.match(encode(reasoning('low', null, false)).thinking, { display: 'omitted' });
});

test('a model that adapts gets the effort itself', async (t) => {
  const adaptive = { thinking: 'adaptive' } as const;
  t.match(encode(reasoning('minimal'), adaptive), {
    thinking: { type: 'adaptive', display: 'summarized' },
    output_config: { effort: 'low' },
    max_tokens: 4096,
  });
  t.match(encode(reasoning('max', 50_000, false), adaptive), {
    thinking: { type: 'adaptive', display: 'omitted' },
    output_config: { effort: 'max' },
  });
  t.match(encode(reasoning(null), adaptive), { thinking: { type: 'adaptive' }, output_config: undefined });
  t.match(encode(reasoning('none'), adaptive), { thinking: undefined, output_config: { effort: 'low' } });
  t.notOk(encode({}, adaptive).thinking);
});

test('thinking behind a changed prompt is to be dropped where the model preserves it', async (t) => {
  const preserved = { thinking: 'adaptive', preservedThinking: true } as const;
  const block_binding = { prefix_mismatch_behavior: 'drop_block' };
  t.strictSame(encode(reasoning('high'), preserved).thinking, {
    type: 'adaptive',
    display: 'summarized',
    block_binding,
  });
  for (const unasked of [{}, reasoning('none')])
    t.strictSame(encode(unasked, preserved).thinking, { type: 'adaptive', block_binding });
  t.notOk(encode({ tools: [f], toolChoice: { mode: 'required' } }, preserved).thinking, 'a forced call');
  t.strictSame(encode(reasoning('high'), { thinking: 'adaptive' }).thinking, {
    type: 'adaptive',
    display: 'summarized',
  });
});

test('a choice that forces a call is auto where the model refuses it', async (t) => {
  const unforced = { thinking: 'adaptive', forcedCalls: false } as const;
  for (const toolChoice of [
    { mode: 'required' },
    { mode: 'named', name: 'f' },
    { mode: 'allowed', names: ['f'], required: true },
  ] as const) {
    const asked = { ...reasoning('high'), tools: [f], toolChoice };
    const body = encode({ ...asked, parallelCalls: false }, unforced);
    t.strictSame(body.tool_choice, { type: 'auto', disable_parallel_tool_use: true }, toolChoice.mode);
    t.match(body.thinking, { type: 'adaptive' });
    const leftOut = new LeftOut();
    messagesCodec.encodeRequest({ ...plain, ...asked }, { ...target, ...unforced }, leftOut);
    t.strictSame(leftOut.names, ['tool_choice']);
  }
  const free = { tools: [f], toolChoice: { mode: 'auto' } } as const;
  t.strictSame(encode(free, unforced).tool_choice, { type: 'auto' });
});

test('a model that cannot be forced to call a tool is told to, behind all that is cached', async (t) => {
  const unforced = { thinking: 'adaptive', forcedCalls: false } as const;
  const messages = (
    toolChoice: ConversationRequest['toolChoice'],
    options: Partial<TargetOptions> = unforced,
  ) => encode({ tools: [f], toolChoice }, options).messages;
  const named = { mode: 'named', name: 'f' } as const;
  const said = { type: 'text', text: 'hi' };
  const told = { type: 'text', text: "Answer with a call of the tool 'f', not with a text." };
  t.strictSame(messages(named), [{ role: 'user', content: [said, told] }]);
  const begun = [{ role: 'user', content: [said] }];
  t.strictSame(messages(named, { ...unforced, systemMessages: true }), [
    ...begun,
    { role: 'system', content: [told] },
  ]);
  const open = { type: 'text', text: 'Answer with a call of one of the tools, not with a text.' };
  t.strictSame(messages({ mode: 'required' }), [{ role: 'user', content: [said, open] }]);
  t.strictSame(messages(named, { ...unforced, forcedCalls: true }), begun, 'not where the choice does it');
  t.strictSame(messages({ mode: 'auto' }), begun);
  const search: ConversationRequest['search'] = {
    type: 'web_search',
    at: 'tools[0]',
    forced: true,
    allowedDomains: [],
    blockedDomains: [],
    location: null,
    maxUses: null,
    contextSize: null,
    live: true,
  };
  t.strictSame(
    encode({ search, tools: [f] }, unforced).messages,
    begun,
    'nor for a search, which the vendor runs',
  );
  const alone = { search: { ...search, forced: false }, toolChoice: { mode: 'required' } } as const;
  t.strictSame(encode(alone, unforced).messages, begun);
});

test('a model that adapts has room for its thinking where the client sets no limit', async (t) => {
  const limit = (changes: Partial<ConversationRequest>, maxTokens = 4096) =>
    encode(changes, { thinking: 'adaptive', maxTokens }).max_tokens;
  t.equal(limit(reasoning('max')), 33_024);
  t.equal(limit(reasoning('medium')), 9216);
  t.equal(limit(reasoning('none')), 4096, 'which is a low effort');
  t.equal(limit({}), 17_408, 'it may think unasked');
  t.equal(
    limit({ reasoning: { ...reasoning(null).reasoning, effort: 'ultra' } }),
    17_408,
    "a vendor's own word",
  );
  t.equal(limit(reasoning('max'), 50_000), 50_000);
  t.equal(limit({ ...reasoning('max'), maxTokens: 500 }), 500, "the client's own limit stays");
});

test('a model that adapts is never told that its thinking is disabled', async (t) => {
  const adaptive = { thinking: 'adaptive' } as const;
  const high = reasoning('high');
  const begun = [...plain.turns, { role: 'assistant', parts: [{ kind: 'text', text: 'so' }] }] as const;
  const without = { thinking: undefined, output_config: { effort: 'high' } };
  t.match(encode({ ...high, tools: [f], toolChoice: { mode: 'required' } }, adaptive), {
    ...without,
    tool_choice: { type: 'any' },
  });
  t.match(
    encode({ ...high, turns: begun }, adaptive),
    { thinking: { type: 'adaptive' } },
    'an answer that is begun is asked for, and may be thought about',
  );
  t.match(
    encode({ ...high, ...results }, adaptive),
    { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
    'calls without thinking before them do not switch it off',
  );
});

test('a model that adapts gets no settings of sampling, and the client is told', async (t) => {
  const sampling = { temperature: 0.2, topP: 0.9, topK: 5 };
  const none = { temperature: undefined, top_p: undefined, top_k: undefined };
  for (const asked of [{}, reasoning('none'), reasoning('high')])
    t.match(encode({ ...sampling, ...asked }, { thinking: 'adaptive' }), none);
  const namesFor = (
    changes: Partial<ConversationRequest>,
    thinking: TargetOptions['thinking'] = 'adaptive',
  ) => {
    const leftOut = new LeftOut();
    writeRequest(messagesCodec, { ...plain, ...changes }, { ...target, thinking }, leftOut);
    return leftOut.names;
  };
  t.strictSame(namesFor(sampling), ['temperature', 'top_p', 'top_k']);
  t.strictSame(namesFor({ topK: 5, from: 'generateContent' }), ['generationConfig.topK']);
  t.strictSame(namesFor({}), []);
  t.strictSame(namesFor(sampling, 'budget'), ['top_p'], 'not beside a temperature');
});

test('what does not go with thinking is dropped, or thinking is', async (t) => {
  const low = reasoning('low');
  const body = encode({ ...low, temperature: 0.5, topK: 3, topP: 0.5 });
  t.match(body, { thinking: {}, temperature: undefined, top_k: undefined, top_p: undefined });
  t.match(encode({ ...low, topP: 0.95 }), { thinking: {}, top_p: 0.95 });
  const required = { toolChoice: { mode: 'required' } } as const;
  t.match(encode({ ...low, tools: [f], ...required, temperature: 0.5 }), {
    thinking: undefined,
    tool_choice: { type: 'any' },
    temperature: 0.5,
  });
  t.match(encode({ ...low, tools: [f], toolChoice: { mode: 'auto' } }), { thinking: {} });
  const begun = [...plain.turns, { role: 'assistant', parts: [{ kind: 'text', text: 'so' }] }] as const;
  t.notOk(encode({ ...low, turns: begun }).thinking, 'an answer that is begun');
});

test('thinking that is asked for and left out is told', async (t) => {
  const told = (changes: Partial<ConversationRequest>, thinking: TargetOptions['thinking'] = 'budget') => {
    const leftOut = new LeftOut();
    writeRequest(messagesCodec, { ...plain, ...changes }, { ...target, thinking }, leftOut);
    return leftOut.names;
  };
  const forced = { tools: [f], toolChoice: { mode: 'required' } } as const;
  t.strictSame(told({ ...reasoning('low'), ...forced }), ['reasoning_effort']);
  t.strictSame(told({ ...reasoning('low'), ...forced }, 'adaptive'), [], 'the effort is sent');
  t.strictSame(told({ ...reasoning('high'), maxTokens: 5, from: 'responses' }), ['reasoning.effort']);
  t.strictSame(told({ ...reasoning('high', 5000), ...forced, from: 'generateContent' }), [
    'generationConfig.thinkingConfig',
  ]);
  for (const none of [reasoning('none'), reasoning('none', 0), reasoning(null), reasoning('low')])
    t.strictSame(told(none), []);
});

test('thinking is off where the calls that were answered have none of this protocol', async (t) => {
  const low = reasoning('low');
  const thought = (signature: string | null) =>
    results.turns.map((turn) =>
      turn.role === 'assistant'
        ? { ...turn, parts: [{ kind: 'reasoning', text: 'hm', signature } as const, ...turn.parts] }
        : turn,
    );
  t.notOk(encode({ ...low, ...results }).thinking);
  t.equal(
    encode({ ...reasoning('high'), ...results }).max_tokens,
    encode(reasoning('high')).max_tokens,
    'the limit stays',
  );
  t.notOk(encode({ ...low, turns: thought(null) }).thinking);
  t.notOk(encode({ ...low, turns: thought('of another vendor') }).thinking);
  const kept = encode({ ...low, turns: thought(token('s')) });
  t.match(kept, { thinking: { type: 'enabled' } });
  t.match(kept.messages, [{}, { content: [{ type: 'thinking', thinking: 'hm', signature: 's' }, {}] }, {}]);
  const later = [
    ...results.turns,
    { role: 'assistant', parts: [{ kind: 'text', text: 'so' }] },
    ...plain.turns,
  ];
  t.ok(encode({ ...low, turns: later as ConversationRequest['turns'] }).thinking, 'the loop is over');
});

test('what the protocol cannot say is refused in the words of the client', async (t) => {
  const sound: MediaPart = {
    kind: 'audio',
    source: { kind: 'data', mediaType: 'audio/wav', data: '' },
    detail: null,
    name: null,
    at: 'messages[0].content[1]',
  };
  const bitmap: MediaPart = {
    ...sound,
    kind: 'image',
    source: { kind: 'data', mediaType: 'image/bmp', data: '' },
  };
  const zip: MediaPart = {
    ...sound,
    kind: 'document',
    source: { kind: 'data', mediaType: 'application/zip', data: '' },
  };
  const user = (part: MediaPart) => ({ turns: [{ role: 'user', parts: [part] }] as const });
  const refused: [Partial<ConversationRequest>, string][] = [
    [{ candidates: 2 }, 'n'],
    [{ from: 'generateContent', candidates: 2 }, 'generationConfig.candidateCount'],
    [{ logprobs: 0 }, 'logprobs'],
    [{ logitBias: { 5: 1 } }, 'logit_bias'],
    [user(sound), 'messages[0].content[1]'],
    [user({ ...sound, kind: 'video' }), 'messages[0].content[1]'],
    [user(bitmap), 'messages[0].content[1]'],
    [user(zip), 'messages[0].content[1]'],
    [{ turns: [...plain.turns, { role: 'assistant', parts: [bitmap] }] }, 'messages[0].content[1]'],
  ];
  for (const [changes, param] of refused) {
    const error = refusal(changes);
    t.match(error, { kind: 'unsupported_parameter', param, status: 400 }, param);
    t.match(error?.message, `'${param}'`);
  }
  const error = refusal({ from: 'messages', system: ['be brief'], turns: [] });
  t.match(error, { kind: 'invalid_value', param: 'messages', status: 400 });
  t.match(error?.message, /at least one message of the user/);
  for (const from of ['chat', 'responses', 'generateContent'] as const)
    t.equal(refusal({ from, system: ['be brief'], turns: [] }), null, `${from} has such conversations`);
});

test('a history that would be refused for good is mended', async (t) => {
  const call = { kind: 'toolCall', id: 'c', name: 'f', input: '[1]', custom: false, at: 'x.y' } as const;
  t.match(encode({ turns: [{ role: 'assistant', parts: [call] }, ...plain.turns] }).messages, [
    { role: 'user', content: [{ text: '(The conversation begins here.)' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', input: { input: [1] } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', is_error: true }, { text: 'hi' }] },
  ]);
});

test('sampling that is not sent is told as the client spells it', async (t) => {
  const told = (changes: Partial<ConversationRequest>) => {
    const leftOut = new LeftOut();
    writeRequest(messagesCodec, { ...plain, ...changes }, target, leftOut);
    return leftOut.names;
  };
  const sampling = { temperature: 0.2, topP: 0.5, topK: 3 };
  t.strictSame(told(sampling), ['top_p']);
  t.strictSame(told({ ...sampling, ...reasoning('low') }), ['temperature', 'top_p', 'top_k']);
  t.strictSame(told({ from: 'generateContent', ...sampling, ...reasoning('low') }), [
    'generationConfig.temperature',
    'generationConfig.topP',
    'generationConfig.topK',
  ]);
});
