import { test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { startServer, Wire } from './http-server.js';

const large = Buffer.alloc(200_000, 'a');
/** By the path that asks for them. */
const answers: Readonly<Record<string, (exchange: Exchange) => void>> = {
  '/at-once': (exchange) => exchange.respond(200, '', 'all of it'),
  '/later': (exchange) => setImmediate(() => exchange.respond(200, '', 'all of it')),
  '/large': (exchange) => exchange.respond(200, '', large),
  '/empty': (exchange) => exchange.respondEmpty(204, '', null),
  '/stream': (exchange) => {
    exchange.begin(200, '\r\ncontent-type: text/event-stream', -1);
    exchange.write(Buffer.from('data: 1\n\n'));
    exchange.end();
  },
};

const closing = /\r\nconnection: close(?=\r\n)/gi;
const ask = (path: string, connection: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: ${connection}\r\n\r\n`;

test('a client that asks for the end of its connection is told of it once, and gets it', async (t) => {
  const { port } = await startServer(t, (exchange) => answers[exchange.path]?.(exchange));
  for (const path of Object.keys(answers)) {
    for (const connection of ['close', 'Close']) {
      const wire = new Wire(port);
      wire.send(ask(path, connection));
      const all = await wire.ended();
      t.equal(all.match(closing)?.length, 1, `${path}: ${all.slice(0, 300)}`);
      t.notMatch(all, /keep-alive/i, path);
    }
  }
});

test('a close among other words is heard, too', async (t) => {
  const { port } = await startServer(t, (exchange) => answers[exchange.path]?.(exchange));
  for (const path of ['/at-once', '/later', '/empty']) {
    const wire = new Wire(port);
    wire.send(ask(path, 'te, close'));
    t.equal((await wire.ended()).match(closing)?.length, 1, path);
  }
});

test('a client that asks for a connection that goes on has one', async (t) => {
  const { port } = await startServer(t, (exchange) => answers[exchange.path]?.(exchange));
  const wire = new Wire(port);
  for (const connection of ['keep-alive', 'Keep-Alive', 'te']) {
    wire.send(ask('/at-once', connection));
    const head = await wire.take((text) => text.endsWith('all of it'));
    t.match(head, /\r\nkeep-alive: timeout=7\r\n/);
    t.notMatch(head, closing);
  }
  t.notOk(wire.closed);
  wire.socket.destroy();
});
