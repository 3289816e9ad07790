import { test } from 'tap';
import { type BodyOwner, createBodyPool } from '../../src/http/body.js';
import { streamBody } from '../../src/http/body-stream.js';
import type { BodySource, ChunkReceiver } from '../../src/http/client-link.js';
import type { Exchange } from '../../src/http/exchange.js';
import { headAnd, turns } from './http-server.js';
import { chunkedHead, hashOf, head, MB, next, noise, Receiver, startUpload } from './uploads.js';

/** First read of a socket, and the most that uWS reads of one that was stopped meanwhile. */
const mostRead = 6 * MB;

test('a body of known length comes whole, with the head or in pieces after it', async (t) => {
  const body = noise(300_000);
  for (const cut of [1000, 65_537, body.length]) {
    const receiver = new Receiver();
    const { wire, streamed } = await startUpload(t, receiver);
    wire.send(Buffer.concat([Buffer.from(head(body.length)), body.subarray(0, 10)]));
    for (let at = 10; at < body.length; at += cut) wire.send(body.subarray(at, at + cut));
    await receiver.until(({ ended }) => ended);
    t.equal(receiver.hash(), hashOf(body));
    const { exchange } = await streamed;
    t.equal(exchange.bytesIn, body.length);
    exchange.respond(200, '', 'ok');
    t.match(await wire.take(headAnd(2)), /^HTTP\/1\.1 200 OK\r\n[\s\S]*ok$/);
    wire.send(next);
    t.match(await wire.take(headAnd(5)), /\/next$/, 'the connection goes on');
    wire.socket.destroy();
  }
});

test('a chunked body comes whole, its coding taken off', async (t) => {
  const body = noise(100_000);
  for (const size of [1, 999, 50_000]) {
    const receiver = new Receiver();
    const { wire } = await startUpload(t, receiver);
    const parts: Buffer[] = [Buffer.from(chunkedHead)];
    for (let at = 0; at < body.length; at += size) {
      const piece = body.subarray(at, at + size);
      parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    }
    wire.send(Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]));
    await receiver.until(({ ended }) => ended);
    t.equal(receiver.hash(), hashOf(body));
    wire.socket.destroy();
  }
});

test('without a body there is only its end', async (t) => {
  for (const request of [head(0), 'POST /up HTTP/1.1\r\nhost: x\r\n\r\n', `${chunkedHead}0\r\n\r\n`]) {
    const receiver = new Receiver();
    const { wire } = await startUpload(t, receiver);
    wire.send(request);
    await receiver.until(({ ended }) => ended);
    t.equal(receiver.pieces.length, 0);
    wire.socket.destroy();
  }
});

for (const coding of ['of known length', 'in chunks']) {
  test(`a client ${coding} that sends as fast as it can is held back`, async (t) => {
    const body = noise(64 * MB);
    const receiver = new Receiver(({ pieces }) => pieces.length > 1);
    const { wire, streamed } = await startUpload(t, receiver);
    wire.send(coding === 'in chunks' ? `${chunkedHead}${body.length.toString(16)}\r\n` : head(body.length));
    wire.send(body);
    if (coding === 'in chunks') wire.send('\r\n0\r\n\r\n');
    await receiver.until(({ bytes }) => bytes > 0);
    const { bytes } = receiver;
    const { exchange } = await streamed;
    await turns(500);
    t.equal(receiver.bytes, bytes, 'nothing is delivered');
    t.ok(exchange.bytesIn < mostRead, `${exchange.bytesIn} were read`);
    exchange.onSweep();
    await turns(500);
    const { bytesIn } = exchange;
    t.ok(bytesIn < 2 * mostRead, `${bytesIn} were read`);
    for (let round = 0; round < 3; round++) {
      exchange.onSweep();
      await turns(100);
    }
    t.equal(exchange.bytesIn, bytesIn, 'a sweep reads only as long as nothing waits');
    t.equal(receiver.bytes, bytes);
    exchange.resumeBody();
    await receiver.until(({ ended }) => ended);
    t.equal(receiver.bytes, body.length);
    t.equal(receiver.hash(), hashOf(body));
    wire.socket.destroy();
  });
}

test('a receiver that stops after every piece gets all of them in order', async (t) => {
  const body = noise(16 * MB);
  let exchange: Exchange | null = null;
  const receiver = new Receiver(() => {
    setImmediate(() => exchange?.resumeBody());
    return false;
  });
  const { wire, streamed } = await startUpload(t, receiver);
  wire.send(head(body.length));
  exchange = (await streamed).exchange;
  wire.send(body);
  await receiver.until(({ ended }) => ended);
  t.equal(receiver.hash(), hashOf(body));
  wire.socket.destroy();
});

