import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { test } from 'tap';
import { WebSocketServer } from 'ws';
import { eventually } from '../support/eventually.js';
import { listen, onRequests, plainOrigin, rawServer } from './raw.js';
import { acceptance, Heard, socketServer } from './socket-peers.js';

const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');
const ca = pem('ca.pem');
const secure = { secure: true, serverName: 'localhost', ca };

const answer = (status: string, body = '', fields = '') =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n${fields}\r\n${body}`;

test('the request carries what was given, and nothing that was not', async (t) => {
  const server = await socketServer(t);
  const heard = new Heard(server.origin, {
    path: '/v1/a%20b/..c?x=/../%2F&y=ü'.replace('ü', '%FC'),
    headers: [
      ['Authorization', 'Bearer sk-x'],
      ['openai-beta', 'realtime=v1'],
      ['x-two', 'one'],
      ['X-Two', 'two\t~'],
      ['connection', 'close'],
      ['host', 'elsewhere'],
      ['Sec-WebSocket-Extensions', 'permessage-deflate'],
      ['transfer-encoding', 'chunked'],
    ],
  });
  await heard.opened;
  const { request } = server.peers[0]!;
  t.equal(request.url, '/v1/a%20b/..c?x=/../%2F&y=%FC');
  const { headers } = request;
  t.match(headers, {
    host: server.origin.authority,
    authorization: 'Bearer sk-x',
    'openai-beta': 'realtime=v1',
    'x-two': 'one, two\t~',
    connection: 'Upgrade',
  });
  t.strictSame(
    [
      'origin',
      'sec-websocket-extensions',
      'sec-websocket-protocol',
      'transfer-encoding',
      'content-length',
    ].filter((name) => name in headers),
    [],
  );
  heard.socket.terminate();
});

test('an upstream may not choose a subprotocol, since none is offered', async (t) => {
  const server = await rawServer(t, (socket) =>
    onRequests(socket, (text) =>
      socket.write(acceptance(text).replace('\r\n\r\n', '\r\nsec-websocket-protocol: c\r\n\r\n')),
    ),
  );
  const heard = await new Heard(server.origin).over;
  t.match(heard.failure, { reason: 'malformed_answer', detail: /not offered/, bytesSent: true });
  t.strictSame(heard.events, ['failed']);
});

test('every other answer is a refusal with its head and body', async (t) => {
  for (const status of [
    '200 OK',
    '302 Found',
    '401 Unauthorized',
    '403 X',
    '404 X',
    '426 X',
    '429 X',
    '500 X',
    '503 X',
  ]) {
    const fields = 'content-type: application/json\r\nRetry-After: 7\r\nlocation: /there\r\n';
    const server = await rawServer(t, (socket) =>
      onRequests(socket, () =>
        socket.write(`HTTP/1.1 100 Continue\r\n\r\n${answer(status, '{"a":1}', fields)}`),
      ),
    );
    const heard = await new Heard(server.origin).over;
    t.strictSame(heard.events, ['declined']);
    const { head, body } = heard.refusal!;
    t.equal(head.status, Number(status.slice(0, 3)));
    t.equal(head.contentType, 'application/json');
    t.equal(head.contentLength, 7);
    t.equal(head.get('retry-after'), '7');
    t.equal(head.get('none'), null);
    t.strictSame(head.fields.slice(0, 4), ['content-length', '7', 'content-type', 'application/json']);
    t.equal(body.toString(), '{"a":1}');
    await eventually(() => server.sockets.every((socket) => socket.destroyed));
  }
});

test('the body of a refusal is bounded in bytes and in time, and may be cut off', async (t) => {
  const chunk = 'x'.repeat(16_384);
  const cases: [string, number, (write: (text: string) => void, end: () => void) => void][] = [
    [
      'endless',
      65_536,
      (write) => {
        for (let i = 0; i < 20; i++) write(chunk);
      },
    ],
    ['stalled', 5, (write) => write('hello')],
    [
      'cut off',
      5,
      (write, end) => {
        write('hello');
        end();
      },
    ],
  ];
  await Promise.all(
    cases.map(async ([name, length, behave]) => {
      const server = await rawServer(t, (socket) =>
        onRequests(socket, () => {
          socket.write('HTTP/1.1 403 Forbidden\r\ncontent-length: 1000000\r\n\r\n');
          behave(
            (text) => socket.write(text),
            () => socket.end(),
          );
        }),
      );
      const heard = await new Heard(server.origin).over;
      t.equal(heard.refusal?.body.length, length, name);
      t.equal(heard.refusal?.head.contentLength, 1_000_000, name);
      t.strictSame(heard.events, ['declined'], name);
      await eventually(() => server.sockets.every((socket) => socket.destroyed));
    }),
  );
});

test('a refusal without a body, and one in chunks', async (t) => {
  const cases = [
    ['HTTP/1.1 204 No Content\r\n\r\n', '', 0],
    ['HTTP/1.1 400 X\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n', 'abc', -1],
  ] as const;
  for (const [text, body, length] of cases) {
    const server = await rawServer(t, (socket) => onRequests(socket, () => socket.write(text)));
    const { refusal } = await new Heard(server.origin).over;
    t.equal(refusal?.body.toString(), body);
    t.equal(refusal?.head.contentLength, length);
  }
});

test('nobody listens, a name that does not resolve, a port that is none, and what cannot be written', async (t) => {
  const port = 1;
  const cases = [
    [plainOrigin(port), {}, /ECONNREFUSED/],
    [plainOrigin(port, { host: 'nowhere.invalid' }), {}, /ENOTFOUND|EAI_AGAIN/],
    [plainOrigin(70_000), {}, /port/i],
    [plainOrigin(port, { ...secure, ca: 'no PEM', identity: 'broken' }), {}, /./],
    [plainOrigin(port), { path: '/a b' }, /path/],
    [plainOrigin(port), { path: '/a/../b' }, /path/],
    [plainOrigin(port), { headers: [['x', 'a\nb']] as const }, /character/],
    [plainOrigin(port), { headers: [['x', 'a\xe9']] as const }, /character/],
    [plainOrigin(port), { headers: [['x y', 'a']] as const }, /token/],
  ] as const;
  for (const [origin, more, detail] of cases) {
    const heard = new Heard(origin, more);
    t.strictSame(heard.events, []);
    await heard.over;
    t.match(heard.failure, { reason: 'connect_failed', detail, bytesSent: false, headSeen: false });
    t.strictSame(heard.events, ['failed']);
  }
});

test('an upstream that never answers is given up in time', async (t) => {
  const server = await rawServer(t, (socket) => socket.resume());
  const heard = await new Heard(server.origin, { firstByteMs: 50 }).over;
  t.match(heard.failure, { reason: 'first_byte_timeout', bytesSent: true });
  const mute = await new Heard({ ...server.origin, ...secure, identity: 'mute' }, { connectMs: 50 }).over;
  t.match(mute.failure, { reason: 'connect_timeout', bytesSent: false });
  await eventually(() => server.sockets.every((socket) => socket.destroyed));
});

test('answers that are none', async (t) => {
  const wrong = (text: string, change: (text: string) => string) => change(acceptance(text));
  const cases: [string, (text: string) => string, string, RegExp][] = [
    ['garbage', () => 'SSH-2.0-OpenSSH_9\r\n', 'malformed_answer', /status line/],
    ['large head', () => `HTTP/1.1 101 X\r\nx: ${'y'.repeat(20_000)}`, 'malformed_answer', /too large/],
    [
      'accept',
      (text) => wrong(text, (ok) => ok.replace('accept: ', 'accept: x')),
      'malformed_answer',
      /accept/,
    ],
    [
      'no accept',
      (text) => wrong(text, (ok) => ok.replace(/sec-websocket-accept.*\r\n/, '')),
      'malformed_answer',
      /accept/,
    ],
    [
      'upgrade',
      (text) => wrong(text, (ok) => ok.replace('websocket', 'h2c')),
      'malformed_answer',
      /another protocol/,
    ],
    [
      'no upgrade',
      (text) => wrong(text, (ok) => ok.replace('upgrade: websocket\r\n', '')),
      'malformed_answer',
      /another protocol/,
    ],
    [
      'extension',
      (text) => wrong(text, (ok) => ok.replace('\r\n\r\n', '\r\nsec-websocket-extensions: x\r\n\r\n')),
      'malformed_answer',
      /extension/,
    ],
  ];
  for (const [name, make, reason, detail] of cases) {
    const server = await rawServer(t, (socket) => onRequests(socket, (text) => socket.write(make(text))));
    const heard = await new Heard(server.origin).over;
    t.match(heard.failure, { reason, detail, bytesSent: true, headSeen: false }, name);
    t.strictSame(heard.events, ['failed'], name);
    await eventually(() => server.sockets.every((socket) => socket.destroyed));
  }
  const ends: [string, string, RegExp][] = [
    ['nothing', '', /before any byte/],
    ['a part', 'HTTP/1.1 101 Swi', /within the head/],
  ];
  for (const [name, text, detail] of ends) {
    const server = await rawServer(t, (socket) => onRequests(socket, () => socket.end(text)));
    t.match(
      (await new Heard(server.origin).over).failure,
      { reason: 'reset', detail, bytesSent: true },
      name,
    );
  }
  const resetting = await rawServer(t, (socket) => onRequests(socket, () => socket.resetAndDestroy()));
  t.match((await new Heard(resetting.origin).over).failure, { reason: 'reset', detail: 'ECONNRESET' });
});

test('certificates are checked before anything is sent', async (t) => {
  let received = 0;
  const options = { cert: pem('localhost.pem'), key: pem('localhost.key'), ALPNProtocols: ['http/1.1'] };
  const server = await listen(t, createTlsServer(options), (socket) =>
    socket.on('data', (data) => {
      received += data.length;
    }),
  );
  const cases = [
    [{ serverName: 'example.com', identity: 'name' }, /another name/],
    [{ ca: null, identity: 'system' }, /unknown authority|self-signed/],
  ] as const;
  for (const [more, detail] of cases) {
    const heard = await new Heard({ ...server.origin, ...secure, ...more }).over;
    t.match(heard.failure, { reason: 'tls_failed', detail, bytesSent: false });
  }
  await eventually(() => server.sockets.every((socket) => socket.destroyed));
  t.equal(received, 0);
  const plain = await rawServer(t, (socket) => socket.on('data', () => socket.end('HTTP/1.1 400 X\r\n\r\n')));
  const other = await new Heard({ ...plain.origin, ...secure, identity: 'plain' }).over;
  t.match(other.failure, { reason: 'tls_failed', bytesSent: false });
});

test('a socket over TLS, with its certificate checked or not', async (t) => {
  const https = createHttpsServer({
    cert: pem('localhost.pem'),
    key: pem('localhost.key'),
    ALPNProtocols: ['http/1.1'],
  });
  const server = new WebSocketServer({ server: https });
  const names: unknown[] = [];
  server.on('connection', (socket, request) => {
    const raw = request.socket as TLSSocket & { servername: string };
    names.push([raw.servername, raw.alpnProtocol]);
    socket.on('message', (data, binary) => socket.send(data, { binary }));
  });
  t.teardown(() => {
    server.close();
    https.close();
  });
  https.listen(0, '127.0.0.1');
  await once(https, 'listening');
  const origin = plainOrigin((https.address() as AddressInfo).port, { ...secure, identity: 'wss' });
  const large = Buffer.alloc(1 << 20, 'abc');
  for (const more of [{}, { ca: null, verify: false, identity: 'unchecked' }]) {
    const heard = await new Heard({ ...origin, ...more }).opened;
    heard.socket.send(Buffer.from('hello'), false);
    heard.socket.send(large, true);
    await eventually(() => heard.messages.length === 2);
    t.equal(heard.messages[0]?.data.toString(), 'hello');
    t.ok(heard.messages[1]?.data.equals(large));
    heard.socket.close(1000, '');
    await heard.over;
  }
  t.strictSame(names, [
    ['localhost', 'http/1.1'],
    ['localhost', 'http/1.1'],
  ]);
});

test('given up while connecting, while waiting and by close: nothing is called, nothing stays', async (t) => {
  const server = await rawServer(t, (socket) => socket.resume());
  const early = new Heard(server.origin);
  early.socket.terminate();
  const closed = new Heard(server.origin);
  closed.socket.close(1000, '');
  const waiting = new Heard(server.origin);
  await eventually(() => server.sockets.some((socket) => socket.bytesRead > 0));
  t.throws(() => waiting.socket.send(Buffer.from('x'), false), /not open/);
  t.equal(waiting.socket.waitingBytes, 0);
  waiting.socket.pause();
  waiting.socket.resume();
  waiting.socket.terminate();
  waiting.socket.terminate();
  waiting.socket.close(1000, '');
  await eventually(() => server.sockets.every((socket) => socket.destroyed));
  const probe = connect(server.port, '127.0.0.1');
  await once(probe, 'connect');
  probe.destroy();
  t.strictSame([early.events, closed.events, waiting.events], [[], [], []]);
});
