import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { type Test, test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { mostHeldBytes, TurnWrites } from '../../src/http/uws-response.js';
import { hear, startServer, turns, Wire } from './http-server.js';
import { hashOf, MB, noise } from './uploads.js';

/** Asks a server for an answer that `onRequest` makes. */
async function ask(t: Test, onRequest: (exchange: Exchange) => void): Promise<IncomingMessage> {
  const { port } = await startServer(t, onRequest);
  const [answer] = (await once(get({ port, host: '127.0.0.1', agent: false }), 'response')) as [
    IncomingMessage,
  ];
  return answer;
}

async function bodyOf(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

test('small and large pieces of one turn leave in their order, and its end behind them', async (t) => {
  const body = noise(200_000);
  const answer = await ask(t, (exchange) => {
    hear(exchange);
    exchange.begin(200, '');
    for (let at = 0, size = 1; at < body.length; at += size, size = (size * 7 + 13) % (3 * mostHeldBytes)) {
      const piece = Buffer.from(body.subarray(at, at + size));
      exchange.write(piece);
      // The bytes were taken over.
      piece.fill(0);
    }
    exchange.end();
  });
  t.equal(hashOf(await bodyOf(answer)), hashOf(body));
});

test('small pieces of one turn for which there is no room leave before what follows them', async (t) => {
  const body = noise(132_500);
  for (const last of [body.subarray(0, 0), noise(mostHeldBytes + 1)]) {
    const answer = await ask(t, (exchange) => {
      hear(exchange);
      exchange.begin(200, '');
      for (let at = 0; at < body.length; at += 1000) exchange.write(body.subarray(at, at + 1000));
      exchange.write(last);
      exchange.end();
    });
    t.equal(hashOf(await bodyOf(answer)), hashOf(Buffer.concat([body, last])));
  }
});

test('what a client has not taken of small pieces stays before the large one of their turn', async (t) => {
  const body = noise(32 * MB);
  let sent = 0;
  const answer = await ask(t, (exchange) => {
    // More than a socket takes, so that some of it still waits when the client is heard of.
    const feed = (): void => {
      for (let size = 1000; sent < body.length; size = size === 1000 ? 4 * MB : 1000) {
        const piece = body.subarray(sent, sent + size);
        sent += piece.length;
        if (!exchange.write(piece)) return;
      }
      exchange.end();
    };
    hear(exchange, feed);
    exchange.begin(200, '');
    feed();
  });
  t.equal(hashOf(await bodyOf(answer)), hashOf(body));
});

test('small pieces stop at a client that does not read, and go on when it does', async (t) => {
  const body = noise(16 * MB);
  let sent = 0;
  let stops = 0;
  let stopped = () => {};
  const firstStop = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  const answer = await ask(t, (exchange) => {
    const feed = (): void => {
      // A few in each turn, as events come.
      for (let pieces = 0; pieces < 50 && sent < body.length; pieces++) {
        const piece = body.subarray(sent, sent + 1000);
        sent += piece.length;
        if (exchange.write(piece)) continue;
        stops++;
        stopped();
        return;
      }
      if (sent < body.length) setImmediate(feed);
      else exchange.end();
    };
    hear(exchange, feed);
    exchange.begin(200, '');
    feed();
  });
  answer.pause();
  await firstStop;
  await turns(20);
  t.ok(sent < body.length);
  t.equal(stops, 1);
  t.equal(hashOf(await bodyOf(answer)), hashOf(body));
});

test('a client is told to stop that blocks with the last small piece, and later that it may go on', async (t) => {
  const body = noise(16 * MB);
  let drained = 0;
  let asked: Exchange | null = null;
  const answer = await ask(t, (exchange) => {
    asked = exchange;
    hear(exchange, () => drained++);
    exchange.begin(200, '');
    // Until a piece is held that the socket does not take.
    const feed = (): void => {
      if (exchange.isBlocked || !exchange.write(body.subarray(0, 1000))) return;
      setImmediate(feed);
    };
    feed();
  });
  answer.pause();
  const exchange = asked as unknown as Exchange;
  while (!exchange.isBlocked) await turns(1);
  answer.resume();
  while (drained === 0) await turns(1);
  t.notOk(exchange.isBlocked);
  exchange.end();
  await once(answer, 'end');
});

for (const [type, isKept] of [
  ['text/event-stream; charset=utf-8', true],
  ['application/json', true],
  ['audio/mpeg', false],
] as const)
  test(`an answer of ${type} whose client stops within its last piece ${isKept ? 'has not ended' : 'ends'}`, async (t) => {
    // More than the sockets of both sides take, twice.
    const last = noise(64 * MB);
    let asked: Exchange | null = null;
    const answer = await ask(t, (exchange) => {
      asked = exchange;
      hear(exchange);
      exchange.begin(200, `\r\ncontent-type: ${type}`);
      exchange.write(last);
      exchange.end();
    });
    const exchange = asked as unknown as Exchange;
    const taken: Buffer[] = [];
    let bytes = 0;
    const take = (until: number) =>
      new Promise<void>((resolve) => {
        const onData = (data: Buffer): void => {
          taken.push(data);
          bytes += data.length;
          if (bytes < until) return;
          answer.pause();
          answer.off('data', onData);
          resolve();
        };
        answer.on('data', onData);
        answer.resume();
      });
    await take(last.length / 2);
    await turns(20);
    t.equal(exchange.alive, isKept);
    taken.push(await bodyOf(answer));
    const body = Buffer.concat(taken);
    t.equal(hashOf(body.subarray(0, last.length)), hashOf(last));
    // Blank lines mean nothing there.
    t.match(body.toString('latin1', last.length), isKept ? /^\n+$/ : /^$/);
    t.ok(answer.complete);
    t.notOk(exchange.alive);
  });

test('what was written before an answer breaks off reaches its client', async (t) => {
  const answer = await ask(t, (exchange) => {
    hear(exchange);
    exchange.begin(200, '');
    // In a handler uWS keeps what is written until it returns.
    setImmediate(() => {
      exchange.write(Buffer.from('first '));
      exchange.write(Buffer.from('second'));
      exchange.endTruncated();
    });
  });
  let text = '';
  answer.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const [error] = (await once(answer, 'error')) as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNRESET');
  t.equal(text.trimEnd(), 'first second');
});

/** Two clients that have asked, and wait for what is answered outside of the reading of their sockets. */
async function askTwice(t: Test) {
  const exchanges: Exchange[] = [];
  let asked = () => {};
  const bothAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const { port, server } = await startServer(t, (exchange) => {
    exchanges.push(exchange);
    hear(exchange);
    if (exchanges.length === 2) setImmediate(asked);
  });
  const clients = [new Wire(port), new Wire(port)] as const;
  t.teardown(() => clients.forEach(({ socket }) => void socket.destroy()));
  for (const client of clients) client.send('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await bothAsked;
  return { exchanges: exchanges as unknown as readonly [Exchange, Exchange], clients, server };
}

test('whole answers leave at the end of the turn in which they are given, as they were given', async (t) => {
  const { exchanges, clients } = await askTwice(t);
  const body = Buffer.from('bytes');
  t.ok(exchanges[0].respond(200, '\r\nx-a: 1', body));
  body.fill(0);
  t.ok(exchanges[1].respond(404, '', 'a text, größer in bytes'));
  t.notOk(exchanges[0].alive);
  const answers = await Promise.all(clients.map((client) => client.take((text) => text.includes('bytes'))));
  const all = answers.join('\n');
  t.match(all, /^HTTP\/1\.1 200 OK\r\n[\s\S]*x-a: 1\r\n[\s\S]*\r\n\r\nbytes/m);
  t.match(all, /^HTTP\/1\.1 404 Not Found\r\n[\s\S]*content-length: 25\r\n\r\na text, gr/im);
});

test('an answer that waits for the end of the turn leaves before the server closes', async (t) => {
  const { exchanges, clients, server } = await askTwice(t);
  exchanges[0].respond(200, '', 'first');
  exchanges[1].respond(200, '', 'second');
  server.close();
  const answers = await Promise.all(clients.map((client) => client.take(() => false)));
  t.match(answers.join(''), /first/);
  t.match(answers.join(''), /second/);
});

test('a client that leaves before the end of the turn disturbs no other', async (t) => {
  const { exchanges, clients } = await askTwice(t);
  const beside = createServer((socket) => {
    socket.on('error', () => {});
    // Its bytes are read before the end of the connections that ended after they were sent.
    socket.once('data', () => exchanges.forEach((exchange) => void exchange.respond(200, '', 'too late')));
  }).listen(0, '127.0.0.1');
  t.teardown(() => beside.close());
  await once(beside, 'listening');
  const trigger = connect((beside.address() as AddressInfo).port, '127.0.0.1');
  t.teardown(() => trigger.destroy());
  await once(trigger, 'connect');
  trigger.write('now');
  const ours = exchanges[0];
  clients[0].socket.destroy();
  t.match(await clients[1].take((text) => text.includes('too late')), /too late/);
  t.notOk(ours.alive);
});

test('a sink that flushes or adds while it is written to changes no order', (t) => {
  const writes = new TurnWrites();
  const seen: string[] = [];
  const note = (name: string, then: () => void = () => {}) => ({
    writeHeld(bytes: Buffer) {
      seen.push(`${name}:${bytes}`);
      then();
    },
  });
  const last = note('last');
  const adding = note('adding', () => writes.add(last, Buffer.from('2'), 1));
  const flushing = note('flushing', () => writes.flush());
  writes.add(flushing, Buffer.from('a'), 1);
  writes.add(adding, Buffer.from('b'), 1);
  writes.add(adding, 'c', 1);
  writes.add(last, Buffer.from('1'), 1);
  writes.flush();
  t.strictSame(seen, ['flushing:a', 'adding:bc', 'last:12']);
  writes.flush();
  t.equal(seen.length, 3);
  t.end();
});
