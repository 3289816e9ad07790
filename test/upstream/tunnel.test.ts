import { createServer, type Socket } from 'node:net';
import { createServer as createSecureServer, type TLSSocket } from 'node:tls';
import { type Test, test } from 'tap';
import { resolveProxy } from '../../src/config/proxy.js';
import type { Resolver } from '../../src/upstream/address.js';
import { createUpstreamClient } from '../../src/upstream/client.js';
import { ConnectAnswer, createDialer } from '../../src/upstream/dial.js';
import type { EgressProxy, Origin } from '../../src/upstream/origin.js';
import { authority, clientCertificate, demanding, serverCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { ownAddress } from '../support/free-port.js';
import { startProxy, type TestProxy, tunnelOpened } from '../support/proxy.js';
import { answering, Call, get, listen, makeClient, onRequests, plainOrigin, unhurried } from './raw.js';
import { acceptance, Heard } from './socket-peers.js';

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const closing = ok.replace('content-length', 'connection: close\r\ncontent-length');

const through = (proxy: TestProxy, user?: string): EgressProxy =>
  resolveProxy(proxy.url(user), authority) as EgressProxy;

/** An origin whose name nobody but a proxy can look up. */
function hidden(port: number, proxy: EgressProxy, more: Partial<Origin> = {}): Origin {
  return plainOrigin(port, {
    identity: JSON.stringify([port, proxy.identity, more.secure ?? false]),
    host: 'api.hidden.test',
    proxy,
    ...more,
  });
}

const secure = { secure: true, serverName: 'localhost', ca: authority, clientCertificate };

type Kind = readonly ['http' | 'https', boolean];
const kinds: readonly Kind[] = [
  ['http', false],
  ['http', true],
  ['https', false],
  ['https', true],
];

async function start(t: Test, [scheme, isSecure]: Kind, answer = ok) {
  const proxy = await startProxy(t, undefined, scheme === 'https' ? serverCertificate : null);
  const server = isSecure ? createSecureServer(demanding) : createServer();
  const { port, sockets } = await listen(t, server, answering(answer));
  const origin = hidden(port, through(proxy, 'us%20er:pass'), isSecure ? secure : {});
  return { proxy, origin, sockets };
}

for (const kind of kinds) {
  const [scheme, isSecure] = kind;
  const name = `${isSecure ? 'a TLS' : 'a plain'} origin through an ${scheme} proxy`;

  test(`${name}: one tunnel serves many requests, and nothing of the proxy's reaches the origin`, async (t) => {
    const heads: string[] = [];
    const proxy = await startProxy(t, undefined, scheme === 'https' ? serverCertificate : null);
    const server = isSecure ? createSecureServer(demanding) : createServer();
    const { port, sockets } = await listen(t, server, (socket) =>
      onRequests(socket, (text) => {
        heads.push(text);
        socket.write(ok);
      }),
    );
    const client = makeClient(t);
    const origin = hidden(port, through(proxy, 'us%20er:pass'), isSecure ? secure : {});
    for (let i = 0; i < 3; i++) t.equal((await new Call(client, origin).over).body, 'ok');
    t.strictSame(
      proxy.requests.map(({ head }) => head),
      [
        `CONNECT api.hidden.test:${port} HTTP/1.1\r\nhost: api.hidden.test:${port}\r\n` +
          `proxy-authorization: Basic ${Buffer.from('us er:pass').toString('base64')}`,
      ],
    );
    t.equal(sockets.length, 1);
    t.equal(heads.length, 3);
    t.notMatch(heads.join(), /proxy/i);
    t.strictSame(client.stats(), { open: 1, idle: 1, busy: 0, waiting: 0 });
    if (isSecure) t.equal((sockets[0] as TLSSocket).getPeerCertificate().subject.CN, 'gateway');
  });

  test(`${name}: a large answer comes whole to a receiver that pauses, and a large body leaves whole`, async (t) => {
    const size = 3 << 20;
    const proxy = await startProxy(t, undefined, scheme === 'https' ? serverCertificate : null);
    const server = isSecure ? createSecureServer(demanding) : createServer();
    let received = 0;
    const { port } = await listen(t, server, (socket) =>
      socket.on('data', (data) => {
        received += data.length;
        if (received < size) return;
        received = Number.NEGATIVE_INFINITY;
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
        socket.write(Buffer.alloc(size, 'x'));
      }),
    );
    const client = makeClient(t);
    const body = [Buffer.alloc(size)];
    const origin = hidden(port, through(proxy), isSecure ? secure : {});
    const call = new Call(client, origin, { ...get('/', 'POST'), body });
    call.wanting = false;
    while (call.failure === null && call.events.at(-1) !== 'end') {
      const before = call.events.length;
      await eventually(() => call.events.length > before || call.bytes === size);
      call.exchange.resume();
      if (call.bytes === size) await call.over;
    }
    t.equal(call.failure, null);
    t.equal(call.bytes, size);
  });

  test(`${name}: a WebSocket`, async (t) => {
    const proxy = await startProxy(t, undefined, scheme === 'https' ? serverCertificate : null);
    const server = isSecure ? createSecureServer(demanding) : createServer();
    const { port } = await listen(t, server, (socket) =>
      onRequests(socket, (text) => socket.write(`${acceptance(text)}\x81\x02hi`, 'latin1')),
    );
    const heard = new Heard(hidden(port, through(proxy), isSecure ? secure : {}));
    await eventually(() => heard.messages.length === 1);
    t.equal(heard.messages[0]?.data.toString(), 'hi');
    t.equal(proxy.requests.length, 1);
    heard.socket.terminate();
  });

  test(`${name}: what is given up leaves nothing open`, async (t) => {
    const { proxy, origin } = await start(t, kind);
    proxy.answer = () => {};
    const client = makeClient(t);
    const call = new Call(client, origin);
    const { socket } = await proxy.request(0);
    call.exchange.cancel();
    await eventually(() => socket.destroyed);
    t.equal(client.stats().open, 0);
    const heard = new Heard(origin);
    const second = await proxy.request(1);
    heard.socket.terminate();
    await eventually(() => second.socket.destroyed);
    t.strictSame([call.events, heard.events], [[], []]);
  });

  test(`${name}: an origin that does not listen is a failure of the proxy's`, async (t) => {
    const { proxy, origin } = await start(t, kind);
    proxy.answer = ({ socket }) => socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 5\r\n\r\nwords');
    const detail = new RegExp(`proxy answered 502 \\(127.0.0.1:${proxy.port}\\)$`);
    const failure = { reason: 'proxy_failed', detail, bytesSent: false, headSeen: false };
    t.match((await new Call(makeClient(t), origin).over).failure, failure);
    t.match((await new Heard(origin).over).failure, failure);
  });
}

test('TLS sessions are resumed through a proxy, and with it', async (t) => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const reused: boolean[] = [];
    const note = (socket: unknown) => reused.push((socket as TLSSocket).isSessionReused());
    const proxy = await startProxy(
      t,
      (request) => {
        note(request.socket);
        request.open();
      },
      { ...serverCertificate, maxVersion },
    );
    const { port } = await listen(
      t,
      createSecureServer({ ...demanding, maxVersion, sessionIdContext: 'x' }),
      (socket) => {
        note(socket);
        answering(closing)(socket);
      },
    );
    const client = makeClient(t);
    const origin = hidden(port, through(proxy), secure);
    for (let i = 0; i < 2; i++) t.equal((await new Call(client, origin).over).body, 'ok');
    t.strictSame(reused, [false, false, true, true], maxVersion);
    const other = { ...origin, identity: 'other' };
    t.equal((await new Call(client, other).over).body, 'ok');
    t.strictSame(
      reused.slice(4),
      [true, false],
      "a ticket is of one way to the origin; the proxy's is another's too",
    );
  }
});

