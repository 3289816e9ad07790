import { once } from 'node:events';
import { test } from 'tap';
import { ObservedTransform } from '../../../src/stream/observe.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { chatRequest, exchange, open, readAnswer } from '../../support/raw-client.js';
import { postBytes } from '../../support/translated.js';
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
} from '../../support/upstream.js';

const plain = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';
const streamed =
  '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}';
const streamedWithoutUsage = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}';

test('a request body reaches the upstream byte for byte', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const bodies = [
    plain,
    ' {\t"messages" : [ {"role":"user","content":"\\u0068\\ud83d\\ude00 é"} ] ,\r\n "model":"\\u006d", "n" : 1 } \n',
    '{"model":"m","seed":12345678901234567890,"x_unknown":{"deep":[1.0,1e400,-0.0]},"messages":[{"role":"user","content":"a"}]}',
    `{"model":"m","messages":[{"role":"user","content":"${'long text é '.repeat(20_000)}"}],"z":{"b":1,"b":2}}`,
  ];
  for (const [index, body] of bodies.entries()) {
    const answer = await exchange(port, chatRequest(body));
    t.equal(answer.status, 200);
    t.equal(answer.body, completion);
    t.match(answer.head, /x-gateway-path: exact/);
    t.ok(upstream.requests[index]?.body.equals(Buffer.from(body)), `body ${index} is the same`);
  }
});

test('with an alias only the model value differs', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, { upstreams: [upstream.url], alias: 'other-name' });
  const body = ' {"a" : {"model":"m"}, "model" :  "\\u006d" , "messages":[{"role":"user","content":"m"}]}';
  const answer = await exchange(port, chatRequest(body));
  t.equal(upstream.requests[0]?.body.toString(), body.replace('"\\u006d"', '"other-name"'));
  t.match(answer.head, /x-gateway-path: spliced/);
});

test('the upstream gets its own key and never the client’s', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const headers =
    'x-api-key: other\r\ntraceparent: 00-1-2-01\r\ncookie: c\r\nuser-agent: a\u010d\u010ab\u00e9\r\n';
  const answer = await exchange(port, chatRequest(plain, headers));
  t.equal(answer.status, 200);
  const head = upstream.requests[0]?.head ?? '';
  t.match(head, /^POST \/v1\/chat\/completions HTTP\/1\.1\r\n/);
  t.match(head, /\r\nauthorization: Bearer upstream-key/);
  t.match(head, /\r\ntraceparent: 00-1-2-01/);
  t.match(head, /\r\naccept-encoding: identity/);
  t.notMatch(head, new RegExp(testKey));
  t.notMatch(head, /x-api-key|cookie/);
  t.notMatch(head, /[^\x20-\x7e\r\n]/);
});

test('a stream is passed on as it came, and its usage is in the log', async (t) => {
  const events =
    chatEvent({ role: 'assistant', content: '' }) + chatEvent({ content: 'hé' }) + chatEvent({}, 'stop');
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(streamHead + chunk(events) + chunk(usageEvent) + chunk(doneEvent) + lastChunk);
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const answer = await exchange(gateway.port, chatRequest(streamed));
  t.equal(answer.status, 200);
  t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/);
  t.equal(answer.body, events + usageEvent + doneEvent);
  t.equal(upstream.requests[0]?.body.toString(), streamed);
  t.match(await gateway.line((line) => line.msg === 'request'), {
    outcome: 'complete',
    inputTokens: 3,
    outputTokens: 4,
    status: 200,
    key: 'test',
  });
});

test('usage is asked for where the client did not, and hidden from it again', async (t) => {
  const events =
    chatEvent({ role: 'assistant', content: '' }) + chatEvent({ content: 'hi' }) + chatEvent({}, 'stop');
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    const all = events + usageEvent + doneEvent;
    if (index === 0) socket.write(streamHead + chunk(all) + lastChunk);
    else for (const byte of streamHead + [...all].map(chunk).join('') + lastChunk) socket.write(byte);
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  for (const index of [0, 1]) {
    const answer = await exchange(gateway.port, chatRequest(streamedWithoutUsage));
    t.equal(answer.body, events + doneEvent);
    t.match(answer.head, /x-gateway-path: spliced/);
    t.same(JSON.parse(upstream.requests[index]?.body.toString() ?? ''), {
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'hi' }],
    });
  }
  t.match(await gateway.line((line) => line.msg === 'request'), { inputTokens: 3, outputTokens: 4 });
});

