import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { simulate } from '../../support/simulator.js';
import { type Posted, post } from '../post.js';

const version = { 'anthropic-version': '2023-06-01' };
const weather = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const clock = { name: 'currentTime', input_schema: { type: 'object' } };
const thinking = { type: 'enabled', budget_tokens: 1024 };

function ask(text: string, more: object = {}): object {
  return { model: 'sim-text', max_tokens: 4096, messages: [{ role: 'user', content: text }], ...more };
}

function send(simulator: Simulator, body: object, path = '/messages'): Promise<Posted> {
  return post(simulator, path, body, version);
}

async function answered(simulator: Simulator, body: object) {
  const heard = await send(simulator, body);
  return { ...JSON.parse(heard.text), status: heard.status };
}

/** Names of a stream's events, each run of one name once. */
function namesIn(heard: Posted): string[] {
  const names = [...heard.text.matchAll(/^event: (.*)$/gm)].map((match) => match[1] ?? '');
  return names.filter((name, index) => name !== names[index - 1]);
}

test('an answer has the shape of a message, names itself simulated and contains the user text', async (t) => {
  const simulator = await simulate(t);
  const heard = await send(simulator, ask('Hello there', { system: [{ type: 'text', text: 'four' }] }));
  t.equal(heard.status, 200);
  t.match(heard.headers.get('request-id'), /^req_[0-9a-f]{24}$/);
  t.match(JSON.parse(heard.text), {
    id: /^msg_[0-9a-f]{24}$/,
    type: 'message',
    role: 'assistant',
    model: 'sim-text',
    content: [{ type: 'text', text: 'Simulated answer to: Hello there' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 4,
      output_tokens: 8,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    },
  });
});

test('a stream has its events in order and says at its end what the whole answer says', async (t) => {
  const simulator = await simulate(t);
  const body = ask('weather and time', { tools: [weather, clock], thinking: { type: 'adaptive' } });
  const heard = await send(simulator, { ...body, stream: true });
  t.equal(heard.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const block = ['content_block_start', 'content_block_delta', 'content_block_stop'];
  t.strictSame(namesIn(heard), [
    'message_start',
    'ping',
    ...block,
    ...block,
    ...block,
    'message_delta',
    'message_stop',
  ]);
  const events = heard.events.map((event) => JSON.parse(event));
  t.match(events[0].message, { content: [], stop_reason: null, usage: { output_tokens: 1 } });
  const whole = await answered(simulator, body);
  t.strictSame(
    whole.content.map(({ type }: { type: string }) => type),
    ['thinking', 'tool_use', 'tool_use'],
  );
  const joined = (type: string, member: string): string =>
    events
      .filter(({ delta, index }) => delta?.type === type && index < 2)
      .map(({ delta }) => delta[member])
      .join('');
  t.equal(joined('thinking_delta', 'thinking'), whole.content[0].thinking);
  t.equal(joined('signature_delta', 'signature'), whole.content[0].signature);
  t.strictSame(JSON.parse(joined('input_json_delta', 'partial_json')), whole.content[1].input);
  t.match(events.at(-2), {
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: whole.usage.output_tokens, cache_read_input_tokens: 0 },
  });
});

test('the same request has the same answer byte for byte', async (t) => {
  const simulator = await simulate(t);
  const body = ask('weather', { tools: [weather], thinking, stream: true });
  t.equal((await send(simulator, body)).text, (await send(simulator, body)).text);
});

test('each end has its reason', async (t) => {
  const simulator = await simulate(t);
  const cases: [string, object, object][] = [
    [
      'one END two',
      { stop_sequences: ['two', ' END'] },
      { stop_reason: 'stop_sequence', stop_sequence: ' END' },
    ],
    ['Hello', { max_tokens: 3 }, { stop_reason: 'max_tokens', content: [{ text: 'Simulated an' }] }],
    ['x', { tools: [weather], tool_choice: { type: 'any' } }, { stop_reason: 'tool_use' }],
    ['[[fault:finish=pause_turn]] x', {}, { stop_reason: 'pause_turn' }],
    [
      '[[fault:refuse]] x',
      {},
      {
        stop_reason: 'refusal',
        content: [{ text: 'Simulated refusal of: x' }],
        stop_details: { type: 'refusal' },
      },
    ],
  ];
  for (const [text, more, expected] of cases) {
    t.match(await answered(simulator, ask(text, more)), expected, text);
    const heard = await send(simulator, ask(text, { ...more, stream: true }));
    const { stop_reason, stop_sequence } = expected as Record<string, unknown>;
    t.match(JSON.parse(heard.events.at(-2) ?? '').delta, {
      stop_reason,
      stop_sequence: stop_sequence ?? null,
    });
  }
});

test('which tools are called follows the text and tool_choice', async (t) => {
  const simulator = await simulate(t);
  const tools = [weather, clock, { type: 'bash_20250124', name: 'bash' }];
  const cases: [string, object, string[]][] = [
    ['Tell me a joke', {}, []],
    ['weather and time in Oslo', {}, ['get_weather', 'currentTime']],
    ['weather and time', { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }, ['get_weather']],
    ['weather', { tool_choice: { type: 'none' } }, []],
    ['x', { tool_choice: { type: 'any' } }, ['get_weather']],
    ['x', { tool_choice: { type: 'tool', name: 'currentTime' } }, ['currentTime']],
  ];
  for (const [text, more, expected] of cases) {
    const { content } = await answered(simulator, ask(text, { tools, ...more }));
    const calls = content.filter(({ type }: { type: string }) => type === 'tool_use');
    t.strictSame(
      calls.map(({ name }: { name: string }) => name),
      expected,
      text,
    );
  }
});

test('results of tools and images are in the answer, and structured output fits its schema', async (t) => {
  const simulator = await simulate(t);
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
  const call = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Oslo' } };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'rain' }] };
  const messages = [
    { role: 'user', content: 'weather in Oslo' },
    { role: 'assistant', content: [call] },
    { role: 'user', content: [result, image] },
  ];
  const body = await answered(simulator, ask('', { messages, tools: [weather] }));
  t.equal(body.content[0].text, 'Simulated answer to: weather in Oslo (1 image)\nTool result: rain');
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const format = { type: 'json_schema', schema };
  const structured = await answered(simulator, ask('x', { output_config: { format } }));
  t.type(JSON.parse(structured.content[0].text).n, 'number');
});

test('thinking comes signed and goes back only as it came', async (t) => {
  const simulator = await simulate(t);
  const tools = [weather];
  const first = await answered(simulator, ask('[[fault:redacted]] weather', { tools, thinking }));
  t.match(first.content, [{ type: 'thinking' }, { type: 'redacted_thinking' }, { type: 'tool_use' }]);
  t.equal(first.usage.output_tokens_details.thinking_tokens > 0, true);
  const [block, redacted, call] = first.content;
  const after = (
    content: object[],
    more: object = {},
  ): Promise<{ status: number; error?: { message: string } }> =>
    answered(
      simulator,
      ask('', {
        messages: [
          { role: 'user', content: 'weather' },
          { role: 'assistant', content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'rain' }] },
        ],
        tools,
        thinking,
        ...more,
      }),
    );
  t.equal((await after([block, redacted, call])).status, 200);
  t.equal((await after([{ ...block, thinking: '' }, call])).status, 200, 'without its text');
  t.equal((await after([call], { thinking: { type: 'adaptive' } })).status, 200);
  t.equal((await after([call], { thinking: { type: 'disabled' } })).status, 200);
  const refused: [object[], RegExp][] = [
    [[call], /Expected `thinking` or `redacted_thinking`, but found `tool_use`/],
    [[{ ...block, signature: 'c2lnbmF0dXJl' }, call], /^messages\.1\.content\.0: Invalid `signature`/],
    [[{ ...block, signature: redacted.data }, call], /Invalid `signature` in `thinking` block/],
    [[{ ...block, thinking: 'other' }, call], /cannot be modified/],
    [[{ ...redacted, data: 'AAAA' }, call], /Invalid `data` in `redacted_thinking` block/],
    [[call, block], /Expected `thinking`|final block/],
  ];
  for (const [content, message] of refused) {
    t.match(await after(content), { status: 400, error: { message } });
  }
});

