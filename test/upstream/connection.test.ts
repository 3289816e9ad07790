import { test } from 'tap';
import type { RequestBodySink } from '../../src/upstream/types.js';
import { headerLine, joinLines, KeptHead, NumberedHead } from '../../src/wire/head.js';
import { eventually } from '../support/eventually.js';
import { answering, Call, get, headOf, makeClient, onRequests, plainOrigin, rawServer } from './raw.js';

test('a body is written after the head with its length', async (t) => {
  const client = makeClient(t);
  let received = '';
  const server = await rawServer(t, (socket) =>
    socket.on('data', (data) => {
      received += data.toString('latin1');
      if (received.endsWith('END')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    }),
  );
  const head = joinLines(headOf('POST', '/x'), headerLine('x-name', '\t!~'));
  for (const size of [0, 100, 16 * 1024, 3_000_000]) {
    received = '';
    const body = [Buffer.alloc(size, 'a'), Buffer.alloc(0), Buffer.from('END')];
    const call = await new Call(client, server.origin, { ...get('/', 'POST'), head, body }).over;
    t.equal(call.failure, null);
    t.ok(received === `${head}content-length: ${size + 3}\r\n\r\n${'a'.repeat(size)}END`, `${size} bytes`);
  }
  t.equal(server.sockets.length, 1);
});

test('a head that is kept is the same on the wire as its text, of small requests, large ones and streamed ones', async (t) => {
  const client = makeClient(t);
  let received = '';
  const server = await rawServer(t, (socket) =>
    socket.on('data', (data) => {
      received += data.toString('latin1');
      if (received.endsWith('END')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    }),
  );
  const kept = new KeptHead(headOf('POST', '/x'), headerLine('x-name', 'y'));
  for (const [number, size] of [0, 16 * 1024, 3_000_000].entries()) {
    received = '';
    const head = new NumberedHead(kept, number);
    const body = [Buffer.alloc(size, 'a'), Buffer.from('END')];
    const call = await new Call(client, server.origin, { ...get('/', 'POST'), head, body }).over;
    t.equal(call.failure, null);
    const whole = `${head.text}content-length: ${size + 3}\r\n\r\n${'a'.repeat(size)}END`;
    t.ok(received === whole, `${size} bytes`);
  }
  received = '';
  const head = new NumberedHead(kept, 3);
  const source = {
    length: 6,
    onOpen: (sink: RequestBodySink) => {
      sink.write(Buffer.from('abcEND'));
      sink.end();
    },
    onDrain: () => {},
  };
  await new Call(client, server.origin, { ...get('/', 'POST'), head, body: [], source }).over;
  t.equal(received, `${head.text}content-length: 6\r\n\r\nabcEND`);
});

test('methods that are expected to have a body say that they have none', async (t) => {
  const client = makeClient(t);
  const seen: string[] = [];
  const server = await rawServer(t, (socket) =>
    onRequests(socket, (text) => {
      seen.push(text);
      socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    }),
  );
  for (const method of ['POST', 'GET']) await new Call(client, server.origin, get('/', method)).over;
  t.strictSame(seen, [
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n',
    'GET / HTTP/1.1\r\nhost: x\r\n\r\n',
  ]);
});

test('an answer arrives whole at every read size, and the connection stays usable', async (t) => {
  const client = makeClient(t);
  const answer =
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n' +
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x\r\n world\r\n0\r\nA: b\r\n\r\n';
  let size = 1;
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => {
      let at = 0;
      const next = () => {
        socket.write(answer.slice(at, at + size));
        at += size;
        if (at < answer.length) setImmediate(next);
      };
      next();
    }),
  );
  for (; size < answer.length + 7; size += size < 20 ? 1 : 7) {
    const call = await new Call(client, server.origin).over;
    t.equal(call.failure, null);
    t.equal(call.body, 'hello world');
    t.equal(call.head?.status, 200);
    t.strictSame(call.head?.fields, ['transfer-encoding', 'chunked']);
  }
  t.equal(server.sockets.length, 1);
});

