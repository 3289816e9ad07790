import { test } from 'tap';
import type { FinishReason, StreamEvent } from '../../../../src/conversation/answer.js';
import type { AnswerContext } from '../../../../src/conversation/codec.js';
import { GatewayError } from '../../../../src/errors.js';
import { responsesCodec } from '../../../../src/protocols/responses/index.js';
import { clientTools, listTools } from '../../../../src/protocols/responses/namespaces.js';
import { context, decode } from '../conversation.js';
import {
  answerSteps,
  callSteps,
  encodeAll,
  end,
  finish,
  type Sent,
  start,
  textStep,
  usage,
  usageObject,
} from '../steps.js';

const typesOf = (events: readonly Sent[]) => events.map(({ type }) => type.replace('response.', ''));
const numbered = (events: object[]) => events.map((event, index) => ({ ...event, sequence_number: index }));
const lastResponse = (events: readonly Sent[]) => events.at(-1)?.response as Record<string, unknown>;

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'in_progress',
  background: false,
  completed_at: null,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  model: 'm',
  output: [] as object[],
  frequency_penalty: 0,
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  usage: null,
  user: null,
  metadata: {},
};

test('the golden transcript of one text', async (t) => {
  const part = { type: 'output_text', text: 'hi', annotations: [], logprobs: [] };
  const item = { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content: [part] };
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const started = Math.floor(Date.now() / 1000);
  const events = encodeAll(answerSteps);
  const completedAt = Number(lastResponse(events).completed_at);
  t.ok(completedAt >= started && completedAt <= Date.now() / 1000, `${completedAt}`);
  t.same(
    events,
    numbered([
      { type: 'response.created', response },
      { type: 'response.in_progress', response },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...item, status: 'in_progress', content: [] },
      },
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      { type: 'response.output_text.delta', ...place, delta: 'hi', logprobs: [] },
      { type: 'response.output_text.done', ...place, text: 'hi', logprobs: [] },
      { type: 'response.content_part.done', ...place, part },
      { type: 'response.output_item.done', output_index: 0, item },
      {
        type: 'response.completed',
        response: {
          ...response,
          status: 'completed',
          completed_at: completedAt,
          output: [item],
          usage: usageObject,
        },
      },
    ]),
  );
});

test('members stand in the documented order', async (t) => {
  t.same(Object.keys(lastResponse(encodeAll(answerSteps))), Object.keys(response));
});

test('the settings that the client sent are repeated', async (t) => {
  const settings = {
    instructions: 'Be "brief".',
    temperature: 0,
    tools: [{ type: 'function', name: 'f', parameters: {} }],
    text: { verbosity: 'low' },
    reasoning: { effort: 'low' },
    metadata: { a: 'b' },
    store: true,
  };
  const [first] = encodeAll(answerSteps, { ...context, echo: decode(settings).echo });
  t.same(first?.response, {
    ...response,
    ...settings,
    store: false,
    text: { verbosity: 'low', format: { type: 'text' } },
    reasoning: { effort: 'low', summary: null },
  });
});

test('a call has its arguments in pieces and as a whole', async (t) => {
  const events = encodeAll([start, textStep('hi'), ...callSteps, finish('toolCalls'), usage, end]);
  t.same(typesOf(events).slice(8, -1), [
    'output_item.added',
    'function_call_arguments.delta',
    'function_call_arguments.delta',
    'function_call_arguments.done',
    'output_item.done',
  ]);
  const place = { item_id: 'fc_1_1', output_index: 1 };
  const item = { id: 'fc_1_1', type: 'function_call', call_id: 'call_7', name: 'f' };
  t.match(events.slice(8, -1), [
    { output_index: 1, item: { ...item, status: 'in_progress', arguments: '' } },
    { ...place, delta: '{"a"' },
    { ...place, delta: ':1}' },
    { ...place, arguments: '{"a":1}', name: 'f' },
    { output_index: 1, item: { ...item, status: 'completed', arguments: '{"a":1}' } },
  ]);
  t.match(lastResponse(events), { status: 'completed', output: [{ id: 'msg_1' }, { id: 'fc_1_1' }] });
});

test('a custom tool, an id that may not be passed on, and one that is missing', async (t) => {
  const call = (number: number, id: string): StreamEvent[] => [
    { kind: 'callStart', choice: 0, call: number, id, name: 'g', custom: true },
    { kind: 'callArguments', choice: 0, call: number, text: 'ls' },
    { kind: 'callEnd', choice: 0, call: number },
  ];
  const events = encodeAll([start, ...call(0, 'functions.g:0'), ...call(1, ''), finish('toolCalls'), end]);
  t.match(typesOf(events).slice(2, 6), [
    'output_item.added',
    'custom_tool_call_input.delta',
    'custom_tool_call_input.done',
    'output_item.done',
  ]);
  t.match(lastResponse(events).output, [
    { id: 'ctc_1_0', type: 'custom_tool_call', call_id: /^[\w-]+$/, name: 'g', input: 'ls' },
    { id: 'ctc_1_1', call_id: 'call_1_1' },
  ]);
});

