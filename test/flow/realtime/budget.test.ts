import { setTimeout as pause } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { numbers } from '../../metrics/samples.js';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import {
  closeOf,
  openClient,
  refusalOf,
  type SessionClient,
  startRealtimeUpstream,
} from '../../support/realtime.js';

const done = JSON.stringify({
  type: 'response.done',
  response: { usage: { total_tokens: 40, input_tokens: 0, output_tokens: 40 } },
});
/** Of a response that costs little. */
const small = JSON.stringify({
  type: 'response.done',
  response: { usage: { total_tokens: 1, input_tokens: 0, output_tokens: 1 } },
});
const failed = JSON.stringify({ type: 'response.done', response: { status: 'failed', usage: null } });
const created = JSON.stringify({ type: 'response.created', response: {} });
const delta = JSON.stringify({ type: 'response.output_text.delta', delta: 'abcd'.repeat(100) });
/** Of a response, in nano-dollars. */
const cost = 400_000_000;

const usual = { price: { output: 10_000, perSecond: 0.1 } };

function start(t: Test, url: string, usd: number, model: object = usual, more: object = {}) {
  return startGateway(t, {
    upstreams: [url],
    config: {
      ...more,
      models: {
        m: {
          protocols: ['realtime'],
          targets: [{ upstream: 'u0', model: 'm' }],
          ...model,
        },
      },
      keys: [{ id: 'test', hash: hashKey(testKey), groups: ['default'], budget: { usd, per: 'month' } }],
    },
  });
}

test('a session ends when its budget does, and its client is told before', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await start(t, upstream.url, 1);
  const client = await openClient(t, gateway.port);
  const closed = closeOf(client.socket);
  const { socket, closed: upstreamClosed } = await upstream.arrival(0);
  socket.send(done);
  await client.until(1);
  socket.send(done);
  await client.until(3);
  t.equal(client.received[1], done, 'what is paid for is passed on');
  t.match(JSON.parse(String(client.received[2])), { type: 'error', error: { code: 'insufficient_quota' } });
  t.equal((await closed).code, 1008);
  await upstreamClosed;
  t.match(await gateway.line(({ msg }) => msg === 'request'), {
    outputTokens: 80,
    outcome: 'refused',
    error: 'budget_exceeded',
  });
  t.equal(costOf(gateway), 2 * cost);
});

test('a response that is under way when the budget of its session ends is heard to its end, and paid', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await start(t, upstream.url, 1);
  const client = await openClient(t, gateway.port);
  const closed = closeOf(client.socket);
  const { socket, closed: upstreamClosed } = await upstream.arrival(0);
  const heard: string[] = [];
  socket.on('message', (data: Buffer) => {
    heard.push(data.toString());
    socket.send(done);
  });
  for (const event of [done, created, created, delta, done]) socket.send(event);
  t.equal((await closed).code, 1008);
  await upstreamClosed;
  t.strictSame(heard, ['{"type":"response.cancel"}']);
  t.match(await gateway.line(({ msg }) => msg === 'request'), {
    outputTokens: 120,
    outcome: 'refused',
    error: 'budget_exceeded',
  });
  t.equal(costOf(gateway), 3 * cost);
});

test('of sessions that are opened at once no more get a first response than their budget pays for', async (t) => {
  const sockets = 60;
  const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.send(done));
  // A response is expected to cost a tenth of the budget, and costs less.
  const gateway = await start(t, upstream.url, 0.01, { price: { output: 10 }, outputTokens: 100 });
  const asked = Array.from({ length: sockets }, () => openClient(t, gateway.port));
  const sessions: SessionClient[] = [];
  const refusals: unknown[] = [];
  for (const each of await Promise.allSettled(asked))
    if (each.status === 'fulfilled') sessions.push(each.value);
    else refusals.push(each.reason);
  await Promise.all(sessions.map(({ until }) => until(1)));
  for (const { socket, closed } of sessions) {
    socket.close(1000);
    await closed;
  }
  const ended = () => gateway.lines.filter(({ msg }) => msg === 'request').length;
  await eventually(() => ended() === sockets, { what: 'a line of each' });
  t.ok(sessions.length > 1, `${sessions.length} sessions`);
  t.match(refusals[0], { status: 429, body: /budget/ });
  t.ok(costOf(gateway) <= 10_000_000, `${costOf(gateway) / 1e9} USD of 0.01`);
});

