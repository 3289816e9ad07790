import { type Test, test } from 'tap';
import type { JsonObject } from '../../src/wire/json.js';
import { testKey } from '../support/gateway.js';
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
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', ...body }),
  });
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