test('a tool in a namespace is called as the client knows it', async (t) => {
  const tools = [
    { type: 'function', name: 'f' },
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }] },
  ];
  const steps = callSteps.map((step) => (step.kind === 'callStart' ? { ...step, name: 'n__f' } : step));
  const named = { ...context, clientTools: clientTools(listTools([{ tools, at: 'tools' }])) };
  const events = encodeAll([start, ...steps, end], named);
  t.match(events[2]?.item, { name: 'f', namespace: 'n' });
  t.match(lastResponse(events).output, [{ name: 'f', namespace: 'n' }]);
  const others = encodeAll([start, ...callSteps, end], named);
  t.same(Object.keys(others[2]?.item ?? {}), ['id', 'type', 'status', 'call_id', 'name', 'arguments']);
});

test('calls of a search and of a shell are items of their own, given when they are whole', async (t) => {
  const tools = [{ type: 'tool_search', execution: 'client' }, { type: 'local_shell' }];
  const named = { ...context, clientTools: clientTools(listTools([{ tools, at: 'tools' }])) };
  const call = (number: number, name: string, ...pieces: string[]): StreamEvent[] => [
    { kind: 'callStart', choice: 0, call: number, id: `c${number}`, name, custom: false },
    ...pieces.map((text): StreamEvent => ({ kind: 'callArguments', choice: 0, call: number, text })),
    { kind: 'callEnd', choice: 0, call: number },
  ];
  const events = encodeAll(
    [
      start,
      ...call(0, 'tool_search', '{"query"', ':"x"}'),
      ...call(1, 'local_shell', '{"command":["ls"],', '"workdir":"/a","timeout_ms":5}'),
      finish('toolCalls'),
      end,
    ],
    named,
  );
  const types = ['output_item.added', 'output_item.done'];
  t.same(typesOf(events).slice(2, -1), [...types, ...types]);
  const search = { id: 'tsc_1_0', type: 'tool_search_call', call_id: 'c0', execution: 'client' };
  const shell = { id: 'lsh_1_1', type: 'local_shell_call', call_id: 'c1' };
  const action = { type: 'exec', command: ['ls'], env: {}, working_directory: '/a', timeout_ms: 5 };
  t.same(events[2]?.item, { ...search, status: 'in_progress', arguments: {} });
  t.same(events[4]?.item, {
    ...shell,
    status: 'in_progress',
    action: { type: 'exec', command: [], env: {} },
  });
  const output = [
    { ...search, status: 'completed', arguments: { query: 'x' } },
    { ...shell, status: 'completed', action },
  ];
  t.same(lastResponse(events).output, output);
  const parts = [
    { kind: 'toolCall', id: 'c0', name: 'tool_search', input: '{"query":"x"}', custom: false, at: '' },
    {
      kind: 'toolCall',
      id: 'c1',
      name: 'local_shell',
      input: '{"command":["ls"],"workdir":"/a","timeout_ms":5}',
      custom: false,
      at: '',
    },
  ] as const;
  const answer = { choices: [{ parts, finish: 'toolCalls', stopSequence: null }], usage: null } as const;
  const whole = JSON.parse(responsesCodec.encodeAnswer(answer, named)) as { output: unknown };
  t.same(whole.output, output);
});

const reasoned: readonly StreamEvent[] = [
  start,
  { kind: 'reasoning', choice: 0, text: 'a' },
  { kind: 'reasoning', choice: 0, text: 'b' },
  { kind: 'signature', choice: 0, signature: 'gw1.token' },
  textStep('hi'),
  finish('stop'),
  end,
];

test('reasoning that may be shown is a summary', async (t) => {
  const events = encodeAll(reasoned);
  t.same(typesOf(events).slice(2, 9), [
    'output_item.added',
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
    'output_item.done',
  ]);
  const summary = [{ type: 'summary_text', text: 'ab' }];
  t.match(lastResponse(events).output, [
    { id: 'rs_gw1_1_0', type: 'reasoning', summary, encrypted_content: 'gw1.token' },
    { id: 'msg_1', type: 'message' },
  ]);
});

test('reasoning that may not be shown still carries its signature', async (t) => {
  const events = encodeAll(reasoned, { ...context, showReasoning: false });
  t.same(typesOf(events).slice(2, 4), ['output_item.added', 'output_item.done']);
  t.match(lastResponse(events).output, [
    { id: 'rs_gw1_1_0', summary: [], encrypted_content: 'gw1.token' },
    { id: 'msg_1' },
  ]);
  const unsigned = reasoned.filter(({ kind }) => kind !== 'signature');
  const hidden = encodeAll(unsigned, { ...context, showReasoning: false });
  t.match(lastResponse(hidden).output, [{ id: 'msg_1' }]);
});

