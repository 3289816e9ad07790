import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { pino } from 'pino';
import { type Test, test } from 'tap';
import { startAdmin } from '../../src/admin/listener.js';
import { playgroundRoutes } from '../../src/admin/playground.js';
import { demoKeyHash } from '../support/demo-key.js';
import { startGateway } from '../support/gateway.js';
import { startHttpUpstream } from '../support/upstream.js';

const token = 'a-token-of-operators';
const tokens = { token, readToken: null, metricsToken: null };
const authorization = `Bearer ${token}`;
const mebibyte = 1024 * 1024;

/** A listener for operators, whose gateway is at this URL. */
async function startRelay(t: Test, url: string) {
  const routes = playgroundRoutes({ url, models: () => [], demoKey: () => null });
  const listener = await startAdmin(
    { host: '127.0.0.1', port: 0 },
    () => tokens,
    routes,
    pino({ level: 'silent' }),
  );
  t.teardown(() => listener.close());
  const { port } = listener;
  const relay = (call: object, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}/playground`, {
      method: 'POST',
      headers: { authorization },
      body: JSON.stringify({ method: 'POST', path: '/', key: 'sk-one', ...call }),
      ...init,
    });
  return { port, relay };
}

/** Something in the place of the gateway. */
async function serveInPlace(t: Test, onRequest: RequestListener): Promise<string> {
  return (await startHttpUpstream(t, onRequest)).origin;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request) text += String(piece);
  return text;
}

function answerHeaders(answer: Response): Record<string, string> {
  return JSON.parse(decodeURIComponent(answer.headers.get('x-answer-headers') ?? ''));
}

test('a call is sent to the gateway as written, and its answer is told with its own status and headers', async (t) => {
  const seen: object[] = [];
  const url = await serveInPlace(t, async (request, response) => {
    seen.push({
      method: request.method,
      url: request.url,
      headers: request.headers,
      body: await textOf(request),
    });
    response.writeHead(401, { 'content-type': 'text/html', 'x-request-id': 'ü', 'keep-alive': 'timeout=5' });
    response.end('<b>no</b>');
  });
  const { relay } = await startRelay(t, url);
  const answer = await relay({
    path: '/v1/chat/completions?a=%20b',
    headers: { 'X-Trace': 'on' },
    body: '{"text":"\\u0000 ü"}',
  });
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('x-answer-status'), '401');
  t.match(answerHeaders(answer), { 'content-type': 'text/html', 'x-request-id': 'ü' });
  for (const name of ['connection', 'keep-alive', 'transfer-encoding'])
    t.notOk(name in answerHeaders(answer));
  t.equal(answer.headers.get('content-type'), 'text/html');
  t.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  t.equal(answer.headers.get('content-security-policy'), "default-src 'none'; sandbox");
  t.equal(await answer.text(), '<b>no</b>');

  await (await relay({ method: 'DELETE', path: '/v1/videos/1', body: null })).text();
  await (await relay({ headers: { 'content-type': 'text/plain' }, body: 'x' })).text();
  t.match(seen, [
    {
      method: 'POST',
      url: '/v1/chat/completions?a=%20b',
      headers: { authorization: 'Bearer sk-one', 'content-type': 'application/json', 'x-trace': 'on' },
      body: '{"text":"\\u0000 ü"}',
    },
    { method: 'DELETE', url: '/v1/videos/1', body: '' },
    { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'x' },
  ]);
});

test('what is no call for the gateway is refused with the member at fault', async (t) => {
  const url = await serveInPlace(t, (_request, response) => void response.end());
  const { port, relay } = await startRelay(t, url);
  for (const [call, param] of [
    [{ method: 'PUT' }, 'method'],
    [{ path: 'http://elsewhere/' }, 'path'],
    [{ path: '/a\r\nx: y' }, 'path'],
    [{ path: '/a b' }, 'path'],
    [{ key: undefined }, 'key'],
    [{ key: 'a\nb' }, 'key'],
    [{ body: {} }, 'body'],
    [{ headers: [] }, 'headers'],
    [{ headers: { 'a b': 'c' } }, 'headers'],
    [{ headers: { a: 'b\r\nc: d' } }, 'headers.a'],
    [{ headers: { a: 1 } }, 'headers.a'],
    [{ headers: { Host: 'elsewhere' } }, 'headers.host'],
    [{ headers: { Authorization: 'x' } }, 'headers.authorization'],
    [{ headers: { 'transfer-encoding': 'chunked' } }, 'headers.transfer-encoding'],
    [{ url: 'http://elsewhere/' }, 'url'],
  ] as const) {
    const answer = await relay(call);
    t.equal(answer.status, 400, JSON.stringify(call));
    t.match(await answer.json(), { error: { code: 'invalid_value', param } }, JSON.stringify(call));
  }
  t.equal((await relay({ body: 'x'.repeat(9 * mebibyte) })).status, 413);
  t.equal((await relay({ body: 'x'.repeat(7 * mebibyte) })).status, 200);
  t.equal((await fetch(`http://127.0.0.1:${port}/playground`, { method: 'POST' })).status, 401);
  t.equal((await fetch(`http://127.0.0.1:${port}/playground/models`)).status, 401);
});

