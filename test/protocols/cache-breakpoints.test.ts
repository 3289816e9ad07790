import { type Test, test } from 'tap';
import type { JsonObject } from '../../src/wire/json.js';
import { pixel } from '../suites/translation/image.js';
import { testKey } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';

// OpenAI's marks of what its prompt cache is to keep (`PromptCacheBreakpoint` in the types of its SDK).
const mark = { prompt_cache_breakpoint: { mode: 'explicit' } };
const long = { prompt_cache_breakpoint: { mode: 'explicit', ttl: '12h' } };
const plain = { type: 'ephemeral' };
const hour = { type: 'ephemeral', ttl: '1h' };

const bodies: Readonly<Record<string, JsonObject>> = {
  '/v1/chat/completions': {
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'Be short.', ...long }] },
      { role: 'user', content: [{ type: 'text', text: 'hi', ...mark }] },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 'r', ...mark }] },
      { role: 'user', content: 'go on' },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
  },
  '/v1/responses': {
    instructions: '',
    input: [
      { role: 'developer', content: [{ type: 'input_text', text: 'Be short.', ...long }] },
      { role: 'user', content: [{ type: 'input_text', text: 'hi', ...mark }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'r', ...mark }] },
      { role: 'user', content: 'go on' },
    ],
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object' }, strict: false }],
  },
};

async function ask(t: Test, wire: 'messages' | 'generateContent', path: string, body = bodies[path]) {
  const { url, upstream } = await startStrictStage(t, wire, {
    target: { translation: { promptCaching: false } },
  });
  const answer = await postJson(url + path, { model: 'm', ...body });
  await answer.text();
  const [heard] = upstream.heard;
  t.equal(heard?.broken, null);
  return { leftOut: answer.headers.get('x-gateway-left-out') ?? '', sent: JSON.parse(heard?.body ?? '{}') };
}

for (const path of Object.keys(bodies)) {
  test(`breakpoints of ${path} keep their places toward messages upstreams`, async (t) => {
    const { leftOut, sent } = await ask(t, 'messages', path);
    t.notMatch(leftOut, /prompt_cache_breakpoint|cache_control/);
    t.match(sent.system, [{ text: 'Be short.', cache_control: hour }]);
    t.match(sent.messages[0].content, [{ text: 'hi', cache_control: plain }]);
    t.match(sent.messages[2].content, [
      { type: 'tool_result', cache_control: plain },
      { type: 'text', text: 'go on' },
    ]);
  });

  test(`breakpoints of ${path} are named where they are lost`, async (t) => {
    const { leftOut } = await ask(t, 'generateContent', path);
    t.ok(leftOut.split(', ').includes('prompt_cache_breakpoint'), leftOut);
    t.notMatch(leftOut, /cache_control/);
  });
}

test('a breakpoint before one for a longer time is for as long, since messages upstreams refuse it otherwise', async (t) => {
  const input = [
    { role: 'user', content: [{ type: 'input_text', text: 'a', ...mark }] },
    { role: 'user', content: [{ type: 'input_text', text: 'b', ...long }] },
    { role: 'user', content: [{ type: 'input_text', text: 'c', ...mark }] },
  ];
  const { sent } = await ask(t, 'messages', '/v1/responses', { input });
  const blocks = sent.messages.flatMap(({ content }: { content: JsonObject[] }) => content);
  t.same(
    blocks.map((block: JsonObject) => block.cache_control),
    [hour, hour, plain],
  );
});

const system = [
  { type: 'text', text: 'Be short.' },
  { type: 'text', text: 'Be kind.', cache_control: plain },
  { type: 'text', text: 'Today is Monday.' },
];
/** A messages request with marks at every place that can have one; at most four of them have one at a time. */
const marks: readonly (readonly [place: string, body: JsonObject])[] = [
  ['the system prompt', { system, messages: [{ role: 'user', content: 'hi' }] }],
  [
    'the conversation',
    {
      system: 'Be short.',
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'hi', cache_control: plain }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r', cache_control: hour },
            { type: 'text', text: 'look', cache_control: plain },
            {
              type: 'image',
              source: { type: 'base64', media_type: 'image/png', data: pixel },
              cache_control: plain,
            },
          ],
        },
      ],
    },
  ],
  [
    'places that no OpenAI model takes marks at',
    {
      system: 'Be short.',
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'text', text: 'ho', cache_control: plain }] },
        { role: 'user', content: 'more' },
      ],
    },
  ],
];

async function askMarked(
  t: Test,
  wire: 'chat' | 'responses',
  members: JsonObject,
  cacheBreakpoints: boolean,
) {
  const { url, upstream } = await startStrictStage(t, wire, {
    target: { translation: { cacheBreakpoints } },
  });
  const tools = [{ name: 'f', input_schema: { type: 'object' } }];
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': testKey, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', max_tokens: 99, tools, ...members }),
  });
  const answered = await answer.text();
  const [heard] = upstream.heard;
  t.equal(heard?.broken, null, answered);
  const leftOut = answer.headers.get('x-gateway-left-out') ?? '';
  return { leftOut, sent: JSON.parse(heard?.body ?? '{}') as JsonObject, text: heard?.body.toString() ?? '' };
}

