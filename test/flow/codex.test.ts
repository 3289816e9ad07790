import { test } from 'tap';
import { readData, readEvents } from '../support/events.js';
import { post, startTranslated } from '../support/translated.js';
import { chatEvent, chunk, doneEvent, lastChunk, streamHead } from '../support/upstream.js';

/*
 * The requests of Codex as its source builds them with its default settings: `codex-rs/core/src/client.rs` (the body),
 * `codex-rs/tools/src` (the tools), `codex-rs/core/tests/suite/responses_lite.rs` (tools as an item of the input).
 */

const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: begin_patch hunk+ end_patch' };
const object = (properties: object, ...required: string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const planner = {
  type: 'function',
  name: 'update_plan',
  description: 'Updates the task plan.',
  strict: false,
  parameters: object({ explanation: { type: 'string' } }),
};
const patch = { type: 'custom', name: 'apply_patch', description: 'Edits files.', format: grammar };
const search = {
  type: 'tool_search',
  execution: 'client',
  description: 'Searches over deferred tools.',
  parameters: object({ query: { type: 'string' }, limit: { type: 'number' } }, 'query'),
};
const documents = (...names: string[]) => ({
  type: 'namespace',
  name: 'mcp__docs__',
  description: 'Documents.',
  tools: names.map((name) => ({
    type: 'function',
    name,
    description: '',
    strict: false,
    parameters: object({ path: { type: 'string' } }),
  })),
});
const message = (role: string, type: string, text: string) => ({
  type: 'message',
  role,
  content: [{ type, text }],
});

const settings = {
  model: 'm',
  tool_choice: 'auto',
  parallel_tool_calls: false,
  reasoning: { effort: 'medium', summary: 'auto' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '0199b5e2-0d62-7aa1-9d3c-0c5c4d9c6a01',
  text: { verbosity: 'low' },
  client_metadata: { 'x-codex-installation-id': '4a1f' },
};
const context = [
  message('developer', 'input_text', '<permissions instructions>read-only</permissions instructions>'),
  message('user', 'input_text', '<environment_context>bash</environment_context>'),
  message('user', 'input_text', 'List the files.'),
];

/** The two ways in which it declares its tools. */
const first = {
  'with its tools as a member': {
    ...settings,
    instructions: 'You are Codex.',
    tools: [
      planner,
      patch,
      search,
      { type: 'local_shell' },
      documents('read'),
      { type: 'web_search', external_web_access: false },
      { type: 'image_generation', output_format: 'png' },
    ],
    input: context,
  },
  'with its tools as an item': {
    ...settings,
    input: [
      {
        type: 'additional_tools',
        id: 'at_1',
        role: 'developer',
        tools: [
          { type: 'namespace', name: 'functions', description: '', tools: [patch, planner] },
          search,
          { type: 'local_shell' },
          documents('read'),
        ],
      },
      message('developer', 'input_text', 'You are Codex.'),
      ...context,
    ],
  },
};
const names = ['apply_patch', 'local_shell', 'read', 'tool_search', 'update_plan'];

/** Arguments of the calls of an answer, by the names of their functions. */
type Calls = readonly (readonly [name: string, input: string])[];

const calls: Calls = [
  ['apply_patch', '{"input":"*** Begin Patch\\n\\"ä\\""}'],
  ['read', '{"path":"a.md"}'],
  ['tool_search', '{"query":"write","limit":2}'],
  ['local_shell', '{"command":["ls","-l"],"workdir":"/w","timeout_ms":1000}'],
];

const event = (data: object) => {
  const { type } = data as { type?: string };
  return `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(data)}\n\n`;
};
interface Upstream {
  /** The events of an answer. */
  readonly stream: (calls: Calls, text: string) => string;
  /** The names of the functions in a body. */
  readonly toolsOf: (body: never) => readonly string[];
}

const upstreams: Readonly<Record<string, Upstream>> = {
  chat: {
    stream: (called, text) =>
      chatEvent({ role: 'assistant', content: text }) +
      called
        .map(
          ([name, input], index) =>
            chatEvent({
              tool_calls: [
                { index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } },
              ],
            }) +
            [input.slice(0, 13), input.slice(13)]
              .map((piece) => chatEvent({ tool_calls: [{ index, function: { arguments: piece } }] }))
              .join(''),
        )
        .join('') +
      chatEvent({}, called.length === 0 ? 'stop' : 'tool_calls') +
      doneEvent,
    toolsOf: ({ tools }: { tools: { function: { name: string } }[] }) =>
      tools.map((tool) => tool.function.name),
  },
  messages: {
    stream: (called, text) =>
      event({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } }) +
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text } }) +
      event({ type: 'content_block_stop', index: 0 }) +
      called
        .map(
          ([name, input], index) =>
            event({
              type: 'content_block_start',
              index: index + 1,
              content_block: { type: 'tool_use', id: `call_${index}`, name, input: {} },
            }) +
            [input.slice(0, 13), input.slice(13)]
              .map((partial_json) =>
                event({
                  type: 'content_block_delta',
                  index: index + 1,
                  delta: { type: 'input_json_delta', partial_json },
                }),
              )
              .join('') +
            event({ type: 'content_block_stop', index: index + 1 }),
        )
        .join('') +
      event({
        type: 'message_delta',
        delta: { stop_reason: called.length === 0 ? 'end_turn' : 'tool_use' },
        usage: { output_tokens: 5 },
      }) +
      event({ type: 'message_stop' }),
    toolsOf: ({ tools }: { tools: { name: string; input_schema?: object }[] }) =>
      tools.flatMap(({ name, input_schema }) => (input_schema === undefined ? [] : [name])),
  },
  generateContent: {
    stream: (called, text) =>
      event({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] } }] }) +
      event({
        candidates: [
          {
            index: 0,
            content: {
              role: 'model',
              parts: called.map(([name, input], index) => ({
                functionCall: { id: `call_${index}`, name, args: JSON.parse(input) as unknown },
              })),
            },
            finishReason: 'STOP',
          },
        ],
      }),
    toolsOf: ({ tools }: { tools: { functionDeclarations?: { name: string }[] }[] }) =>
      tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
  },
};

