import { test } from 'tap';
import type { SocketSettings } from '../../src/config/types.js';
import { SessionMemory } from '../../src/flow/sockets/session-memory.js';
import { SessionList } from '../../src/flow/sockets/sessions.js';
import { startGateway, testKey } from '../support/gateway.js';
import { open, readAnswer } from '../support/raw-client.js';
import { openRaw } from '../support/raw-socket.js';

const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
  'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
const list = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n\r\n`;

test('a key that asks for sockets again and again is refused behind the calls that come meanwhile', async (t) => {
  const gateway = await startGateway(t, {
    upstreams: ['http://127.0.0.1:9/v1'],
    config: {
      sockets: { perKey: 1 },
      models: { m: { protocols: ['chat', 'realtime'], targets: [{ upstream: 'u0', model: 'm' }] } },
    },
  });
  const { port } = gateway;
  const held = await openRaw(port, { path: '/v1/responses' });
  const order: string[] = [];
  const asked = ['/v1/responses', '/v1/realtime?model=m'].map(async (path) => {
    const socket = await open(port, upgrade(path));
    t.teardown(() => socket.destroy());
    const answer = await readAnswer(socket);
    order.push(path);
    t.equal(answer.status, 429, path);
    t.match(answer.head, 'retry-after: 10');
  });
  const left = await open(port, upgrade('/v1/responses'));
  const call = await open(port, list);
  t.equal((await readAnswer(call)).status, 200);
  order.push('call');
  left.destroy();
  call.destroy();
  await gateway.line(({ path, outcome }) => path === '/v1/responses' && outcome === 'client_gone');
  await Promise.all(asked);
  t.equal(order[0], 'call');
  held.socket.destroy();
  await held.closed;
  await gateway.line(({ status, path }) => path === '/v1/responses' && status === 101);
  const again = await openRaw(port, { path: '/v1/responses' });
  again.socket.destroy();
});

test('only so many refusals wait, and none once the gateway is about to end', (t) => {
  const settings = { perKey: 1, heldBytes: 1e9, heldBytesPerKey: 1e9 } as SocketSettings;
  const sessions = new SessionList(new SessionMemory(() => settings));
  let waiting = 0;
  while (sessions.beginLate()) waiting++;
  t.equal(waiting, 1024);
  sessions.endLate();
  t.equal(sessions.beginLate(), true);
  t.equal(sessions.beginLate(), false);
  sessions.endLate();
  sessions.drain();
  t.equal(sessions.beginLate(), false);
  t.end();
});
