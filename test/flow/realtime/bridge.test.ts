import { randomBytes } from 'node:crypto';
import { test } from 'tap';
import type { WebSocket } from 'ws';
import { Bridge } from '../../../src/flow/realtime/bridge.js';
import { OpenUsage } from '../../../src/protocols/realtime/usage.js';
import { costOf } from '../../support/cost.js';
import { eventually, settled } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { open } from '../../support/raw-client.js';
import { openClient, startRealtimeUpstream, upgradeRequest } from '../../support/realtime.js';

const mebibyte = 1024 * 1024;

function echo({ socket }: { readonly socket: WebSocket }): void {
  socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary }));
}

test('messages of either kind pass both ways as they came, in order', async (t) => {
  const upstream = await startRealtimeUpstream(t, echo);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  const messages: (string | Buffer)[] = [
    ' {} ',
    '{"type" : "ä€😀"}',
    Buffer.alloc(0),
    randomBytes(1),
    Buffer.from('{'),
    Buffer.from('[x'),
    '{"type":"x"}',
  ];
  for (const size of [125, 126, 65_535, 65_536]) messages.push(randomBytes(size));
  const small = messages.length;
  for (const message of messages) client.socket.send(message);
  await client.until(small);
  for (const large of [
    randomBytes(mebibyte),
    randomBytes(15 * mebibyte),
    `{"audio":"${'y'.repeat(16 * mebibyte - 12)}"}`,
  ]) {
    messages.push(large);
    client.socket.send(large);
    await client.until(messages.length);
  }
  for (const [index, message] of messages.entries()) {
    const back = client.received[index] as string | Buffer;
    t.equal(typeof back, typeof message);
    t.ok(Buffer.from(back).equals(Buffer.from(message)), `message ${index}`);
  }
});

test('fragments of a message are one message', async (t) => {
  const upstream = await startRealtimeUpstream(t, echo);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  const parts = Array.from({ length: 20 }, (_, index) => randomBytes(1 + index * 1000));
  parts.forEach((part, index) => {
    client.socket.send(part, { fin: index === parts.length - 1, binary: true });
  });
  await client.until(1);
  t.ok((client.received[0] as Buffer).equals(Buffer.concat(parts)));
  const { socket } = await upstream.arrival(0);
  socket.send('a', { fin: false });
  socket.send('b', { fin: true });
  await client.until(2);
  t.equal(client.received[1], 'ab');
});

test('close codes and reasons are carried over both ways', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const codes: readonly (readonly [number, string])[] = [
    [1000, 'done'],
    [1001, ''],
    [1008, 'policy'],
    [1011, 'ä'.repeat(60)],
    [3008, 'x'],
    [4999, 'own'],
  ];
  let sessions = 0;
  for (const [code, reason] of codes) {
    // What uWS takes of a client: nothing between 1011 and 4000.
    if (code <= 1011 || code >= 4000) {
      const first = await openClient(t, port);
      const { closed } = await upstream.arrival(sessions++);
      first.socket.close(code, reason);
      t.same(await closed, { code, reason });
      t.same(await first.closed, { code, reason });
    }
    const second = await openClient(t, port);
    const { socket } = await upstream.arrival(sessions++);
    socket.close(code, reason);
    t.same(await second.closed, { code, reason });
  }
  const silent = await openClient(t, port);
  (await upstream.arrival(sessions)).socket.close();
  t.equal((await silent.closed).code, 1005, 'a close without a code stays one');
});

test('the death of either side ends the other at once, with a fitting code', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port, line } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  (await upstream.arrival(0)).socket.terminate();
  t.equal((await client.closed).code, 1011);
  t.match(JSON.parse(client.received[0] as string), {
    type: 'error',
    event_id: /^event_/,
    error: { type: 'server_error', code: 'upstream_error', event_id: null },
  });
  t.match(await line(({ outcome }) => outcome === 'upstream_error'), {
    status: 101,
    error: 'upstream_error',
  });
  const other = await openClient(t, port);
  const { closed } = await upstream.arrival(1);
  other.socket.terminate();
  t.equal((await closed).code, 1001);
  await line(({ outcome }) => outcome === 'client_gone');
});

