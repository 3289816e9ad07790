import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { test } from 'tap';
import { createSecureProfiles } from '../../src/upstream/secure.js';
import { eventually } from '../support/eventually.js';
import { answering, Call, get, listen, makeClient, onRequests } from './raw.js';

// Written by openssl for these tests alone; the keys open nothing. ca.pem signed localhost.pem (names: localhost and
// 127.0.0.1), expired.pem and client.pem, which is for clients alone; all but expired.pem are valid for a hundred years.
const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');
const ca = pem('ca.pem');
const good = { cert: pem('localhost.pem'), key: pem('localhost.key') };
const expired = { cert: pem('expired.pem'), key: pem('localhost.key') };

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

const tlsServer = (t: Parameters<typeof listen>[0], options: TlsOptions, answer = answering(ok)) =>
  listen(t, createServer({ ALPNProtocols: ['http/1.1'], ...options }), answer);

const secure = { secure: true, serverName: 'localhost', ca, identity: 'tls' };

test('a certificate of the given authority is accepted, and the name is sent', async (t) => {
  const client = makeClient(t);
  const server = await tlsServer(t, good);
  const origin = { ...server.origin, ...secure };
  for (let i = 0; i < 3; i++) t.equal((await new Call(client, origin).over).body, 'ok');
  t.equal(server.sockets.length, 1);
  const socket = server.sockets[0] as TLSSocket & { servername: string };
  t.equal(socket.servername, 'localhost');
  t.equal(socket.alpnProtocol, 'http/1.1');
});

test('what is kept of a TLS server that is in use is not dropped for that of many others', (t) => {
  const profiles = createSecureProfiles();
  const peerOf = (identity: string) => ({
    ...{ identity, host: 'a.test', port: 443, serverName: 'a.test', ca: null },
    ...{ clientCertificate: null, verify: true, isKept: true },
  });
  const [used, unused] = [profiles(peerOf('used')), profiles(peerOf('unused'))];
  for (let number = 0; number < 300; number++) {
    profiles(peerOf(`other ${number}`));
    t.equal(profiles(peerOf('used')), used, String(number));
  }
  t.not(profiles(peerOf('unused')), unused, 'but that of one that is not');
  t.end();
});

test('a host that resolves to several addresses is reached', async (t) => {
  const client = makeClient(t);
  const server = await tlsServer(t, good);
  const origin = { ...server.origin, ...secure, host: 'localhost' };
  t.equal((await new Call(client, origin).over).body, 'ok');
});

test('an address is checked against the certificate and is not sent as a name', async (t) => {
  const client = makeClient(t);
  const server = await tlsServer(t, good);
  t.equal((await new Call(client, { ...server.origin, ...secure, serverName: '127.0.0.1' }).over).body, 'ok');
  t.notOk((server.sockets[0] as TLSSocket & { servername: string }).servername);
});

test('certificates that do not hold are refused with the reason', async (t) => {
  const client = makeClient(t);
  const server = await tlsServer(t, good);
  const old = await tlsServer(t, expired);
  const alone = await tlsServer(t, { cert: ca, key: pem('ca.key') });
  const cases = [
    [{ ...server.origin, ...secure, serverName: 'example.com', identity: 'name' }, /another name/],
    [{ ...server.origin, ...secure, serverName: '127.0.0.2', identity: 'address' }, /another name/],
    [{ ...server.origin, ...secure, ca: null, identity: 'system' }, /unknown authority|self-signed/],
    [{ ...old.origin, ...secure, identity: 'expired' }, /expired/],
    [{ ...alone.origin, ...secure, ca: null, identity: 'self' }, /self-signed/],
  ] as const;
  for (const [origin, detail] of cases) {
    const call = await new Call(client, origin).over;
    t.match(call.failure, { reason: 'tls_failed', detail, bytesSent: false, headSeen: false });
  }
  t.equal(client.stats().open, 0);
});

test('verification can be switched off', async (t) => {
  const client = makeClient(t);
  const server = await tlsServer(t, expired);
  const origin = { ...server.origin, ...secure, ca: null, verify: false };
  t.equal((await new Call(client, origin).over).body, 'ok');
});

