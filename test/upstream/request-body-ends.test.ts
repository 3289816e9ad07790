import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { test } from 'tap';
import type { RequestBodySink } from '../../src/upstream/types.js';
import { eventually } from '../support/eventually.js';
import { Call, get, listen, makeClient, rawServer, unhurried } from './raw.js';
import { giving, Source, socketOf, upload } from './uploading.js';

const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');

const refusal = 'HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig';
const piece = Buffer.alloc(256 * 1024, 'x');

/** Resolves at the end of a text that a socket receives. */
function receives(socket: Socket, last: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (data: Buffer) => {
      text += data.toString('latin1');
      if (text.endsWith(last)) resolve(text);
    });
  });
}

test('an answer before the end of the body is delivered, and costs the connection', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => {
    socket.once('data', () => socket.write(refusal));
  });
  const source = new Source(1000);
  const call = upload(client, server.origin, source);
  await eventually(() => source.sink !== null);
  source.sink?.write(Buffer.from('x'));
  await call.over;
  t.strictSame(call.events, ['head', 'data', 'end']);
  t.match(call, { body: 'big', failure: null });
  t.equal(client.stats().open, 0);
  for (let i = 0; i < 3; i++) t.equal(source.sink?.write(piece), true, 'nothing happens any more');
  source.sink?.end();
  t.strictSame(source.events, ['open']);
});

test('head and body may pass each other, and the connection is used again', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket, index) => {
    if (index > 0) return;
    const whole = receives(socket, '0\r\n\r\n');
    socket.once('data', () =>
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no'),
    );
    whole.then(() => {
      socket.write('k');
      socket.once('data', () => socket.write('HTTP/1.1 204 No Content\r\n\r\n'));
    });
  });
  const source = new Source();
  const call = upload(client, server.origin, source);
  await eventually(() => call.body === 'o');
  t.equal(source.sink?.write(Buffer.from('late')), true);
  source.sink?.end();
  t.match(await call.over, { body: 'ok', failure: null });
  t.equal((await new Call(client, server.origin).over).head?.status, 204);
  t.equal(server.sockets.length, 1);
});

test('an answer that ends before the body, while its receiver has paused', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => {
    socket.once('data', () => socket.end(refusal));
  });
  const source = new Source();
  const call = upload(client, server.origin, source);
  call.wanting = false;
  await eventually(() => call.bytes > 0);
  const socket = socketOf(call);
  for (let i = 0; i < 20 || !socket.readableEnded; i++) {
    source.sink?.write(Buffer.from('x'));
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.strictSame(call.events, ['head', 'data']);
  call.exchange.resume();
  t.strictSame(call.events, ['head', 'data', 'end']);
  t.equal(client.stats().open, 0);
});

test('an upstream that answers and closes at once is heard, although writing fails first', async (t) => {
  const client = makeClient(t);
  const answers = [
    [refusal, null],
    ['HTTP/1.1 413 Content Too Large\r\n\r\nbig', null],
    ['HTTP/1.1 413 Content Too Large\r\ncontent-length: 4\r\n\r\nbig', /reset|truncated/],
    ['HTTP/1.1 413 Content Too L', 'reset'],
    ['', 'reset'],
  ] as const;
  for (const [answer, reason] of answers) {
    for (const length of [-1, 100 << 20]) {
      for (const pieces of [1, 8]) {
        const source = new Source(length);
        const server = await rawServer(t, (socket) => {
          socket.once('data', () => {
            socket.pause();
            // The close leaves bytes unread, so that it resets; and the client writes before it can read.
            setImmediate(() => {
              if (answer !== '') socket.write(answer);
              socket.destroy();
              const sink = source.sink as RequestBodySink;
              for (let i = 0; i < pieces; i++) if (!sink.write(piece)) break;
            });
          });
        });
        const call = upload(client, server.origin, source);
        await eventually(() => source.sink !== null);
        source.sink?.write(piece);
        await call.over;
        const what = `${JSON.stringify(answer)} ${length} ${pieces}`;
        if (reason === null) t.match(call, { body: 'big', failure: null, head: { status: 413 } }, what);
        else t.match(call.failure, { reason, bytesSent: true }, what);
        t.equal(server.sockets.length, 1, 'not sent twice');
        t.equal(client.stats().open, 0);
        t.equal(source.sink?.write(piece), true);
      }
    }
  }
});

