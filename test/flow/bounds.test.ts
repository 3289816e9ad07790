import { once } from 'node:events';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { chatRequest, exchange, open, readAnswer } from '../support/raw-client.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';

const streamed = (text: string) =>
  `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"${text}"}]}`;
const plain = (text: string) => `{"model":"m","messages":[{"role":"user","content":"${text}"}]}`;

test('a running stream holds neither its request body nor the room for it', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket, body }) => {
    if (body.includes('"stream"')) socket.write(streamHead + chunk(chatEvent({ content: 'x' })));
    else socket.write(jsonAnswer(200, completion));
  });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    config: { limits: { bodyBytes: 100_000, bufferedBytes: 100_000 } },
  });
  const stream = await open(port, chatRequest(streamed('a'.repeat(90_000))));
  await once(stream, 'data');
  t.equal((await exchange(port, chatRequest(plain('b'.repeat(90_000))))).status, 200);
  stream.destroy();
});

test('chunked and compressed bodies take up room as they grow', async (t) => {
  const held: Socket[] = [];
  const upstream = await startRawUpstream(t, ({ socket }) => held.push(socket));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: { limits: { bodyBytes: 1_000_000, bufferedBytes: 2_500_000, bufferedBytesPerKey: 2_500_000 } },
  });
  const compressed = gzipSync(plain('a'.repeat(900_000)));
  const clients = [];
  for (let i = 0; i < 2; i++) {
    clients.push(await open(gateway.port, chatRequest(compressed, 'content-encoding: gzip\r\n')));
    await upstream.request(i);
  }
  const over = await exchange(gateway.port, chatRequest(compressed, 'content-encoding: gzip\r\n'));
  t.equal(over.status, 503, 'the room that two decoded bodies take up is gone');
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\ntransfer-encoding: chunked\r\n\r\n`;
  const growing = await exchange(gateway.port, `${head}${chunk('x'.repeat(900_000))}`);
  t.equal(growing.status, 503);
  for (const client of clients) client.destroy();
  await gateway.line(() => gateway.lines.filter(({ outcome }) => outcome === 'client_gone').length === 2);
  const again = open(gateway.port, chatRequest(compressed, 'content-encoding: gzip\r\n'));
  await upstream.request(2);
  (await again).destroy();
});

test('a body that is compressed beyond the usual is decoded all the same', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const body = plain('a'.repeat(3_000_000));
  const answer = await exchange(port, chatRequest(gzipSync(body), 'content-encoding: GZIP\r\n'));
  t.equal(answer.status, 200);
  t.equal(upstream.requests[0]?.body.length, body.length);
  t.equal((await exchange(port, chatRequest(plain('x'), 'content-encoding: Identity\r\n'))).status, 200);
});

test('an endless body behind a refusal ends its connection', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n';
  const socket = await open(port, head + chunk('x'.repeat(1000)));
  const closed = once(socket, 'close');
  const { status, head: said } = await readAnswer(socket);
  t.equal(status, 401);
  // uWS closes any connection that brings nothing for long: one that is told so is closed with the answer.
  t.match(said, /\r\nconnection: close\r\n/i);
  await closed;
});

test('an answer that a reader takes slowly arrives whole, and is complete only then', async (t) => {
  const text = 'é'.repeat(100_000);
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(200, JSON.stringify({ choices: [], text }))),
  );
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const sockets = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const socket = await open(gateway.port, chatRequest(plain('x')));
      socket.pause();
      return socket;
    }),
  );
  await upstream.request(7);
  const drained = gateway.gateway.drain();
  const answers = await Promise.all(
    sockets.map((socket) => {
      const answer = readAnswer(socket);
      socket.resume();
      return answer;
    }),
  );
  for (const { body } of answers) t.equal(JSON.parse(body).text, text);
  await drained;
  await gateway.line(() => gateway.lines.filter(({ outcome }) => outcome === 'complete').length === 8);
});

test('a long model list arrives whole at a slow reader', async (t) => {
  const names = Array.from({ length: 4000 }, (_, index) => `model-${index}-${'x'.repeat(100)}`);
  const target = { targets: [{ upstream: 'u0' }], protocols: ['chat'] };
  const gateway = await startGateway(t, {
    upstreams: ['http://127.0.0.1:1/v1'],
    config: { models: Object.fromEntries(names.map((name) => [name, target])) },
  });
  const ask = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n\r\n`;
  const sockets = await Promise.all(Array.from({ length: 8 }, () => open(gateway.port, ask)));
  for (const socket of sockets) socket.pause();
  await gateway.line(() => gateway.lines.length === 8);
  for (const socket of sockets) {
    const answer = readAnswer(socket);
    socket.resume();
    t.equal(JSON.parse((await answer).body).data.length, 4000);
  }
});

test('no comment gets into an answer that is not a stream', async (t) => {
  const error = JSON.stringify({ error: { message: 'x'.repeat(400_000) } });
  const upstream = await startRawUpstream(t, ({ socket }) => {
    const answer = jsonAnswer(500, error);
    socket.write(answer.slice(0, 350_000));
    setTimeout(() => socket.write(answer.slice(350_000)), 2500);
  });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    config: { timeouts: { keepAliveMs: 500 } },
  });
  const answer = await exchange(port, chatRequest(streamed('x')));
  t.equal(answer.status, 500);
  t.equal(answer.body, error);
});

test('an upstream that closes without an answer is an upstream error', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => socket.end());
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const answer = await exchange(gateway.port, chatRequest(plain('x')));
  t.equal(answer.status, 502);
  t.match(JSON.parse(answer.body), { error: { code: 'upstream_error' } });
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
});

test('an event larger than any limit passes, even as the first', async (t) => {
  const events = chatEvent({ content: 'x'.repeat(2_000_000) }) + chatEvent({}, 'stop') + doneEvent;
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(streamHead + chunk(events) + lastChunk),
  );
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  t.equal((await exchange(port, chatRequest(streamed('x')))).body, events);
});

test('the total time covers all attempts together', async (t) => {
  const slow = (milliseconds: number) =>
    startRawUpstream(t, ({ socket }) => {
      setTimeout(() => socket.resetAndDestroy(), milliseconds);
    });
  const upstreams = [await slow(700), await slow(700), await slow(700), await slow(700)];
  const gateway = await startGateway(t, {
    upstreams: upstreams.map(({ url }) => url),
    config: { timeouts: { totalMs: 1000 } },
  });
  const answer = await exchange(gateway.port, chatRequest(plain('x')));
  t.equal(answer.status, 504);
  t.equal(upstreams[3]?.requests.length, 0, 'the last target was never asked');
});

test('an answer in a coding that nobody asked for and nobody knows is refused', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }, index) => {
    const coding = index === 0 ? 'compress' : 'Identity';
    socket.write(jsonAnswer(200, completion, `content-encoding: ${coding}\r\n`));
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  t.equal((await exchange(port, chatRequest(plain('x')))).status, 502);
  t.equal((await exchange(port, chatRequest(plain('x')))).body, completion);
});

test('calls that a shutdown cuts are in the log', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const socket = await open(gateway.port, chatRequest(plain('x')));
  await upstream.request(0);
  gateway.gateway.close();
  t.match(gateway.lines, [{ msg: 'request', key: 'test' }]);
  socket.destroy();
});
