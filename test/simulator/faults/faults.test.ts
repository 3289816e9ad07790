import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { eventually } from '../../support/eventually.js';
import { simulate } from '../../support/simulator.js';
import { ask, askRaw, chat } from '../ask.js';

const streamed = { stream: true };

/** Opens a chat request on a bare socket and reports what arrives. */
function open(
  simulator: Simulator,
  body: object,
): { readonly socket: ReturnType<typeof connect>; heard(): string } {
  const text = JSON.stringify(body);
  const socket = connect(simulator.port, '127.0.0.1');
  let heard = '';
  socket.on('data', (chunk) => {
    heard += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  return { socket, heard: () => heard };
}

test('status answers with an error body, a retry-after and, if asked, a page', async (t) => {
  const simulator = await simulate(t);
  const limited = await ask(simulator, chat('[[fault:status=429 retry-after=7]] a', streamed));
  t.equal(limited.status, 429);
  t.equal(limited.headers['retry-after'], '7');
  t.match(JSON.parse(limited.text), {
    error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null },
  });
  for (const status of [400, 500, 503]) {
    const heard = await ask(simulator, chat(`[[fault:status=${status}]] a`));
    t.equal(heard.status, status);
    t.type(JSON.parse(heard.text).error.message, 'string');
  }
  const page = await ask(simulator, chat('[[fault:status=502 html]] a'));
  t.match([page.status, page.headers['content-type'], page.text], [502, 'text/html', /<html>/]);
});

test('a directive can come in the header, several can be given, and an unknown one is refused', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('a'), {
    'x-simulator-fault': 'latency=1; status=503 retry-after=2',
  });
  t.match([heard.status, heard.headers['retry-after']], [503, '2']);
  const both = await ask(simulator, chat('[[fault:latency=1]] [[fault:status=418]] a'));
  t.equal(both.status, 418);
  for (const bad of ['nonsense', 'latency=soon', 'status=99', 'long=9999999']) {
    const refused = await ask(simulator, chat(`[[fault:${bad}]] a`));
    t.equal(refused.status, 400, bad);
    t.equal(JSON.parse(refused.text).error.code, 'unknown_fault');
  }
  const inside = await ask(simulator, chat('Text about [[fault:status=500]]'));
  t.equal(inside.status, 200, 'only at the start of the text');
});

test('times=N lets a fault happen N times', async (t) => {
  const simulator = await simulate(t);
  const statuses: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    statuses.push((await ask(simulator, chat('[[fault:status=503 times=2]] a'))).status);
  }
  t.strictSame(statuses, [503, 503, 200, 200]);
});

test('reset cuts before the head, or after so many events', async (t) => {
  const simulator = await simulate(t);
  await t.rejects(ask(simulator, chat('[[fault:reset]] a')), { code: 'ECONNRESET' });
  const none = await ask(simulator, chat('[[fault:reset after=0]] a', streamed));
  t.match([none.status, none.events.length, none.failure], [200, 0, 'ECONNRESET']);
  const two = await ask(simulator, chat('[[fault:reset after=2]] a', streamed));
  t.match([two.status, two.events.length, two.failure], [200, 2, 'ECONNRESET']);
  const half = await ask(simulator, chat('[[fault:reset after=1]] a'));
  t.ok(half.bytes.length > 0 && half.bytes.length < Number(half.headers['content-length']));
  t.equal(simulator.state().cancelledRequests, 0, 'what the simulator cuts is not a cancellation');
});

test('close ends a stream well framed without [DONE], and a body in its middle', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('[[fault:close after=3]] a', streamed));
  t.equal(heard.failure, null);
  t.equal(heard.events.length, 3);
  t.notMatch(heard.text, 'DONE');
  const half = await ask(simulator, chat('[[fault:close]] a'));
  t.equal(half.failure, 'ECONNRESET');
});

test('truncate ends inside a chunk', async (t) => {
  const simulator = await simulate(t);
  const raw = await askRaw(simulator, chat('[[fault:truncate after=2]] a', streamed));
  t.ok(raw.endsWith('40\r\ndata: {"cut'));
  const heard = await ask(simulator, chat('[[fault:truncate]] a'));
  t.equal(heard.failure, 'ECONNRESET');
});