test('answers without a body end with their head', async (t) => {
  const client = makeClient(t);
  const cases: [string, string][] = [
    ['HEAD', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 50\r\n\r\n'],
    ['GET', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'],
  ];
  for (const [method, answer] of cases) {
    const server = await rawServer(t, answering(answer));
    const call = await new Call(client, server.origin, get('/', method)).over;
    t.strictSame(call.events, ['head', 'end'], answer);
    t.equal(call.head?.contentLength, 0);
    t.equal(client.stats().idle, 1);
    server.sockets[0]?.destroy();
    await eventually(() => client.stats().open === 0);
  }
});

test('an answer without framing ends with the connection', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it')),
  );
  const call = await new Call(client, server.origin).over;
  t.equal(call.failure, null);
  t.equal(call.body, 'all of it');
  t.equal(call.head?.contentLength, -1);
  t.equal(client.stats().open, 0);
});

test('an answer cut short is a failure', async (t) => {
  const client = makeClient(t);
  const cases: [string, boolean][] = [
    ['HTTP/1.1 200 OK\r\ncontent-le', false],
    ['HTTP/1.1 100 Continue\r\n\r\n', false],
    ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcd', true],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n', true],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n', true],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r', true],
  ];
  for (const [answer, headSeen] of cases) {
    const server = await rawServer(t, (socket) => onRequests(socket, () => socket.end(answer)));
    const call = await new Call(client, server.origin).over;
    t.match(call.failure, { reason: 'truncated', bytesSent: true, headSeen }, answer);
    t.equal(client.stats().open, 0);
  }
});

test('a malformed answer is a failure and costs the connection', async (t) => {
  const client = makeClient(t);
  const cases: [string, boolean][] = [
    ['HTTP/1.1 200 OK\r\na : b\r\n\r\n', false],
    ['HTTP/1.1 200 OK\nno\n\n', false],
    ['HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n', false],
    ['HTTP/1.1 100 Continue\r\n\r\n'.repeat(11), false],
    ['HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n', false],
    [`HTTP/1.1 200 OK\r\na: ${'x'.repeat(70_000)}`, false],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', true],
  ];
  for (const [answer, headSeen] of cases) {
    const server = await rawServer(t, answering(answer));
    const call = await new Call(client, server.origin).over;
    t.match(call.failure, { reason: 'malformed_answer', bytesSent: true, headSeen }, answer.slice(0, 60));
    t.equal(client.stats().open, 0);
  }
});

test('ten interim answers are skipped', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(
    t,
    answering(`${'HTTP/1.1 100 C\r\n\r\n'.repeat(10)}HTTP/1.1 204 N\r\n\r\n`),
  );
  t.equal((await new Call(client, server.origin).over).head?.status, 204);
});

test('an answer that is complete before the request is delivered, and the connection not used again', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.write('HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig');
    });
  });
  const request = { ...get('/', 'POST'), body: [Buffer.alloc(64 << 20)] };
  const call = await new Call(client, server.origin, request).over;
  t.equal(call.failure, null);
  t.equal(call.head?.status, 413);
  t.equal(call.body, 'big');
  t.equal(client.stats().open, 0);
});

test('a cancelled request is silent in every state', async (t) => {
  const client = makeClient(t);
  const body = 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc';
  let requests = 0;
  const server = await rawServer(t, (socket) =>
    onRequests(socket, (text) => {
      requests++;
      if (!text.startsWith('GET /silent')) socket.write(body);
    }),
  );
  const origin = plainOrigin(server.port, { maxConnections: 1, maxWaiting: 2 });

  await t.test('connecting', async (t) => {
    const call = new Call(client, origin);
    call.exchange.cancel();
    t.equal(client.stats().open, 0);
    t.strictSame(call.events, []);
  });
  await t.test('sent', async (t) => {
    const before = server.sockets.length;
    const call = new Call(client, origin, get('/silent'));
    await eventually(() => requests > 0 && server.sockets.length > before);
    const closed = new Promise((resolve) => server.sockets.at(-1)?.on('close', resolve));
    call.exchange.cancel();
    await closed;
    t.strictSame(call.events, []);
  });
  await t.test('waiting', async (t) => {
    const first = new Call(client, origin, get('/silent'));
    const second = new Call(client, origin);
    const third = new Call(client, origin);
    t.equal(client.stats().waiting, 2);
    second.exchange.cancel();
    t.equal(client.stats().waiting, 1);
    first.exchange.cancel();
    await eventually(() => third.events.length > 0);
    t.equal(client.stats().waiting, 0);
    third.exchange.cancel();
    t.strictSame([first.events, second.events], [[], []]);
  });
  for (const state of ['head', 'data']) {
    await t.test(`in ${state}`, async (t) => {
      const call = new Call(client, origin);
      const cancelled = new Promise<void>((resolve) => {
        call.onEvent = (event) => {
          if (event !== state) return;
          call.exchange.cancel();
          resolve();
        };
      });
      await cancelled;
      t.equal(client.stats().open, 0);
      await new Promise((resolve) => server.sockets.at(-1)?.on('close', resolve));
      t.equal(call.events.at(-1), state);
    });
  }
  await t.test('full queue, twice, and after the end', async (t) => {
    const full = new Call(client, plainOrigin(server.port, { maxConnections: 0, maxWaiting: 0 }));
    full.exchange.cancel();
    full.exchange.cancel();
    full.exchange.resume();
    await new Promise((resolve) => setImmediate(resolve));
    t.strictSame(full.events, []);
  });
});

