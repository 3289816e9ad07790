import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { test } from 'tap';
import type { RequestBodySink } from '../../src/upstream/types.js';
import { eventually } from '../support/eventually.js';
import { fc } from '../support/seed.js';
import { answering, Call, get, listen, makeClient, onRequests, rawServer } from './raw.js';
import { giving, hashSlowly, httpServer, Source, socketOf, upload } from './uploading.js';

const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');
const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

test('a body of known length and a chunked one, with the pieces first', async (t) => {
  const client = makeClient(t);
  const cases = [
    [10, 'content-length: 10\r\n\r\nabcdefghij', 'j'],
    [
      -1,
      'transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n4\r\nfghi\r\n1\r\nj\r\n0\r\n\r\n',
      '0\r\n\r\n',
    ],
  ] as const;
  for (const [length, expected, last] of cases) {
    let received = '';
    const server = await rawServer(t, (socket) =>
      socket.on('data', (data) => {
        received += data.toString('latin1');
        if (received.endsWith(last)) socket.write(ok);
      }),
    );
    const source = giving(
      ['fghi', '', 'j'].map((text) => Buffer.from(text)),
      length,
    );
    const body = [Buffer.from('abc'), Buffer.alloc(0), Buffer.from('de')];
    const call = upload(client, server.origin, source, { body });
    t.strictSame(source.events, [], 'nothing is called before send has returned');
    t.equal((await call.over).body, 'ok');
    t.equal(received, `${get('/', 'POST').head}${expected}`);
    t.strictSame(source.events, ['open']);
  }
});

test('any pieces and writes arrive as they were, even when their memory is used again', async (t) => {
  const client = makeClient(t);
  let arrived = '';
  const server = await httpServer(t, (request, response) => {
    hashSlowly(request).then(({ hash }) => {
      arrived = hash;
      response.end();
    });
  });
  const sizes = fc.array(fc.oneof(fc.nat(100), fc.nat(700_000), fc.constant(512 * 1024)), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(sizes, sizes, fc.boolean(), fc.boolean(), async (before, after, chunked, flushing) => {
      const bytes = randomBytes([...before, ...after].reduce((sum, size) => sum + size, 0));
      let at = 0;
      const cut = (size: number): Buffer => {
        at += size;
        return bytes.subarray(at - size, at);
      };
      const body = before.map(cut);
      const shared = Buffer.alloc(700_000);
      function* writes(): Generator<Buffer> {
        for (const size of after) {
          cut(size).copy(shared);
          yield shared.subarray(0, size);
          shared.fill(0);
        }
      }
      const source = giving(writes(), chunked ? -1 : bytes.length);
      const sent = upload(client, server.origin, source, { body });
      let over = false;
      const flush = (): void => {
        if (flushing) source.sink?.flush();
        if (!over) setImmediate(flush);
      };
      flush();
      const call = await sent.over;
      over = true;
      t.equal(call.failure, null);
      t.equal(arrived, createHash('sha256').update(bytes).digest('hex'));
    }),
    { numRuns: 25 },
  );
});

test('64 MB reach a slow reader whole, and never more than two writes are held', async (t) => {
  const client = makeClient(t);
  const piece = randomBytes(256 * 1024);
  const total = 64 << 20;
  const expected = createHash('sha256');
  for (let sent = 0; sent < total; sent += piece.length) expected.update(piece);
  const hash = expected.digest('hex');
  const secure = createSecureServer({ cert: pem('localhost.pem'), key: pem('localhost.key') });
  for (const server of [undefined, secure]) {
    const tls = server === undefined ? {} : { secure: true, serverName: 'localhost', ca: pem('ca.pem') };
    const { origin } = await httpServer(
      t,
      (request, response) => hashSlowly(request).then((result) => response.end(JSON.stringify(result))),
      server,
    );
    for (const length of [total, -1]) {
      let most = 0;
      function* writes(): Generator<Buffer> {
        for (let sent = 0; sent < total; sent += piece.length) {
          yield piece;
          most = Math.max(most, socketOf(call).writableLength);
        }
      }
      const source = giving(writes(), length);
      const call = upload(client, { ...origin, ...tls }, source);
      await call.over;
      t.strictSame(JSON.parse(call.body), { hash, bytes: total });
      t.ok(source.events.length > 10, `${source.events.length} events`);
      t.ok(most < 2 * piece.length + 100, `${most} bytes held`);
    }
  }
});