test('of responses that are asked for at once no more are made than the budget pays for, and the others are refused', async (t) => {
  const heard: string[] = [];
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString()).event_id)),
  );
  // It pays for three.
  const gateway = await start(t, upstream.url, 1.3, { price: { output: 10_000 }, outputTokens: 40 });
  const client = await openClient(t, gateway.port);
  const { socket } = await upstream.arrival(0);
  const response = { conversation: 'none' };
  for (let i = 0; i < 6; i++) {
    client.socket.send(JSON.stringify({ type: 'response.create', event_id: `c${i}`, response }));
    client.socket.send(JSON.stringify({ type: 'input_audio_buffer.clear', event_id: `x${i}` }));
  }
  await client.until(3);
  await eventually(() => heard.includes('x5'));
  t.strictSame(heard, ['c0', 'x0', 'c1', 'x1', 'c2', 'x2', 'x3', 'x4', 'x5']);
  const errors = client.received.map((event) => JSON.parse(String(event)).error);
  t.match(
    errors,
    ['c3', 'c4', 'c5'].map((id) => ({ code: 'insufficient_quota', event_id: id })),
  );
  for (const event of [created, created, done, done]) socket.send(event);
  await client.until(7);
  client.socket.send(JSON.stringify({ type: 'response.create', event_id: 'c6', response }));
  await client.until(8);
  t.equal(heard.includes('c6'), false, 'one is under way, and two are paid');
  socket.close();
  await gateway.line(({ msg }) => msg === 'request');
  t.equal(costOf(gateway), 2 * cost);
});

test('responses that are asked for one by one of an upstream that tells only their ends need one reservation', async (t) => {
  const asked = 10;
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', () => socket.send(small)),
  );
  // It pays for three at once, by what each is expected to cost.
  const gateway = await start(t, upstream.url, 1.3, { price: { output: 10_000 }, outputTokens: 40 });
  const client = await openClient(t, gateway.port);
  for (let i = 0; i < asked; i++) {
    client.socket.send(JSON.stringify({ type: 'response.create' }));
    await client.until(i + 1);
  }
  t.strictSame(client.received, Array(asked).fill(small));
});

/** An upstream that answers nothing, a session of it whose budget pays for two responses at once, and what was heard of it. */
async function startSilent(t: Test, more: object = {}) {
  const heard: string[] = [];
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data: Buffer) => heard.push(JSON.parse(data.toString()).event_id)),
  );
  const gateway = await start(t, upstream.url, 0.9, { price: { output: 10_000 }, outputTokens: 40 }, more);
  const client = await openClient(t, gateway.port);
  const { socket } = await upstream.arrival(0);
  const ask = (id: string) => client.socket.send(JSON.stringify({ type: 'response.create', event_id: id }));
  return { heard, client, socket, ask };
}

test('a response is reserved for until the upstream refuses it, and not until it reports an error of something else', async (t) => {
  const { heard, client, socket, ask } = await startSilent(t);
  const error = (id: string) => JSON.stringify({ type: 'error', error: { message: 'no', event_id: id } });
  ask('a');
  ask('b');
  await eventually(() => heard.includes('b'));
  socket.send(created);
  socket.send(error('another'));
  await client.until(2);
  ask('c');
  await client.until(3);
  t.match(JSON.parse(String(client.received[2])), { error: { event_id: 'c', code: 'insufficient_quota' } });
  socket.send(error('b'));
  await client.until(4);
  ask('d');
  await eventually(() => heard.includes('d'));
  t.strictSame(heard, ['a', 'b', 'd']);
});