test('a message beyond the limit ends the session: of a client at the head of its frame, of an upstream with 1009', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port, line } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { messageBytes: mebibyte } },
  });
  const client = await openClient(t, port);
  const { closed, socket } = await upstream.arrival(0);
  socket.on('message', () => t.fail('nothing of it reaches the upstream'));
  client.socket.send(Buffer.alloc(mebibyte + 1));
  t.equal((await client.closed).code, 1006);
  t.equal((await closed).code, 1001);
  t.match(await line(({ status }) => status === 101), { outcome: 'refused', error: 'request_too_large' });
  const other = await openClient(t, port);
  (await upstream.arrival(1)).socket.send(Buffer.alloc(mebibyte + 1));
  t.equal((await other.closed).code, 1009);
});

test('a client that does not read stops its upstream, and gets everything when it reads again', async (t) => {
  const total = 64;
  const upstream = await startRealtimeUpstream(t, ({ socket }) => {
    for (let index = 0; index < total; index++) socket.send(Buffer.alloc(mebibyte, index));
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  client.socket.pause();
  const { socket } = await upstream.arrival(0);
  // Long enough for everything to pass, if nobody held it back.
  const last = await settled(() => socket.bufferedAmount, { looks: 300, everyMs: 1 });
  t.ok(last > (total / 2) * mebibyte, `${last} bytes still wait at the upstream`);
  client.socket.resume();
  await client.until(total);
  client.received.forEach((message, index) => {
    if ((message as Buffer)[mebibyte - 1] !== index) t.fail(`message ${index}`);
  });
  client.socket.close();
  await client.closed;
});

test('a client that is faster than its upstream is told to try later, once too much waits', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.pause());
  const { port, line } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { waitingBytes: 2 * mebibyte } },
  });
  const client = await openClient(t, port);
  for (let sent = 0; sent < 64; sent++) client.socket.send(Buffer.alloc(mebibyte));
  t.equal((await client.closed).code, 1013);
  t.match(JSON.parse(client.received[0] as string), { error: { code: 'overloaded', type: 'server_error' } });
  const { bytesIn } = await line(({ status }) => status === 101);
  t.ok((bytesIn as number) < 16 * mebibyte, `${bytesIn} bytes were taken`);
  t.match(await line(({ status }) => status === 101), { outcome: 'refused', error: 'overloaded' });
});

test('a client that goes on to send what cannot be taken is cut', async (t) => {
  const { onSweep } = Bridge.prototype;
  t.teardown(() => {
    Bridge.prototype.onSweep = onSweep;
  });
  // All of it within one second.
  Bridge.prototype.onSweep = () => {};
  const upstream = await startRealtimeUpstream(t);
  const { port, line } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  for (let sent = 0; sent < 200; sent++) client.socket.send('no JSON');
  t.equal((await client.closed).code, 1008);
  t.equal(client.received.length, 100);
  t.match(await line(({ status }) => status === 101), { outcome: 'refused', error: 'invalid_request' });
});

test('a client that errs now and then is never cut for it', async (t) => {
  const upstream = await startRealtimeUpstream(t, echo);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const { onSweep } = Bridge.prototype;
  let sweeps = 0;
  t.teardown(() => {
    Bridge.prototype.onSweep = onSweep;
  });
  Bridge.prototype.onSweep = function (now) {
    sweeps++;
    onSweep.call(this, now);
  };
  const client = await openClient(t, port);
  for (let round = 1; round <= 3; round++) {
    for (let sent = 0; sent < 60; sent++) client.socket.send('no JSON');
    await client.until(round * 60);
    const before = sweeps;
    await eventually(() => sweeps > before);
  }
  client.socket.send('{"type":"still.here"}');
  await client.until(181);
  t.equal(client.received[180], '{"type":"still.here"}');
});

