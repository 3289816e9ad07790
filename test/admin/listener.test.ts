import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { type Test, test } from 'tap';
import { json, readObject } from '../../src/admin/answer.js';
import { startAdmin } from '../../src/admin/listener.js';
import type { AdminRoute } from '../../src/admin/routes.js';
import { GatewayError } from '../../src/errors.js';

const token = 'a-token-of-operators';
const tokens = { token, readToken: 'a-token-for-looking', metricsToken: 'a-token-of-metrics' };
const bearer = { authorization: `Bearer ${token}` };

async function* pieces(count: number): AsyncGenerator<string> {
  for (let i = 0; i < count; i++) yield `${i} ${'x'.repeat(10_000)}\n`;
}

async function* broken(): AsyncGenerator<string> {
  yield 'some';
  throw new Error('the source is gone');
}

const routes: readonly AdminRoute[] = [
  { method: 'GET', path: '/open', access: 'open', handle: () => json({ open: true }) },
  {
    method: 'GET',
    path: '/things/{id}',
    access: 'read',
    handle: ({ params, query }) => json({ params, at: query.get('at') }),
  },
  { method: 'GET', path: '/numbers', access: 'metrics', handle: () => json({ numbers: true }) },
  { method: 'DELETE', path: '/things/{id}', access: 'write', handle: () => json({ gone: true }) },
  {
    method: 'POST',
    path: '/things',
    access: 'write',
    handle: async ({ request }) => json(await readObject(request), 201),
  },
  {
    method: 'GET',
    path: '/long',
    access: 'read',
    handle: () => ({ status: 200, contentType: 'text/plain', body: pieces(500) }),
  },
  {
    method: 'GET',
    path: '/broken',
    access: 'read',
    handle: () => ({ status: 200, contentType: 'text/plain', body: broken() }),
  },
  {
    method: 'GET',
    path: '/refused',
    access: 'read',
    handle: () => {
      throw new GatewayError('store_unavailable', undefined, { retryAfter: 3 });
    },
  },
  {
    method: 'GET',
    path: '/mistake',
    access: 'read',
    handle: () => {
      throw new Error('ours');
    },
  },
];

async function start(t: Test): Promise<string> {
  const listener = await startAdmin(
    { host: '127.0.0.1', port: 0 },
    () => tokens,
    routes,
    pino({ level: 'silent' }),
  );
  t.teardown(() => listener.close());
  return `http://127.0.0.1:${listener.port}`;
}

test('what is open needs no token, and everything else the right one', async (t) => {
  const url = await start(t);
  t.match(await (await fetch(`${url}/open`)).json(), { open: true });
  for (const headers of [
    {},
    { authorization: 'Bearer ' },
    { authorization: `Bearer ${token}x` },
    { authorization: `Basic ${token}` },
    { 'x-api-key': token },
  ]) {
    for (const path of ['/things/1', '/nowhere']) {
      const refused = await fetch(`${url}${path}`, { headers: headers as Record<string, string> });
      t.equal(refused.status, 401);
      t.match(await refused.json(), { error: { code: 'invalid_api_key' } });
    }
  }
  const found = await fetch(`${url}/things/a%2Fb?at=2`, { headers: { authorization: `bearer  ${token}` } });
  t.equal(found.headers.get('cache-control'), 'no-store');
  t.strictSame(await found.json(), { params: { id: 'a/b' }, at: '2' });
});

test('unknown paths, wrong methods and what handlers refuse are answered as errors', async (t) => {
  const url = await start(t);
  const ask = (path: string, method = 'GET') => fetch(`${url}${path}`, { method, headers: bearer });
  t.equal((await ask('/nowhere')).status, 404);
  t.equal((await ask('/things/')).status, 404);
  t.equal((await ask('/things/%zz')).status, 404);
  const wrong = await ask('/things/1', 'PUT');
  t.equal(wrong.status, 405);
  t.equal(wrong.headers.get('allow'), 'DELETE, GET');
  t.equal((await ask('/things/1', 'HEAD')).status, 200);
  const refused = await ask('/refused');
  t.equal(refused.status, 503);
  t.equal(refused.headers.get('retry-after'), '3');
  const mistake = await ask('/mistake');
  t.equal(mistake.status, 500);
  t.match(await mistake.json(), { error: { code: 'internal_error' } });
});

