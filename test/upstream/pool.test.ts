import { test } from 'tap';
import { createUpstreamClient } from '../../src/upstream/client.js';
import { createDialer } from '../../src/upstream/dial.js';
import type { Origin } from '../../src/upstream/origin.js';
import { eventually } from '../support/eventually.js';
import { answering, Call, get, makeClient, onRequests, plainOrigin, rawServer, unhurried } from './raw.js';

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

test('a connection is used again, the last one given back first', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  const both = [new Call(client, server.origin), new Call(client, server.origin)];
  await Promise.all(both.map((call) => call.over));
  t.strictSame(client.stats(), { open: 2, idle: 2, busy: 0, waiting: 0 });
  for (let i = 0; i < 5; i++) t.equal((await new Call(client, server.origin).over).body, 'ok');
  t.equal(server.sockets.length, 2);
});

test('a request sent from onEnd finds the connection free', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  const first = new Call(client, server.origin);
  let second: Call | null = null;
  first.onEvent = (event) => {
    if (event === 'end') second = new Call(client, server.origin);
  };
  await first.over;
  t.equal((await (second as unknown as Call).over).body, 'ok');
  t.equal(server.sockets.length, 1);
});

test('no more connections than allowed, the rest wait their turn', async (t) => {
  const client = makeClient(t);
  const seen: string[] = [];
  const server = await rawServer(t, (socket) =>
    onRequests(socket, (text) => {
      seen.push(text.split(' ')[1] as string);
      socket.write(ok);
    }),
  );
  const origin = plainOrigin(server.port, { maxConnections: 1, maxWaiting: 3 });
  const calls = ['/a', '/b', '/c', '/d'].map((path) => new Call(client, origin, get(path)));
  t.strictSame(client.stats(), { open: 1, idle: 0, busy: 1, waiting: 3 });
  t.equal(calls[1]?.exchange.sentAt, 0);
  const refused = new Call(client, origin, get('/e'));
  t.equal(refused.failure, null, 'nothing is called before send has returned');
  await Promise.all(calls.map((call) => call.over));
  t.strictSame(seen, ['/a', '/b', '/c', '/d']);
  t.ok(calls.every((call) => call.body === 'ok' && call.exchange.sentAt > 0));
  await refused.over;
  t.match(refused.failure, { reason: 'queue_full', bytesSent: false, headSeen: false });
  t.equal(server.sockets.length, 1);
});

test('a lost connection gives its place to the first that waits', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket, index) =>
    onRequests(socket, () => (index === 0 ? socket.resetAndDestroy() : socket.write(ok))),
  );
  const origin = plainOrigin(server.port, { maxConnections: 1 });
  const [first, second] = [new Call(client, origin), new Call(client, origin)];
  await Promise.all([first.over, second.over]);
  t.match(first.failure, { reason: 'reset', bytesSent: true, headSeen: false });
  t.equal(second.body, 'ok');
});

test('a reused connection that was closed meanwhile is replaced once', async (t) => {
  const client = makeClient(t);
  for (const how of ['end', 'resetAndDestroy'] as const) {
    const server = await rawServer(t, (socket, index) => {
      let served = 0;
      onRequests(socket, () => {
        if (index === 0 && served++ === 1) socket[how]();
        else socket.write(ok);
      });
    });
    await new Call(client, server.origin).over;
    const again = await new Call(client, server.origin).over;
    t.equal(again.failure, null, how);
    t.equal(again.body, 'ok');
    t.equal(server.sockets.length, 2);
  }
});

test('the retry takes a fresh connection, and only one', async (t) => {
  const client = makeClient(t);
  let refuse = false;
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => (refuse ? socket.destroy() : socket.write(ok))),
  );
  const three = [1, 2, 3].map(() => new Call(client, server.origin));
  await Promise.all(three.map((call) => call.over));
  t.equal(client.stats().idle, 3);
  refuse = true;
  const call = await new Call(client, server.origin).over;
  t.match(call.failure, { reason: /reset|closed/, bytesSent: true, headSeen: false });
  t.equal(server.sockets.length, 4);
  t.equal(client.stats().idle, 2);
});