test('the first piece arrives before the last one is made', async (t) => {
  const answers: ServerResponse[] = [];
  const url = await serveInPlace(t, (_request, response) => {
    answers.push(response);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: first\n\n');
  });
  const { relay } = await startRelay(t, url);
  const answer = await relay({});
  const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  t.strictSame(await reader.read(), { done: false, value: 'data: first\n\n' });
  answers[0]?.end('data: last\n\n');
  t.strictSame(await reader.read(), { done: false, value: 'data: last\n\n' });
  t.strictSame(await reader.read(), { done: true, value: undefined });
});

test('when the client leaves, so does the call: before its head, and while it streams', async (t) => {
  const closed: Promise<unknown>[] = [];
  let onCall = (): void => {};
  const url = await serveInPlace(t, (request, response) => {
    closed.push(once(response, 'close'));
    if (request.url === '/stream') response.write('first');
    onCall();
  });
  const { relay } = await startRelay(t, url);
  const called = new Promise<void>((resolve) => {
    onCall = resolve;
  });
  const silent = new AbortController();
  const unanswered = relay({ path: '/silent' }, { signal: silent.signal });
  await called;
  silent.abort();
  await t.rejects(unanswered, { name: 'AbortError' });
  await closed[0];

  const leaving = new AbortController();
  const answer = await relay({ path: '/stream' }, { signal: leaving.signal });
  await answer.body?.getReader().read();
  leaving.abort();
  await closed[1];
  t.equal(closed.length, 2);
});

test('a client that does not read holds the gateway back, and gets everything in the end', async (t) => {
  const size = 64 * mebibyte;
  const piece = Buffer.alloc(64 * 1024, 'x');
  let written = 0;
  const url = await serveInPlace(t, async (_request, response) => {
    for (; written < size; written += piece.length) if (!response.write(piece)) await once(response, 'drain');
    response.end();
  });
  const { port } = await startRelay(t, url);
  const socket = connect(port, '127.0.0.1');
  const body = JSON.stringify({ method: 'GET', path: '/', key: 'sk-one' });
  socket.write(
    `POST /playground HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: ${authorization}\r\n` +
      `content-length: ${body.length}\r\n\r\n${body}`,
  );
  await once(socket, 'readable');
  for (let before = -1; before !== written; ) {
    before = written;
    await setTimeout(300);
  }
  t.ok(written < size / 2, `${written} bytes are on their way`);
  let received = 0;
  for await (const data of socket) received += (data as Buffer).length;
  t.ok(received > size, `${received} bytes with head and chunks`);
});