test('a body is an object of bounded size', async (t) => {
  const url = await start(t);
  const post = (body: string) => fetch(`${url}/things`, { method: 'POST', headers: bearer, body });
  t.strictSame(await (await post('{"a":1}')).json(), { a: 1 });
  t.strictSame(await (await post('')).json(), {});
  t.equal((await post('[]')).status, 400);
  t.equal((await post('{')).status, 400);
  t.equal((await post(`{"a":"${'x'.repeat(70_000)}"}`)).status, 413);
});

test('a long answer waits for its reader, and one whose source breaks is cut', async (t) => {
  const url = await start(t);
  const text = await (await fetch(`${url}/long`, { headers: bearer })).text();
  t.equal(text.split('\n').length, 501);
  await t.rejects(fetch(`${url}/broken`, { headers: bearer }).then((answer) => answer.text()));
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`GET /long HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
  await once(socket, 'data');
  socket.destroy();
  t.match(await (await fetch(`${url}/open`)).json(), { open: true });
});

test('an address that cannot be had is said', async (t) => {
  const url = await start(t);
  const port = Number(new URL(url).port);
  await t.rejects(
    startAdmin({ host: '127.0.0.1', port }, () => tokens, routes, pino({ level: 'silent' })),
    /EADDRINUSE/,
  );
});

test('a token is for what it is for: everything, looking, or the metrics', async (t) => {
  const url = await start(t);
  const ask = async (as: string, path: string, method = 'GET') => {
    const answer = await fetch(url + path, { method, headers: { authorization: `Bearer ${as}` } });
    const { error } = (await answer.json()) as { error?: { code: string; message: string } };
    return [answer.status, answer.headers.get('x-admin-access'), error?.code ?? null];
  };
  const { readToken, metricsToken } = tokens;
  const refused = [403, null, 'insufficient_permissions'];
  t.strictSame(await ask(token, '/numbers'), [200, 'write', null]);
  t.strictSame(await ask(token, '/things/a'), [200, 'write', null]);
  t.strictSame(await ask(token, '/things/a', 'DELETE'), [200, 'write', null]);
  t.strictSame(await ask(readToken, '/numbers'), [200, 'read', null]);
  t.strictSame(await ask(readToken, '/things/a'), [200, 'read', null]);
  t.strictSame(await ask(readToken, '/things/a', 'DELETE'), refused);
  t.strictSame(await ask(readToken, '/nothing'), [404, null, 'unknown_url']);
  t.strictSame(await ask(metricsToken, '/numbers'), [200, 'metrics', null]);
  t.strictSame(await ask(metricsToken, '/things/a'), refused);
  t.strictSame(await ask(metricsToken, '/things/a', 'DELETE'), refused);
  t.strictSame(await ask('a-token-of-nobody', '/numbers'), [401, null, 'invalid_api_key']);
  t.strictSame(await ask('null', '/numbers'), [401, null, 'invalid_api_key']);
  t.strictSame(await ask('x', '/open'), [200, null, null]);
});

test('a token that has not been given lets nobody in', async (t) => {
  const none = { token, readToken: null, metricsToken: null };
  const listener = await startAdmin(
    { host: '127.0.0.1', port: 0 },
    () => none,
    routes,
    pino({ level: 'silent' }),
  );
  t.teardown(() => listener.close());
  for (const as of ['null', '', tokens.readToken, tokens.metricsToken]) {
    const headers = { authorization: `Bearer ${as}` };
    t.equal((await fetch(`http://127.0.0.1:${listener.port}/numbers`, { headers })).status, 401);
  }
});