interface Item {
  readonly type: string;
  readonly call_id?: string;
  readonly namespace?: string;
}
interface ResponseEvent {
  readonly type: string;
  readonly item?: Item;
  readonly delta?: string;
  readonly response?: { readonly output: readonly Item[] };
}

function responseEvents(body: string): readonly ResponseEvent[] {
  return readEvents(body).map((each) => readData(each) as ResponseEvent);
}

/** What it adds to its input after an answer: the items as they came, then what its tools gave. */
function answered(items: readonly Item[]): object[] {
  return [
    ...items,
    ...items.flatMap(({ type, call_id }): object[] => {
      switch (type) {
        case 'custom_tool_call':
          return [{ type: 'custom_tool_call_output', call_id, output: 'patched' }];
        case 'tool_search_call': {
          const found = { call_id, status: 'completed', execution: 'client', tools: [documents('write')] };
          return [{ type: 'tool_search_output', ...found }];
        }
        case 'function_call':
        case 'local_shell_call':
          return [{ type: 'function_call_output', call_id, output: `output of ${type}` }];
        default:
          return [];
      }
    }),
  ];
}

for (const [kind, { stream, toolsOf }] of Object.entries(upstreams)) {
  for (const [how, body] of Object.entries(first)) {
    test(`Codex ${how} works on a ${kind} upstream, turn after turn`, async (t) => {
      const answer = (sent: Calls, text: string) => streamHead + chunk(stream(sent, text)) + lastChunk;
      const { port, upstream } = await startTranslated(t, { kind, answer: answer(calls, 'Let me see.') });
      const opening = await post(port, '/v1/responses', body);
      t.equal(opening.status, 200, opening.body);
      t.match(opening.head, /x-gateway-path: translated/);
      const sent = JSON.parse(upstream.requests[0]?.body.toString() ?? '') as never;
      t.strictSame([...toolsOf(sent)].sort(), names);
      t.notMatch(JSON.stringify(sent), /additional_tools|namespace|image_generation|"custom"/);
      const events = responseEvents(opening.body);
      const space = how.endsWith('item') ? { namespace: 'functions' } : {};
      const output = events.at(-1)?.response?.output ?? [];
      t.match(output, [
        { type: 'message', content: [{ text: 'Let me see.' }] },
        { type: 'custom_tool_call', name: 'apply_patch', ...space, input: '*** Begin Patch\n"ä"' },
        { type: 'function_call', name: 'read', namespace: 'mcp__docs__', arguments: calls[1]?.[1] },
        { type: 'tool_search_call', execution: 'client', arguments: { query: 'write', limit: 2 } },
        {
          type: 'local_shell_call',
          action: { type: 'exec', command: ['ls', '-l'], working_directory: '/w', timeout_ms: 1000 },
        },
      ]);
      t.equal('namespace' in (output[1] ?? {}), how.endsWith('item'));
      const done = events.flatMap((each) => (each.type === 'response.output_item.done' ? [each.item] : []));
      t.strictSame(done, output, 'each item came when it was whole');
      const pieces = events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
      t.equal(pieces.map(({ delta }) => delta).join(''), '*** Begin Patch\n"ä"');

      upstream.answer = answer([], 'Done.');
      const next = await post(port, '/v1/responses', {
        ...body,
        input: [...body.input, ...answered(output)],
      });
      t.equal(next.status, 200, next.body);
      t.match(responseEvents(next.body).at(-1)?.response?.output, [{ content: [{ text: 'Done.' }] }]);
      const second = upstream.requests[1]?.body.toString() ?? '';
      t.strictSame([...toolsOf(JSON.parse(second) as never)].sort(), [...names, 'write'].sort());
      for (const said of [
        'Begin Patch',
        'patched',
        'output of function_call',
        'output of local_shell_call',
        'These tools can be called now: write',
        'timeout_ms',
      ])
        t.match(second, said);
      t.notMatch(next.head, /x-gateway-left-out:.*(?:tool_search|local_shell|input|content)/);
    });
  }
}