test('a paused body is not read on, and arrives whole', async (t) => {
  const client = makeClient(t);
  const total = 50 << 20;
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
      const piece = Buffer.alloc(1 << 20, 'x');
      let left = total / piece.length;
      const push = () => {
        while (left > 0) {
          left--;
          if (!socket.write(piece)) break;
        }
      };
      socket.on('drain', push);
      push();
    }),
  );
  const call = new Call(client, server.origin);
  call.wanting = false;
  await eventually(() => call.bytes > 0);
  const sender = server.sockets[0];
  if (sender === undefined) throw new Error('no connection');
  // The sender has stalled once nothing has left its buffer for many turns of the loop.
  const sent = () => sender.bytesWritten - sender.writableLength;
  for (let still = 0, last = -1; still < 200; still = sent() === last ? still + 1 : 0) {
    last = sent();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const stalledAt = sent();
  t.ok(stalledAt < total / 2, `${stalledAt} bytes left the sender`);
  t.strictSame(call.events, ['head', 'data']);
  for (let i = 0; i < 20; i++) {
    const before = call.events.length;
    call.exchange.resume();
    await eventually(() => call.events.length > before);
    t.equal(call.events.length, before + 1, 'one piece for one resume');
  }
  call.wanting = true;
  call.exchange.resume();
  await call.over;
  t.equal(call.failure, null);
  t.equal(call.bytes, total);
});

test('the end of a body waits for resume', async (t) => {
  const client = makeClient(t);
  const answers = [
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n',
  ];
  for (const answer of answers) {
    const server = await rawServer(t, answering(answer));
    const call = new Call(client, server.origin);
    call.wanting = false;
    await eventually(() => call.bytes > 0);
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    t.strictSame(call.events, ['head', 'data']);
    call.exchange.resume();
    t.strictSame(call.events, ['head', 'data', 'end']);
    t.equal(client.stats().idle, 1);
    t.equal((await new Call(client, server.origin).over).body, 'ok');
    t.equal(server.sockets.length, 1);
    server.sockets[0]?.destroy();
    await eventually(() => client.stats().open === 0);
  }
});

test('a connection that is lost or poisoned while the end waits still ends well', async (t) => {
  const client = makeClient(t);
  for (const then of ['', 'garbage']) {
    const server = await rawServer(t, answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
    const call = new Call(client, server.origin);
    call.wanting = false;
    await eventually(() => call.bytes > 0);
    const closed = new Promise((resolve) => server.sockets[0]?.on('close', resolve));
    server.sockets[0]?.end(then);
    await closed;
    call.exchange.resume();
    t.strictSame(call.events, ['head', 'data', 'end']);
    t.equal(client.stats().open, 0);
  }
});

test('a reset within the body is a failure', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => socket.write('HTTP/1.1 200 OK\r\n\r\nabc')),
  );
  const call = new Call(client, server.origin);
  await eventually(() => call.bytes > 0);
  server.sockets[0]?.resetAndDestroy();
  await call.over;
  t.match(call.failure, { reason: 'reset', bytesSent: true, headSeen: true });
});