test('a fresh connection that fails, and one that had begun to answer, are not tried again', async (t) => {
  const client = makeClient(t);
  const fresh = await rawServer(t, (socket) => onRequests(socket, () => socket.destroy()));
  t.match((await new Call(client, fresh.origin).over).failure, { reason: 'reset', bytesSent: true });
  t.equal(fresh.sockets.length, 1);

  const begun = await rawServer(t, (socket) => {
    let served = 0;
    onRequests(socket, () => (served++ === 0 ? socket.write(ok) : socket.end('HTTP/1.1 2')));
  });
  await new Call(client, begun.origin).over;
  t.match((await new Call(client, begun.origin).over).failure, { reason: 'truncated', headSeen: false });
  t.equal(begun.sockets.length, 1);
});

test('bytes after an answer poison the connection', async (t) => {
  const client = makeClient(t);
  const answers = [
    `${ok}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`,
    `${ok}\r\n`,
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nx',
    'HTTP/1.1 204 No Content\r\n\r\nx',
    'HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n\r\nevil',
  ];
  for (const answer of answers) {
    const server = await rawServer(t, answering(answer));
    for (let i = 1; i <= 2; i++) {
      const call = await new Call(client, server.origin).over;
      t.equal(call.failure, null);
      t.not(call.body, 'evil');
      t.equal(server.sockets.length, i);
    }
  }
  await eventually(() => client.stats().open === 0);
});

test('bytes on an idle connection destroy it', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  await new Call(client, server.origin).over;
  server.sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil');
  await eventually(() => client.stats().open === 0);
  t.equal((await new Call(client, server.origin).over).body, 'ok');
  t.equal(server.sockets.length, 2);
});

test('an answer that was there before its request is nobody’s, and the request goes elsewhere', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  await new Call(client, server.origin).over;
  // From this phase of the loop the request is written only after the next look at the sockets.
  const call = await new Promise<Call>((resolve) => {
    setImmediate(() => {
      server.sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad');
      resolve(new Call(client, server.origin));
    });
  });
  t.equal((await call.over).body, 'ok');
  t.equal(server.sockets.length, 2, 'on a fresh connection');
});

test('what an upstream goes on sending once it has answered is no head of the next answer', async (t) => {
  const client = makeClient(t);
  const more = 'A'.repeat(20_000);
  for (const answer of [
    'HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n',
    'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
  ]) {
    const server = await rawServer(t, (socket, index) => {
      let served = 0;
      onRequests(socket, () => {
        if (index > 0) socket.write(ok);
        // Its rest comes behind the next request.
        else socket.write(served++ === 0 ? answer : more);
      });
    });
    t.equal((await new Call(client, server.origin).over).failure, null);
    const next = await new Call(client, server.origin).over;
    t.match(next.failure, {
      reason: 'malformed_answer',
      detail: /not an HTTP\/1 status line/,
      headSeen: false,
    });
    t.equal((await new Call(client, server.origin).over).body, 'ok', 'on a fresh connection');
    t.equal(server.sockets.length, 2);
  }
});

test('an idle connection that the upstream ends is closed', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  await new Call(client, server.origin).over;
  server.sockets[0]?.end();
  await eventually(() => client.stats().open === 0);
  t.pass();
});

test('an answer that closes, an HTTP/1.0 answer and a short keep-alive end the connection', async (t) => {
  const client = makeClient(t);
  const answers = [
    'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok',
    'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nok',
  ];
  for (const answer of answers) {
    const server = await rawServer(t, answering(answer));
    t.equal((await new Call(client, server.origin).over).body, 'ok');
    t.equal(client.stats().open, 0);
  }
});

test('an idle connection is closed a second before the upstream would', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(
    t,
    answering('HTTP/1.1 200 OK\r\nkeep-alive: timeout=2\r\ncontent-length: 2\r\n\r\nok'),
  );
  await new Call(client, server.origin).over;
  t.equal(client.stats().idle, 1);
  await new Promise((resolve) => server.sockets[0]?.on('end', resolve));
  t.equal(client.stats().open, 0);
});