test('what did not leave at once leaves in the same turn, once there is room and more waits', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => {
    socket.pause();
  });
  const piece = randomBytes(512 * 1024);
  const total = 64 << 20;
  const source = new Source(total);
  const call = upload(client, server.origin, source);
  await eventually(() => source.sink !== null && server.sockets.length > 0);
  const sink = source.sink as RequestBodySink;
  const upstream = Reflect.get(server.sockets[0] as Socket, '_handle') as { readonly fd: number };
  const arrived = createHash('sha256');
  const there = Buffer.alloc(1 << 20);
  let bytes = 0;
  /** Takes what the system holds for the upstream, without a turn of the event loop. */
  const read = (): void => {
    try {
      for (let size = readSync(upstream.fd, there); size > 0; size = readSync(upstream.fd, there)) {
        arrived.update(there.subarray(0, size));
        bytes += size;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  };

  const head = `${get('/', 'POST').head}content-length: ${total}\r\n\r\n`;
  const expected = createHash('sha256').update(head);
  await eventually(() => socketOf(call).writableLength === 0);
  let waits = 0;
  for (let written = 0; written < total; written += piece.length) {
    expected.update(piece);
    if (sink.write(piece)) continue;
    const heard = source.events.length;
    for (let tries = 0; source.events.length === heard && tries < 10_000; tries++) {
      read();
      sink.flush();
    }
    if (source.events.length === heard) break;
    waits++;
  }
  t.ok(waits > 2, `${waits} times there was no room at first`);
  t.strictSame(source.events, ['open', ...Array(waits).fill('drain')]);
  sink.end();
  await eventually(() => {
    read();
    return bytes >= head.length + total;
  });
  t.equal(arrived.digest('hex'), expected.digest('hex'));
  call.exchange.cancel();
});

test('a body that is not read stops after the write that did not fit and one more, and none is spoilt', async (t) => {
  const client = makeClient(t);
  const received: Buffer[] = [];
  let bytes = 0;
  const server = await rawServer(t, (socket) => {
    socket.pause();
    socket.on('data', (data) => {
      received.push(data);
      bytes += data.length;
    });
  });
  const source = new Source(1 << 30);
  const call = upload(client, server.origin, source);
  await eventually(() => source.sink !== null && server.sockets.length > 0);

  const expected = createHash('sha256');
  const shared = Buffer.alloc(64 * 1024);
  let written = 0;
  const write = (): boolean => {
    shared.fill(written / shared.length);
    expected.update(shared);
    written += shared.length;
    return source.sink?.write(shared) === true;
  };
  t.equal(write(), true, 'what the kernel takes at once is nothing to wait for');
  // The kernel moves bytes to the receiver's buffer for a moment, which makes room for more.
  let events = 0;
  while (source.events.length > events) {
    events = source.events.length;
    while (write());
    t.ok(written < 64 << 20, `${written} bytes taken`);
    t.equal(write(), false);
    t.ok(socketOf(call).writableLength <= 2 * shared.length);
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
  }
  t.equal(source.events.at(0), 'open');

  server.sockets[0]?.resume();
  await eventually(() => source.events.length > events);
  t.ok(source.events.slice(1).every((event) => event === 'drain'));
  t.equal(write(), true);
  const head = `${get('/', 'POST').head}content-length: ${1 << 30}\r\n\r\n`;
  await eventually(() => bytes === head.length + written);
  const body = Buffer.concat(received).subarray(head.length);
  t.equal(createHash('sha256').update(body).digest('hex'), expected.digest('hex'));
  call.exchange.cancel();
});

