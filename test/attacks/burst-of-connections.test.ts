import { lookup } from 'node:dns';
import { type Test, test } from 'tap';
import { surfaceFault } from '../../src/errors.js';
import type { Resolver } from '../../src/upstream/address.js';
import { createUpstreamClient } from '../../src/upstream/client.js';
import { createDialer } from '../../src/upstream/dial.js';
import { createNameCache } from '../../src/upstream/names.js';
import { openSocket } from '../../src/upstream/socket.js';
import { eventually } from '../support/eventually.js';
import { ownAddress } from '../support/free-port.js';
import { answering, Call, plainOrigin, rawServer, unhurried } from '../upstream/raw.js';
import { socketRequest } from '../upstream/socket-peers.js';

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** A resolver that answers when it is told to, and notes what it was asked. */
function heldResolver() {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  let addresses = [{ address: '127.0.0.1', family: 4 }];
  let error: Error | null = null;
  const resolve: Resolver = (name, _options, done) => {
    asked.push(name);
    waiting.push(() => done(error, error === null ? addresses : []));
  };
  return {
    asked,
    resolve,
    set: (next: typeof addresses | Error) => {
      error = next instanceof Error ? next : null;
      if (!(next instanceof Error)) addresses = next;
    },
    answer: () => {
      for (const each of waiting.splice(0)) each();
    },
  };
}

function clientWith(t: Test, resolve: Resolver) {
  const client = createUpstreamClient(createDialer(resolve));
  t.teardown(() => client.close());
  return client;
}

test('a burst of cold connections asks once for the name of its upstream, and all are made', async (t) => {
  const resolver = heldResolver();
  const client = clientWith(t, resolver.resolve);
  const server = await rawServer(t, answering(ok));
  const origin = plainOrigin(server.port, { host: 'upstream.example', maxConnections: 64 });
  const calls = Array.from({ length: 50 }, () => new Call(client, origin));
  t.strictSame(resolver.asked, ['upstream.example']);
  resolver.answer();
  for (const call of calls) t.equal((await call.over).body, 'ok');
  t.equal(server.sockets.length, 50);
  for (const socket of server.sockets) socket.destroy();
  await eventually(() => client.stats().open === 0);
  t.equal((await new Call(client, origin).over).body, 'ok');
  t.equal(resolver.asked.length, 1, 'the answer is kept');
});

test('TLS and WebSocket connections ask through the same memory', async (t) => {
  const resolver = heldResolver();
  const dialer = createDialer(resolver.resolve);
  const client = createUpstreamClient(dialer);
  t.teardown(() => client.close());
  const server = await rawServer(t, (socket) => socket.end('nonsense\r\n\r\n'));
  const plain = plainOrigin(server.port, { host: 'upstream.example' });
  const secure = { ...plain, secure: true, serverName: 'upstream.example', identity: 'tls' };
  const failures: string[] = [];
  const listener = {
    ...{ onOpen() {}, onDeclined() {}, onMessage() {}, onReadEnd() {}, onDrained() {}, onClosed() {} },
    hold: () => true,
    onFault: (_where: string, fault: unknown) => surfaceFault(fault),
    onFailed: ({ reason }: { reason: string }) => failures.push(reason),
  };
  const calls = [new Call(client, plain), new Call(client, secure)];
  for (const origin of [plain, secure]) openSocket(socketRequest(origin), dialer, listener);
  t.equal(resolver.asked.length, 1);
  resolver.answer();
  await Promise.all(calls.map((call) => call.over));
  await eventually(() => failures.length === 2);
  t.strictSame(failures.sort(), ['malformed_answer', 'tls_failed']);
  t.match(calls[0]?.failure, { reason: 'malformed_answer' });
  t.match(calls[1]?.failure, { reason: 'tls_failed' });
});

test('what cannot be resolved fails all that wait, and is asked anew by the next', async (t) => {
  const resolver = heldResolver();
  const client = clientWith(t, resolver.resolve);
  const server = await rawServer(t, answering(ok));
  const origin = plainOrigin(server.port, { host: 'upstream.example' });
  resolver.set(Object.assign(new Error('getaddrinfo'), { code: 'EAI_AGAIN' }));
  const calls = [new Call(client, origin), new Call(client, origin)];
  resolver.answer();
  for (const call of calls)
    t.match((await call.over).failure, { reason: 'connect_failed', detail: /EAI_AGAIN/, bytesSent: false });
  for (const answer of [[], [{ address: '127.0.0.1', family: 4 }]]) {
    resolver.set(answer);
    const call = new Call(client, origin);
    resolver.answer();
    t.equal((await call.over).body, answer.length === 0 ? '' : 'ok');
  }
  t.equal(resolver.asked.length, 3);
});