test('hang is silent before the head or after so many events, until the client leaves', async (t) => {
  const simulator = await simulate(t);
  const before = open(simulator, chat('[[fault:hang]] a'));
  const after = open(simulator, chat('[[fault:hang after=2]] a', streamed));
  await eventually(
    () => simulator.state().totalRequests === 2 && (after.heard().match(/data: /g) ?? []).length === 2,
  );
  t.equal(before.heard(), '');
  t.equal(simulator.state().openRequests, 2);
  before.socket.destroy();
  after.socket.destroy();
  await eventually(() => simulator.state().openRequests === 0);
  t.equal(simulator.state().cancelledRequests, 2);
});

test('silent pauses and goes on, latency holds the head back', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('[[fault:silent=0.02 after=1]] a', streamed));
  t.equal(heard.events.at(-1), '[DONE]');
  const body = await ask(simulator, chat('[[fault:silent seconds=0.02 after=1]] [[fault:latency=20]] a'));
  t.match(JSON.parse(body.text), { object: 'chat.completion' });
});

test('an error event comes first or in the middle, and nothing follows it', async (t) => {
  const simulator = await simulate(t);
  for (const after of [0, 2]) {
    const heard = await ask(simulator, chat(`[[fault:error-event after=${after}]] a`, streamed));
    t.equal(heard.status, 200);
    t.equal(heard.events.length, after + 1);
    t.match(JSON.parse(heard.events[after] ?? ''), {
      error: { type: 'server_error', code: 'internal_error' },
    });
  }
  const body = await ask(simulator, chat('[[fault:error-event]] a'));
  t.match([body.status, JSON.parse(body.text)], [200, { error: { type: 'server_error' } }]);
});

test('bad heads are what node:http refuses', async (t) => {
  const simulator = await simulate(t);
  for (const what of ['status-line', 'header', 'lengths', 'huge']) {
    await t.rejects(ask(simulator, chat(`[[fault:bad-head=${what}]] a`)), { code: /^HPE_/ }, what);
  }
});

test('short-body announces more than comes, until-close announces nothing', async (t) => {
  const simulator = await simulate(t);
  const short = await ask(simulator, chat('[[fault:short-body]] a', streamed));
  t.equal(Number(short.headers['content-length']) - short.bytes.length, 100);
  t.equal(short.failure, 'ECONNRESET');
  const raw = await askRaw(simulator, chat('[[fault:until-close]] a'));
  t.notMatch(raw, /transfer-encoding|content-length/i);
  t.match(JSON.parse(raw.slice(raw.indexOf('\r\n\r\n') + 4)), { object: 'chat.completion' });
});