test('a failed write really came before the answer was read', async (t) => {
  const client = makeClient(t);
  const source = new Source();
  let heldBack = 0;
  const server = await rawServer(t, (socket) => {
    socket.once('data', () => {
      socket.pause();
      setImmediate(() => {
        socket.write(refusal);
        socket.destroy();
        source.sink?.write(piece);
        heldBack = socketOf(call).writableLength;
      });
    });
  });
  const call = upload(client, server.origin, source);
  await eventually(() => source.sink !== null);
  source.sink?.write(piece);
  t.match(await call.over, { body: 'big', failure: null });
  t.ok(heldBack > 0, 'the write was not taken, and not told as an error');
});

test('the same over TLS', async (t) => {
  const client = makeClient(t);
  const source = new Source();
  const server = await listen(
    t,
    createSecureServer({ cert: pem('localhost.pem'), key: pem('localhost.key') }),
    (socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.write(refusal, () => {
          socket.destroy();
          source.sink?.write(piece);
        });
      });
    },
  );
  const origin = { ...server.origin, secure: true, serverName: 'localhost', ca: pem('ca.pem') };
  const call = upload(client, origin, source);
  await eventually(() => source.sink !== null);
  source.sink?.write(piece);
  t.match(await call.over, { body: 'big', failure: null, head: { status: 413 } });
  t.equal(client.stats().open, 0);
});

test('an upstream that resets in the middle of the body', async (t) => {
  const client = makeClient(t);
  for (const how of ['resetAndDestroy', 'end', 'destroy'] as const) {
    const server = await rawServer(t, (socket) => {
      socket.once('data', () => socket[how]());
    });
    function* endless(): Generator<Buffer> {
      for (;;) yield piece;
    }
    const call = await upload(client, server.origin, giving(endless())).over;
    t.match(call.failure, { reason: 'reset', bytesSent: true, headSeen: false }, how);
    t.equal(server.sockets.length, 1);
    t.equal(client.stats().open, 0);
  }
});

test('a cancelled body is silent in every state', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => socket.pause());
  const origin = { ...server.origin, maxConnections: 1 };
  const [connecting, waiting, blocked] = [new Source(), new Source(), new Source()];
  const first = upload(client, origin, connecting);
  const second = upload(client, origin, waiting);
  second.exchange.cancel();
  first.exchange.cancel();
  t.strictSame(client.stats(), { open: 0, idle: 0, busy: 0, waiting: 0 });

  const third = upload(client, origin, blocked);
  await eventually(() => blocked.sink !== null);
  while (blocked.sink?.write(piece));
  third.exchange.cancel();
  server.sockets.at(-1)?.resume();
  await once(server.sockets.at(-1) as Socket, 'close');
  t.equal(blocked.sink?.write(piece), true);
  blocked.sink?.end();
  const events = [connecting, waiting, blocked].map((source) => source.events);
  t.strictSame(events, [[], [], ['open']]);
  t.strictSame([...first.events, ...second.events, ...third.events], []);
});

test('a cancel from within the source and from within the head', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => {
    socket.once('data', () => socket.write(refusal));
  });
  const source = new Source();
  const call = upload(client, server.origin, source);
  source.onEvent = (_event, sink) => {
    call.exchange.cancel();
    t.equal(sink.write(piece), true);
  };
  await eventually(() => source.sink !== null);
  t.equal(client.stats().open, 0);

  const other = new Source();
  const refused = upload(client, server.origin, other);
  refused.onEvent = () => refused.exchange.cancel();
  await eventually(() => refused.events.length > 0);
  t.equal(other.sink?.write(piece), true);
  t.strictSame(refused.events, ['head']);
  t.equal(client.stats().open, 0);
});

