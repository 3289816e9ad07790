import { test } from 'tap';
import { countTokens } from '../../../src/simulator/answer/tokens.js';
import { simulate } from '../../support/simulator.js';
import { ask, chat } from '../ask.js';

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
      required: ['city'],
    },
  },
};
const clock = { type: 'function', function: { name: 'currentTime', parameters: { type: 'object' } } };

test('an answer has the shape of a chat completion, names itself simulated and contains the user text', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('Hello there'));
  const body = JSON.parse(heard.text);
  t.equal(heard.status, 200);
  t.equal(heard.headers['content-type'], 'application/json');
  t.match(body, {
    id: /^chatcmpl-[0-9a-f]{24}$/,
    object: 'chat.completion',
    created: Number,
    model: 'sim-text',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Simulated answer to: Hello there', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 3,
      completion_tokens: 8,
      total_tokens: 11,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  });
});

test('the same request has the same answer byte for byte, another request another id', async (t) => {
  const simulator = await simulate(t);
  const [one, two, other] = await Promise.all([
    ask(simulator, chat('a', { stream: true })),
    ask(simulator, chat('a', { stream: true })),
    ask(simulator, chat('b', { stream: true })),
  ]);
  t.ok(one.bytes.equals(two.bytes));
  t.not(JSON.parse(one.events[0] ?? '').id, JSON.parse(other.events[0] ?? '').id);
});

test('a stream has role, content, finish, usage and [DONE] in this order, and its words join to the answer', async (t) => {
  const simulator = await simulate(t);
  const text = 'Two words\n and a lone 🙂 smile';
  const heard = await ask(simulator, chat(text, { stream: true, stream_options: { include_usage: true } }));
  t.equal(heard.headers['content-type'], 'text/event-stream; charset=utf-8');
  t.equal(heard.events.at(-1), '[DONE]');
  const chunks = heard.events.slice(0, -1).map((event) => JSON.parse(event));
  t.strictSame(chunks[0].choices, [
    { index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null },
  ]);
  const content = chunks.slice(1, -2).map((chunk) => chunk.choices[0].delta.content);
  t.equal(content.join(''), `Simulated answer to: ${text}`);
  t.strictSame(chunks.at(-2).choices, [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }]);
  t.strictSame(chunks.at(-1).choices, []);
  t.equal(chunks.at(-1).usage.completion_tokens, countTokens(content.join('')));
  t.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
  t.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
});

test('without include_usage no chunk of a stream has a usage', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('a', { stream: true }));
  t.notMatch(heard.text, 'usage');
});

test('max_tokens cuts the answer to exactly so many tokens and says length; max_completion_tokens wins', async (t) => {
  const simulator = await simulate(t);
  for (const limit of [{ max_tokens: 3 }, { max_tokens: 9, max_completion_tokens: 3 }]) {
    const body = JSON.parse((await ask(simulator, chat('Hello', limit))).text);
    t.match(body.choices[0], { message: { content: 'Simulated an' }, finish_reason: 'length' });
    t.equal(body.usage.completion_tokens, 3);
  }
});

test('a stop sequence ends the answer before it', async (t) => {
  const simulator = await simulate(t);
  const body = JSON.parse((await ask(simulator, chat('one END two', { stop: ['two', ' END'] }))).text);
  t.match(body.choices[0], { message: { content: 'Simulated answer to: one' }, finish_reason: 'stop' });
});

test('several choices differ, also when they are streamed in turns', async (t) => {
  const simulator = await simulate(t);
  const body = JSON.parse((await ask(simulator, chat('Hi', { n: 3 }))).text);
  t.strictSame(
    body.choices.map((choice: { index: number }) => choice.index),
    [0, 1, 2],
  );
  t.equal(body.choices[2].message.content, 'Simulated answer to: Hi (answer 3)');
  const heard = await ask(simulator, chat('Hi', { n: 3, stream: true }));
  const joined = ['', '', ''];
  for (const event of heard.events.slice(0, -1)) {
    const [choice] = JSON.parse(event).choices;
    joined[choice.index] += choice.delta.content ?? '';
  }
  t.strictSame(
    joined,
    body.choices.map((choice: { message: { content: string } }) => choice.message.content),
  );
});