test('reasoning without a signature ends where something else begins', async (t) => {
  const unsigned = encodeAll(reasoned.filter(({ kind }) => kind !== 'signature'));
  const [item] = lastResponse(unsigned).output as object[];
  t.same(item, { id: 'rs_gw1_1_0', type: 'reasoning', summary: [{ type: 'summary_text', text: 'ab' }] });
});

test('a second message and a refusal have ids and places of their own', async (t) => {
  const events = encodeAll([
    start,
    textStep('a'),
    ...callSteps,
    textStep('b'),
    { kind: 'refusal', choice: 0, text: 'no' },
    finish('stop'),
    end,
  ]);
  const refusals = events.filter(({ type }) => type.startsWith('response.refusal'));
  const place = { item_id: 'msg_1_2', output_index: 2, content_index: 1 };
  t.match(refusals, [
    { ...place, delta: 'no' },
    { ...place, refusal: 'no' },
  ]);
  t.match(lastResponse(events).output, [
    { id: 'msg_1' },
    { id: 'fc_1_1' },
    { id: 'msg_1_2', content: [{ text: 'b' }, { type: 'refusal', refusal: 'no' }] },
  ]);
});

test('sources and log probabilities stand in the text that they belong to', async (t) => {
  const token = { token: 'hi', logprob: -1, bytes: null, top_logprobs: [] };
  const events = encodeAll([
    start,
    { kind: 'text', choice: 0, text: 'hi', logprobs: [token] },
    { kind: 'citation', choice: 0, citation: { start: 0, end: 2, url: 'https://a', title: '"A"' } },
    finish('stop'),
    { kind: 'citation', choice: 0, citation: { start: 0, end: 2, url: 'https://b', title: '' } },
    end,
  ]);
  const annotation = { type: 'url_citation', start_index: 0, end_index: 2, url: 'https://a', title: '"A"' };
  t.match(events[5], { type: 'response.output_text.annotation.added', annotation_index: 0, annotation });
  t.match(events[6], { type: 'response.output_text.done', logprobs: [token] });
  t.same((lastResponse(events).output as { content: object[] }[])[0]?.content, [
    { type: 'output_text', text: 'hi', annotations: [annotation], logprobs: [token] },
  ]);
});

test('the place of a source is one in its own part', async (t) => {
  const citation = (start: number, end: number): StreamEvent => ({
    kind: 'citation',
    choice: 0,
    citation: { start, end, url: 'https://a', title: '' },
  });
  const encoder = responsesCodec.createEncoder(context);
  const steps = [start, textStep('ab'), citation(0, 2), ...callSteps, textStep('c')];
  let text = steps.map((step) => encoder.encode(step)).join('');
  text += encoder.encodeRawText('\\nd') ?? '';
  text += [citation(3, 5), ...callSteps, textStep('ef'), citation(5, 7), citation(0, 0)]
    .map((step) => encoder.encode(step))
    .join('');
  const places = [
    ...text.matchAll(/"annotation":\{"type":"url_citation",("start_index":\d+,"end_index":\d+)/g),
  ];
  t.same(
    places.map(([, place]) => place),
    [
      '"start_index":0,"end_index":2',
      '"start_index":1,"end_index":3',
      '"start_index":0,"end_index":2',
      '"start_index":0,"end_index":0',
    ],
  );
});

test('how an answer ended', async (t) => {
  const cases: [FinishReason, string, string | null][] = [
    ['stop', 'completed', null],
    ['stopSequence', 'completed', null],
    ['toolCalls', 'completed', null],
    ['other', 'completed', null],
    // As `completed`, a turn that the upstream has interrupted was taken for a finished answer.
    ['paused', 'incomplete', 'max_output_tokens'],
    ['length', 'incomplete', 'max_output_tokens'],
    ['filtered', 'incomplete', 'content_filter'],
  ];
  for (const [reason, status, details] of cases) {
    const events = encodeAll([start, textStep('hi'), finish(reason), usage, end]);
    t.equal(events.at(-1)?.type, `response.${status}`);
    t.match(lastResponse(events), {
      status,
      incomplete_details: details === null ? null : { reason: details },
      output: [{ status }],
      usage: usageObject,
    });
  }
});

test('a call that the limit cut is incomplete, one that something follows is not', async (t) => {
  for (const [reason, status] of [
    ['length', 'incomplete'],
    ['filtered', 'incomplete'],
    ['toolCalls', 'completed'],
  ] as const) {
    const events = encodeAll([start, ...callSteps, usage, finish(reason), end]);
    t.match(events.at(-2), { type: 'response.output_item.done', item: { type: 'function_call', status } });
    t.match(lastResponse(events).output, [{ status }]);
    t.same(typesOf(events).slice(-3), [
      'function_call_arguments.done',
      'output_item.done',
      reason === 'toolCalls' ? 'completed' : 'incomplete',
    ]);
  }
  const followed = encodeAll([start, ...callSteps, textStep('hi'), finish('length'), end]);
  t.match(lastResponse(followed).output, [{ status: 'completed' }, { status: 'incomplete' }]);
  const hidden = encodeAll(
    [start, ...callSteps, { kind: 'reasoning', choice: 0, text: 'hm' }, finish('length'), end],
    { ...context, showReasoning: false },
  );
  t.match(lastResponse(hidden).output, [{ status: 'completed' }]);
});

test('a fault of the request keeps its code', async (t) => {
  const answered = { status: 400, code: 'context_length_exceeded' };
  const error = new GatewayError('invalid_request', 'too long', { answered });
  const [failed, raised] = encodeAll([start, { kind: 'error', error }]).slice(-2);
  t.match(failed, { response: { error: { code: 'context_length_exceeded', message: 'too long' } } });
  t.match(raised, { code: 'context_length_exceeded' });
});

test('an answer without usage has one of zeros', async (t) => {
  t.match(lastResponse(encodeAll([start, finish('stop'), end])), {
    output: [],
    usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  });
});

test('an error after the start ends the response and is raised by every SDK', async (t) => {
  const error = new GatewayError('rate_limit_exceeded', 'slow');
  const events = encodeAll([start, textStep('hi'), ...callSteps.slice(0, 2), { kind: 'error', error }, end]);
  const [failed, raised] = events.slice(-2);
  t.match(failed, {
    type: 'response.failed',
    response: {
      status: 'failed',
      error: { code: 'rate_limit_exceeded', message: 'slow' },
      output: [{ id: 'msg_1' }],
    },
  });
  t.match(raised, { type: 'error', message: 'slow', error: { message: 'slow' } });
  t.same(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_, index) => index),
  );
});

