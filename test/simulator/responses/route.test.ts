import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { simulate } from '../../support/simulator.js';
import { type Posted, post } from '../post.js';

const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const clock = { type: 'function', name: 'currentTime', parameters: { type: 'object' } };
const shell = { type: 'custom', name: 'shell' };
const thinks = {
  reasoning: { effort: 'high', summary: 'auto' },
  include: ['reasoning.encrypted_content'],
};

function ask(input: string | object[], more: object = {}): object {
  return { model: 'sim-text', input, ...more };
}

function send(simulator: Simulator, body: object, path = '/responses'): Promise<Posted> {
  return post(simulator, path, body);
}

async function answered(simulator: Simulator, body: object) {
  const heard = await send(simulator, body);
  return { http: heard.status, ...JSON.parse(heard.text) };
}

function stream(simulator: Simulator, body: object): Promise<Posted> {
  return send(simulator, { ...body, stream: true });
}

/** Types of a stream's events, each run of one type once. */
function typesIn(heard: Posted): string[] {
  const types = heard.events.map((event) => JSON.parse(event).type.replace('response.', ''));
  return types.filter((type, index) => type !== types[index - 1]);
}

test('an answer has the shape of a response, names itself simulated and repeats the settings', async (t) => {
  const simulator = await simulate(t);
  const settings = { instructions: 'four', metadata: { a: 'b' }, store: false, temperature: 0.5 };
  t.match(await answered(simulator, ask('Hello there', settings)), {
    http: 200,
    id: /^resp_[0-9a-f]{32}$/,
    object: 'response',
    status: 'completed',
    error: null,
    incomplete_details: null,
    ...settings,
    model: 'sim-text',
    output: [
      {
        id: /^msg_/,
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'Simulated answer to: Hello there', annotations: [], logprobs: [] },
        ],
      },
    ],
    usage: {
      input_tokens: 4,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 8,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 12,
    },
  });
});

test('a stream has every event in order, numbered, and ends with what the whole answer is', async (t) => {
  const simulator = await simulate(t);
  const body = ask('Hello there', thinks);
  const heard = await stream(simulator, body);
  t.strictSame(typesIn(heard), [
    'created',
    'in_progress',
    'output_item.added',
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
    'output_item.done',
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.done',
    'content_part.done',
    'output_item.done',
    'completed',
  ]);
  const events = heard.events.map((event) => JSON.parse(event));
  t.strictSame(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_, index) => index),
  );
  t.strictSame(
    [...heard.text.matchAll(/^event: (.*)$/gm)].map((match) => match[1]),
    events.map(({ type }) => type),
  );
  t.match(events[0].response, { status: 'in_progress', output: [], usage: null });
  const whole = await answered(simulator, body);
  const { output, usage } = events.at(-1).response;
  const withoutIds = (items: object[]): object[] => items.map((item) => ({ ...item, id: '' }));
  t.strictSame([withoutIds(output), usage], [withoutIds(whole.output), whole.usage]);
  t.equal(
    events
      .filter(({ type }) => type === 'response.output_text.delta')
      .map(({ delta }) => delta)
      .join(''),
    whole.output[1].content[0].text,
  );
});