test('a text that invites a tool gets a call with fitting arguments from the text', async (t) => {
  const simulator = await simulate(t);
  const asked = chat('Weather for 3 days in New York, please', { tools: [weather, clock] });
  const [choice] = JSON.parse((await ask(simulator, asked)).text).choices;
  t.equal(choice.finish_reason, 'tool_calls');
  t.equal(choice.message.content, null);
  t.equal(choice.message.tool_calls.length, 1);
  t.match(choice.message.tool_calls[0], {
    id: /^call_/,
    type: 'function',
    function: { name: 'get_weather' },
  });
  t.strictSame(JSON.parse(choice.message.tool_calls[0].function.arguments), { city: 'New York', days: 3 });
});

test('which tools are called follows the text and tool_choice', async (t) => {
  const simulator = await simulate(t);
  const tools = [weather, clock, { type: 'custom', custom: { name: 'shell' } }];
  const allowed = (mode: string): object => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'currentTime' } }] },
  });
  const cases: [string, object, string[]][] = [
    ['Tell me a joke', {}, []],
    ['weather and time', {}, ['get_weather', 'currentTime']],
    ['weather and time', { parallel_tool_calls: false }, ['get_weather']],
    ['weather', { tool_choice: 'none' }, []],
    ['a joke', { tool_choice: 'required' }, ['get_weather']],
    ['weather', { tool_choice: { type: 'function', function: { name: 'currentTime' } } }, ['currentTime']],
    ['weather', { tool_choice: { type: 'custom', custom: { name: 'shell' } } }, ['shell']],
    ['weather', { tool_choice: allowed('auto') }, []],
    ['weather', { tool_choice: allowed('required') }, ['currentTime']],
  ];
  for (const [text, more, names] of cases) {
    const [choice] = JSON.parse((await ask(simulator, chat(text, { tools, ...more }))).text).choices;
    const calls: { function?: { name: string }; custom?: { name: string } }[] =
      choice.message.tool_calls ?? [];
    t.strictSame(
      calls.map((call) => (call.function ?? call.custom)?.name),
      names,
      `${text} ${JSON.stringify(more)}`,
    );
  }
});

test('a streamed call names itself once and sends its arguments in fragments, two calls one after the other', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(
    simulator,
    chat('weather in Oslo and currentTime', { tools: [weather, clock], stream: true }),
  );
  const deltas = heard.events.slice(0, -1).map((event) => JSON.parse(event).choices[0]);
  const calls = deltas.flatMap((choice) => choice.delta.tool_calls ?? []);
  const named = calls.filter((call) => call.id !== undefined);
  t.match(named, [
    { index: 0, type: 'function', function: { name: 'get_weather', arguments: '' } },
    { index: 1, type: 'function', function: { name: 'currentTime', arguments: '' } },
  ]);
  t.ok(calls.filter((call) => call.id === undefined).every((call) => call.type === undefined));
  const joined = calls.filter((call) => call.index === 0).map((call) => call.function.arguments);
  t.ok(joined.length > 2);
  t.equal(JSON.parse(joined.join('')).city, 'Oslo');
  t.equal(deltas.at(-1).finish_reason, 'tool_calls');
});

test('the deprecated functions get a function_call', async (t) => {
  const simulator = await simulate(t);
  const asked = chat('weather in Oslo', { functions: [weather.function] });
  const [choice] = JSON.parse((await ask(simulator, asked)).text).choices;
  t.match(choice, { message: { function_call: { name: 'get_weather' } }, finish_reason: 'function_call' });
  const heard = await ask(simulator, { ...asked, stream: true });
  t.match(JSON.parse(heard.events[1] ?? '').choices[0].delta, { function_call: { name: 'get_weather' } });
});

test('a tool result gets a final text that contains it', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, {
    model: 'sim-text',
    messages: [
      { role: 'user', content: 'weather in Oslo' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '4 degrees' }] },
    ],
    tools: [weather],
    tool_choice: 'required',
  });
  const [choice] = JSON.parse(heard.text).choices;
  t.equal(choice.message.content, 'Simulated answer to: weather in Oslo\nTool result: 4 degrees');
  t.equal(choice.finish_reason, 'stop');
});

test('structured output is JSON, and fits the schema where there is one', async (t) => {
  const simulator = await simulate(t);
  const plain = await ask(simulator, chat('Hi', { response_format: { type: 'json_object' } }));
  t.strictSame(JSON.parse(JSON.parse(plain.text).choices[0].message.content), {
    simulated: true,
    answer: 'Simulated answer to: Hi',
  });
  const schema = {
    type: 'object',
    properties: {
      title: { type: 'string' },
      tags: { type: 'array', items: { enum: ['x', 'y'] }, minItems: 2 },
    },
    required: ['title', 'tags'],
    additionalProperties: false,
  };
  const heard = await ask(
    simulator,
    chat('Hi', {
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
    }),
  );
  const value = JSON.parse(JSON.parse(heard.text).choices[0].message.content);
  t.match(value, { title: 'Simulated answer to: Hi', tags: ['x', 'x'] });
});