test('a host that has no descriptor left for a connection is short of them itself: its upstream has not failed', async (t) => {
  const error = Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  const dialer = createDialer((_name, _options, done) => void setImmediate(done, error, []));
  const client = createUpstreamClient(dialer);
  t.teardown(() => client.close());
  const plain = plainOrigin(9, { host: 'upstream.example' });
  const failed = await new Call(client, plain).over;
  t.match(failed.failure, { reason: 'queue_full', detail: /EMFILE/, bytesSent: false });
  const reason = await new Promise<string>((resolve) => {
    const listener = {
      ...{ onOpen() {}, onDeclined() {}, onMessage() {}, onReadEnd() {}, onDrained() {}, onClosed() {} },
      hold: () => true,
      onFault: (_where: string, fault: unknown) => surfaceFault(fault),
      onFailed: (failure: { reason: string }) => resolve(failure.reason),
    };
    openSocket(socketRequest(plain), dialer, listener);
  });
  t.equal(reason, 'queue_full');
});

test('an address where nobody listens is forgotten, so that an upstream that moves is found', async (t) => {
  const resolver = heldResolver();
  const client = clientWith(t, resolver.resolve);
  const { port } = await rawServer(t, answering(ok));
  const origin = plainOrigin(port, { host: 'upstream.example' });
  resolver.set([{ address: ownAddress, family: 4 }]);
  const call = new Call(client, origin);
  resolver.answer();
  t.match((await call.over).failure, { reason: 'connect_failed' });
  resolver.set([{ address: '127.0.0.1', family: 4 }]);
  const next = new Call(client, origin);
  resolver.answer();
  t.equal((await next.over).body, 'ok');
  client.close();
});

test('a connection that times out on its way to the name is told so, and later ones need not wait for it', async (t) => {
  const resolver = heldResolver();
  const client = clientWith(t, resolver.resolve);
  const server = await rawServer(t, answering(ok));
  const origin = plainOrigin(server.port, { host: 'upstream.example' });
  const impatient = new Call(client, origin, undefined, { ...unhurried, connectMs: 50 });
  const patient = new Call(client, origin);
  t.match((await impatient.over).failure, { reason: 'connect_timeout', bytesSent: false });
  resolver.answer();
  t.equal((await patient.over).body, 'ok');
  t.equal(resolver.asked.length, 1);
});

test('addresses take turns within the family that comes first, and a dead one is passed over', async (t) => {
  const found = ['127.0.0.1', '::1', '127.0.0.2', '127.0.0.3'].map((address) => ({
    address,
    family: address.includes(':') ? 6 : 4,
  }));
  const names = createNameCache((_name, _options, done) => done(null, found));
  const ask = (all: boolean): Promise<unknown> =>
    new Promise((resolve) => names.lookup('x.example', { all }, (_error, result) => resolve(result)));
  const orders: string[] = [];
  for (let i = 0; i < 4; i++)
    orders.push(((await ask(true)) as { address: string }[]).map(({ address }) => address).join(' '));
  t.strictSame(orders, [
    '127.0.0.1 127.0.0.2 127.0.0.3 ::1',
    '127.0.0.2 127.0.0.3 127.0.0.1 ::1',
    '127.0.0.3 127.0.0.1 127.0.0.2 ::1',
    '127.0.0.1 127.0.0.2 127.0.0.3 ::1',
  ]);
  t.equal(await ask(false), '127.0.0.2');

  const server = await rawServer(t, answering(ok));
  const client = clientWith(t, (_name, _options, done) => done(null, found.slice(0, 3)));
  const origin = plainOrigin(server.port, { host: 'x.example', maxConnections: 8 });
  const calls = Array.from({ length: 4 }, () => new Call(client, origin));
  for (const call of calls) t.equal((await call.over).body, 'ok');
});

test('names of the hosts file and addresses work as before', async (t) => {
  const asked: string[] = [];
  const client = clientWith(t, (name, options, done) => {
    asked.push(name);
    lookup(name, options, done);
  });
  const server = await rawServer(t, answering(ok));
  for (const host of ['localhost', '127.0.0.1'])
    t.equal((await new Call(client, plainOrigin(server.port, { host, identity: host })).over).body, 'ok');
  t.strictSame(asked, ['localhost']);
});

test('no more names are remembered than there is room for, and no two answers are mixed up', async (t) => {
  let asked = 0;
  const names = createNameCache((name, _options, done) => {
    asked++;
    done(null, [{ address: name.replace(/^n/, ''), family: 4 }]);
  });
  const ask = (name: string): Promise<string> =>
    new Promise((resolve) => names.lookup(name, {}, (_error, address) => resolve(address as string)));
  for (let i = 0; i < 2000; i++) t.equal(await ask(`n${i}`), `${i}`);
  for (let i = 1999; i > 1900; i--) t.equal(await ask(`n${i}`), `${i}`);
  t.equal(asked, 2000);
  t.equal(await ask('n0'), '0');
  t.equal(asked, 2001);
});