test('a session ends when it has lasted long enough', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port, line } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { sessionMs: 200 } },
  });
  const client = await openClient(t, port);
  t.equal((await client.closed).code, 1001);
  t.match(JSON.parse(client.received[0] as string), { error: { message: /maximum/ } });
  t.match(await line(({ status }) => status === 101), { outcome: 'refused', error: 'invalid_request' });
});

test('what responses have used is summed up in the log', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) => {
    for (const tokens of [10, 20]) {
      const usage = { total_tokens: tokens, input_tokens: tokens - 3, output_tokens: 3 };
      const response = { id: 'resp', output: [{ content: 'x'.repeat(500) }], usage };
      socket.send(JSON.stringify({ type: 'response.done', event_id: 'event_1', response }));
      socket.send(JSON.stringify({ type: 'response.output_text.delta', delta: '"response.done"' }));
    }
    socket.close(1000);
  });
  const { port, line } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  await client.closed;
  t.match(await line(({ status }) => status === 101), {
    inputTokens: 24,
    outputTokens: 6,
    outcome: 'complete',
    protocol: 'realtime',
  });
});

test('a gateway that ends tells both sides of its sessions; a reload leaves them alone', async (t) => {
  const upstream = await startRealtimeUpstream(t, echo);
  const { port, gateway } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  const { closed } = await upstream.arrival(0);
  const drained = gateway.drain();
  client.socket.send('still here');
  await client.until(1);
  gateway.close();
  t.equal((await client.closed).code, 1012);
  t.equal((await closed).code, 1001);
  await drained;
});

test('a client that leaves as soon as it has asked leaves nothing behind', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port, gateway } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  for (let round = 0; round < 50; round++) {
    const socket = await open(port, upgradeRequest());
    await new Promise((resolve) => setTimeout(resolve, round % 5));
    socket.destroy();
  }
  await gateway.drain();
  await Promise.all(upstream.arrivals.map(({ closed }) => closed));
});

test('a session that ends by a fault of ours is recorded as ours, and what it has used is charged', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: {
          protocols: ['realtime'],
          targets: [{ upstream: 'u0', model: 'm' }],
          price: { output: 10_000 },
        },
      },
    },
  });
  const client = await openClient(t, gateway.port);
  const { socket, closed } = await upstream.arrival(0);
  const usage = { total_tokens: 3, input_tokens: 0, output_tokens: 3 };
  socket.send(JSON.stringify({ type: 'response.done', response: { usage } }));
  await client.until(1);
  const { noteDelta } = OpenUsage.prototype;
  t.teardown(() => {
    OpenUsage.prototype.noteDelta = noteDelta;
  });
  OpenUsage.prototype.noteDelta = () => {
    throw new Error('as the test says');
  };
  socket.send('{"type":"response.output_text.delta","delta":"hi"}');
  t.equal((await client.closed).code, 1011);
  await closed;
  t.match(JSON.parse(client.received[1] as string), { type: 'error', error: { code: 'internal_error' } });
  t.match(await gateway.line(({ msg }) => msg === 'request'), {
    outcome: 'refused',
    error: 'internal_error',
    outputTokens: 3,
  });
  t.equal(costOf(gateway), 3 * 10_000_000);
});

test('a refused event is told by its id and the member at fault, in an event with an id of its own', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, gateway.port);
  const other = { model: 'other' };
  for (const event of [
    { type: 'session.update', event_id: 'evt_1', session: other },
    { type: 'response.create', event_id: 'evt_2 "ä"', response: other },
    { type: 'response.create', event_id: 'x'.repeat(513), response: other },
    { type: 'response.create', event_id: 5, response: other },
  ])
    client.socket.send(JSON.stringify(event));
  client.socket.send('{"event_id":"evt_3"');
  await client.until(5);
  const events = client.received.map((event) => JSON.parse(String(event)));
  t.match(events, [
    { error: { param: 'session.model', event_id: 'evt_1' } },
    { error: { param: 'response.model', event_id: 'evt_2 "ä"' } },
    { error: { param: 'response.model', event_id: null } },
    { error: { param: 'response.model', event_id: null } },
    { error: { param: null, event_id: null } },
  ]);
  t.equal(new Set(events.map(({ event_id }) => event_id)).size, 5);
});