test('what comes in spite of a stop is handed on where the receiver goes on for it, and is kept where it does not', (t) => {
  const body = noise(5 * MB);
  const receiver = new Receiver(() => false);
  let socket: ChunkReceiver | null = null;
  const source: BodySource = {
    read(chunks) {
      socket = chunks;
    },
    pause() {},
    rearm() {},
  };
  const exchange: BodyOwner = {
    head: { contentLength: body.length, chunked: false },
    bytesIn: 0,
    isAnswered: false,
    isBlocked: false,
    bodyExpected() {},
    bodyComplete() {},
    bodyBuffer: (capacity) => Buffer.alloc(capacity),
  };
  const stream = streamBody(exchange, source, {
    limit: body.length,
    pool: createBodyPool(0),
    receiver,
    waits: false,
  });
  const come = (from: number): void => {
    const bytes = body.subarray(from, from + MB);
    socket?.onChunk(new Uint8Array(bytes).buffer, from + MB === body.length);
  };
  let more = 0;
  receiver.more = () => {
    more++;
    stream?.resume();
  };
  come(0);
  come(MB);
  t.strictSame([more, receiver.bytes, receiver.mostWaiting], [1, 2 * MB, 0], 'nothing was kept');
  receiver.more = () => {
    more++;
  };
  come(2 * MB);
  come(3 * MB);
  t.strictSame([more, receiver.bytes, receiver.waiting], [3, 2 * MB, 2 * MB]);
  receiver.more = () => {
    while (receiver.bytes < 4 * MB) stream?.resume();
    stream?.resume();
  };
  come(4 * MB);
  t.equal(receiver.bytes, body.length);
  t.equal(receiver.ended, false, 'the receiver has stopped at the last piece');
  stream?.resume();
  t.equal(receiver.ended, true);
  t.equal(receiver.hash(), hashOf(body));
  t.equal(receiver.waiting, 0);
  t.end();
});

test('to go on before the stop was said counts, too', async (t) => {
  const body = noise(4 * MB);
  let exchange: Exchange | null = null;
  const receiver = new Receiver(() => {
    exchange?.resumeBody();
    return false;
  });
  const { wire, streamed } = await startUpload(t, receiver);
  wire.send(head(body.length));
  exchange = (await streamed).exchange;
  wire.send(body);
  await receiver.until(({ ended }) => ended);
  t.equal(receiver.hash(), hashOf(body));
  wire.socket.destroy();
});

test('a receiver that stops at the last piece hears of the end when it goes on', async (t) => {
  const receiver = new Receiver(() => false);
  const { wire, streamed } = await startUpload(t, receiver);
  wire.send(`${head(3)}abc`);
  const { exchange, heard } = await streamed;
  await receiver.until(({ bytes }) => bytes === 3);
  await turns(10);
  t.notOk(receiver.ended);
  exchange.resumeBody();
  t.ok(receiver.ended);
  wire.socket.destroy();
  await heard.gone;
});

test('a body that is announced as too large is refused and thrown away', async (t) => {
  const receiver = new Receiver();
  const { wire, streamed } = await startUpload(t, receiver, 1000);
  wire.send(head(5 * MB));
  await receiver.until(({ refusal }) => refusal !== null);
  t.match(receiver.refusal, { kind: 'request_too_large', status: 413 });
  (await streamed).exchange.respond(413, '', 'no');
  t.match(await wire.take(headAnd(2)), /^HTTP\/1\.1 413 [\s\S]*no$/, 'the answer does not wait for the rest');
  wire.send(Buffer.alloc(5 * MB));
  wire.send(next);
  t.match(await wire.take(headAnd(5)), /\/next$/);
  t.equal(receiver.pieces.length, 0);
  wire.socket.destroy();
});

test('a body that turns out to be too large is refused once, and nothing follows', async (t) => {
  const receiver = new Receiver();
  const { wire, streamed } = await startUpload(t, receiver, 1000);
  wire.send(`${chunkedHead}3e8\r\n${'x'.repeat(1000)}\r\n`);
  await receiver.until(({ bytes }) => bytes === 1000);
  t.equal(receiver.refusal, null, 'the limit itself is allowed');
  wire.send('1\r\ny\r\n5\r\nzzzzz\r\n0\r\n\r\n');
  await receiver.until(({ refusal }) => refusal !== null);
  await turns(10);
  t.equal(receiver.bytes, 1000);
  t.notOk(receiver.ended);
  (await streamed).exchange.respond(413, '', 'no');
  t.match(await wire.take(headAnd(2)), /^HTTP\/1\.1 413 /);
  wire.socket.destroy();
});

test('a receiver hears that its body is discarded, unless it has had all of it', async (t) => {
  for (const isWhole of [false, true]) {
    const receiver = new Receiver();
    const { wire, streamed } = await startUpload(t, receiver);
    wire.send(head(10));
    wire.send(Buffer.alloc(isWhole ? 10 : 5));
    await receiver.until(({ ended, bytes }) => (isWhole ? ended : bytes === 5));
    const { exchange } = await streamed;
    exchange.respond(200, '', 'ok');
    t.equal(receiver.discards, isWhole ? 0 : 1);
    if (!isWhole) wire.send(Buffer.alloc(5));
    t.match(await wire.take(headAnd(2)), /ok$/);
    wire.send(next);
    t.match(await wire.take(headAnd(5)), /\/next$/);
    t.equal(receiver.bytes, isWhole ? 10 : 5);
    wire.socket.destroy();
  }
});