test('calls stream item by item, in pieces, at once or without any input', async (t) => {
  const simulator = await simulate(t);
  const body = (text: string): object => ask(text, { tools: [weather, shell], reasoning: null });
  const one = ['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done'];
  const custom = ['output_item.added', 'custom_tool_call_input.delta', 'custom_tool_call_input.done'];
  const heard = await stream(simulator, body('weather in Oslo by shell'));
  t.strictSame(typesIn(heard).slice(2, -1), [...one, 'output_item.done', ...custom, 'output_item.done']);
  const { output } = JSON.parse(heard.events.at(-1) ?? '').response;
  t.match(output, [
    {
      type: 'function_call',
      id: /^fc_/,
      call_id: /^call_/,
      name: 'get_weather',
      arguments: '{"city":"Oslo"}',
    },
    { type: 'custom_tool_call', id: /^ctc_/, name: 'shell', input: 'weather in Oslo by shell' },
  ]);
  const atOnce = await stream(simulator, body('[[fault:args-at-once]] weather in Oslo'));
  t.notMatch(atOnce.text, 'arguments.delta');
  t.match(atOnce.text, '"arguments":"{\\"city\\":\\"Oslo\\"}"');
  const empty = await stream(simulator, body('[[fault:zero-args]] weather in Oslo'));
  t.notMatch(empty.text, /arguments\.delta|Oslo\\"}/);
});

test('the same request has the same answer byte for byte', async (t) => {
  const simulator = await simulate(t);
  const body = ask('weather', { tools: [weather], ...thinks });
  t.equal((await stream(simulator, body)).text, (await stream(simulator, body)).text);
});

test('each end has its status', async (t) => {
  const simulator = await simulate(t);
  const cases: [string, object, string, object][] = [
    [
      'Hello, this is long enough to be cut at sixteen',
      { max_output_tokens: 16 },
      'incomplete',
      { incomplete_details: { reason: 'max_output_tokens' }, output: [{ status: 'incomplete' }] },
    ],
    ['[[fault:refuse]] x', {}, 'completed', { output: [{ content: [{ type: 'refusal', refusal: / x$/ }] }] }],
    [
      '[[fault:finish=content_filter]] x',
      {},
      'incomplete',
      { incomplete_details: { reason: 'content_filter' } },
    ],
    ['[[fault:finish=failed]] x', {}, 'failed', { error: { code: 'server_error' } }],
  ];
  for (const [text, more, status, expected] of cases) {
    t.match(await answered(simulator, ask(text, more)), { ...expected, status }, text);
    const heard = await stream(simulator, ask(text, more));
    t.match(JSON.parse(heard.events.at(-1) ?? ''), {
      type: `response.${status}`,
      response: { ...expected, status },
    });
  }
  const refused = await stream(simulator, ask('[[fault:refuse]] x'));
  t.strictSame(typesIn(refused).slice(3, 7), [
    'content_part.added',
    'refusal.delta',
    'refusal.done',
    'content_part.done',
  ]);
});

test('which tools are called follows the text and tool_choice', async (t) => {
  const simulator = await simulate(t);
  const tools = [weather, clock, shell, { type: 'web_search' }];
  const allowed = {
    type: 'allowed_tools',
    mode: 'required',
    tools: [{ type: 'function', name: 'currentTime' }],
  };
  const cases: [string, object, string[]][] = [
    ['Tell me a joke', {}, []],
    ['weather and time', {}, ['get_weather', 'currentTime']],
    ['weather and time', { parallel_tool_calls: false }, ['get_weather']],
    ['weather', { tool_choice: 'none' }, []],
    ['x', { tool_choice: 'required' }, ['get_weather']],
    ['x', { tool_choice: { type: 'custom', name: 'shell' } }, ['shell']],
    ['weather', { tool_choice: allowed }, ['currentTime']],
    ['Tell me a joke', { tool_choice: { type: 'web_search' } }, []],
  ];
  for (const [text, more, expected] of cases) {
    const { output } = await answered(simulator, ask(text, { tools, ...more }));
    const calls = output.filter(({ type }: { type: string }) => type.endsWith('_call'));
    t.strictSame(
      calls.map(({ name }: { name: string }) => name),
      expected,
      `${text} ${JSON.stringify(more)}`,
    );
  }
});

test('outputs of tools, images and structured output', async (t) => {
  const simulator = await simulate(t);
  const content = [
    { type: 'input_text', text: 'weather in Oslo' },
    { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
  ];
  const input = [
    { role: 'user', content },
    { type: 'function_call', call_id: 'a', name: 'get_weather', arguments: '{}' },
    { type: 'custom_tool_call', call_id: 'b', name: 'shell', input: 'ls' },
    { type: 'function_call_output', call_id: 'a', output: 'rain' },
    { type: 'custom_tool_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'files' }] },
  ];
  const { output } = await answered(simulator, ask(input, { tools: [weather, shell] }));
  t.equal(
    output[0].content[0].text,
    'Simulated answer to: weather in Oslo (1 image)\nTool result: rain\nTool result: files',
  );
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const format = { type: 'json_schema', name: 'answer', schema };
  const structured = await answered(simulator, ask('x', { text: { format } }));
  t.type(JSON.parse(structured.output[0].content[0].text).n, 'number');
  t.match(structured.text, { format: { name: 'answer' } });
  const logs = await answered(
    simulator,
    ask('x', { include: ['message.output_text.logprobs'], top_logprobs: 1 }),
  );
  t.match(logs.output[0].content[0].logprobs[0], { token: 'Simulated', top_logprobs: [{ logprob: Number }] });
});

test('reasoning comes encrypted where that is asked for, and goes back only as it came', async (t) => {
  const simulator = await simulate(t);
  const hidden = await answered(simulator, ask('x', { reasoning: { effort: 'low' } }));
  t.match(hidden.output[0], { type: 'reasoning', summary: [] });
  t.notOk('encrypted_content' in hidden.output[0]);
  t.ok(hidden.usage.output_tokens_details.reasoning_tokens > 0);
  const first = await answered(simulator, ask('weather', { tools: [weather], ...thinks }));
  const [reasoning, call] = first.output;
  t.match(reasoning, { summary: [{ type: 'summary_text' }], encrypted_content: /.+/ });
  const after = (...items: object[]): Promise<Record<string, unknown>> =>
    answered(
      simulator,
      ask([{ role: 'user', content: 'weather' }, ...items], { tools: [weather], ...thinks }),
    );
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'rain' };
  t.match(await after(reasoning, call, output), { status: 'completed' });
  t.match(await after({ ...reasoning, summary: [] }, call, output), { status: 'completed' });
  t.match(await after({ ...reasoning, encrypted_content: 'AAAA' }, call, output), {
    http: 400,
    error: { code: 'invalid_encrypted_content' },
  });
  t.match(await after(reasoning), { http: 400, error: { message: /without its required following item/ } });
});

test('a compaction is opened and used, by its own path and by a trigger in the input', async (t) => {
  const simulator = await simulate(t);
  const input = [
    { role: 'user', content: 'about whales' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'yes' }] },
  ];
  const compacted = JSON.parse((await send(simulator, ask(input), '/responses/compact')).text);
  t.match(compacted, {
    object: 'response.compaction',
    output: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'about whales' }] },
      { type: 'compaction', id: /^cmp_/, encrypted_content: String },
    ],
    usage: { total_tokens: Number },
  });
  t.notMatch(compacted.output[1].encrypted_content, 'whales');
  const next = [...compacted.output, { role: 'user', content: 'and?' }];
  const used = await answered(simulator, ask(next));
  t.match(
    used.output[0].content[0].text,
    /^Simulated answer to: and\?\nRecalled: Simulated summary of 2 items, the last about: about whales$/,
  );
  const heard = await stream(simulator, ask([...next, { type: 'compaction_trigger' }]));
  t.strictSame(typesIn(heard), [
    'created',
    'in_progress',
    'output_item.added',
    'output_item.done',
    'completed',
  ]);
  const [item] = JSON.parse(heard.events.at(-1) ?? '').response.output;
  const again = await answered(simulator, ask([item, { role: 'user', content: 'so?' }]));
  t.match(again.output[0].content[0].text, /whales/);
  t.match(await answered(simulator, ask([{ ...item, encrypted_content: 'AAAA' }])), {
    error: { code: 'invalid_encrypted_content' },
  });
});