test('thinking whose text is omitted still has its signature', async (t) => {
  const simulator = await simulate(t);
  const body = ask('x', { thinking: { type: 'adaptive', display: 'omitted' } });
  const whole = await answered(simulator, body);
  t.match(whole.content[0], { type: 'thinking', thinking: '', signature: /.+/ });
  const heard = await send(simulator, { ...body, stream: true });
  t.notMatch(heard.text, 'thinking_delta');
  t.match(heard.text, 'signature_delta');
});

test('what the real one refuses is refused, with the place', async (t) => {
  const simulator = await simulate(t);
  const user = (content: unknown): object => ({ messages: [{ role: 'user', content }] });
  const call = { type: 'tool_use', id: 'a', name: 'get_weather', input: {} };
  const result = { type: 'tool_result', tool_use_id: 'a', content: 'x' };
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
  const turns = (...contents: unknown[]): object => ({
    messages: contents.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content })),
  });
  const cases: [object, RegExp][] = [
    [{ max_tokens: undefined }, /^max_tokens: Field required/],
    [{ max_tokens: 1.5 }, /^max_tokens: /],
    [{ model: undefined }, /^model: Field required/],
    [{ messages: [] }, /^messages: at least one/],
    [{ messages: undefined }, /^messages: Field required/],
    [{ messages: [{ role: 'assistant', content: 'a' }] }, /first message must use the "user" role/],
    [{ messages: [{ role: 'tool', content: 'a' }] }, /^messages\.0\.role: /],
    [{ messages: [null] }, /^messages\.0: /],
    [user(''), /^messages\.0: .*non-empty content/],
    [user([{ type: 'text', text: '' }]), /text content blocks must be non-empty/],
    [user('  '), /non-whitespace/],
    [user([{ type: 'text' }]), /^messages\.0\.content\.0\.text\.text: Field required/],
    [user([{ type: 'input_text', text: 'a' }]), /^messages\.0\.content\.0: Input tag 'input_text'/],
    [user([{ ...image, source: { ...image.source, media_type: 'image/bmp' } }]), /media_type/],
    [user([{ ...image, source: { ...image.source, data: '?' } }]), /base64/],
    [user([call]), /can only be in `assistant`/],
    [user([result]), /^messages\.0\.content\.0: unexpected `tool_use_id`/],
    [turns('a', [call]), /^messages\.1: `tool_use` ids were found without `tool_result` blocks/],
    [turns('a', [call], 'b'), /`tool_use` ids were found without/],
    [turns('a', [call], [{ type: 'text', text: 'b' }, result]), /`tool_use` ids were found without/],
    [turns('a', [call], [result, result]), /multiple `tool_result` blocks/],
    [turns('a', [call], [result], [call], [result]), /ids must be unique/],
    [turns('a', [{ ...call, id: 'a.b' }], [result]), /^messages\.1\.content\.0\.tool_use\.id: /],
    [turns('a', [{ ...call, input: '{}' }], [result]), /input: Input should be a valid dictionary/],
    [turns('a', [call], [{ ...result, content: '', is_error: true }]), /cannot be empty if `is_error`/],
    [
      turns('a', [call], [{ ...result, content: [image], is_error: true }]),
      /all content must be type "text" if `is_error`/,
    ],
    [turns('a', 'b '), /trailing whitespace/],
    [{ thinking: { type: 'enabled', budget_tokens: 1000 } }, /budget_tokens: .*1024/],
    [{ thinking: { type: 'enabled', budget_tokens: 4096 } }, /`max_tokens` must be greater/],
    [{ thinking: { type: 'enabled' } }, /budget_tokens: Field required/],
    [{ thinking, temperature: 0.5 }, /`temperature` may only be set to 1/],
    [{ thinking, top_k: 5 }, /`top_k` must be unset/],
    [
      { thinking, tools: [weather], tool_choice: { type: 'any' } },
      /Thinking may not be enabled when tool_choice/,
    ],
    [{ temperature: 1.5 }, /^temperature: /],
    [{ tool_choice: { type: 'auto' } }, /^tool_choice may only/],
    [{ tools: [weather], tool_choice: { type: 'tool', name: 'x' } }, /'x' not found/],
    [{ tools: [weather, weather] }, /names must be unique/],
    [{ tools: [{ name: 'a b', input_schema: { type: 'object' } }] }, /^tools\.0\.custom\.name/],
    [{ tools: [{ name: 'a' }] }, /^tools\.0\.custom\.input_schema: Field required/],
    [{ tools: [{ type: 'function', function: {} }] }, /^tools\.0: /],
    [{ output_config: { format: { type: 'json_object' } } }, /^output_config\.format\.type/],
    [{ output_config: { effort: 'minimal' } }, /^output_config\.effort/],
    [{ stop_sequences: 'a' }, /^stop_sequences: /],
    [{ frequency_penalty: 1 }, /^frequency_penalty: Extra inputs are not permitted/],
  ];
  for (const [more, message] of cases) {
    const heard = await send(simulator, ask('Hi', more));
    t.match(
      [heard.status, JSON.parse(heard.text)],
      [400, { type: 'error', error: { type: 'invalid_request_error', message }, request_id: /^req_/ }],
      JSON.stringify(more),
    );
  }
});

