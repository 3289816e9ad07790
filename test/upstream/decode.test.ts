import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { Call, get, makeClient, onRequests, rawServer, unhurried } from './raw.js';

const text = 'An answer that nobody asked to be compressed. '.repeat(5000);

/** A server whose answer has this body and coding, chunked or with a length. */
const coded = (t: Parameters<typeof rawServer>[0], body: Buffer, coding: string, chunked = false) =>
  rawServer(t, (socket) =>
    onRequests(socket, () => {
      const framing = chunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: ${coding}\r\nx: y\r\n${framing}\r\n\r\n`);
      if (chunked) socket.write(`${body.length.toString(16)}\r\n`);
      socket.write(body);
      if (chunked) socket.write('\r\n0\r\n\r\n');
    }),
  );

test('known codings are decoded and their fields dropped', async (t) => {
  const client = makeClient(t);
  const cases: [string, Buffer][] = [
    ['gzip', gzipSync(text)],
    ['X-Gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['br', brotliCompressSync(text)],
  ];
  for (const [coding, body] of cases) {
    for (const chunked of [false, true]) {
      const server = await coded(t, body, coding, chunked);
      const call = await new Call(client, server.origin).over;
      t.equal(call.failure, null, coding);
      t.ok(call.body === text, coding);
      t.strictSame(call.head?.fields, ['x', 'y', ...(chunked ? ['transfer-encoding', 'chunked'] : [])]);
      t.equal(call.head?.contentLength, -1);
      t.equal(call.head?.get('content-encoding'), null);
      await new Call(client, server.origin).over;
      t.equal(server.sockets.length, 1);
    }
  }
});

test('unknown and stacked codings pass as they are', async (t) => {
  const client = makeClient(t);
  for (const coding of ['identity', 'zstd', 'gzip, br']) {
    const server = await coded(t, Buffer.from('whatever'), coding);
    const call = await new Call(client, server.origin).over;
    t.equal(call.body, 'whatever');
    t.equal(call.head?.get('content-encoding'), coding);
    t.equal(call.head?.contentLength, 8);
  }
});

test('an answer without a body has nothing to decode', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\n'),
    ),
  );
  t.strictSame((await new Call(client, server.origin, get('/', 'HEAD')).over).events, ['head', 'end']);
  const empty = await rawServer(t, (socket) =>
    onRequests(socket, () =>
      socket.write(
        'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      ),
    ),
  );
  t.strictSame((await new Call(client, empty.origin).over).events, ['head', 'end']);
});

test('a broken or cut body is a failure', async (t) => {
  const client = makeClient(t);
  const whole = gzipSync(text);
  for (const body of [Buffer.from('no gzip at all'), whole.subarray(0, whole.length / 2)]) {
    const server = await coded(t, body, 'gzip');
    const call = await new Call(client, server.origin).over;
    t.match(call.failure, { reason: 'malformed_answer', bytesSent: true, headSeen: true });
  }
});

test('padding after the compressed stream is ignored, anything else refused', async (t) => {
  const client = makeClient(t);
  const padded = await coded(t, Buffer.concat([gzipSync(text), Buffer.alloc(9)]), 'gzip', true);
  const call = await new Call(client, padded.origin).over;
  t.equal(call.failure, null);
  t.ok(call.body === text);
  const dirty = await coded(t, Buffer.concat([gzipSync(text), Buffer.from('garbage')]), 'gzip', true);
  t.match((await new Call(client, dirty.origin).over).failure, { reason: 'malformed_answer' });
});

test('a body that unpacks to far more is held back by a slow receiver', async (t) => {
  const client = makeClient(t);
  const size = 256 << 20;
  const server = await coded(t, gzipSync(Buffer.alloc(size)), 'gzip');
  const before = process.memoryUsage.rss();
  const call = new Call(client, server.origin);
  call.wanting = false;
  await eventually(() => call.bytes > 0);
  for (let i = 0; i < 200; i++) {
    const events = call.events.length;
    call.exchange.resume();
    await eventually(() => call.events.length > events);
  }
  t.ok(call.bytes < size / 4, `${call.bytes} bytes delivered`);
  t.ok(process.memoryUsage.rss() - before < 128 << 20);
  call.exchange.cancel();
  t.equal(client.stats().open, 0);
  const events = call.events.length;
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
  t.equal(call.events.length, events);
});

test('a slow receiver gets all of it, and the end last', async (t) => {
  const client = makeClient(t);
  const size = 4 << 20;
  const server = await coded(t, gzipSync(Buffer.alloc(size)), 'gzip', true);
  const call = new Call(client, server.origin);
  call.wanting = false;
  call.onEvent = (event) => {
    if (event === 'data') setImmediate(() => call.exchange.resume());
  };
  await call.over;
  t.equal(call.failure, null);
  t.equal(call.bytes, size);
});

test('the total deadline holds while the decoder has still to deliver', async (t) => {
  const client = makeClient(t);
  const server = await coded(t, gzipSync(Buffer.alloc(1 << 20)), 'gzip');
  const call = new Call(client, server.origin, get(), { ...unhurried, totalMs: 2000 });
  call.wanting = false;
  await call.over;
  t.match(call.failure, { reason: 'total_timeout', headSeen: true });
});