/** An event of a vendor's own, which says nothing of the answer. */
const limits = event({ type: 'codex.rate_limits', plan_type: 'pro', rate_limits: { allowed: true } });
const said = event({ type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, delta: 'hi' });
const responsesStream = (extra: string) =>
  extra +
  event({ type: 'response.created', response: { status: 'in_progress' } }) +
  extra +
  said +
  extra +
  event({ type: 'response.completed', response: { status: 'completed', output: [], usage: null } });
const nativePaths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };
const question = { role: 'user', content: 'hi' };
const streamed = { model: 'm', stream: true, max_tokens: 5, messages: [question] };

test('events of a vendor’s own do not break a stream, first or in the middle, translated or not', async (t) => {
  const streams: Readonly<Record<string, (extra: string) => string>> = {
    chat: (extra) =>
      extra +
      chatEvent({ role: 'assistant', content: 'hi' }) +
      extra +
      chatEvent({}, 'stop') +
      extra +
      doneEvent,
    responses: responsesStream,
    messages: (extra) => extra + (upstreams.messages?.stream([], 'hi') ?? '').replace('\n\n', `\n\n${extra}`),
  };
  for (const [kind, streamOf] of Object.entries(streams)) {
    const { port } = await startTranslated(t, {
      kind: kind === 'responses' ? 'chat' : kind,
      answer: streamHead + chunk(streamOf(limits)) + lastChunk,
      ...(kind === 'responses' ? { target: { responses: 'only' } } : {}),
    });
    for (const [asked, path] of Object.entries(nativePaths)) {
      const body = asked === 'responses' ? { model: 'm', stream: true, input: 'hi' } : streamed;
      const answer = await post(port, path, body);
      t.equal(answer.status, 200, `${asked} on ${kind}`);
      t.match(answer.body, /"hi"/);
      t.notMatch(answer.body, /"error":\{|event: error/, `${asked} on ${kind}`);
      const isNative = asked === kind;
      t.equal(answer.body.includes('codex.rate_limits'), isNative, `${asked} on ${kind}`);
      if (isNative) t.equal(answer.body, streamOf(limits), 'it passes as it came');
    }
  }
});

test('a stream of another protocol is none, whatever comes before its events', async (t) => {
  const foreign: Readonly<Record<string, string>> = {
    chat: said,
    messages: chatEvent({ content: 'hi' }),
    responses: event({ type: 'message_start', message: {} }),
  };
  for (const [kind, wrong] of Object.entries(foreign)) {
    const { port } = await startTranslated(t, {
      kind: kind === 'responses' ? 'chat' : kind,
      answer: streamHead + chunk(limits + wrong) + lastChunk,
      ...(kind === 'responses' ? { target: { responses: 'only' } } : {}),
    });
    for (const path of [nativePaths.chat, nativePaths.messages]) {
      const answer = await post(port, path, streamed);
      t.equal(answer.status, 502, `${path} on ${kind}`);
      t.match(answer.body, /not of the (?:chat|messages|responses) protocol/);
    }
  }
});

test('what an earlier model’s own tools left in the history is left out and named, whatever the target refuses', async (t) => {
  const history = [
    ...context,
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
    { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AAAA' },
    { type: 'mcp_list_tools', id: 'mcpl_1', server_label: 's', tools: [] },
    { type: 'ghost_snapshot', ghost_commit: { id: 'a' } },
    { type: 'compaction', encrypted_content: 'gAAAAA' },
    { type: 'note_of_tomorrow', secret: 'x' },
    { ...message('assistant', 'output_text', 'I look.'), phase: 'commentary' },
    message('user', 'input_text', 'Go on.'),
  ];
  for (const [kind, { stream }] of Object.entries(upstreams)) {
    const { port, upstream } = await startTranslated(t, {
      kind,
      answer: streamHead + chunk(stream([], 'Done.')) + lastChunk,
      target: { translation: { hostedTools: 'reject' } },
    });
    const body = { ...settings, input: history, tools: [planner], tool_choice: { type: 'web_search' } };
    const { status, head } = await post(port, '/v1/responses', body);
    t.equal(status, 200, kind);
    const named = /x-gateway-left-out: (.*)/.exec(head)?.[1]?.split(', ') ?? [];
    for (const name of [
      'web_search_call',
      'image_generation_call',
      'mcp_list_tools',
      'ghost_snapshot',
      'compaction',
      'input',
      'phase',
      'tool_choice',
    ])
      t.ok(named.includes(name), `${kind}: ${name}`);
    const sent = upstream.requests[0]?.body.toString() ?? '';
    t.match(sent, 'I look.');
    t.notMatch(`${sent}${head}`, /note_of_tomorrow|AAAA|ghost_commit/);
    const declared = { ...settings, input: context, tools: [{ type: 'file_search' }] };
    t.equal((await post(port, '/v1/responses', declared)).status, 400, 'a declared one is still refused');
  }
});