test('no thread is kept, which the SDK is told by a code', async (t) => {
  const simulator = await simulate(t);
  const heard = await send(simulator, ask('Hi', { thread: { type: 'create' } }));
  const error = { type: 'invalid_request_error', details: { error_code: 'thread_unsupported_request' } };
  t.match([heard.status, JSON.parse(heard.text)], [400, { error }]);
  t.equal((await send(simulator, ask('Hi', { thread: null }))).status, 200);
});

test('a missing version, an unknown model, a wrong method and bad JSON have the error form of the protocol', async (t) => {
  const simulator = await simulate(t);
  const bare = await post(simulator, '/messages', ask('Hi'));
  t.match([bare.status, bare.text], [400, /anthropic-version: header is required/]);
  const unknown = await send(simulator, ask('Hi', { model: 'nope' }));
  t.match([unknown.status, JSON.parse(unknown.text)], [404, { error: { type: 'not_found_error' } }]);
  const get = await fetch(`${simulator.url}/messages`);
  t.match([get.status, await get.json()], [405, { type: 'error', error: { type: 'invalid_request_error' } }]);
  const broken = await post(simulator, '/messages', '{', version);
  t.match([broken.status, JSON.parse(broken.text)], [400, { type: 'error', error: { message: /JSON/ } }]);
});