test("the proxy's name is looked up once, and the origin's never", async (t) => {
  const proxy = await startProxy(t, undefined, null, ownAddress);
  const { port } = await listen(t, createServer(), answering(closing));
  const asked: string[] = [];
  const resolve: Resolver = (name, _options, done) => {
    asked.push(name);
    setImmediate(done, null, [{ address: ownAddress, family: 4 }]);
  };
  const client = createUpstreamClient(createDialer(resolve));
  t.teardown(() => client.close());
  const named = { ...through(proxy), host: 'proxy.test' };
  for (let i = 0; i < 3; i++) t.equal((await new Call(client, hidden(port, named)).over).body, 'ok');
  t.strictSame(asked, ['proxy.test']);
  await proxy.close();
  for (let i = 0; i < 2; i++)
    t.match((await new Call(client, hidden(port, named)).over).failure, {
      reason: 'proxy_failed',
      detail: /proxy cannot be reached: ECONNREFUSED \(proxy\.test:\d+\)/,
    });
  t.strictSame(asked, ['proxy.test', 'proxy.test'], 'after a failure it may have moved');
});

test('a host that has no descriptor left for a connection to the proxy blames neither it nor the upstream', async (t) => {
  const error = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  const dialer = createDialer((_name, _options, done) => void setImmediate(done, error, []));
  const client = createUpstreamClient(dialer);
  t.teardown(() => client.close());
  const origin = hidden(9, { ...through(await startProxy(t)), host: 'proxy.test' });
  const failure = { reason: 'queue_full', detail: /proxy cannot be reached: EMFILE/, bytesSent: false };
  t.match((await new Call(client, origin).over).failure, failure);
  t.match((await new Heard(origin, {}, dialer).over).failure, failure);
});