test('only so many calls are relayed at once, and one that ends makes room', async (t) => {
  const waiting: ServerResponse[] = [];
  const url = await serveInPlace(t, (_request, response) => {
    waiting.push(response);
    response.flushHeaders();
  });
  const { relay } = await startRelay(t, url);
  const open = await Promise.all(Array.from({ length: 32 }, () => relay({})));
  const refused = await relay({});
  t.equal(refused.status, 503);
  t.match(await refused.json(), { error: { code: 'overloaded' } });
  for (const call of [{ path: 'x' }, { key: 1 }]) t.equal((await relay(call)).status, 503);
  waiting[0]?.end();
  await Promise.race(open.map((answer) => answer.text()));
  t.equal((await relay({ path: 'x' })).status, 400, 'a call that is refused gives its place back');
  t.equal((await relay({})).status, 200);
  for (const response of waiting) response.end();
});

test('an answer that breaks off breaks off for the client, too', async (t) => {
  const url = await serveInPlace(t, (request, response) => {
    if (request.url === '/none') return void request.socket.destroy();
    response.writeHead(200, { 'content-length': '10' });
    response.write('half', () => request.socket.destroy());
  });
  const { relay } = await startRelay(t, url);
  const cut = await relay({});
  t.equal(cut.status, 200);
  await t.rejects(cut.text());
  const none = await relay({ path: '/none' });
  t.equal(none.status, 502);
  t.match(await none.json(), { error: { code: 'upstream_error' } });
});

test('a gateway that cannot be reached is said, by the loopback address for one that listens on all', async (t) => {
  const { relay } = await startRelay(t, 'http://0.0.0.0:1');
  const answer = await relay({});
  t.equal(answer.status, 502);
  const message = 'The gateway gave no answer on http://127.0.0.1:1 (ECONNREFUSED).';
  t.match(await answer.json(), { error: { code: 'upstream_error', message } });
});

test("the gateway's own certificate need not be for its loopback address", async (t) => {
  const fixture = (name: string) =>
    readFileSync(new URL(`../../../test/fixtures/tls/${name}`, import.meta.url), 'utf8');
  const server = createSecureServer(
    { cert: fixture('expired.pem'), key: fixture('localhost.key') },
    (_request, response) => void response.end('secure'),
  ).listen(0, '127.0.0.1');
  t.teardown(() => void server.close());
  await once(server, 'listening');
  const { relay } = await startRelay(t, `https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.equal(await (await relay({})).text(), 'secure');
});

test("through a started gateway: models, a stream, and a client's leave that reaches the upstream", async (t) => {
  const gateway = await startGateway(t, {
    workers: 1,
    file: {
      admin: { port: 0, token },
      upstreams: { local: { kind: 'simulator' } },
      models: { m: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] } },
      groups: { default: { models: ['*'] } },
      keys: [
        {
          id: 'team',
          hash: demoKeyHash,
          groups: ['default'],
        },
      ],
    },
  });
  const url = await gateway.adminUrl();
  const models = await fetch(`${url}/playground/models`, { headers: { authorization } });
  t.strictSame(await models.json(), { demoKey: null, models: [{ name: 'm', protocols: ['chat'] }] });

  const call = (key: string, content: string, signal?: AbortSignal) =>
    fetch(`${url}/playground`, {
      method: 'POST',
      headers: { authorization },
      body: JSON.stringify({
        method: 'POST',
        path: '/v1/chat/completions',
        key,
        body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content }] }),
      }),
      ...(signal === undefined ? {} : { signal }),
    });
  const whole = await call('sk-demo', 'Hello');
  t.equal(whole.headers.get('x-answer-status'), '200');
  t.match(answerHeaders(whole), { 'content-type': /^text\/event-stream/, 'server-timing': /./ });
  t.match(await whole.text(), /Hello[\s\S]*\[DONE\]/);
  t.equal((await call('sk-wrong', 'Hello')).headers.get('x-answer-status'), '401');

  const leaving = new AbortController();
  const hanging = await call('sk-demo', '[[fault:hang after=2]] Hello', leaving.signal);
  await hanging.body?.getReader().read();
  leaving.abort();
  const line = await gateway.untilLogged(
    (each) => each.msg === 'request' && each.outcome !== 'complete' && each.status === 200,
  );
  t.equal(line.outcome, 'client_gone');
});