test('tokens are counted as the answer counts them', async (t) => {
  const simulator = await simulate(t);
  const { max_tokens: _, ...body } = ask('Hello there', { tools: [weather] }) as Record<string, unknown>;
  const counted = await send(simulator, body, '/messages/count_tokens');
  const { usage } = await answered(simulator, { ...body, max_tokens: 9 });
  t.strictSame(JSON.parse(counted.text), { input_tokens: usage.input_tokens });
  const refused = await send(simulator, ask('Hi'), '/messages/count_tokens');
  t.match([refused.status, refused.text], [400, /max_tokens: Extra inputs/]);
});

test('directives change the answer and the faults have the form of the protocol', async (t) => {
  const simulator = await simulate(t);
  const streamed = (text: string): Promise<Posted> =>
    send(simulator, ask(text, { tools: [weather], stream: true }));
  const deltas = (heard: Posted): string[] =>
    heard.events
      .map((event) => JSON.parse(event).delta)
      .filter((delta) => delta?.type === 'input_json_delta')
      .map((delta) => delta.partial_json);
  t.ok(deltas(await streamed('weather in Oslo')).length > 2);
  t.strictSame(deltas(await streamed('[[fault:args-at-once]] weather in Oslo')), ['{"city":"Oslo"}']);
  t.strictSame(deltas(await streamed('[[fault:zero-args]] weather in Oslo')), []);
  const whole = await answered(simulator, ask('[[fault:zero-args]] weather', { tools: [weather] }));
  t.strictSame(whole.content[0].input, {});
  const limited = await send(simulator, ask('[[fault:status=529]] x'));
  t.match([limited.status, JSON.parse(limited.text)], [529, { error: { type: 'overloaded_error' } }]);
  const failed = await streamed('[[fault:error-event after=3]] x');
  t.equal(failed.events.length, 4);
  t.match(failed.text, /event: error\ndata: \{"type":"error","error":\{"type":"api_error"/);
  const foreign = await streamed('[[fault:wrong-protocol]] x');
  t.match(foreign.text, /chat\.completion\.chunk/);
  const flood = await streamed('[[fault:flood megabytes=0.01 event-bytes=1000]] x');
  t.strictSame(namesIn(flood).slice(0, 5), [
    'message_start',
    'ping',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
  ]);
  const odd = await send(simulator, ask('[[fault:nonsense]] x'));
  t.match([odd.status, JSON.parse(odd.text)], [400, { type: 'error' }]);
});