test('reasoning comes before the answer and is counted in the usage', async (t) => {
  const simulator = await simulate(t);
  const body = JSON.parse((await ask(simulator, chat('Why?', { reasoning_effort: 'high' }))).text);
  const { message } = body.choices[0];
  t.equal(message.reasoning_content, 'Simulated reasoning (high) about: Why?');
  t.equal(body.usage.completion_tokens_details.reasoning_tokens, countTokens(message.reasoning_content));
  t.equal(
    body.usage.completion_tokens,
    countTokens(message.reasoning_content) + countTokens(message.content),
  );
  const none = JSON.parse((await ask(simulator, chat('Why?', { reasoning_effort: 'none' }))).text);
  t.notOk('reasoning_content' in none.choices[0].message);
  const heard = await ask(simulator, chat('Why?', { reasoning_effort: 'low', stream: true }));
  const keys = heard.events.slice(0, -1).map((event) => Object.keys(JSON.parse(event).choices[0].delta)[0]);
  t.ok(keys.lastIndexOf('reasoning_content') < keys.lastIndexOf('content'));
  t.equal(keys[1], 'reasoning_content');
});

test('images are acknowledged and cost tokens', async (t) => {
  const simulator = await simulate(t);
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
  const content = [{ type: 'text', text: 'Look' }, image];
  const heard = await ask(simulator, { model: 'sim-text', messages: [{ role: 'user', content }] });
  const body = JSON.parse(heard.text);
  t.equal(body.choices[0].message.content, 'Simulated answer to: Look (1 image)');
  t.equal(body.usage.prompt_tokens, 86);
});

test('log probabilities cover the whole text, in a body and in a stream', async (t) => {
  const simulator = await simulate(t);
  const asked = chat('Hello', { logprobs: true, top_logprobs: 2 });
  const [choice] = JSON.parse((await ask(simulator, asked)).text).choices;
  const tokens: { token: string; bytes: number[]; top_logprobs: object[] }[] = choice.logprobs.content;
  t.equal(tokens.map((one) => one.token).join(''), choice.message.content);
  t.ok(tokens.every((one) => one.top_logprobs.length === 2 && one.bytes.length > 0));
  const heard = await ask(simulator, { ...asked, stream: true });
  const streamed = heard.events
    .slice(0, -1)
    .flatMap((event) => JSON.parse(event).choices[0].logprobs?.content ?? []);
  t.strictSame(streamed, tokens);
});

test('what a caller gets wrong is named in an error body of the OpenAI family', async (t) => {
  const simulator = await simulate(t);
  const cases: [object | string, number, string | null, string | null][] = [
    ['{', 400, null, 'invalid_json'],
    ['[]', 400, null, 'invalid_json'],
    [{ messages: [] }, 400, 'model', 'missing_required_parameter'],
    [{ model: 'nope', messages: [{ role: 'user', content: 'a' }] }, 404, 'model', 'model_not_found'],
    [{ model: 'sim-text' }, 400, 'messages', 'missing_required_parameter'],
    [{ model: 'sim-text', messages: [] }, 400, 'messages', 'invalid_value'],
    [{ model: 'sim-text', messages: [{ role: 'x' }] }, 400, 'messages[0].role', 'invalid_value'],
    [chat('a', { n: 129 }), 400, 'n', 'invalid_value'],
    [chat('a', { max_tokens: 0 }), 400, 'max_tokens', 'invalid_value'],
    [chat('a', { stop: [1] }), 400, 'stop', 'invalid_value'],
    [chat('a', { tools: [{ type: 'function' }] }), 400, 'tools[0].function.name', 'invalid_value'],
    [
      chat('a', { tool_choice: { type: 'function', function: { name: 'f' } } }),
      400,
      'tool_choice',
      'invalid_value',
    ],
    [
      chat('a', { response_format: { type: 'json_schema' } }),
      400,
      'response_format.json_schema',
      'invalid_value',
    ],
  ];
  for (const [body, status, param, code] of cases) {
    const heard = await ask(simulator, body);
    const { error } = JSON.parse(heard.text);
    t.equal(heard.status, status, JSON.stringify(body));
    t.strictSame(
      { ...error, message: typeof error.message },
      { message: 'string', type: 'invalid_request_error', param, code },
    );
  }
});
