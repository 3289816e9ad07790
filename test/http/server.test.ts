import { once } from 'node:events';
import { connect } from 'node:net';
import { type Test, test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { ownAddress } from '../support/free-port.js';
import { startServer, type TestServer } from './http-server.js';

/** A port that it has closed stays nobody else's. */
function startHere(t: Test, onRequest: (exchange: Exchange) => void): Promise<TestServer> {
  return startServer(t, onRequest, null, { host: ownAddress });
}

/** In one of them alone, uWS may not notice that its memory is freed twice. */
const servers = 60;

test('a server that is closed while it is about to stop listening stops once', async (t) => {
  const all = await Promise.all(Array.from({ length: servers }, () => startHere(t, () => {})));
  const drained = all.map(({ server }) => server.drain(0));
  for (const { server } of all) server.close();
  await Promise.all(drained);
  for (const { port } of all) {
    const [error] = (await once(connect(port, ownAddress), 'error')) as [NodeJS.ErrnoException];
    if (error.code !== 'ECONNREFUSED') t.fail(`${error.code}`);
  }
  t.pass('none of them takes connections');
});

test('a server that drains twice, and is closed then, stops once', async (t) => {
  const { server, port } = await startHere(t, () => {});
  await Promise.all([server.drain(0), server.drain(0)]);
  server.close();
  const [error] = (await once(connect(port, ownAddress), 'error')) as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNREFUSED');
});

test('a server that drains answers what has come before its last moment, though it was not at work then', async (t) => {
  const { server, port } = await startHere(t, (exchange) => exchange.respondEmpty(204, '', null));
  const request = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
  const clients = [connect(port, ownAddress), connect(port, ownAddress)] as const;
  for (const client of clients) {
    client.write(request);
    await once(client, 'data');
  }
  const [leaving, idle] = clients;
  await server.stopListening();
  // Long enough that what is written now comes within it on a busy machine, too.
  const graceMs = 500;
  const drained = server.drain(graceMs).then(() => server.close());
  for (let answer = ''; !/connection: close/i.test(answer); ) {
    leaving.write(request);
    const [bytes] = (await once(leaving, 'data')) as [Buffer];
    answer = bytes.toString('latin1');
  }
  let heard = '';
  idle.on('data', (bytes) => {
    heard += bytes.toString('latin1');
  });
  const closed = once(idle, 'close');
  idle.write(request);
  // Until its time is over this process does nothing else.
  for (const until = performance.now() + 2 * graceMs; performance.now() < until; );
  await Promise.all([closed, drained]);
  t.match(heard, /^HTTP\/1\.1 204 /);
});

test('a server that has ceased to listen serves on the connections that it has, until it drains', async (t) => {
  const { server, port } = await startHere(t, (exchange) => exchange.respondEmpty(204, '', null));
  const client = connect(port, ownAddress);
  const closed = once(client, 'close');
  const ask = async (): Promise<string> => {
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    const [answer] = (await once(client, 'data')) as [Buffer];
    return answer.toString('latin1');
  };
  await ask();
  await server.stopListening();
  const [error] = (await once(connect(port, ownAddress), 'error')) as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNREFUSED');
  t.notMatch(await ask(), /connection: close/i);
  const drained = server.drain(0);
  // It tells its clients in a turn of its own.
  while (!/connection: close/i.test(await ask()));
  await drained;
  await closed;
});
