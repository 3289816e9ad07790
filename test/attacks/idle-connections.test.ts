import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
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

const chat = (stream: boolean) =>
  JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] });
/** uWS drops an idle connection after 8 s at the earliest. */
const uwsIdleSeconds = 8;

const events =
  streamHead +
  chunk(chatEvent({ role: 'assistant', content: 'hi' }) + chatEvent({}, 'stop') + doneEvent) +
  lastChunk;

async function startBoth(t: Parameters<typeof startGateway>[0]) {
  const upstream = await startRawUpstream(t, ({ body, socket }) =>
    socket.write(body.includes('"stream":true') ? events : jsonAnswer(200, completion)),
  );
  return startGateway(t, { upstreams: [upstream.url] });
}

test('every answer on a connection that goes on says how long it may be idle', async (t) => {
  const { port } = await startBoth(t);
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n\r\n`;
  const requests: Record<string, string | Buffer> = {
    'a whole answer': chatRequest(chat(false)),
    'a stream': chatRequest(chat(true)),
    'a refusal': chatRequest('{"model":"m"}'),
    'a list': get('/v1/models'),
    'an unknown path': get('/nothing'),
  };
  for (const [name, bytes] of Object.entries(requests)) {
    const { head } = await exchange(port, bytes);
    const seconds = Number(/\r\nkeep-alive: timeout=(\d+)(?:\r\n|$)/.exec(head)?.[1]);
    t.ok(seconds > 0 && seconds < uwsIdleSeconds, `${name}: ${seconds} s`);
  }
});

test('an answer that ends its connection promises nothing', async (t) => {
  const { port } = await startBoth(t);
  const socket = await open(
    port,
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n`,
  );
  const { head } = await readAnswer(socket);
  t.match(head, /\r\nconnection: close/i);
  t.notMatch(head, /keep-alive/i);
  socket.destroy();
});

test("Node's agent gives a connection up before the gateway does", async (t) => {
  const { port } = await startBoth(t);
  const agent = new Agent({ keepAlive: true, timeout: 60_000 });
  t.teardown(() => agent.destroy());
  const asked = httpRequest({
    agent,
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
  });
  asked.end(chat(false));
  const freed = once(agent, 'free') as Promise<[Socket]>;
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  t.equal(answer.statusCode, 200);
  answer.resume();
  const [socket] = await freed;
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(socket.timeout !== undefined && socket.timeout > 0, 'it has a timer');
  t.ok((socket.timeout as number) < uwsIdleSeconds * 1000, `of ${socket.timeout} ms`);
});