test('a response that is asked for stays reserved for when the upstream has begun and ended another by itself', async (t) => {
  const { heard, client, socket, ask } = await startSilent(t);
  ask('a');
  ask('b');
  await eventually(() => heard.includes('b'));
  const session = { turn_detection: { type: 'server_vad' } };
  socket.send(JSON.stringify({ type: 'session.updated', session }));
  socket.send(JSON.stringify({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 5, item_id: 'i' }));
  socket.send(created);
  socket.send(failed);
  await client.until(4);
  ask('c');
  await client.until(5);
  t.match(JSON.parse(String(client.received[4])), { error: { event_id: 'c', code: 'insufficient_quota' } });
  t.strictSame(heard, ['a', 'b']);
});

test('a response that the upstream ignores is not reserved for until the session ends', async (t) => {
  const { heard, client, ask } = await startSilent(t, { timeouts: { firstByteMs: 1000 } });
  ask('a');
  ask('b');
  ask('c');
  await client.until(1);
  t.match(JSON.parse(String(client.received[0])), { error: { event_id: 'c', code: 'insufficient_quota' } });
  let asked = 0;
  await eventually(
    () => {
      ask(`d${asked++}`);
      return heard.length > 2;
    },
    { everyMs: 50, what: 'a response after those that are ignored' },
  );
  t.strictSame(heard.slice(0, 2), ['a', 'b']);
  t.match(heard[2], /^d/);
});

/** Opens a session whose budget pays for two responses at once. */
async function openPaidForTwo(t: Test) {
  const upstream = await startRealtimeUpstream(t);
  const heard: string[] = [];
  const gateway = await start(t, upstream.url, 0.9, { price: { output: 10_000 }, outputTokens: 40 });
  const client = await openClient(t, gateway.port);
  const { socket } = await upstream.arrival(0);
  socket.on('message', (data: Buffer) => heard.push(data.toString()));
  return { heard, client };
}

test('an event without a type needs no reservation, and a type in escapes one as any other', async (t) => {
  const { heard, client } = await openPaidForTwo(t);
  const untyped = Array.from({ length: 6 }, (_, i) => JSON.stringify({ event: 'audio', number: i }));
  const escaped = ['{"type":"response.\\u0063reate"}', '{"\\u0074ype":"response.create"}'];
  for (const event of [...untyped, ...escaped, ...escaped]) client.socket.send(event);
  await client.until(2);
  await eventually(() => heard.length >= 8);
  t.strictSame(heard, [...untyped, ...escaped]);
  for (const event of client.received)
    t.match(JSON.parse(String(event)), { error: { code: 'insufficient_quota' } });
});

test('a response that is asked for in bytes is reserved for however its type is written', async (t) => {
  const { heard, client } = await openPaidForTwo(t);
  const asked = [
    '{"\\u0074ype":"response.create"}',
    ' {"type":"response.\\u0063reate"}',
    '{"\\u0074ype":"response.create","event_id":"third"}',
  ];
  for (const event of asked) client.socket.send(Buffer.from(event));
  await client.until(1);
  t.strictSame(heard, asked.slice(0, 2));
  t.match(JSON.parse(String(client.received[0])), {
    error: { code: 'insufficient_quota', event_id: 'third' },
  });
});

test('messages that have waited for a reservation count in the memory of their session no longer than they wait', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await start(t, upstream.url, 1.3, { price: { output: 10_000 }, outputTokens: 40 });
  const client = await openClient(t, gateway.port);
  const { socket } = await upstream.arrival(0);
  const counted = () => numbers(gateway.gateway.metrics(), 'gateway_socket_counted_bytes', 'gauges');
  const idle = counted();
  let heard = 0;
  socket.on('message', () => heard++);
  const asked = JSON.stringify({ type: 'response.create' });
  const audio = JSON.stringify({ type: 'input_audio_buffer.append', audio: 'A'.repeat(1000) });
  const events = [asked, asked, ...Array(9).fill(audio)];
  for (const event of events) client.socket.send(event);
  await eventually(() => heard === events.length);
  t.strictSame(counted(), idle);
});