test('a target of IPv6 stands in brackets', async (t) => {
  const proxy = await startProxy(t);
  const { port } = await listen(t, createServer(), answering(ok));
  t.equal(
    (await new Call(makeClient(t), hidden(port, through(proxy), { host: '2001:db8::1' })).over).body,
    'ok',
  );
  t.match(proxy.requests[0]?.head, `CONNECT [2001:db8::1]:${port} HTTP/1.1\r\nhost: [2001:db8::1]:${port}`);
});

test('what a proxy does in place of opening a tunnel', async (t) => {
  const cases: readonly (readonly [TestProxy['answer'], RegExp])[] = [
    [
      ({ socket }) => socket.write('HTTP/1.1 407 Say pass\r\nproxy-authenticate: Basic\r\n\r\n'),
      /: proxy answered 407 \(/,
    ],
    [
      ({ socket }) => socket.write('HTTP/1.1 302 X\r\nlocation: http://x/\r\n\r\n'),
      /: proxy answered 302 \(/,
    ],
    [
      ({ socket }) => socket.write(`${tunnelOpened}early`),
      /: proxy sent bytes behind the head of its answer \(/,
    ],
    [
      ({ socket }) => socket.write('HTTP/1.1 200 X\r\ncontent-length: 5\r\n\r\nearly'),
      /: proxy sent bytes behind the head of its answer \(/,
    ],
    [
      ({ socket }) => socket.write(`HTTP/1.1 200 X\r\nx: ${'a'.repeat(17 * 1024)}`),
      /: proxy gave a malformed answer: head too large \(/,
    ],
    [
      ({ socket }) => socket.write('SSH-2.0-x\r\n'),
      /: proxy gave a malformed answer: not an HTTP\/1 status line \(/,
    ],
    [({ socket }) => socket.end(), /: proxy closed the connection before it answered \(/],
    [({ socket }) => socket.end('HTTP/1.1 200 X\r\n'), /: proxy closed the connection before it answered \(/],
    [({ socket }) => socket.resetAndDestroy(), /: proxy broke the connection: ECONNRESET \(/],
  ];
  const proxy = await startProxy(t);
  const client = makeClient(t);
  for (const [answer, detail] of cases) {
    proxy.answer = answer;
    for (const more of [{}, secure]) {
      const origin = hidden(1, through(proxy, 'user:pass'), more);
      const failure = { reason: 'proxy_failed', bytesSent: false, headSeen: false };
      const call = await new Call(client, origin).over;
      t.match(call.failure, { ...failure, detail });
      const heard = await new Heard(origin).over;
      t.match(heard.failure, failure);
      t.equal(`${origin.authority}: ${heard.failure?.detail}`, call.failure?.detail);
      t.notMatch(call.failure?.detail, /user|pass|dXNlcjpwYXNz/);
    }
  }
  t.equal(client.stats().open, 0);
});

test('fields that would frame a body mean nothing in the answer of an opened tunnel', async (t) => {
  const proxy = await startProxy(t, (request) =>
    request.open('HTTP/1.0 200 OK\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n'),
  );
  const { port } = await listen(t, createServer(), answering(ok));
  t.equal((await new Call(makeClient(t), hidden(port, through(proxy))).over).body, 'ok');
});

test('a proxy that never answers is given up at the connection’s deadline', async (t) => {
  const proxy = await startProxy(t, () => {});
  const client = makeClient(t);
  const origin = hidden(1, through(proxy));
  const call = await new Call(client, origin, get(), { ...unhurried, connectMs: 50 }).over;
  const failure = {
    reason: 'connect_timeout',
    detail: /proxy opened no tunnel in time \(127/,
    bytesSent: false,
  };
  t.match(call.failure, failure);
  t.match((await new Heard(origin, { connectMs: 50 }).over).failure, failure);
  for (const { socket } of proxy.requests) await eventually(() => socket.destroyed);
});

test('an origin that does not answer its handshake behind a tunnel is told from a proxy that does not', async (t) => {
  const proxy = await startProxy(t);
  const { port } = await listen(t, createServer(), () => {});
  const call = await new Call(makeClient(t), hidden(port, through(proxy), secure), get(), {
    ...unhurried,
    connectMs: 2000,
  }).over;
  t.match(call.failure, { reason: 'connect_timeout', detail: /no connection in time$/ });
});

test('certificates that do not hold, of the proxy and of the origin behind it', async (t) => {
  const client = makeClient(t);
  const proxy = await startProxy(t, undefined, serverCertificate);
  const untrusted = resolveProxy(proxy.url(), null) as EgressProxy;
  t.match((await new Call(client, hidden(1, untrusted)).over).failure, {
    reason: 'proxy_failed',
    detail: /proxy could not be trusted: the certificate was issued by an unknown authority|self-signed/,
  });
  const { port, sockets } = await listen(t, createSecureServer(demanding), answering(ok));
  const other = { ...secure, serverName: 'other.test', identity: 'name' };
  t.match((await new Call(client, hidden(port, through(proxy), other)).over).failure, {
    reason: 'tls_failed',
    detail: /another name/,
  });
  const bare = { ...secure, clientCertificate: null, identity: 'bare' };
  const call = await new Call(client, hidden(port, through(proxy), bare)).over;
  t.ok(call.failure, 'an origin that wants a certificate gets none');
  t.equal(sockets.length, 0);
});

test('an origin is shown its certificate without a proxy too, and a broken one is a failure', async (t) => {
  const client = makeClient(t);
  const { port, sockets } = await listen(t, createSecureServer(demanding), answering(ok));
  t.equal((await new Call(client, plainOrigin(port, secure)).over).body, 'ok');
  t.equal((sockets[0] as TLSSocket).getPeerCertificate().subject.CN, 'gateway');
  const broken = { ...secure, clientCertificate: { cert: 'none', key: 'none' }, identity: 'broken' };
  t.match((await new Call(client, plainOrigin(port, broken)).over).failure, { bytesSent: false });
  const proxy = await startProxy(t);
  t.match((await new Call(client, hidden(port, through(proxy), broken)).over).failure, { bytesSent: false });
  t.equal(proxy.requests.length, 0);
});

test('a proxy that dies within an answer cuts it, and what had come before is delivered', async (t) => {
  const proxy = await startProxy(t);
  for (const more of [{}, secure]) {
    const server = 'secure' in more ? createSecureServer(demanding) : createServer();
    const { port } = await listen(t, server, answering('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello'));
    const call = new Call(makeClient(t), hidden(port, through(proxy), more));
    const { socket } = await proxy.request(proxy.requests.length);
    call.wanting = false;
    await eventually(() => call.body === 'hello');
    socket.resetAndDestroy();
    call.wanting = true;
    call.exchange.resume();
    await call.over;
    t.match(call.failure, { reason: /reset|truncated/, headSeen: true, bytesSent: true });
  }
});

test('what had come before a tunnel broke under a paused receiver arrives on resume', async (t) => {
  const proxy = await startProxy(t);
  for (const announced of [20_000, 30_000]) {
    const raw: Socket[] = [];
    let isNoticed = false;
    const tls = createSecureServer(demanding);
    tls.on('connection', (socket) => raw.push(socket));
    const { port } = await listen(t, tls, (socket) =>
      onRequests(socket, () => {
        // The alert of whoever reads the last.
        socket.on('error', () => {
          isNoticed = true;
        });
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${announced}\r\n\r\n`);
        // More than one read, and no more than a paused stream takes on, or the breach would be noticed at its end.
        socket.write(Buffer.alloc(20_000, 'x'));
        setImmediate(() => raw[0]?.write('no TLS record'));
      }),
    );
    const client = makeClient(t);
    const call = new Call(client, hidden(port, through(proxy), secure));
    call.wanting = false;
    await eventually(() => isNoticed);
    t.strictSame(
      call.events.filter((event) => event === 'failure'),
      [],
    );
    call.wanting = true;
    call.exchange.resume();
    await call.over;
    t.equal(call.bytes, 20_000);
    t.equal(call.failure?.reason ?? null, announced === 20_000 ? null : 'reset');
    t.equal(client.stats().open, 0);
  }
});

test('the same origin through two proxies, or as two users, shares no connection', async (t) => {
  const proxies = [await startProxy(t), await startProxy(t)] as const;
  const { port, sockets } = await listen(t, createServer(), answering(ok));
  const client = makeClient(t);
  const ways = [through(proxies[0], 'a'), through(proxies[0], 'b'), through(proxies[1], 'a')];
  for (let i = 0; i < 2; i++)
    for (const way of ways) t.equal((await new Call(client, hidden(port, way)).over).body, 'ok');
  t.equal(sockets.length, 3);
  t.strictSame(
    proxies.map(({ requests }) => requests.length),
    [2, 1],
  );
});

test('an answer to CONNECT is read alike wherever it is cut', async (t) => {
  const texts = [
    [tunnelOpened, 'open'],
    [`HTTP/1.1 100 Continue\r\n\r\n${tunnelOpened}`, 'open'],
    ['HTTP/1.1 407 X\r\na: b\r\n\r\n', 'answered 407'],
  ] as const;
  for (const [text, outcome] of texts) {
    for (let cut = 1; cut < text.length; cut++) {
      const answer = new ConnectAnswer();
      t.equal(answer.read(Buffer.from(text.slice(0, cut), 'latin1')), 'more') || t.bailout();
      t.equal(answer.read(Buffer.from(text.slice(cut), 'latin1')), outcome) || t.bailout();
    }
  }
});
