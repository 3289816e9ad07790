import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'tap';
import { heldConnections } from '../../bench/proc.js';

test('the connections that a process holds on a port are counted, without its own to others', async (t) => {
  const held: Socket[] = [];
  const server = createServer((socket) => held.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  t.equal(heldConnections(process.pid, port), 0);
  const clients = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
  while (held.length < clients.length) await once(server, 'connection');
  t.equal(heldConnections(process.pid, port), 3);
  t.equal(heldConnections(process.pid, port + 1), 0);
  for (const socket of [...clients, ...held]) socket.destroy();
  server.close();
});