test('an upstream that wants no stream_options gets the body as it came', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(streamHead + chunk(chatEvent({}, 'stop') + doneEvent) + lastChunk);
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url], upstream: { injectUsage: false } });
  await exchange(port, chatRequest(streamedWithoutUsage));
  t.equal(upstream.requests[0]?.body.toString(), streamedWithoutUsage);
});

test('an upstream that dies in the middle of a stream becomes the error event', async (t) => {
  const first = chatEvent({ role: 'assistant', content: 'h' });
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    const half = 'data: {"id":"c","choices":[{"ind';
    if (index === 0) socket.write(streamHead + chunk(first + half), () => socket.resetAndDestroy());
    else socket.write(streamHead + chunk(first + half) + lastChunk);
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  for (const _ of [0, 1]) {
    const answer = await exchange(gateway.port, chatRequest(streamed));
    t.equal(answer.status, 200);
    t.ok(answer.body.startsWith(first));
    const last = answer.body.slice(first.length);
    t.match(last, /^data: \{"error":\{.*"code":"upstream_error"\}\}\n\n$/);
    t.notMatch(last, /DONE/);
  }
});

test('the error event of a responses stream has the number behind the last event’s', async (t) => {
  const event = (type: string, sequence_number: number, more: object = {}): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...more })}\n\n`;
  const created = event('response.created', 0, {
    response: { metadata: { sequence_number: '77' }, instructions: 'x'.repeat(5000) },
  });
  const delta = event('response.output_text.delta', 8, { delta: '"sequence_number":99' });
  const streams = [
    [created, 1],
    [created + delta, 9],
    [delta + created.replace('"sequence_number":0', '"sequence_number": 9'), 10],
    ['event: response.in_progress\ndata: {"type":"response.in_progress"}\n\n', 0],
  ] as const;
  const upstream = await startRawUpstream(t, ({ socket }, index) =>
    socket.write(streamHead + chunk(streams[index]?.[0] ?? '') + lastChunk),
  );
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['responses'],
    target: { responses: true },
  });
  for (const [text, number] of streams) {
    const answer = await exchange(
      port,
      postBytes('/v1/responses', { model: 'm', input: 'hi', stream: true }),
    );
    t.ok(answer.body.startsWith(text));
    t.match(answer.body.slice(text.length), `"sequence_number":${number},`);
  }
});

test('a stream that ends cleanly but early becomes the error event', async (t) => {
  const first = chatEvent({ role: 'assistant', content: 'h' });
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(streamHead + chunk(first) + lastChunk),
  );
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const answer = await exchange(port, chatRequest(streamed));
  t.match(answer.body.slice(first.length), /^data: \{"error":/);
});

test('a last event without its blank line is an event all the same', async (t) => {
  const events = chatEvent({}, 'stop');
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(streamHead + chunk(`${events}data: [DONE]`) + lastChunk),
  );
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  t.equal((await exchange(port, chatRequest(streamed))).body, events + doneEvent);
});

test('a stream that finished without [DONE] is complete', async (t) => {
  const events = chatEvent({ role: 'assistant', content: 'h' }) + chatEvent({}, 'stop');
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(streamHead + chunk(events) + lastChunk),
  );
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  t.equal((await exchange(port, chatRequest(streamed))).body, events);
});

test('an error as the first event of a 200 becomes a real status', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    const error = index === 0 ? { message: 'slow down', code: 'rate_limit_exceeded' } : { message: 'broken' };
    socket.write(streamHead + chunk(`: hello\n\ndata: ${JSON.stringify({ error })}\n\n`) + lastChunk);
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const limited = await exchange(port, chatRequest(streamed));
  t.equal(limited.status, 429);
  t.match(JSON.parse(limited.body), { error: { message: 'slow down', code: 'rate_limit_exceeded' } });
  t.equal((await exchange(port, chatRequest(streamed))).status, 502);
});

test('a stream of another protocol is refused as such', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    const event =
      index === 0
        ? 'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'
        : 'data: {"candidates":[]}\n\n';
    socket.write(streamHead + chunk(event) + lastChunk);
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  for (const _ of [0, 1]) {
    const answer = await exchange(port, chatRequest(streamed));
    t.equal(answer.status, 502);
    t.match(JSON.parse(answer.body), { error: { code: 'unsupported_stream_event' } });
  }
});

test('a stream that nobody asked for is refused', async (t) => {
  const upstream = await startRawUpstream(t, streamHead + chunk(doneEvent) + lastChunk);
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const answer = await exchange(port, chatRequest(plain));
  t.equal(answer.status, 502);
  t.match(JSON.parse(answer.body), { error: { code: 'unsupported_stream_event' } });
});

test('an upstream’s own error is handed on as it came', async (t) => {
  const error = '{ "error": {"message":"slow","type":"requests","param":null,"code":"rate_limit_exceeded"} }';
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(
      jsonAnswer(
        429,
        error,
        'retry-after: 7\r\nx-ratelimit-limit-requests: 5\r\nx-request-id: up-1\r\nset-cookie: a\r\n',
      ),
    ),
  );
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  for (const body of [plain, streamed]) {
    const answer = await exchange(port, chatRequest(body));
    t.equal(answer.status, 429);
    t.equal(answer.body, error);
    t.match(answer.head, /\r\nretry-after: 7/);
    t.match(answer.head, /\r\nx-ratelimit-limit-requests: 5/);
    t.match(answer.head, /\r\nx-upstream-request-id: up-1/);
    t.match(answer.head, /\r\nx-request-id: req_[0-9a-f]+/);
    t.notMatch(answer.head, /set-cookie/);
  }
});

test('a JSON answer that breaks off is an error status, not half a body', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.end(jsonAnswer(200, completion).slice(0, -10));
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const answer = await exchange(port, chatRequest(plain));
  t.equal(answer.status, 502);
  t.match(JSON.parse(answer.body), { error: { code: 'upstream_error' } });
});

test('a large JSON answer passes whole, and one that breaks off cuts the connection', async (t) => {
  const large = JSON.stringify({
    choices: [{ message: { content: 'é'.repeat(1_000_000) } }],
    usage: { prompt_tokens: 1, completion_tokens: 2 },
  });
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    const answer = jsonAnswer(200, large);
    if (index === 0) socket.write(answer);
    else socket.write(answer.slice(0, -100_000), () => socket.destroy());
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  t.equal((await exchange(gateway.port, chatRequest(plain))).body, large);
  t.match(await gateway.line((line) => line.msg === 'request'), { inputTokens: 1, outputTokens: 2 });
  const socket = await open(gateway.port, chatRequest(plain));
  const cut = await readAnswer(socket);
  t.ok(cut.body.length < large.length);
  t.match(await gateway.line((line) => line.outcome === 'upstream_error'), { status: 200 });
});

test('a fault of ours in an answer that passes as it comes cuts the connection, and nothing is added to it', async (t) => {
  const { prototype } = ObservedTransform;
  const { note } = prototype;
  const marker = 'behind this the gateway fails';
  prototype.note = function (piece) {
    if (piece.includes(marker)) throw new Error('a mistake in the gateway');
    note.call(this, piece);
  };
  t.teardown(() => {
    prototype.note = note;
  });
  const begin = `{"choices":[{"message":{"content":"${'a'.repeat(1_000_000)}`;
  const upstream = await startRawUpstream(t, ({ socket }) => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
    socket.write(head + chunk(begin));
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const client = await open(gateway.port, chatRequest(plain));
  const answer = readAnswer(client);
  await once(client, 'data');
  upstream.requests[0]?.socket.write(chunk(marker) + lastChunk);
  const { body } = await answer;
  t.ok(client.destroyed, 'it has no end');
  t.notOk(body.includes('error'));
  const line = await gateway.line((each) => each.status === 200);
  t.match(line, { outcome: 'refused', error: 'internal_error' });
});

test('a fault of ours within a stream is told in its error event, and is not recorded as the upstream’s', async (t) => {
  const { prototype } = ObservedTransform;
  const { pass } = prototype;
  const marker = 'behind this the gateway fails';
  prototype.pass = function (run) {
    if (run.includes(marker)) throw new Error('a mistake in the gateway');
    return pass.call(this, run);
  };
  t.teardown(() => {
    prototype.pass = pass;
  });
  const first = chatEvent({ role: 'assistant', content: 'h' });
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(streamHead + chunk(first));
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const client = await open(gateway.port, chatRequest(streamed));
  const answer = readAnswer(client);
  await once(client, 'data');
  upstream.requests[0]?.socket.write(chunk(chatEvent({ content: marker })));
  const { body } = await answer;
  t.match(body.slice(first.length), /^data: \{"error":\{.*"code":"internal_error"\}\}\n\n$/);
  const line = await gateway.line((each) => each.status === 200);
  t.match(line, { outcome: 'refused', error: 'internal_error' });
});

test('the next target answers when the first cannot be reached', async (t) => {
  const dead = await startRawUpstream(t, ({ socket }) => socket.resetAndDestroy());
  const alive = await startRawUpstream(t, jsonAnswer(200, completion));
  const gateway = await startGateway(t, { upstreams: ['http://127.0.0.1:1/v1', dead.url, alive.url] });
  const answer = await exchange(gateway.port, chatRequest(plain));
  t.equal(answer.status, 200);
  t.match(await gateway.line((line) => line.msg === 'request'), { retries: 2, target: 'u2/m' });
});

test('an upstream that cannot be reached is a 502 that names no address', async (t) => {
  const { port } = await startGateway(t, { upstreams: ['http://127.0.0.1:1/v1'] });
  const answer = await exchange(port, chatRequest(plain));
  t.equal(answer.status, 502);
  t.notMatch(answer.body, /127\.0\.0\.1/);
});

test('a client that leaves cancels its upstream request', async (t) => {
  const closed: Promise<unknown>[] = [];
  const upstream = await startRawUpstream(t, ({ socket, body }) => {
    closed.push(new Promise((resolve) => socket.on('close', resolve)));
    if (body.includes('"stream"')) socket.write(streamHead + chunk(chatEvent({ content: 'x' })));
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const waiting = await open(gateway.port, chatRequest(plain));
  await upstream.request(0);
  waiting.destroy();
  await closed[0];
  const streaming = await open(gateway.port, chatRequest(streamed));
  await new Promise((resolve) => streaming.once('data', resolve));
  streaming.destroy();
  await closed[1];
  await gateway.line(() => gateway.lines.filter((line) => line.outcome === 'client_gone').length === 2);
  t.equal(upstream.sockets.size, 0);
});

test('a silent stream is kept alive by comments, and an error after them is an event', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: { timeouts: { keepAliveMs: 500, firstByteMs: 3000 } },
  });
  const answer = await exchange(gateway.port, chatRequest(streamed));
  t.equal(answer.status, 200);
  t.match(answer.body, /^(: keep-alive\n\n)+data: \{"error":\{.*"code":"upstream_timeout"\}\}\n\n$/);
});

test('an error status after keep-alives is told in the event', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    setTimeout(() => socket.write(jsonAnswer(429, '{"error":{"message":"too many"}}')), 2500);
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: { timeouts: { keepAliveMs: 500 } },
  });
  const answer = await exchange(gateway.port, chatRequest(streamed));
  t.match(answer.body, /data: \{"error":\{"message":"too many",.*"code":"rate_limit_exceeded"\}\}\n\n$/);
});