test('a peer that does not speak TLS, and a CA that is none, are failures', async (t) => {
  const client = makeClient(t);
  const plain = await listen(t, (await import('node:net')).createServer(), (socket) => {
    socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  });
  t.match((await new Call(client, { ...plain.origin, ...secure }).over).failure, { reason: 'tls_failed' });
  const broken = { ...plain.origin, ...secure, ca: 'no PEM', identity: 'broken' };
  t.match((await new Call(client, broken).over).failure, { bytesSent: false });
});

test('a session is resumed on the next connection', async (t) => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const client = makeClient(t);
    const reused: boolean[] = [];
    const server = await tlsServer(t, { ...good, maxVersion }, (socket) => {
      reused.push((socket as TLSSocket).isSessionReused());
      onRequests(socket, () =>
        socket.write(ok.replace('content-length', 'connection: close\r\ncontent-length')),
      );
    });
    for (let i = 0; i < 2; i++) await new Call(client, { ...server.origin, ...secure }).over;
    t.strictSame(reused, [false, true], maxVersion);
  }
});

test('no session is resumed when the certificate that it was begun with has expired', async (t) => {
  const client = makeClient(t);
  const reused: boolean[] = [];
  const server = await tlsServer(t, good, (socket) => {
    reused.push((socket as TLSSocket).isSessionReused());
    onRequests(socket, () =>
      socket.write(ok.replace('content-length', 'connection: close\r\ncontent-length')),
    );
  });
  const call = () => new Call(client, { ...server.origin, ...secure }).over;
  await call();
  await call();
  t.intercept(Date, 'now', { value: () => Date.parse('2120-01-01T00:00:00Z') });
  await call();
  t.strictSame(reused, [false, true, false]);
});

test('a paused body over TLS gives one piece for one resume, and arrives whole', async (t) => {
  const client = makeClient(t);
  const total = 8 << 20;
  const server = await tlsServer(t, good, (socket) =>
    onRequests(socket, () => {
      socket.write(`HTTP/1.1 200 OK\r\n\r\n`);
      socket.end(Buffer.alloc(total, 'x'));
    }),
  );
  const call = new Call(client, { ...server.origin, ...secure });
  call.wanting = false;
  await eventually(() => call.bytes > 0);
  for (let i = 0; i < 300; i++) {
    const before = call.events.length;
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.equal(call.events.length, before);
    call.exchange.resume();
    await eventually(() => call.events.length > before);
    if (call.failure !== null || call.events.at(-1) === 'end') break;
  }
  call.wanting = true;
  call.exchange.resume();
  await call.over;
  t.equal(call.failure, null);
  t.equal(call.bytes, total);
});

test('what had come before a connection broke under a paused receiver arrives on resume', async (t) => {
  for (const announced of [20_000, 30_000]) {
    const client = makeClient(t);
    const raw: Socket[] = [];
    const tls = createServer({ ALPNProtocols: ['http/1.1'], ...good });
    tls.on('connection', (socket) => raw.push(socket));
    const server = await listen(t, tls, (socket) =>
      onRequests(socket, () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${announced}\r\n\r\n`);
        socket.write(Buffer.alloc(20_000, 'x'));
        // In one read with the answer.
        setImmediate(() => raw[0]?.write('no TLS record'));
      }),
    );
    const call = new Call(client, { ...server.origin, ...secure });
    call.wanting = false;
    await eventually(() => call.bytes > 0);
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.strictSame(call.events, ['head', 'data']);
    call.wanting = true;
    call.exchange.resume();
    await call.over;
    t.equal(call.bytes, 20_000);
    t.equal(call.failure?.reason ?? null, announced === 20_000 ? null : 'reset');
    t.equal(client.stats().open, 0);
  }
});

test('a large request body goes out whole over TLS', async (t) => {
  const client = makeClient(t);
  let received = 0;
  const body = [Buffer.alloc(3 << 20), Buffer.alloc(5)];
  const server = await tlsServer(t, good, (socket) =>
    socket.on('data', (data) => {
      received += data.length;
      if (received >= (3 << 20) + 5) socket.write(ok);
    }),
  );
  const call = new Call(client, { ...server.origin, ...secure }, { ...get('/', 'POST'), body });
  t.equal((await call.over).body, 'ok');
});