test('the faults have the form of the protocol', async (t) => {
  const simulator = await simulate(t);
  const failed = await stream(simulator, ask('[[fault:error-event after=3]] x'));
  t.match(JSON.parse(failed.events.at(-1) ?? ''), {
    type: 'error',
    sequence_number: 3,
    code: 'server_error',
    error: { type: 'server_error', message: /asked for an error/ },
  });
  const response = await stream(simulator, ask('[[fault:error-event=failed after=3]] x'));
  t.match(JSON.parse(response.events.at(-1) ?? ''), {
    type: 'response.failed',
    sequence_number: 3,
    response: { status: 'failed', error: { code: 'server_error' } },
  });
  t.match((await stream(simulator, ask('[[fault:wrong-protocol]] x'))).text, /event: message_start/);
  const flood = await stream(simulator, ask('[[fault:flood megabytes=0.01 event-bytes=1000]] x'));
  t.strictSame(typesIn(flood).slice(2, 6), [
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.done',
  ]);
  const limited = await send(simulator, ask('[[fault:status=429]] x'));
  t.match([limited.status, JSON.parse(limited.text)], [429, { error: { code: 'rate_limit_exceeded' } }]);
  const odd = await send(simulator, ask('[[fault:nonsense]] x'));
  t.match([odd.status, JSON.parse(odd.text)], [400, { error: { code: 'unknown_fault' } }]);
});
