import { once } from 'node:events';
import { test } from 'tap';
import type { SimulatorRequest } from '../../../src/simulator/http/reply.js';
import { eventually } from '../../support/eventually.js';
import { simulate } from '../../support/simulator.js';
import { type Client, connect, refused, respond, says, textOnly } from './client.js';

/** Asks for a turn of text. */
function ask(client: Client, text: string): void {
  client.send(textOnly);
  client.send(says(text));
  client.send(respond);
}

test('an upgrade is refused by the header or by the name of the model', async (t) => {
  const simulator = await simulate(t);
  const limited = await refused(simulator, '/realtime', { 'x-simulator-fault': 'status=429 retry-after=7' });
  t.match([limited.status, limited.headers['retry-after']], [429, '7']);
  t.match(JSON.parse(limited.text), { error: { code: 'rate_limit_exceeded' } });
  for (const status of [401, 429, 500]) {
    const heard = await refused(simulator, `/realtime?model=refuse-${status}`);
    t.equal(heard.status, status);
    t.equal(heard.headers.connection, 'close');
    t.type(JSON.parse(heard.text).error.message, 'string');
  }
  await t.rejects(refused(simulator, '/realtime?model=reset'), { code: 'ECONNRESET' });
  await t.rejects(refused(simulator, '/realtime', { 'x-simulator-fault': 'bad-head' }), {
    code: /^HPE_/,
  });
  const odd = await refused(simulator, '/realtime', { 'x-simulator-fault': 'nonsense' });
  t.match([odd.status, JSON.parse(odd.text).error.code], [400, 'unknown_fault']);
  const nowhere = await refused(simulator, '/chat/completions');
  t.match([nowhere.status, JSON.parse(nowhere.text).error.code], [404, 'unknown_url']);
  t.match(simulator.state(), { openSessions: 0, totalSessions: 0 });
});

test('a hang before the upgrade ends with the simulator', async (t) => {
  const seen: SimulatorRequest[] = [];
  const simulator = await simulate(t, { onRequest: (request) => seen.push(request) });
  const hung = refused(simulator, '/realtime?model=hang', { authorization: 'Bearer k' });
  const failed = t.rejects(hung, { code: 'ECONNRESET' });
  await eventually(() => seen.length === 1);
  t.match(seen[0], { target: '/v1/realtime?model=hang', rawHeaders: /Bearer k/ });
  await simulator.close();
  await failed;
});

test('close, reset and truncate end a turn where they are asked to', async (t) => {
  const simulator = await simulate(t);
  const closing = await connect(t, simulator);
  ask(closing, '[[fault:close=1011 reason=broken after=2]] x');
  t.strictSame(await closing.closed, { code: 1011, reason: 'broken' });
  t.equal(closing.events.at(-1)?.type, 'response.output_item.added');
  for (const fault of ['reset', 'truncate after=1', 'reset after=99']) {
    const client = await connect(t, simulator);
    ask(client, `[[fault:${fault}]] x`);
    t.match(await client.closed, { code: 1006 }, fault);
    const last = { reset: 'conversation.item.done', truncate: 'response.created' }[fault.split(' ')[0] ?? ''];
    t.equal(client.events.at(-1)?.type, fault.endsWith('99') ? 'rate_limits.updated' : last);
  }
  await eventually(() => simulator.state().openSessions === 0);
  t.match(simulator.state(), { totalSessions: 4 });
});

test('an error event ends the turn, and the next one is whole', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  ask(client, '[[fault:error-event after=3]] x');
  t.match(await client.next('error'), { error: { type: 'server_error', code: 'server_error' } });
  ask(client, '[[fault:error-event=failed after=3]] x');
  t.match(await client.next('response.done'), {
    response: { id: 'resp_2', status: 'failed', status_details: { error: { code: 'server_error' } } },
  });
  ask(client, '[[fault:error-event times=1]] y');
  await client.next('error');
  ask(client, '[[fault:error-event times=1]] y');
  t.match(await client.next('response.done'), { response: { status: 'completed' } });
  ask(client, '[[fault:nonsense]] x');
  t.match(await client.next('error'), { error: { code: 'unknown_fault' } });
  ask(client, '[[fault:close=1005]] x');
  t.match(await client.next('error'), { error: { code: 'unknown_fault' } });
});

test('a hang is silent to everything but pings', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  ask(client, '[[fault:hang after=1]] x');
  await client.next('response.created');
  const before = client.events.length;
  client.send(respond);
  client.socket.ping();
  await once(client.socket, 'pong');
  t.equal(client.events.length, before);
  client.socket.close();
  t.match(await client.closed, { code: 1005 });
  await eventually(() => simulator.state().openSessions === 0);
});

test('a pause, a rate and an answer of any length are as in HTTP', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  const started = performance.now();
  ask(client, '[[fault:silent=0.05 after=2]] [[fault:rate=1000]] [[fault:long=100]] x');
  const { response } = await client.next('response.done');
  t.ok(performance.now() - started >= 95);
  t.ok(response.usage.output_tokens >= 100);
});

test('a flood brings its bytes, as text or binary, and waits for its reader', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  const sizes: number[] = [];
  client.socket.on('message', (message: Buffer, isBinary) => {
    if (isBinary || message.length > 10_000) {
      sizes.push(message.length);
    }
  });
  ask(client, '[[fault:flood=1 binary]] x');
  await client.next('response.done');
  t.strictSame([sizes.length, sizes[0], sizes.reduce((sum, size) => sum + size, 0)], [16, 65_536, 1_000_000]);
  sizes.length = 0;
  ask(client, '[[fault:flood=8 event-bytes=100000]] x');
  const delta = await client.next('response.output_text.delta');
  t.match(delta, { response_id: 'resp_2', delta: /^x+$/ });
  t.match(await client.next('response.done'), { response: { status: 'completed' } });
  t.strictSame([sizes.length, new Set(sizes)], [80, new Set([100_000])]);

  const slow = await connect(t, simulator);
  await slow.next('conversation.created');
  slow.socket.pause();
  ask(slow, '[[fault:flood=50 binary]] x');
  const before = process.memoryUsage().external;
  for (let turns = 0; turns < 2000; turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.ok(process.memoryUsage().external - before < 20_000_000);
  slow.socket.resume();
  await slow.next('response.done');
});

test('big is one message of so many bytes', async (t) => {
  const simulator = await simulate(t);
  const client = await connect(t, simulator);
  for (const options of ['', ' binary']) {
    ask(client, `[[fault:big=300000${options}]] x`);
    for (;;) {
      const [message] = (await once(client.socket, 'message')) as [Buffer];
      if (message.length > 10_000) {
        t.equal(message.length, 300_000);
        break;
      }
    }
    await client.next('response.done');
  }
});

test('in echo mode every message comes back as it is, which one model does from the start', async (t) => {
  const simulator = await simulate(t);
  for (const model of ['sim-realtime', 'echo']) {
    const client = await connect(t, simulator, `/realtime?model=${model}`);
    if (model === 'echo') {
      await client.next('conversation.created');
    } else {
      ask(client, '[[fault:echo]] x');
      await client.next('rate_limits.updated');
    }
    for (const [sent, binary] of [
      ['{"type":', false],
      ['x'.repeat(1_000_000), true],
    ] as const) {
      client.socket.removeAllListeners('message');
      const back = once(client.socket, 'message');
      client.socket.send(sent, { binary });
      const [message, isBinary] = (await back) as [Buffer, boolean];
      t.strictSame([message.toString() === sent, isBinary], [true, binary]);
    }
  }
  t.equal(simulator.state().openSessions, 2);
});