test('a source that breaks its word fails its exchange, and nothing false is sent', async (t) => {
  const client = makeClient(t);
  const cases: [string, Source, RegExp, number][] = [
    ['too long', new Source(3), /longer than announced/, 2],
    ['too long at the start', new Source(1), /longer than announced/, 0],
    ['too short', new Source(9), /7 bytes too early/, 2],
    ['after the end', new Source(2), /longer than announced/, 2],
    ['after the end of a chunked one', new Source(), /longer than announced/, -1],
  ];
  for (const [name, source, detail, bytes] of cases) {
    let received = '';
    let closed = false;
    const server = await rawServer(t, (socket) => {
      socket.on('data', (data) => {
        received += data.toString('latin1');
      });
      socket.on('close', () => {
        closed = true;
      });
    });
    let failedWithin = false;
    source.onEvent = (_event, sink) => {
      if (name.startsWith('after')) {
        sink.end();
        t.equal(sink.write(Buffer.from('x')), true);
      } else if (name === 'too short') {
        sink.end();
      } else {
        t.equal(sink.write(Buffer.from('xy')), true);
      }
      failedWithin = call.failure !== null;
    };
    const call = upload(client, server.origin, source, { body: [Buffer.from('ab')] });
    await call.over;
    t.match(call.failure, { reason: 'reset', detail, bytesSent: true }, name);
    t.notOk(failedWithin, 'not told within the call');
    t.equal(client.stats().open, 0);
    await eventually(() => closed);
    const [, body] = received.split('\r\n\r\n');
    if (bytes >= 0) t.equal(body, 'ab'.slice(0, bytes), name);
  }
});

test('a source that writes on in spite of a false is cut off', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => socket.pause());
  const source = new Source();
  const call = upload(client, server.origin, source);
  await eventually(() => source.sink !== null);
  while (source.sink?.write(piece));
  t.equal(source.sink?.write(piece), false, 'one more is taken');
  t.ok(socketOf(call).writableLength <= 2 * piece.length + 100);
  source.sink?.write(piece);
  t.match((await call.over).failure, { reason: 'reset', detail: /more .* than was asked for/ });
  t.strictSame(source.events, ['open']);
});

test('deadlines: a body may take its time, its upstream may not', async (t) => {
  const client = makeClient(t);
  const deadlines = { firstByteMs: 100, idleMs: 100 };
  const server = await rawServer(t, () => {});
  const source = new Source();
  const call = upload(client, server.origin, source, { deadlines });
  await eventually(() => source.sink !== null);
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    t.equal(source.sink?.write(Buffer.from('x')), true);
  }
  t.strictSame(call.events, [], 'neither runs while the source is slow');
  source.sink?.end();
  t.match((await call.over).failure, { reason: 'first_byte_timeout', headSeen: false });

  const total = await upload(client, server.origin, new Source(), { deadlines: { totalMs: 100 } }).over;
  t.match(total.failure, { reason: 'total_timeout', bytesSent: true });
});

test('deadlines: an upstream that stops taking the body, before and after its end', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) => socket.pause());
  for (const ending of [false, true]) {
    const source = new Source();
    const call = upload(client, server.origin, source, { deadlines: { idleMs: 100 } });
    await eventually(() => source.sink !== null);
    while (source.sink?.write(piece));
    if (ending) source.sink?.end();
    t.match((await call.over).failure, { reason: 'idle_timeout', detail: /not taken/ });
  }
});

test('deadlines: a slow connect is still told as one', async (t) => {
  const client = makeClient(t);
  // The server accepts in the kernel and never shakes hands.
  const server = await rawServer(t, () => {});
  const origin = { ...server.origin, secure: true, serverName: 'localhost' };
  const source = new Source();
  const call = await upload(client, origin, source, { deadlines: { connectMs: 100 } }).over;
  t.match(call.failure, { reason: 'connect_timeout', bytesSent: false });
  t.strictSame(source.events, []);
});

test('what a source throws reaches the process after the connection is gone', async (t) => {
  const server = await rawServer(t, () => {});
  for (const method of ['onOpen', 'onDrain']) {
    const code = `
      const { createUpstreamClient } = await import(${JSON.stringify(new URL('../../src/upstream/client.js', import.meta.url))});
      const client = createUpstreamClient();
      let failures = 0;
      process.once('uncaughtException', (error) => {
        process.stdout.write(JSON.stringify({ message: error.message, open: client.stats().open, failures }));
        client.close();
      });
      const handler = { onHead() {}, onData() { return true; }, onEnd() {}, onFailure() { failures++; } };
      const source = { length: -1, onOpen(sink) { while (sink.write(Buffer.alloc(262144))); }, onDrain() {} };
      source.${method} = () => { throw new Error('thrown'); };
      const request = { ...${JSON.stringify(get('/', 'POST'))}, source };
      client.send(${JSON.stringify(server.origin)}, request, ${JSON.stringify(unhurried)}, handler);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', code]);
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    if (method === 'onDrain') {
      await eventually(() => server.sockets.length > 1);
      server.sockets[1]?.resume();
    }
    await once(child, 'close');
    t.strictSame(JSON.parse(output), { message: 'thrown', open: 0, failures: 0 });
  }
});
