import { test } from 'tap';
import { FrameReader } from '../../src/upstream/socket-reader.js';
import { eventually } from '../support/eventually.js';
import { startGateway, testKey } from '../support/gateway.js';
import { openClient, type SessionClient, startRealtimeUpstream } from '../support/realtime.js';
import { connect } from '../support/responses-socket.js';
import { Heard, socketServer } from '../upstream/socket-peers.js';
import { socketBytes } from './held-bytes.js';

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
/**
 * What all keys may hold is compared with what the process has grown by, too, which is the clients and the upstream here: so
 * it is large, and what one key may hold is what counts.
 */
const sockets = { messageBytes: mebibyte, heldBytes: 256 * mebibyte, heldBytesPerKey: 1.5 * mebibyte };

test('an upstream whose messages do not end fills one key its part, and no more', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets },
  });
  const clients: SessionClient[] = [];
  for (let at = 0; at < 4; at++) clients.push(await openClient(t, gateway.port));
  for (let at = 0; at < 4; at++) {
    const { socket } = await upstream.arrival(at);
    socket.send(Buffer.alloc(900 * kibibyte, 0x20), { fin: false, binary: false });
  }
  const ended = await eventually(
    async () => (await Promise.all(clients.map((client) => client.socket.readyState > 1))).filter(Boolean),
    { fits: ({ length }) => length === 3 },
  );
  t.equal(ended.length, 3);
  for (const [at, { socket, closed, received }] of clients.entries()) {
    if (socket.readyState <= 1) {
      upstream.arrivals[at]?.socket.send('{}', { fin: true, binary: false });
      await eventually(() => received.length === 1);
      t.equal(String(received[0]).trim(), '{}', 'the message that found room comes whole');
      continue;
    }
    const { code, reason } = await closed;
    t.equal(code, 1013);
    t.match(reason, /no memory/);
    t.match(JSON.parse(String(received[0])), { type: 'error', error: { type: 'server_error' } });
    t.equal((await upstream.arrivals[at]?.closed)?.code, 1013, 'and the upstream is told');
  }
  const left = await eventually(() => socketBytes(gateway), { fits: (bytes) => bytes < 100 * kibibyte });
  t.ok(
    left > 0,
    'what was held was given back, but for the open socket and connections that have yet to end',
  );
});

test('the answer to a message of a responses socket finds room in the part of its key, or is an error', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) => {
    socket.on('message', (data) => {
      if (data.toString().includes('unfinished'))
        socket.send(Buffer.alloc(900 * kibibyte, 0x20), { fin: false });
      else socket.send('{"type":"response.completed","response":{"id":"r","output":[]}}');
    });
  });
  const { url } = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { responsesSocket: true },
    config: {
      models: { m: { protocols: ['responses'], targets: [{ upstream: 'u0', responses: true }] } },
      sockets,
    },
  });
  const bearer = { authorization: `Bearer ${testKey}` };
  const ask = (input: string) => ({ type: 'response.create', model: 'm', input });
  const first = await connect(t, url, bearer);
  first.send(ask('unfinished'));
  await upstream.arrival(0);
  const second = await connect(t, url, bearer);
  second.send(ask('unfinished'));
  // Which of the two is first to need more than is left, nobody knows.
  const [refused] = await Promise.race([first.answer(), second.answer()]);
  t.match(refused, { type: 'error', status: 503, error: { message: /no memory for the upstream's answer/ } });
  const third = await connect(t, url, bearer);
  third.send(ask('hello'));
  t.match((await third.answer()).at(-1), { type: 'response.completed' });
});

test('what a socket keeps is told as it grows, at the end of the message, and at its own end', async (t) => {
  const { origin, peers } = await socketServer(t);
  const heard = await new Heard(origin).opened;
  const [peer] = peers;
  const part = Buffer.alloc(100 * kibibyte, 0x20);
  peer?.socket.send(part, { fin: false });
  await eventually(() => heard.held.length > 0 && (heard.held.at(-1) as number) >= part.length);
  peer?.socket.send(part, { fin: true });
  await eventually(() => heard.messages.length === 1);
  t.equal(heard.held.at(-1), 0);
  heard.mostHeld = 150 * kibibyte;
  peer?.socket.send(part, { fin: false });
  peer?.socket.send(part, { fin: false });
  await heard.over;
  t.match(heard.closed, { code: 1013 });
  t.equal(heard.held.at(-1), 0);
  t.ok(heard.held.every((bytes) => bytes <= 2 * 256 * kibibyte));
});

test('what was read when a socket was paused counts, and is told when it goes on', async (t) => {
  const { origin, peers } = await socketServer(t);
  const heard = await new Heard(origin).opened;
  heard.onEvent = (event) => {
    if (event === 'message' && heard.messages.length === 1) heard.socket.pause();
  };
  peers[0]?.raw.cork();
  for (let count = 0; count < 2; count++) peers[0]?.socket.send('x'.repeat(1000));
  peers[0]?.raw.uncork();
  await eventually(() => (heard.held.at(-1) ?? 0) > 1000);
  t.equal(heard.messages.length, 1);
  heard.socket.resume();
  await eventually(() => heard.messages.length === 2);
  t.equal(heard.held.at(-1), 0);
  heard.socket.terminate();
});

test('a socket that closes keeps nothing of messages that still come', async (t) => {
  const { origin, peers } = await socketServer(t);
  const heard = await new Heard(origin).opened;
  peers[0]?.socket.send(Buffer.alloc(100 * kibibyte), { fin: false });
  await eventually(() => heard.held.some((bytes) => bytes > 0));
  heard.socket.close(1000, '');
  const told = heard.held.length;
  t.equal(heard.held.at(-1), 0);
  peers[0]?.socket.send(Buffer.alloc(mebibyte), { fin: true });
  await heard.over;
  t.same(
    heard.held.slice(told).filter((bytes) => bytes > 0),
    [],
  );
  t.equal(heard.messages.length, 0);
});

test('a reader that has no room says so before it takes memory', (t) => {
  const asked: number[] = [];
  const reader = new FrameReader(mebibyte, (bytes) => {
    asked.push(bytes);
    return bytes <= 64 * kibibyte;
  });
  const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 0]);
  let found = 'more';
  for (const bytes of [head, ...Array.from({ length: 64 }, () => Buffer.alloc(16 * kibibyte))]) {
    reader.begin(bytes, 0, bytes.length);
    found = reader.next();
    if (found !== 'more') break;
  }
  t.equal(found, 'fault');
  t.equal(reader.code, 1013);
  t.ok(reader.keptBytes <= 64 * kibibyte);
  t.equal(asked.at(-1), 128 * kibibyte);
  t.end();
});
