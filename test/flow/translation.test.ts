import { type Test, test } from 'tap';
import type { JsonObject } from '../../src/wire/json.js';
import { atOnce } from '../../src/wire/steps.js';
import { startGateway, testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import {
  post,
  textProtocols as protocols,
  startTranslated,
  type TranslatedStage,
} from '../support/translated.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
  usageEvent,
} from '../support/upstream.js';

async function stage(
  t: Test,
  kind: string,
  answer: string,
  target: Record<string, unknown> = {},
): Promise<TranslatedStage> {
  return startTranslated(t, { kind, answer, target });
}

const messagesBody = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] };
const chatBody = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const googleBody = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
const google = '/v1beta/models/m:generateContent';
const googleStream = '/v1beta/models/m:streamGenerateContent';

const message = JSON.stringify({
  id: 'msg_x',
  type: 'message',
  role: 'assistant',
  model: 'real',
  content: [{ type: 'text', text: 'hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 4 },
});
const candidate = JSON.stringify({
  candidates: [{ content: { role: 'model', parts: [{ text: 'hello' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
});
const response = JSON.stringify({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
});

test('each kind of upstream is called at its own path, signed in to in its own way', async (t) => {
  const cases = [
    ['chat', completion, /^POST \/v1\/chat\/completions HTTP/, /\r\nauthorization: Bearer upstream-key\r\n/],
    ['messages', message, /^POST \/v1\/messages HTTP/, /\r\nx-api-key: upstream-key\r\n/],
    [
      'generateContent',
      candidate,
      /^POST \/v1\/models\/real:generateContent HTTP/,
      /\r\nx-goog-api-key: upstream-key\r\n/,
    ],
  ] as const;
  for (const [kind, answer, path, credential] of cases) {
    const { port, upstream } = await stage(t, kind, jsonAnswer(200, answer));
    const { status, head, body } = await post(port, '/v1/responses', { model: 'm', input: 'hi' });
    t.equal(status, 200, kind);
    t.match(head, /x-gateway-path: translated/);
    t.match(JSON.parse(body), { object: 'response', model: 'm', status: 'completed' });
    const sent = upstream.requests[0]?.head ?? '';
    t.match(sent, path);
    t.match(`${sent}\r\n`, credential);
    t.equal(sent.includes(testKey), false, 'the client’s key stays here');
    t.equal(/anthropic-version: 2023-06-01/.test(sent), kind === 'messages');
  }
});

test('beta headers reach an upstream of their vendor and no other', async (t) => {
  const betas = 'anthropic-beta: a-2025-01-01,b\r\nopenai-beta: assistants=v2\r\n';
  const onMessages = await stage(t, 'messages', jsonAnswer(200, message));
  await post(onMessages.port, '/v1/messages?beta=true', messagesBody, betas);
  const native = onMessages.upstream.requests[0]?.head ?? '';
  t.match(native, /^POST \/v1\/messages\?beta=true HTTP/);
  t.match(native, /\r\nanthropic-beta: a-2025-01-01,b/);
  t.notMatch(native, /openai-beta/);
  const onChat = await stage(t, 'chat', jsonAnswer(200, completion));
  await post(onChat.port, '/v1/messages', messagesBody, betas);
  const foreign = onChat.upstream.requests[0]?.head ?? '';
  t.notMatch(foreign, /anthropic/);
  const onGoogle = await stage(t, 'generateContent', jsonAnswer(200, candidate));
  await post(onGoogle.port, '/v1/chat/completions', chatBody, betas);
  t.notMatch(onGoogle.upstream.requests[0]?.head ?? '', /beta:/);
});

test('the version that a messages client speaks reaches a messages upstream', async (t) => {
  const { port, upstream } = await stage(t, 'messages', jsonAnswer(200, message));
  const text = JSON.stringify(messagesBody);
  const version = 'vendorc-version: 2026-10-21\r\n';
  await exchange(
    port,
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${testKey}\r\n${version}content-type: application/json\r\n` +
      `content-length: ${text.length}\r\n\r\n${text}`,
  );
  t.match(upstream.requests[0]?.head ?? '', /\r\nanthropic-version: 2026-10-21/);
});

test('responses are passed through where the target says that it speaks them', async (t) => {
  const answer = JSON.stringify({ id: 'resp_1', object: 'response', output: [], x: 1 });
  const { port, upstream } = await stage(t, 'chat', jsonAnswer(200, answer), { responses: true });
  const { head, body } = await post(port, '/v1/responses', { model: 'm', input: 'hi', store: false });
  t.match(head, /x-gateway-path: spliced/);
  t.equal(body, answer);
  t.match(upstream.requests[0]?.head ?? '', /^POST \/v1\/responses HTTP/);
  t.equal(upstream.requests[0]?.body.toString(), '{"model":"real","input":"hi","store":false}');
});

test('an upstream’s error is told in the caller’s error format with the upstream’s status', async (t) => {
  const openai =
    '{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}';
  const cases = [
    [400, openai, 'invalid_request_error', 'INVALID_ARGUMENT'],
    [
      403,
      '{"error":{"message":"no","code":"content_policy_violation"}}',
      'permission_error',
      'PERMISSION_DENIED',
    ],
    [429, '{"error":{"message":"slow"}}', 'rate_limit_error', 'RESOURCE_EXHAUSTED'],
    [500, 'not json', 'api_error', 'INTERNAL'],
    [529, '{"error":{"message":"full"}}', 'overloaded_error', 'UNAVAILABLE'],
  ] as const;
  for (const [status, body, type, googleStatus] of cases) {
    const { port, upstream } = await stage(t, 'chat', jsonAnswer(status, body, 'retry-after: 7\r\n'));
    const told = await post(port, '/v1/messages', messagesBody);
    t.equal(told.status, status);
    t.match(JSON.parse(told.body), { type: 'error', error: { type } });
    t.match(told.head, /retry-after: 7/);
    t.match(told.head, /\r\nrequest-id: req_/);
    const google_ = await post(port, google, googleBody);
    t.match(JSON.parse(google_.body), { error: { code: status, status: googleStatus } });
    t.equal(upstream.requests.length, 2, 'an error status is not tried again');
  }
  const { port } = await stage(t, 'chat', jsonAnswer(400, openai), { responses: false });
  const told = await post(port, '/v1/responses', { model: 'm', input: 'hi' });
  t.match(JSON.parse(told.body), { error: { message: 'too long', code: 'context_length_exceeded' } });
});

test('a target that cannot say what is asked gives way to one that can', async (t) => {
  const first = await startRawUpstream(t, jsonAnswer(200, message));
  const second = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        a: { kind: 'messages', baseUrl: first.url },
        b: { kind: 'chat', baseUrl: second.url },
      },
      models: { m: { protocols, targets: [{ upstream: 'a' }, { upstream: 'b', priority: 1 }] } },
    },
  });
  const answer = await post(port, '/v1/chat/completions', { ...chatBody, n: 2 });
  t.equal(answer.body, completion);
  t.equal(first.requests.length, 0);
  const refused = await stage(t, 'messages', jsonAnswer(200, message));
  const told = await post(refused.port, '/v1/chat/completions', { ...chatBody, n: 2 });
  t.equal(told.status, 400);
  t.match(JSON.parse(told.body), { error: { code: 'unsupported_parameter', param: 'n' } });
});

test('a generateContent stream without alt=sse is one array', async (t) => {
  const events = [
    chatEvent({ role: 'assistant', content: '' }),
    chatEvent({ content: 'hel' }),
    chatEvent({ content: 'lo' }),
    chatEvent({}, 'stop'),
    usageEvent,
    doneEvent,
  ];
  const whole = streamHead + chunk(events.join('')) + lastChunk;
  const translated = await stage(t, 'chat', whole);
  const answer = await post(translated.port, googleStream, googleBody);
  t.match(answer.head, /content-type: application\/json/);
  const blocks = JSON.parse(answer.body) as { candidates: { content: { parts: { text: string }[] } }[] }[];
  t.equal(blocks.map((block) => block.candidates[0]?.content.parts[0]?.text).join(''), 'hello');
  const sse = await post(translated.port, `${googleStream}?alt=sse`, googleBody);
  t.match(sse.head, /content-type: text\/event-stream/);
  t.match(sse.body, /^data: \{/);
  const native = await stage(t, 'generateContent', streamHead + chunk(`data: ${candidate}\n\n`) + lastChunk);
  const passed = await post(native.port, googleStream, googleBody);
  t.equal(passed.body, `[${candidate}\n]`, 'each element as the upstream wrote it');
  t.match(
    native.upstream.requests[0]?.head ?? '',
    /^POST \/v1\/models\/real:streamGenerateContent\?alt=sse HTTP/,
  );
});

test('silence is filled as the protocol has it', async (t) => {
  const events = [chatEvent({ role: 'assistant', content: 'a' }), chatEvent({}, 'stop'), doneEvent];
  const slow = await startRawUpstream(t, ({ socket }) => {
    socket.write(streamHead);
    setTimeout(() => socket.write(chunk(events.join('')) + lastChunk), 2500);
  });
  const { port } = await startGateway(t, {
    upstreams: [slow.url],
    config: {
      timeouts: { keepAliveMs: 1 },
      models: { m: { protocols, targets: [{ upstream: 'u0' }] } },
    },
  });
  const [inMessages, inResponses, inGoogle, inArray] = await Promise.all([
    post(port, '/v1/messages', { ...messagesBody, stream: true }),
    post(port, '/v1/responses', { model: 'm', input: 'hi', stream: true }),
    post(port, `${googleStream}?alt=sse`, googleBody),
    post(port, googleStream, googleBody),
  ]);
  t.match(inMessages?.body, /^event: ping\ndata: \{"type":"ping"\}\n\n/);
  t.match(inResponses?.body, /^: keep-alive\n\n/);
  t.match(inGoogle?.body, /^: keep-alive\n\n/);
  t.match(inArray?.body, /^\n/);
  t.ok(Array.isArray(JSON.parse(inArray?.body ?? '')));
});

test('a broken stream ends with the error event of the client’s protocol', async (t) => {
  const begun = streamHead + chunk(chatEvent({ role: 'assistant', content: 'a' }));
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(begun);
    setTimeout(() => socket.destroy(), 50);
  });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    config: { models: { m: { protocols, targets: [{ upstream: 'u0' }] } } },
  });
  const inMessages = await post(port, '/v1/messages', { ...messagesBody, stream: true });
  t.match(inMessages.body, /event: error\ndata: \{"type":"error","error":\{"type":"api_error"/);
  t.notMatch(inMessages.body, /message_stop/);
  const inResponses = await post(port, '/v1/responses', { model: 'm', input: 'hi', stream: true });
  t.match(inResponses.body, /"type":"response.failed"/);
  t.match(inResponses.body, /event: error\n/);
  const inGoogle = await post(port, `${googleStream}?alt=sse`, googleBody);
  t.match(inGoogle.body, /\n\ndata: \{"error":\{"code":502/);
  const inArray = await post(port, googleStream, googleBody);
  t.match((JSON.parse(inArray.body) as object[]).at(-1), { error: { code: 502 } });
});

test('tokens are counted here when the upstream speaks another protocol', async (t) => {
  const { port, upstream } = await stage(t, 'chat', jsonAnswer(500, '{}'));
  const counted = await post(port, '/v1/messages/count_tokens', {
    model: 'm',
    messages: messagesBody.messages,
  });
  t.equal(counted.status, 200);
  t.ok((JSON.parse(counted.body) as { input_tokens: number }).input_tokens > 0);
  const google_ = await post(port, '/v1beta/models/m:countTokens', googleBody);
  t.ok((JSON.parse(google_.body) as { totalTokens: number }).totalTokens > 0);
  const ofResponse = await post(port, '/v1/responses/input_tokens', {
    model: 'm',
    input: 'How many?',
    tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
  });
  t.match(JSON.parse(ofResponse.body), { object: 'response.input_tokens', input_tokens: 26 });
  t.equal(upstream.requests.length, 0);
  const native = await stage(t, 'messages', jsonAnswer(200, '{"input_tokens":7}'));
  const passed = await post(native.port, '/v1/messages/count_tokens', {
    model: 'm',
    messages: messagesBody.messages,
  });
  t.equal(passed.body, '{"input_tokens":7}');
});

test('a model whose targets differ drops reasoning that another vendor signed', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, message));
  const { port } = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        a: { kind: 'messages', baseUrl: upstream.url },
        b: { kind: 'generateContent', baseUrl: upstream.url },
      },
      models: {
        m: {
          protocols,
          targets: [
            { upstream: 'a', model: 'm' },
            { upstream: 'b', priority: 1 },
          ],
        },
      },
    },
  });
  const foreign = { type: 'thinking', thinking: 'hm', signature: 'gw1.s.generateContent.bQ.abc' };
  const history = [
    { role: 'user', content: 'a' },
    {
      role: 'assistant',
      content: [
        foreign,
        { type: 'thinking', thinking: 'own', signature: 'RXdB' },
        { type: 'text', text: 'b' },
      ],
    },
    { role: 'user', content: 'c' },
  ];
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  const body = { ...messagesBody, max_tokens: 4000, thinking, messages: history };
  const answer = await post(port, '/v1/messages', body);
  t.equal(answer.status, 200);
  const sent = upstream.requests[0]?.body.toString() ?? '';
  t.notMatch(sent, /gw1\.|hm/);
  t.match(sent, /"thinking":"own","signature":"RXdB"/, 'its own vendor’s reasoning stays');
  await post(port, '/v1/messages', messagesBody);
  t.equal(
    upstream.requests[1]?.body.toString(),
    JSON.stringify(messagesBody),
    'any other body goes as it came',
  );
});

test('a chat upstream that does not take the question is not asked for the usage of a stream', async (t) => {
  const events =
    streamHead + chunk(chatEvent({ content: 'a' }) + chatEvent({}, 'stop') + doneEvent) + lastChunk;
  const { port, upstream } = await startTranslated(t, { answer: events, upstream: { injectUsage: false } });
  const answer = await post(port, '/v1/messages', { ...messagesBody, stream: true });
  t.match(answer.body, /event: message_stop/);
  t.notMatch(upstream.requests[0]?.body.toString(), /stream_options/);
});

test('a target of responses alone gets the calls of every other protocol in it', async (t) => {
  const { port, upstream } = await startTranslated(t, {
    answer: jsonAnswer(200, response),
    target: { responses: 'only' },
  });
  const chat = await post(port, '/v1/chat/completions', chatBody);
  t.match(JSON.parse(chat.body), { choices: [{ message: { content: 'hello' } }] });
  const messages = await post(port, '/v1/messages', messagesBody);
  t.match(JSON.parse(messages.body), { content: [{ text: 'hello' }] });
  const native = await post(port, '/v1/responses', { model: 'm', input: 'hi' });
  t.equal(native.body, response);
  for (const { head } of upstream.requests) t.match(head, /^POST \/v1\/responses HTTP/);
});

test('a stop sequence that the upstream does not know ends the answer, and the upstream is left', async (t) => {
  const event = (data: JsonObject) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] };
  const part = { type: 'output_text', text: '', annotations: [] };
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const begun =
    event({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } }) +
    event({ type: 'response.output_item.added', output_index: 0, item }) +
    event({ type: 'response.content_part.added', ...place, part });
  const text = (delta: string) => event({ type: 'response.output_text.delta', ...place, delta });
  const { port, upstream } = await startTranslated(t, {
    // It never ends by itself.
    answer: streamHead + chunk(begun + text('one <') + text('/bl') + text('ock> two')),
    target: { responses: 'only' },
  });
  const answer = await post(port, '/v1/messages', {
    ...messagesBody,
    stream: true,
    stop_sequences: ['</block>'],
  });
  t.notMatch(upstream.requests[0]?.body.toString(), /block/);
  t.match(answer.body, /"text":"one "/);
  t.notMatch(answer.body, /two|block>"\}\}/);
  t.match(answer.body, /"stop_reason":"stop_sequence","stop_sequence":"<\/block>"/);
  t.match(answer.body, /"usage":\{[^}]*"output_tokens":[1-9]/, 'which is estimated');
  t.match(answer.body, /event: message_stop/);
});

test('a response repeats the settings that the upstream got and the client’s metadata, and the header names the others', async (t) => {
  const settings = { service_tier: 'flex', prompt_cache_key: 'k', metadata: { a: 'b' }, user: 'u' };
  const ask = { model: 'm', input: 'hi', ...settings };
  const onChat = await stage(t, 'chat', jsonAnswer(200, completion));
  const kept = await post(onChat.port, '/v1/responses', ask);
  t.notMatch(kept.head, /x-gateway-left-out/);
  t.match(JSON.parse(kept.body), settings);
  const onMessages = await stage(t, 'messages', jsonAnswer(200, message));
  const lost = await post(onMessages.port, '/v1/responses', ask);
  t.match(lost.head, /x-gateway-left-out: service_tier, prompt_cache_key, metadata\r\n/);
  const unset = { service_tier: 'default', prompt_cache_key: null, metadata: { a: 'b' }, user: 'u' };
  t.match(JSON.parse(lost.body), unset);
});

test('what a request lost is in the head of its answer, in the recent calls and in the metrics', async (t) => {
  const running = await stage(t, 'chat', jsonAnswer(200, completion));
  const { head } = await post(running.port, '/v1/messages', {
    ...messagesBody,
    top_k: 3,
    invented: { a: 1 },
  });
  t.match(head, /x-gateway-left-out: invented, top_k\r\n/);
  const { requests } = atOnce(running.gateway.inspectSteps());
  t.strictSame(requests[0]?.leftOut, ['invented', 'top_k']);
  const { counters } = running.gateway.metrics();
  const [, labels] = counters.find(([name]) => name === 'gateway_left_out_total') ?? [];
  t.strictSame(labels, ['other', 'request', 'top_k', 'request']);
});

test('a history with blocks of a vendor’s servers is served by every other protocol', async (t) => {
  const messages = [
    { role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] },
    {
      role: 'assistant',
      content: [
        { type: 'compaction', content: 'told before' },
        { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
        {
          type: 'web_search_tool_result',
          tool_use_id: 's',
          content: [
            { type: 'web_search_result', title: 'Page', url: 'https://page', encrypted_content: 'e' },
          ],
        },
        { type: 'tool_use', id: 'c', name: 'find', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'tool_reference', tool_name: 'paint' }] },
      ],
    },
    { role: 'assistant', content: [{ type: 'mcp_tool_use', id: 'm', name: 'x', input: {} }] },
    { role: 'user', content: [{ type: 'text', text: 'go on' }, { type: 'newer-than-this' }] },
  ];
  const cases = [
    ['chat', 'chat', {}, completion],
    ['generateContent', 'generateContent', {}, candidate],
    ['chat', 'responses', { responses: 'only' }, response],
  ] as const;
  for (const [kind, protocol, only, answer] of cases) {
    const target = { ...only, translation: { hostedTools: 'reject' } };
    const { port, upstream } = await stage(t, kind, jsonAnswer(200, answer), target);
    const served = await post(port, '/v1/messages', { ...messagesBody, messages });
    t.equal(served.status, 200, protocol);
    t.match(
      served.head,
      /x-gateway-left-out: container_upload, server_tool_use, mcp_tool_use, content, encrypted_content\r\n/,
    );
    const sent = upstream.requests[0]?.body ?? '';
    for (const kept of ['told before', '- Page: https://page', 'Found tool: paint', 'go on'])
      t.ok(sent.includes(kept), `${protocol}: ${kept}`);
    for (const lost of ['newer-than-this', 'mcp_tool_use']) t.notOk(sent.includes(lost), lost);
    const counted = await post(port, '/v1/messages/count_tokens', { model: 'm', messages });
    t.equal(counted.status, 200);
  }
});
