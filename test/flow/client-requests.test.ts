import { test } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { pixel } from '../suites/translation/image.js';
import { readData, readEvents } from '../support/events.js';
import { testKey } from '../support/gateway.js';
import { listAt } from '../support/json.js';
import { postJson } from '../support/post-json.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';
import { post, textProtocols } from '../support/translated.js';

/* Requests as clients of other makers than the protocol's own send them, at upstreams that refuse what their vendor does. */

const othersThan = (from: TextProtocolName) => textProtocols.filter((wire) => wire !== from);

for (const wire of othersThan('chat'))
  test(`an image whose URL is a text, as @ai-sdk/mistral sends it, reaches ${wire} upstreams`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire);
    const content = [
      { type: 'text', text: 'What is this? cell:image' },
      { type: 'image_url', image_url: `data:image/png;base64,${pixel}` },
    ];
    const { status, body } = await post(port, '/v1/chat/completions', {
      model: 'm',
      messages: [{ role: 'user', content }],
    });
    t.equal(status, 200, body);
    t.equal(upstream.heard[0]?.broken, null);
    t.match(body, '1 image seen.');
  });

for (const wire of textProtocols)
  test(`an image in the other alphabet of base64, as google-genai of Python sends it, reaches ${wire} upstreams`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire);
    // Its last bytes have the characters that the two alphabets have not in common, and no padding.
    const bytes = Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.from([0xfb, 0xff, 0xbf, 0xff])]);
    const image = { inlineData: { data: bytes.toString('base64url'), mimeType: 'image/png' } };
    const { status, body } = await post(port, '/v1beta/models/m:generateContent', {
      contents: [{ parts: [{ text: 'What is this? cell:image' }, image], role: 'user' }],
      tools: [{ functionDeclarations: [{ name: 'f', parameters_json_schema: { type: 'object' } }] }],
      generationConfig: { thinkingConfig: { include_thoughts: true, thinking_budget: 2048 } },
    });
    t.equal(status, 200, body);
    t.equal(upstream.heard[0]?.broken, null);
    t.match(body, '1 image seen.');
  });

for (const wire of othersThan('chat'))
  test(`an effort that @ai-sdk/openai-compatible of AI SDK 4 repeats in its own spelling reaches ${wire} upstreams`, async (t) => {
    const { url, upstream } = await startStrictStage(t, wire);
    const asked = {
      model: 'm',
      reasoningEffort: 'high',
      reasoning_effort: 'high',
      messages: [{ role: 'user', content: 'cell:text' }],
    };
    const answer = await postJson(`${url}/v1/chat/completions`, asked);
    t.equal(answer.status, 200);
    t.match(await answer.text(), 'The answer to text.');
    t.equal(answer.headers.get('x-gateway-left-out'), null, 'nothing is lost');
    t.match(upstream.heard[0]?.body, /effort|thinking/);
  });

const reasoning = {
  chat: /"reasoning_content":"I think about thinking, step \d."/g,
  messages: /\[\{"type":"thinking","thinking":"","signature"/g,
};

for (const wire of ['chat', 'messages'] as const)
  test(`reasoning comes back to ${wire} upstreams from @langchain/google, which joins the texts of a stream`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire);
    const contents: object[] = [{ role: 'user', parts: [{ text: 'The weather, please. cell:thinking' }] }];
    const ask = () =>
      post(port, '/v1beta/models/m:streamGenerateContent?alt=sse', {
        contents,
        tools: [{ functionDeclarations: [{ name: 'get_weather', parameters: { type: 'object' } }] }],
        generationConfig: { thinkingConfig: { thinkingBudget: 2048 } },
      });
    for (let step = 0; step < 2; step++) {
      const { body } = await ask();
      const parts = readEvents(body).flatMap((each) =>
        listAt(readData(each), 'candidates', 0, 'content', 'parts'),
      );
      const text = parts.map((part) => ('text' in part ? part.text : '')).join('');
      const calls = parts.filter((part) => 'functionCall' in part);
      contents.push(
        { role: 'model', parts: [{ text }, ...calls] },
        {
          role: 'user',
          parts: [{ functionResponse: { name: 'get_weather', response: { result: 'sunny in Rome' } } }],
        },
      );
    }
    const { status, body } = await ask();
    t.equal(status, 200, body);
    t.match(body, 'The tools said');
    const sent = upstream.heard.map(({ broken }) => broken);
    t.strictSame(sent, [null, null, null]);
    const returned = upstream.heard[2]?.body.match(reasoning[wire]);
    t.equal(returned?.length, 2, 'the reasoning of each step');
  });

