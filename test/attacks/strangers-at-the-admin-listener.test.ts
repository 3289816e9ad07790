import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { test } from 'tap';
import { json } from '../../src/admin/answer.js';
import { startAdmin } from '../../src/admin/listener.js';
import type { AdminRoute } from '../../src/admin/routes.js';
import { eventually } from '../support/eventually.js';

const token = 'a-token-of-operators';
const headers = { authorization: `Bearer ${token}` };
/** More than the listener takes. */
const many = 400;

async function* endless(): AsyncGenerator<string> {
  for (;;) yield 'x'.repeat(64 * 1024);
}

const text = { status: 200, contentType: 'text/plain' } as const;
const routes: readonly AdminRoute[] = [
  { method: 'GET', path: '/health', access: 'open', handle: () => json({ ok: true }) },
  { method: 'GET', path: '/page', access: 'open', handle: () => ({ ...text, body: endless() }) },
  { method: 'GET', path: '/lines', access: 'read', handle: () => ({ ...text, body: endless() }) },
];

const holds: readonly (readonly [name: string, request: string])[] = [
  ['a head that does not end', 'GET /health HTTP/1.1\r\nhost: x\r\nx: '],
  ['an answer that is not read', 'GET /page HTTP/1.1\r\nhost: x\r\n\r\n'],
  ['a body that does not end', 'POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nx'],
];

for (const [name, request] of holds)
  test(`who holds connections by ${name} keeps no operator out`, async (t) => {
    const tokens = () => ({ token, readToken: null, metricsToken: null });
    const listener = await startAdmin(
      { host: '127.0.0.1', port: 0 },
      tokens,
      routes,
      pino({ level: 'silent' }),
    );
    t.teardown(() => listener.close());
    const sockets: Socket[] = [];
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    const open = async (bytes: string): Promise<Socket> => {
      const socket = connect(listener.port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      socket.pause();
      await once(socket, 'connect');
      socket.write(bytes);
      return socket;
    };
    const url = `http://127.0.0.1:${listener.port}`;
    const operator = await fetch(`${url}/lines`, { headers });
    const reader = operator.body?.getReader();
    t.ok((await reader?.read())?.value);
    for (let i = 0; i < many; i++) await open(request);
    const asked = await eventually(() => fetch(`${url}/health`, { headers: { connection: 'close' } }), {
      fits: ({ status }) => status === 200,
    });
    t.equal(asked.status, 200);
    t.equal((await fetch(`${url}/health`, { headers: { connection: 'close' } })).status, 200);
    t.ok((await reader?.read())?.value, 'what an operator has begun goes on');
    await reader?.cancel();
  });