test('an error before the start is the error event alone', async (t) => {
  const events = encodeAll([{ kind: 'error', error: new GatewayError('upstream_error') }]);
  t.match(events, [{ type: 'error', sequence_number: 0, code: 'upstream_error' }]);
});

test('an answer that is too long to repeat is an error', async (t) => {
  const piece = textStep('x'.repeat(1024 * 1024));
  const encoder = responsesCodec.createEncoder(context);
  let last = '';
  for (let count = 0; count < 17; count++) last = encoder.encode(piece);
  t.match(last, 'event: response.failed\n');
  t.match(last, 'event: error\n');
  t.equal(encoder.encode(piece), '', 'and nothing follows');
});

test('items without any text are too much, too, when there are very many', async (t) => {
  const search: StreamEvent = { kind: 'search', choice: 0, query: '', results: [] };
  const reason: StreamEvent = { kind: 'reasoning', choice: 0, text: 'r' };
  for (const steps of [[search], callSteps, [reason, textStep('t')]]) {
    const encoder = responsesCodec.createEncoder(context);
    let count = 0;
    while (encoder.error === null && count < 100_000) {
      for (const step of steps) encoder.encode(step);
      count++;
    }
    t.match(encoder.error, { kind: 'upstream_error' }, steps[0]?.kind ?? '');
    t.ok(count > 1000);
  }
});

test('only the first choice is written', async (t) => {
  const events = encodeAll([start, textStep('a'), { ...textStep('b'), choice: 1 }, finish('stop'), end]);
  t.match(lastResponse(events).output, [{ content: [{ text: 'a' }] }]);
});

test('a compaction is one item, when the summary is whole', async (t) => {
  const compaction: AnswerContext = { ...context, compaction: 'item' };
  const events = encodeAll(
    [start, textStep('We were '), textStep('in Oslo.'), finish('stop'), usage, end],
    compaction,
  );
  t.same(typesOf(events), ['created', 'in_progress', 'output_item.added', 'output_item.done', 'completed']);
  const [item] = lastResponse(events).output as { encrypted_content: string }[];
  t.match(item, { id: 'cmp_1', type: 'compaction' });
  t.match(decode({ input: [item] }).turns, [{ parts: [{ text: /We were in Oslo\.$/ }] }]);
  t.same(typesOf(encodeAll([start, finish('stop'), end], compaction)).slice(2), ['failed', 'error']);
  for (const reason of ['length', 'filtered'] as const) {
    const cut = encodeAll([start, textStep('We were'), finish(reason), usage, end], compaction);
    t.same(typesOf(cut).slice(2), ['failed', 'error'], reason);
    t.match(cut.at(-1), { code: 'upstream_error', message: /was cut/ });
  }
});