for (const wire of ['chat', 'responses'] as const)
  for (const [place, members] of marks) {
    test(`marks of messages on ${place} reach ${wire} targets that know breakpoints, and no others`, async (t) => {
      const isSent = !place.startsWith('places');
      const { leftOut, text } = await askMarked(t, wire, members, true);
      t.equal(text.includes('"prompt_cache_breakpoint":{"mode":"explicit"}'), isSent);
      t.notMatch(text, /cache_control|ttl/);
      t.equal(leftOut.includes('cache_control'), !isSent, leftOut);
      const plainly = await askMarked(t, wire, members, false);
      t.notMatch(plainly.text, /prompt_cache_breakpoint|cache_control/);
      t.match(plainly.leftOut, /cache_control/);
    });
  }

test('marks of messages keep their places in chat', async (t) => {
  const [[, prompt], [, conversation]] = marks as [(typeof marks)[0], (typeof marks)[0]];
  t.match((await askMarked(t, 'chat', prompt, true)).sent.messages, [
    {
      role: 'system',
      content: [
        { type: 'text', text: 'Be short.\n\nBe kind.', ...mark },
        { type: 'text', text: '\n\nToday is Monday.', prompt_cache_breakpoint: undefined },
      ],
    },
    { role: 'user', content: [{ type: 'text', text: 'hi', prompt_cache_breakpoint: undefined }] },
  ]);
  t.match((await askMarked(t, 'chat', conversation, true)).sent.messages, [
    { role: 'system', content: [{ type: 'text', text: 'Be short.' }] },
    { role: 'user', content: [{ type: 'text', text: 'hi', ...mark }] },
    { role: 'assistant' },
    { role: 'tool', content: [{ type: 'text', text: 'r', ...mark }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'look', ...mark },
        { type: 'image_url', ...mark },
      ],
    },
  ]);
});

test('marks of messages keep their places in responses', async (t) => {
  const [[, prompt], [, conversation]] = marks as [(typeof marks)[0], (typeof marks)[0]];
  const { sent } = await askMarked(t, 'responses', prompt, true);
  t.equal(sent.instructions, undefined, 'which cannot have marks');
  t.match(sent.input, [
    {
      role: 'developer',
      content: [
        { type: 'input_text', text: 'Be short.\n\nBe kind.', ...mark },
        { type: 'input_text', text: '\n\nToday is Monday.', prompt_cache_breakpoint: undefined },
      ],
    },
    { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
  ]);
  const talk = (await askMarked(t, 'responses', conversation, true)).sent;
  t.equal(talk.instructions, 'Be short.');
  t.match(talk.input, [
    { role: 'user', content: [{ type: 'input_text', text: 'hi', ...mark }] },
    { type: 'function_call' },
    { type: 'function_call_output', output: [{ type: 'input_text', text: 'r', ...mark }] },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'look', ...mark },
        { type: 'input_image', ...mark },
      ],
    },
  ]);
});

test('a breakpoint of a chat client reaches a responses target with its time', async (t) => {
  const { url, upstream } = await startStrictStage(t, 'responses', {
    target: { translation: { cacheBreakpoints: true } },
  });
  await postJson(`${url}/v1/chat/completions`, { model: 'm', ...bodies['/v1/chat/completions'] }).then(
    (answer) => answer.text(),
  );
  t.match(JSON.parse(upstream.heard[0]?.body ?? '{}').input, [
    { role: 'developer', content: [{ text: 'Be short.', ...long }] },
    { role: 'user', content: [{ text: 'hi', ...mark }] },
  ]);
});

for (const wire of ['chat', 'responses'] as const)
  test(`what a mark has left keeps its bytes for ${wire} targets that know breakpoints`, async (t) => {
    const talk = (isLast: boolean, more: readonly JsonObject[]) => {
      const cached = isLast ? { cache_control: plain } : {};
      const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r', ...cached };
      return {
        system,
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'hi', ...cached }] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
          { role: 'user', content: [result] },
          ...more,
        ],
      };
    };
    const next = [
      { role: 'assistant', content: 'ho' },
      { role: 'user', content: [{ type: 'text', text: 'go on', cache_control: plain }] },
    ];
    const unmarked = (text: string) => text.replaceAll(',"prompt_cache_breakpoint":{"mode":"explicit"}', '');
    const first = unmarked((await askMarked(t, wire, talk(true, []), true)).text);
    const second = unmarked((await askMarked(t, wire, talk(false, next), true)).text);
    t.ok(second.startsWith(first.slice(0, -2)), `${first}\n${second}`);
  });