for (const wire of othersThan('messages'))
  test(`tools that a messages client runs by itself, as its SDK declares them, are called by ${wire} models`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire);
    const messages: object[] = [{ role: 'user', content: 'Do it. cell:tool' }];
    const ask = () =>
      post(
        port,
        '/v1/messages?beta=true',
        {
          model: 'm',
          max_tokens: 8000,
          messages,
          tools: [
            { type: 'memory_20250818', name: 'memory' },
            { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 10_000 },
            { type: 'bash_20250124', name: 'bash' },
          ],
        },
        'anthropic-beta: context-management-2025-06-27\r\n',
      );
    const called = await ask();
    t.equal(called.status, 200, called.body);
    t.notMatch(called.head, 'x-gateway-left-out');
    const { content } = JSON.parse(called.body);
    const call = content.find(({ type }: { type: string }) => type === 'tool_use');
    t.match(call, { name: 'bash', input: { command: /^printf/ } });
    const result = { type: 'tool_result', tool_use_id: call.id, content: 'lighthouse-42' };
    messages.push({ role: 'assistant', content }, { role: 'user', content: [result] });
    t.match((await ask()).body, 'The tools said: lighthouse-42.');
    t.strictSame(
      upstream.heard.map(({ broken }) => broken),
      [null, null],
    );
  });

for (const wire of othersThan('messages'))
  test(`a call whose input is a text, as @langchain/anthropic returns streamed ones, does not end a conversation on ${wire}`, async (t) => {
    const { port, upstream } = await startStrictStage(t, wire, { models: ['gemini-3.8-flash'] });
    for (const [input, sent] of [
      ['', '{}'],
      ['{"city":"Rome"}', '{"city":"Rome"}'],
      ['Rome', '{"input":"Rome"}'],
      [['Rome'], '{"input":["Rome"]}'],
    ]) {
      const call = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input };
      const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny in Rome' };
      const { status, body } = await post(port, '/v1/messages', {
        model: 'gemini-3.8-flash',
        max_tokens: 8000,
        messages: [
          { role: 'user', content: 'The weather, please.' },
          { role: 'assistant', content: [call] },
          { role: 'user', content: [result, { type: 'text', text: 'Go on. cell:text' }] },
        ],
      });
      t.equal(status, 200, body);
      t.equal(upstream.heard.at(-1)?.broken, null);
      const asked = upstream.heard.at(-1)?.body.replaceAll('\\"', '"') ?? '';
      t.ok(asked.includes(`:${sent}`) || asked.includes(`:"${sent}"`), `${sent} in ${asked}`);
    }
  });

test('what the SDKs ask for beside an answer reaches upstreams that keep responses and threads, and count tokens', async (t) => {
  const responses = await startStrictStage(t, 'responses');
  const counted = await post(responses.port, '/v1/responses/input_tokens', { model: 'm', input: 'Hi' });
  t.match(JSON.parse(counted.body), { object: 'response.input_tokens', input_tokens: 30 });
  const made = await post(responses.port, '/v1/responses', { model: 'm', input: 'cell:text' });
  const { id } = JSON.parse(made.body) as { id: string };
  const byId = async (method: string, rest = '') => {
    const answer = await fetch(`${responses.url}/v1/responses/${id}${rest}`, {
      method,
      headers: { authorization: `Bearer ${testKey}` },
    });
    return { status: answer.status, body: await answer.text() };
  };
  t.match((await byId('GET')).body, 'The answer to text.');
  t.match((await byId('GET', '/input_items')).body, 'cell:text');
  t.equal((await byId('DELETE')).status, 200);
  t.equal((await byId('GET')).status, 404);

  const messages = await startStrictStage(t, 'messages');
  const say = (text: string, thread: object, more: object = {}) => {
    const body = { model: 'm', max_tokens: 9, thread, messages: [{ role: 'user', content: text }], ...more };
    return post(messages.port, '/v1/messages', body, 'anthropic-beta: message-threads-2026-08-12\r\n');
  };
  const begun = await say('cell:text', { type: 'create' });
  t.match(begun.body, 'The answer to text.');
  const { id: first } = JSON.parse(begun.body) as { id: string };
  const goOn = { type: 'continue', previous_message_id: first };
  t.match((await say('cell:again', goOn)).body, 'Earlier I said: The answer to text.');
  t.equal((await say('cell:again', goOn, { system: 'Be brief.' })).status, 400);
  const lost = await say('cell:again', { ...goOn, previous_message_id: 'msg_none' });
  t.equal(lost.status, 404);
  t.match(lost.body, '"error_code":"thread_not_found"');
});