test('garbage follows a whole answer', async (t) => {
  const simulator = await simulate(t);
  const junk = open(simulator, chat('[[fault:garbage]] a'));
  await eventually(() => junk.heard().includes('garbage\r\n\r\n'));
  t.match(junk.heard(), /"finish_reason":"stop"/);
  const second = open(simulator, chat('[[fault:garbage=response]] a', streamed));
  await eventually(() => second.heard().endsWith('{"poisoned":true}'));
  t.match(second.heard(), /data: \[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1\.1 200 OK/);
  junk.socket.destroy();
  second.socket.destroy();
});

test('drop closes after a whole answer that allowed reuse', async (t) => {
  const simulator = await simulate(t);
  const { socket, heard } = open(simulator, chat('[[fault:drop]] a'));
  await new Promise((resolve) => socket.on('end', resolve));
  t.match(heard(), /connection: keep-alive/i);
  t.match(heard(), /"finish_reason":"stop"/);
});

test('stale resets the next request of a connection', async (t) => {
  const simulator = await simulate(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const send = (): Promise<{ status: number; reused: boolean }> =>
    new Promise((resolve, reject) => {
      const sent = request(`${simulator.url}/chat/completions`, { method: 'POST', agent }, (answer) => {
        answer.resume();
        answer.on('close', () => resolve({ status: answer.statusCode ?? 0, reused: sent.reusedSocket }));
      });
      sent.on('error', reject);
      sent.end(JSON.stringify(chat('[[fault:stale]] a')));
    });
  t.strictSame(await send(), { status: 200, reused: false });
  await t.rejects(send(), { code: 'ECONNRESET' });
  t.strictSame(await send(), { status: 200, reused: false });
});

test('early hints come before the answer', async (t) => {
  const simulator = await simulate(t);
  const raw = await askRaw(simulator, chat('[[fault:early-hints]] a'));
  t.match(raw, /^HTTP\/1\.1 103 Early Hints\r\n(?:.+\r\n)*\r\nHTTP\/1\.1 200 OK\r\n/);
});

test('gzip comes unasked, and unpacks to what would have come without', async (t) => {
  const simulator = await simulate(t);
  for (const more of [streamed, {}]) {
    const text = `[[fault:gzip]] ${'many words '.repeat(500)}`;
    const heard = await ask(simulator, chat(text, more));
    t.equal(heard.headers['content-encoding'], 'gzip');
    t.match(gunzipSync(heard.bytes).toString(), 'stream' in more ? /\[DONE\]\n\n$/ : /"usage"/);
  }
});

test('wrong-protocol answers as the messages protocol does', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('[[fault:wrong-protocol]] a', streamed));
  t.match(heard.text, /^event: message_start\ndata: /);
  t.match(JSON.parse(heard.events.at(-1) ?? ''), { type: 'message_stop' });
  t.match(JSON.parse((await ask(simulator, chat('[[fault:wrong-protocol]] a'))).text), { type: 'message' });
});

test('slow bytes arrive one by one, and whole characters come of them', async (t) => {
  const simulator = await simulate(t);
  const { socket, heard } = open(simulator, chat('[[fault:slow-bytes]] é🙂', streamed));
  await eventually(() => heard().endsWith('\r\n0\r\n\r\n'));
  socket.destroy();
  const body = heard().slice(heard().indexOf('\r\n\r\n') + 4);
  t.match(body, /^1\r\nd\r\n1\r\na\r\n1\r\nt\r\n/);
  t.ok(
    Buffer.from(body.replaceAll(/1\r\n([\s\S])\r\n/g, '$1'), 'latin1')
      .toString()
      .includes('é🙂'),
  );
});

test('long fills a text up, and rate paces it', async (t) => {
  const simulator = await simulate(t, { tokensPerSecond: 1 });
  const heard = await ask(simulator, chat('[[fault:long=500]] [[fault:rate=0]] a', streamed));
  t.equal(heard.events.at(-1), '[DONE]');
  t.ok(heard.events.length > 200);
  const body = JSON.parse((await ask(simulator, chat('[[fault:long=500]] a'))).text);
  t.ok(Math.abs(body.usage.completion_tokens - 500) < 5);
});

test('a flood is as large as asked, valid, and waits for its reader', async (t) => {
  const simulator = await simulate(t);
  const heard = await ask(simulator, chat('[[fault:flood megabytes=3]] a', streamed));
  t.ok(heard.bytes.length >= 3_000_000 && heard.bytes.length < 3_100_000);
  t.ok(heard.events.slice(0, -1).every((event) => JSON.parse(event).object === 'chat.completion.chunk'));
  const body = await ask(simulator, chat('[[fault:flood megabytes=1]] a'));
  t.equal(Number(body.headers['content-length']), body.bytes.length);
  t.match(JSON.parse(body.text), { object: 'chat.completion' });

  const { socket, heard: sofar } = open(simulator, chat('[[fault:flood megabytes=2000]] a', streamed));
  await eventually(() => sofar().length > 0);
  socket.pause();
  const before = process.memoryUsage().arrayBuffers;
  // Enough turns to send everything, if nothing held it back.
  for (let turn = 0; turn < 2_000; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 32_000_000);
  socket.destroy();
  await eventually(() => simulator.state().openRequests === 0);
  t.equal(simulator.state().cancelledRequests, 1);
});