for (const [what, ends] of [
  ['fail without a usage', [created, created, created, failed, failed, failed]],
  ['the upstream refuses', Array(3).fill('{"type":"error","error":{"type":"invalid_request_error"}}')],
] as const)
  test(`what is reserved for responses that ${what} is free again for other sessions`, async (t) => {
    const upstream = await startRealtimeUpstream(t);
    // It pays for three.
    const gateway = await start(t, upstream.url, 1.3, { price: { output: 10_000 }, outputTokens: 40 });
    const client = await openClient(t, gateway.port);
    const { socket } = await upstream.arrival(0);
    let heard = 0;
    socket.on('message', () => heard++);
    for (let i = 0; i < 3; i++) client.socket.send(JSON.stringify({ type: 'response.create' }));
    await eventually(() => heard === 3);
    t.match(await refusalOf(t, gateway.port), { status: 429 }, 'all is reserved');
    for (const event of ends) socket.send(event);
    await client.until(ends.length);
    const other = await openClient(t, gateway.port);
    t.equal(other.socket.readyState, other.socket.OPEN);
    t.equal(costOf(gateway), 0);
  });

test('a session that is refused for want of a slot takes nothing of a budget meanwhile', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const keys = [testKey, 'sk-other'];
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: {
          protocols: ['realtime'],
          targets: [{ upstream: 'u0', model: 'm' }],
          price: { output: 10_000 },
          outputTokens: 40,
          // It pays for three responses.
          budget: { usd: 1.3, per: 'month' },
        },
      },
      sockets: { perKey: 1 },
      keys: keys.map((key, index) => ({ id: `k${index}`, hash: hashKey(key), groups: ['default'] })),
    },
  });
  await openClient(t, gateway.port);
  // They are told after half a second at least.
  const refused = Array.from({ length: 2 }, () => refusalOf(t, gateway.port));
  await pause(200);
  const other = await openClient(t, gateway.port, { headers: { authorization: 'Bearer sk-other' } });
  t.equal(other.socket.readyState, other.socket.OPEN);
  for (const { status } of await Promise.all(refused)) t.equal(status, 429);
  t.equal(costOf(gateway), 0);
});

test('what a session has reserved and not used is free again when it ends', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await start(t, upstream.url, 1.3, { price: { output: 10_000 }, outputTokens: 40 });
  for (const session of [0, 1]) {
    const client = await openClient(t, gateway.port);
    const { socket } = await upstream.arrival(session);
    socket.send(done);
    await client.until(1);
    const closed = closeOf(client.socket);
    client.socket.close(1000);
    t.equal((await closed).code, 1000);
    await gateway.line(
      (line) =>
        line.msg === 'request' && gateway.lines.filter(({ msg }) => msg === 'request').length > session,
    );
  }
  t.equal(costOf(gateway), 2 * cost);
});

test('a session whose seconds are counted ends when its budget does', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await start(t, upstream.url, 1);
  const client = await openClient(t, gateway.port);
  const closed = closeOf(client.socket);
  const { socket } = await upstream.arrival(0);
  const usage = { type: 'duration', seconds: 4 };
  const type = 'conversation.item.input_audio_transcription.completed';
  for (let i = 0; i < 3; i++) socket.send(JSON.stringify({ type, transcript: 'hi', usage }));
  t.equal((await closed).code, 1008);
  await gateway.line(({ msg }) => msg === 'request');
  t.ok(costOf(gateway) >= 2 * cost);
});

test('what was shown of a response whose session ends within it is taken from the budget', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const gateway = await start(t, upstream.url, 1);
  const client = await openClient(t, gateway.port);
  const { socket } = await upstream.arrival(0);
  socket.send(created);
  socket.send(delta);
  await client.until(2);
  socket.close();
  await client.closed;
  await gateway.line(({ msg }) => msg === 'request');
  t.match(await refusalOf(t, gateway.port), { status: 429, body: /budget/ });
});