test('pieces that are not read either hold the source back', async (t) => {
  const client = makeClient(t);
  let received = 0;
  const server = await rawServer(t, (socket) => {
    socket.pause();
    socket.on('data', (data) => {
      received += data.length;
    });
  });
  const source = new Source();
  const body = [Buffer.alloc(16 << 20), Buffer.alloc(16 << 20)];
  const call = upload(client, server.origin, source, { body });
  await eventually(() => server.sockets.length > 0 && call.exchange.sentAt > 0);
  t.ok(socketOf(call).writableLength > 0);
  t.strictSame(source.events, []);
  server.sockets[0]?.resume();
  await eventually(() => source.events.length > 0);
  t.strictSame(source.events, ['open']);
  await eventually(() => received > 32 << 20);
  call.exchange.cancel();
});

test('after a whole body and a whole answer the connection serves others', async (t) => {
  const client = makeClient(t);
  const server = await httpServer(t, (request, response) => {
    hashSlowly(request).then(({ bytes }) => response.end(`${bytes}`));
  });
  const source = giving([Buffer.alloc(100_000)], 100_000);
  t.equal((await upload(client, server.origin, source).over).body, '100000');
  t.equal(client.stats().idle, 1);
  const large = { ...get('/', 'POST'), body: [Buffer.alloc(10 << 20)] };
  t.equal((await new Call(client, server.origin, large).over).body, `${10 << 20}`);
  t.equal((await new Call(client, server.origin).over).body, '0');
  t.equal(server.sockets.length, 1);
});

test('an idle connection is never used for a body that cannot be sent twice', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket, index) => {
    if (index === 0) onRequests(socket, () => socket.write(ok));
    else socket.on('data', (data) => data.includes('0\r\n\r\n') && socket.write(ok));
  });
  await new Call(client, server.origin).over;
  server.sockets[0]?.end();
  const call = await upload(client, server.origin, giving([Buffer.from('x')])).over;
  t.equal(call.body, 'ok');
  t.equal(server.sockets.length, 2);
});

test('at the cap a free connection makes room, and a busy one is waited for', async (t) => {
  const client = makeClient(t);
  let open = 0;
  let most = 0;
  const server = await rawServer(t, (socket) => {
    most = Math.max(most, ++open);
    socket.on('close', () => open--);
    answering(ok)(socket);
  });
  const origin = { ...server.origin, maxConnections: 1, maxWaiting: 2 };
  await new Call(client, origin).over;
  t.match(client.stats(), { open: 1, idle: 1 });
  const give = () => giving([Buffer.from('x')], 1);
  const calls = [upload(client, origin, give())];
  t.strictSame(client.stats(), { open: 1, idle: 0, busy: 1, waiting: 0 });
  calls.push(upload(client, origin, give()), new Call(client, origin));
  t.equal(client.stats().waiting, 2);
  t.match((await upload(client, origin, give()).over).failure, { reason: 'queue_full', bytesSent: false });
  await Promise.all(calls.map((call) => call.over));
  t.strictSame(
    calls.map((call) => call.body),
    ['ok', 'ok', 'ok'],
  );
  t.equal(server.sockets.length, 3, 'one for each upload');
  t.equal(client.stats().open, 1);
  await eventually(() => open === 1);
  t.ok(most <= 2, 'the server may hear of a close after the next connection');
});

test('a client that closes while a body waits for its connection', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  const origin = { ...server.origin, maxConnections: 1 };
  const calls = [new Call(client, origin), upload(client, origin, giving([], 0))];
  client.close();
  await Promise.all(calls.map((call) => call.over));
  t.strictSame(
    calls.map((call) => call.body),
    ['ok', 'ok'],
  );
  t.equal(client.stats().open, 0);
});

test('an address where nobody listens', async (t) => {
  const client = makeClient(t);
  const server = await listen(t, (await import('node:net')).createServer(), () => {});
  const source = new Source();
  const call = await upload(client, { ...server.origin, port: 1 }, source).over;
  t.match(call.failure, { reason: 'connect_failed', bytesSent: false });
  t.strictSame(source.events, []);
});
