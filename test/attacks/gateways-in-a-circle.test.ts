import { test } from 'tap';
import { WebSocket } from 'ws';
import { startGateway, testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';
import { post, startTranslated } from '../support/translated.js';
import { completion, jsonAnswer, type RawRequest } from '../support/upstream.js';

/* Two gateways that each have the other as an upstream of one model. */

const chatBody = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
const calls: readonly (readonly [path: string, body: object, error: object])[] = [
  ['/v1/chat/completions', chatBody, { error: { type: 'server_error', code: 'loop_detected' } }],
  ['/v1/responses', { model: 'm', input: 'hi' }, { error: { code: 'loop_detected' } }],
  ['/v1/messages', { ...chatBody, max_tokens: 9 }, { type: 'error', error: { type: 'api_error' } }],
  [
    '/v1beta/models/m:generateContent',
    { contents: [{ parts: [{ text: 'hi' }] }] },
    { error: { code: 508, status: 'INTERNAL' } },
  ],
];
const path = '/v1/chat/completions';

/** A gateway whose upstream is itself, by way of one that passes bytes on: it has the model by its name there. */
async function startCircle(t: Parameters<typeof startTranslated>[0]) {
  const running = await startTranslated(t, {
    answer: '',
    target: { model: 'm' },
    upstream: { apiKeys: [testKey] },
    config: { routing: { retries: 2, failures: 1, openMs: 600_000 } },
  });
  running.upstream.answer = async ({ head, body, socket }: RawRequest) => {
    const request = Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body]);
    const answer = await exchange(running.port, request);
    socket.write(`${answer.head.replace(/\r\ntransfer-encoding: chunked/i, '')}\r\n\r\n${answer.body}`);
  };
  return running;
}

test('a call that goes in a circle ends with 508 in the protocol of its client, and is not repeated', async (t) => {
  const running = await startCircle(t);
  for (const [each, body, error] of calls) {
    const before = running.upstream.requests.length;
    const answer = await post(running.port, each, body);
    t.equal(answer.status, 508, each);
    t.match(JSON.parse(answer.body), error, each);
    t.match(answer.body, /has passed too many gateways/, each);
    t.match(answer.head, /\r\nx-should-retry: false/, 'SDKs do not send it again');
    t.equal(running.upstream.requests.length - before, 4, each);
  }
  running.upstream.answer = jsonAnswer(200, completion);
  t.equal((await post(running.port, path, chatBody)).status, 200, 'and the target is not held to be down');
});

test('a call may pass several gateways, and says so to each', async (t) => {
  const running = await startTranslated(t, { kind: 'chat', answer: jsonAnswer(200, completion) });
  const passed = (count: number) => Array(count).fill('model-gateway').join(', ');
  for (let count = 0; count < 4; count++) {
    const line = count === 0 ? '' : `cdn-loop: ${passed(count)}\r\n`;
    t.equal((await post(running.port, path, chatBody, line)).status, 200);
    const head = running.upstream.requests.at(-1)?.head ?? '';
    t.equal(head.match(/\r\ncdn-loop: model-gateway(?=\r\n|$)/g)?.length, count + 1);
  }
  const requests = running.upstream.requests.length;
  for (const line of [
    passed(4),
    `${passed(2)}\r\ncdn-loop: a;b=c,model-gateway ; v=1\t,model-gateway`,
    `${passed(4)}\r\nconnection: cdn-loop`,
    passed(100),
  ])
    t.equal(
      (await post(running.port, path, chatBody, `cdn-loop: ${line}\r\n`)).status,
      508,
      line.slice(0, 99),
    );
  t.equal(running.upstream.requests.length, requests);
  t.equal(
    (await post(running.port, path, chatBody, `cdn-loop: ${passed(1)}\r\nconnection: cdn-loop\r\n`)).status,
    200,
  );
  const named = running.upstream.requests.at(-1)?.head;
  t.equal(named?.match(/\r\ncdn-loop: /g)?.length, 2, 'a client does not strike it out');
});

test('what CDNs in front of the gateway say is not passed on', async (t) => {
  const running = await startTranslated(t, { kind: 'chat', answer: jsonAnswer(200, completion) });
  const line = 'cdn-loop: cloudflare; loops=1; subreqs=1, not-model-gateway, model-gateway2\r\n';
  for (let i = 0; i < 3; i++) {
    t.equal((await post(running.port, path, chatBody, line)).status, 200);
    const head = running.upstream.requests.at(-1)?.head ?? '';
    t.same(head.match(/\r\ncdn-loop: [^\r]*/g), ['\r\ncdn-loop: model-gateway']);
  }
});

test('a session is opened at an upstream with the same header, and refused likewise', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const headers = { authorization: `Bearer ${testKey}`, 'cdn-loop': 'model-gateway' };
  await openClient(t, port, { headers });
  t.equal((await upstream.arrival(0)).request.headers['cdn-loop'], 'model-gateway, model-gateway');
  const status = await new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime?model=m`, {
      headers: { ...headers, 'cdn-loop': Array(4).fill('model-gateway').join(',') },
    });
    socket.on('error', () => {});
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode));
  });
  t.equal(status, 508);
});