test('close lets running and waiting requests end and refuses new ones', async (t) => {
  const client = createUpstreamClient();
  const server = await rawServer(t, answering(ok));
  const other = await rawServer(t, answering(ok));
  await new Call(client, other.origin).over;
  const origin = plainOrigin(server.port, { maxConnections: 1 });
  const [first, second] = [new Call(client, origin), new Call(client, origin)];
  client.close();
  t.strictSame(client.stats(), { open: 1, idle: 0, busy: 1, waiting: 1 });
  const late = await new Call(client, origin).over;
  t.match(late.failure, { reason: 'closed', bytesSent: false });
  await Promise.all([first.over, second.over]);
  t.strictSame([first.body, second.body], ['ok', 'ok']);
  t.strictSame(client.stats(), { open: 0, idle: 0, busy: 0, waiting: 0 });
});

test('different identities never share a connection', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  await new Call(client, server.origin).over;
  await new Call(client, { ...server.origin, identity: 'another' }).over;
  t.equal(server.sockets.length, 2);
});

test('a failed connect says so, and leaves nothing behind', async (t) => {
  const client = makeClient(t);
  const call = await new Call(client, plainOrigin(1, { identity: 'nobody' }), get(), unhurried).over;
  t.match(call.failure, { reason: 'connect_failed', detail: /ECONNREFUSED/, bytesSent: false });
  const wrong = await new Call(client, plainOrigin(99_999, { identity: 'no port' })).over;
  t.match(wrong.failure, { reason: 'connect_failed', bytesSent: false });
  t.equal(client.stats().open, 0);
});

test('idle connections to an origin give way to those that others need', async (t) => {
  const client = createUpstreamClient(createDialer(), { mostConnections: 4 });
  t.teardown(() => client.close());
  const kept = ok.replace('\r\n\r\n', '\r\nkeep-alive: timeout=600\r\n\r\n');
  const [left, asked] = [await rawServer(t, answering(kept)), await rawServer(t, answering(kept))];
  const call = async ({ origin }: typeof left, times: number): Promise<void> => {
    const calls = Array.from({ length: times }, () => new Call(client, origin));
    for (const each of calls) t.equal((await each.over).body, 'ok');
  };
  await call(left, 3);
  await call(asked, 3);
  t.strictSame(client.stats(), { open: 4, idle: 4, busy: 0, waiting: 0 });
  t.equal(asked.sockets.length, 3);
  await call(asked, 6);
  t.equal(client.stats().idle, 6, 'where all others are in use, a call gets one of its own');
  t.equal(left.sockets.length, 3);
});

test('connections that are not kept count for no other, and take no room from them', async (t) => {
  const client = createUpstreamClient(createDialer(), { mostConnections: 2 });
  t.teardown(() => client.close());
  const kept = ok.replace('\r\n\r\n', '\r\nkeep-alive: timeout=600\r\n\r\n');
  const [own, foreign] = [await rawServer(t, answering(kept)), await rawServer(t, answering(kept))];
  const call = async (origin: Origin, times: number): Promise<void> => {
    const calls = Array.from({ length: times }, () => new Call(client, origin));
    for (const each of calls) t.equal((await each.over).body, 'ok');
  };
  await call(own.origin, 2);
  await call({ ...foreign.origin, isKept: false }, 3);
  t.strictSame(client.stats(), { open: 2, idle: 2, busy: 0, waiting: 0 });
  t.equal(own.sockets.length, 2);
  t.ok(own.sockets.every((socket) => !socket.destroyed));
});

test('that requests wait for a connection is told once of each origin', async (t) => {
  const told: string[] = [];
  const client = createUpstreamClient(createDialer(), {
    onFirstWaiting: ({ authority }) => told.push(authority),
  });
  t.teardown(() => client.close());
  const server = await rawServer(t, answering(ok));
  const origin = plainOrigin(server.port, { maxConnections: 1 });
  for (let round = 0; round < 2; round++) {
    const calls = Array.from({ length: 3 }, () => new Call(client, origin));
    await Promise.all(calls.map((call) => call.over));
  }
  t.strictSame(told, [origin.authority]);
});

test('what must not be sent twice takes no connection that its upstream may be closing', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(ok));
  await new Call(client, server.origin).over;
  const later = performance.now() + 5000;
  const { now } = performance;
  performance.now = () => later;
  t.teardown(() => {
    performance.now = now;
  });
  await new Call(client, server.origin, { ...get('/once'), hasEffects: () => true }).over;
  t.equal(server.sockets.length, 2);
});
