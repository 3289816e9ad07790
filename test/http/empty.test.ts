import { test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { eventually } from '../support/eventually.js';
import { headAnd, startServer, turns, Wire } from './http-server.js';

const ask = (method: string, path = '/') => `${method} ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

function answer(exchange: Exchange): void {
  const status = Number(exchange.path.slice(1));
  if (status === 200 && exchange.method === 'HEAD')
    exchange.respondEmpty(200, '\r\netag: "1"', 5_000_000_000);
  else if (status === 204 || status === 304) exchange.respondEmpty(status, '\r\netag: "1"', null);
  else exchange.respond(404, '', 'not here');
}

test('answers without a body are framed so that the connection goes on', async (t) => {
  const { port, server } = await startServer(t, answer);
  const wire = new Wire(port);
  for (let round = 0; round < 2; round++) {
    wire.send(ask('HEAD', '/200'));
    const head = await wire.take(headAnd(0));
    t.match(head, /^HTTP\/1\.1 200 OK\r\n/);
    t.match(head, /\r\nx-request-id: req_[0-9a-f]{26}\r\netag: "1"\r\ncontent-length: 5000000000\r\n/);
    t.equal(head.match(/content-length/gi)?.length, 1);
    t.ok(head.endsWith('\r\n\r\n'));
    for (const status of [204, 304]) {
      wire.send(ask('GET', `/${status}`));
      const empty = await wire.take(headAnd(0));
      t.match(empty, new RegExp(`^HTTP/1\\.1 ${status} .*\\r\\n`));
      t.match(empty, /\r\netag: "1"\r\n/);
      t.notMatch(empty, /content-length|transfer-encoding/i);
      t.ok(empty.endsWith('\r\n\r\n'));
    }
    wire.send(ask('HEAD', '/nothing'));
    const refused = await wire.take(headAnd(0));
    t.match(refused, /^HTTP\/1\.1 404 /);
    t.match(refused, /\r\ncontent-length: 8\r\n/, 'the length that GET would have');
    t.ok(refused.endsWith('\r\n\r\n'));
    wire.send(ask('GET', '/nothing'));
    t.match(await wire.take(headAnd(8)), /\r\n\r\nnot here$/);
  }
  t.notOk(wire.closed);
  t.equal(server.open(), 0);
  wire.socket.destroy();
});

test('requests that were sent at once are answered in order', async (t) => {
  const { port } = await startServer(t, answer);
  const wire = new Wire(port);
  wire.send(ask('HEAD', '/200') + ask('GET', '/304') + ask('HEAD', '/nothing') + ask('GET', '/nothing'));
  const text = await wire.take((all) => all.endsWith('not here'));
  t.same(
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['200', '304', '404', '404'],
  );
  wire.socket.destroy();
});

test('a connection that is not to go on is closed after an answer without a body', async (t) => {
  for (const later of [false, true]) {
    const { port, server } = await startServer(t, (exchange) => {
      exchange.closing = true;
      if (later) setImmediate(answer, exchange);
      else answer(exchange);
    });
    for (const request of [ask('HEAD', '/200'), ask('GET', '/304'), ask('HEAD', '/nothing')]) {
      const wire = new Wire(port);
      wire.send(request);
      t.match(await wire.ended(), /^HTTP\/1\.1 \d\d\d [\s\S]*\r\nconnection: close\r\n\r\n$/, request);
      const followed = new Wire(port);
      followed.send(request + ask('GET', '/nothing'));
      t.notMatch(await followed.ended(), /not here/, 'what hides behind it is not answered');
    }
    t.equal(server.open(), 0);
  }
});

test('an answer without a body that comes after its client has left harms nobody', async (t) => {
  const exchanges: Exchange[] = [];
  const { port, server } = await startServer(t, (exchange) => {
    exchanges.push(exchange);
  });
  for (const closing of [false, true]) {
    const wire = new Wire(port);
    wire.send(ask('HEAD', '/200'));
    await eventually(() => exchanges.length > 0);
    const exchange = exchanges.pop() as Exchange;
    exchange.closing = closing;
    wire.socket.resetAndDestroy();
    await eventually(() => !exchange.alive);
    exchange.respondEmpty(200, '', 5);
    await turns(2);
    t.equal(server.open(), 0);
  }
});
