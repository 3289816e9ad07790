import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type TLSSocket } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { type Test, test } from 'tap';
import { createUpstreamClient } from '../../src/upstream/client.js';
import { createDialer } from '../../src/upstream/dial.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { random } from '../support/seed.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { Call, get, listen, makeClient, plainOrigin } from '../upstream/raw.js';
import { Source, socketOf } from '../upstream/uploading.js';

const fixture = (name: string) => new URL(`../../../test/fixtures/tls/${name}`, import.meta.url);
const pem = (name: string) => readFileSync(fixture(name), 'utf8');
const certificate = { cert: pem('localhost.pem'), key: pem('localhost.key') };

/**
 * A TLS server on a thread of its own, which answers each request with its body, in the read that completes it. Counts
 * handshakes, resumed ones, and answers, each when it has left.
 */
const echo = `
  const { createServer } = require('node:tls');
  const { parentPort, workerData } = require('node:worker_threads');
  const counts = new Int32Array(workerData.counts);
  const server = createServer(workerData.certificate, (socket) => {
    Atomics.add(counts, 0, 1);
    if (socket.isSessionReused()) Atomics.add(counts, 1, 1);
    socket.on('error', () => {});
    let received = Buffer.alloc(0);
    socket.on('data', (data) => {
      received = Buffer.concat([received, data]);
      for (;;) {
        const end = received.indexOf('\\r\\n\\r\\n');
        if (end === -1) return;
        const head = received.toString('latin1', 0, end);
        const length = Number((/content-length: (\\d+)/.exec(head) || [0, 0])[1]);
        const next = end + 4 + length;
        if (received.length < next) return;
        const answer = Buffer.from('HTTP/1.1 200 OK\\r\\ncontent-length: ' + length + '\\r\\n\\r\\n');
        socket.write(Buffer.concat([answer, received.subarray(end + 4, next)]), () => {
          Atomics.add(counts, 2, 1);
          Atomics.notify(counts, 2);
        });
        received = received.subarray(next);
      }
    });
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

async function echoServer(t: Test) {
  const counts = new Int32Array(new SharedArrayBuffer(12));
  const worker = new Worker(echo, { eval: true, workerData: { certificate, counts: counts.buffer } });
  t.teardown(() => worker.terminate());
  const [port] = (await once(worker, 'message')) as [number];
  const origin = plainOrigin(port, {
    ...{ secure: true, serverName: 'localhost', ca: pem('ca.pem'), identity: 'tls' },
    maxConnections: 256,
    maxWaiting: 256,
  });
  return {
    origin,
    handshakes: () => Atomics.load(counts, 0),
    resumed: () => Atomics.load(counts, 1),
    /**
     * Lets the present turn of the event loop end only when so many more answers are there to be read (or after a while):
     * they are read before the socket hears that its requests were written.
     */
    answersWithinTurn: (more: number) => {
      const due = Atomics.load(counts, 2) + more;
      setImmediate(() => {
        for (let now = Atomics.load(counts, 2); now < due; now = Atomics.load(counts, 2))
          if (Atomics.wait(counts, 2, now, 1000) === 'timed-out') return;
      });
    },
  };
}

const post = (body: Buffer) => ({ ...get('/', 'POST'), body: [body] });

test('calls in a row to a TLS upstream that answers at once share one connection, whatever their size', async (t) => {
  const client = makeClient(t);
  const server = await echoServer(t);
  await new Call(client, server.origin, post(Buffer.from('x'))).over;
  for (const size of [10, 1000, 15_000, 17_000, 60_000, 100_000]) {
    for (let i = 0; i < 30; i++) {
      const body = randomBytes(size);
      await eventually(() => client.stats().busy === 0);
      // A larger one leaves in several turns.
      const isSmall = size < 16_000 && client.stats().idle > 0;
      const call = new Call(client, server.origin, post(body));
      if (isSmall) server.answersWithinTurn(1);
      await call.over;
      t.equal(call.body === body.toString('latin1'), true);
    }
  }
  t.equal(server.handshakes(), 1, `${server.handshakes()} handshakes for 181 calls`);
});

test('many calls of one turn go each to its own upstream, and come back with their connections', async (t) => {
  const client = makeClient(t);
  const server = await echoServer(t);
  const callers = 16;
  const begin = () => {
    // Of several sizes, so that a buffer that is used again too early would show.
    const body = randomBytes(200 + Math.floor(random() * 14_000));
    return { body, call: new Call(client, server.origin, post(body)) };
  };
  await begin().call.over;
  await Promise.all(Array.from({ length: callers }, () => begin().call.over));
  for (let round = 0; round < 40; round++) {
    await eventually(() => client.stats().busy === 0);
    const kept = Math.min(callers, client.stats().idle);
    const calls = Array.from({ length: callers }, begin);
    server.answersWithinTurn(kept);
    for (const { call, body } of calls) {
      await call.over;
      if (call.body !== body.toString('latin1')) t.fail('a body that is not its own');
    }
  }
  t.ok(server.handshakes() <= callers + 1, `${server.handshakes()} handshakes for ${41 * callers} calls`);
  t.equal(server.resumed(), server.handshakes() - 1, 'all but the first resume its session');
});

test('without anything to wait for, calls that follow each other make a handful of handshakes', async (t) => {
  const client = makeClient(t);
  const server = await echoServer(t);
  const callers = 8;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let i = 0; i < 100; i++) await new Call(client, server.origin, post(randomBytes(700))).over;
    }),
  );
  t.ok(server.handshakes() <= 3 * callers, `${server.handshakes()} handshakes for ${100 * callers} calls`);
});

test('an upload that is answered with its last byte leaves its connection to the next call', async (t) => {
  const client = makeClient(t);
  const server = await echoServer(t);
  for (let i = 1; i <= 3; i++) {
    const source = new Source(20_000);
    const upload = new Call(client, server.origin, { ...get('/', 'POST'), source });
    await eventually(() => source.sink !== null);
    source.sink?.write(randomBytes(10_000));
    await eventually(() => upload.exchange !== null && socketOf(upload).writableLength === 0);
    source.sink?.write(randomBytes(10_000));
    source.sink?.end();
    server.answersWithinTurn(1);
    await upload.over;
    t.equal(upload.bytes, 20_000);
    await eventually(() => client.stats().busy === 0);
    t.equal((await new Call(client, server.origin, post(Buffer.from('x'))).over).body, 'x');
    t.equal(server.handshakes(), i, 'an upload has a connection of its own, which a call then takes over');
  }
});

test('an answer that comes before the whole request over TLS costs the connection', async (t) => {
  const client = makeClient(t);
  const early = 'HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno';
  const server = await listen(t, createServer(certificate), (socket) => {
    socket.once('data', () => {
      socket.pause();
      socket.write(early);
    });
  });
  const origin = { ...server.origin, secure: true, serverName: 'localhost', ca: pem('ca.pem') };
  for (let i = 1; i <= 3; i++) {
    const call = await new Call(client, origin, post(Buffer.alloc(32 << 20))).over;
    t.match(call, { failure: null, body: 'no' });
    await eventually(() => client.stats().open === 0);
    t.equal(server.sockets.length, i);
  }
});

test('through the gateway: few handshakes, and every body reaches the upstream as its client sent it', async (t) => {
  let handshakes = 0;
  const upstream = await startRawUpstream(
    t,
    ({ body, socket }) => {
      const { messages } = JSON.parse(body.toString()) as { messages: { content: string }[] };
      const content = messages[0]?.content;
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
      socket.write(
        jsonAnswer(200, JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, choices })),
      );
    },
    { tls: certificate },
  );
  upstream.secure?.on('secureConnection', () => handshakes++);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url.replace('127.0.0.1', 'localhost')],
    upstream: { tls: { ca: fixture('ca.pem').pathname } },
  });
  const callers = 8;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let i = 0; i < 40; i++) {
        const content = `${caller}-${i}-`.padEnd(
          i % 8 === 7 ? 40_000 : 700,
          String.fromCharCode(97 + caller),
        );
        const answer = await postJson(`${gateway.url}/v1/chat/completions`, {
          model: 'm',
          messages: [{ role: 'user', content }],
        });
        const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
        if (choices[0]?.message.content !== content) t.fail(`${content.slice(0, 9)} was spoilt`);
      }
    }),
  );
  t.ok(handshakes <= 2 * callers, `${handshakes} handshakes for ${40 * callers} calls`);
});

test('a session is resumed whichever of the addresses of a name is taken, and no certificate passes for another name', async (t) => {
  const resumed: boolean[] = [];
  const server = createServer(certificate);
  const { port } = await listen(t, server, (socket) => {
    resumed.push((socket as TLSSocket).isSessionReused());
    socket.once('data', () =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok'),
    );
  });
  const dialer = createDialer((_name, _options, done) =>
    setImmediate(done, null, [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]),
  );
  const client = createUpstreamClient(dialer);
  t.teardown(() => client.close());
  const secure = { secure: true, host: 'localhost', serverName: 'localhost', ca: pem('ca.pem') };
  const origin = plainOrigin(port, { ...secure, identity: 'named' });
  for (let i = 0; i < 3; i++) t.equal((await new Call(client, origin).over).body, 'ok');
  t.strictSame(resumed, [false, true, true]);
  const other = { ...origin, identity: 'other', serverName: 'other.test' };
  t.match((await new Call(client, other).over).failure, { reason: 'tls_failed', bytesSent: false });
});
