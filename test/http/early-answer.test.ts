import { test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { headAnd, hear, startServer, turns, Wire } from './http-server.js';
import { chunkedHead, hashOf, head, MB, next, noise, Receiver, startUpload } from './uploads.js';

test('an early answer to a stopped upload reaches its client, which goes on', async (t) => {
  const receiver = new Receiver(() => false);
  const { wire, streamed } = await startUpload(t, receiver);
  wire.send(head(64 * MB));
  wire.send(Buffer.alloc(64 * MB));
  const { exchange } = await streamed;
  await receiver.until(({ bytes }) => bytes > 0);
  await turns(50);
  const { bytes } = receiver;
  exchange.respond(400, '', 'no');
  t.match(await wire.take(headAnd(2)), /^HTTP\/1\.1 400 /);
  wire.send(next);
  t.match(await wire.take(headAnd(5)), /\/next$/, 'the rest was read and thrown away');
  exchange.resumeBody();
  t.equal(receiver.bytes, bytes, 'nothing was delivered after the answer');
  t.notOk(receiver.ended);
  wire.socket.destroy();
});

test('early answers of every form free a stopped upload', async (t) => {
  const forms: Readonly<Record<string, (exchange: Exchange) => void>> = {
    large: (exchange) => exchange.respond(400, '', 'n'.repeat(20_000)),
    empty: (exchange) => exchange.respondEmpty(204, '', null),
    sized: (exchange) => {
      exchange.begin(200, '', 20_000);
      exchange.write(Buffer.alloc(20_000));
    },
    streamed: (exchange) => {
      exchange.begin(200, '');
      exchange.write(Buffer.from('n'));
      exchange.end();
    },
  };
  for (const [name, answer] of Object.entries(forms)) {
    const receiver = new Receiver(() => false);
    const { wire, streamed } = await startUpload(t, receiver);
    wire.send(head(20 * MB));
    wire.send(Buffer.alloc(20 * MB));
    const { exchange } = await streamed;
    await receiver.until(({ bytes }) => bytes > 0);
    await turns(20);
    answer(exchange);
    wire.send(next);
    t.match(await wire.take((text) => text.endsWith('/next')), /\/next$/, name);
    wire.socket.destroy();
  }
});

test('an exchange that is cut while its upload is stopped is over', async (t) => {
  const receiver = new Receiver(() => false);
  const { wire, streamed } = await startUpload(t, receiver);
  wire.send(head(64 * MB));
  wire.send(Buffer.alloc(64 * MB));
  const { exchange } = await streamed;
  await receiver.until(({ bytes }) => bytes > 0);
  const { bytes } = receiver;
  exchange.abort();
  await wire.ended();
  exchange.resumeBody();
  exchange.onSweep();
  t.equal(receiver.bytes, bytes);
});

test('an answer or a cut from inside the receiver ends the delivery', async (t) => {
  for (const way of ['respond', 'abort'] as const) {
    let exchange: Exchange | null = null;
    const receiver = new Receiver(() => {
      if (way === 'abort') exchange?.abort();
      else exchange?.respond(400, '', 'no');
      return true;
    });
    const { wire, streamed } = await startUpload(t, receiver);
    wire.send(chunkedHead);
    exchange = (await streamed).exchange;
    wire.send('1\r\na\r\n1\r\nb\r\n0\r\n\r\n');
    const received = await wire.take(headAnd(2));
    if (way === 'respond') t.match(received, /no$/);
    t.equal(receiver.bytes, 1);
    t.notOk(receiver.ended);
    wire.socket.destroy();
  }
});

test('a client that leaves is noticed, while it sends and while it is stopped', async (t) => {
  const sending = new Receiver();
  const first = await startUpload(t, sending);
  first.wire.send(`${head(100)}abc`);
  const { heard } = await first.streamed;
  await sending.until(({ bytes }) => bytes === 3);
  first.wire.socket.destroy();
  await heard.gone;
  t.notOk(sending.ended);

  for (const way of ['end', 'resetAndDestroy'] as const) {
    const stopped = new Receiver(() => false);
    const second = await startUpload(t, stopped);
    second.wire.send(`${head(100)}abc`);
    const { exchange, heard: later } = await second.streamed;
    await stopped.until(({ bytes }) => bytes === 3);
    second.wire.socket[way]();
    await turns(20);
    t.notOk(later.isGone, 'a stopped socket hears nothing');
    exchange.onSweep();
    await later.gone;
    exchange.resumeBody();
    t.equal(stopped.bytes, 3);
  }
});

test('an answer may leave while the body still comes', async (t) => {
  const body = noise(8 * MB);
  const { port } = await startServer(t, (exchange) => {
    hear(exchange, () => exchange.resumeBody());
    exchange.begin(200, '', body.length);
    exchange.streamBody(body.length, {
      onChunk: (chunk) => exchange.write(chunk),
      onMore: () => {},
      onEnd: () => exchange.end(),
      onBodyRefused: () => exchange.abort(),
      holdWaiting: () => true,
      onDiscarded: () => {},
    });
  });
  const wire = new Wire(port);
  wire.send(head(body.length));
  wire.send(body);
  const text = await wire.take((all) => all.length > body.length && headAnd(body.length)(all));
  t.equal(hashOf(Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1')), hashOf(body));
  wire.socket.destroy();
});

test('a client that sends on while it neither takes its answer nor is wanted to send runs out of room', async (t) => {
  const receiver = new Receiver(() => false);
  receiver.room = 16 * MB;
  const { wire, streamed } = await startUpload(t, receiver);
  wire.socket.pause();
  wire.send(head(200 * MB));
  const { exchange, heard } = await streamed;
  receiver.onFull = () => exchange.cut();
  exchange.begin(200, '');
  while (exchange.alive && exchange.write(Buffer.alloc(65_536)));
  wire.send(Buffer.alloc(64 * MB));
  await heard.gone;
  // What comes last may need more than is left.
  t.ok(receiver.mostWaiting > 15 * MB && receiver.mostWaiting <= 16 * MB, `${receiver.mostWaiting}`);
  t.ok(exchange.bytesIn < 32 * MB, `${exchange.bytesIn} were read`);
  t.notOk(exchange.alive);
});

test('a collected body is not written to after the answer', async (t) => {
  let whole = false;
  let early: Exchange | null = null;
  let room: Buffer | null = null;
  let begun = () => {};
  const started = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const { port } = await startServer(t, (exchange) => {
    if (exchange.method !== 'POST') {
      exchange.respond(200, '', exchange.path);
      return;
    }
    early = exchange;
    exchange.readBody(MB, {
      onBody: () => {
        whole = true;
      },
      onBodyRefused: () => {},
      hold: () => true,
    });
    begun();
  });
  const wire = new Wire(port);
  wire.send(`${head(100_000)}abc`);
  await started;
  const exchange = early as Exchange | null;
  exchange?.respond(408, '', 'late');
  exchange?.recycleBody();
  room = exchange?.bodyBuffer(100_000) ?? null;
  room?.fill(0);
  await wire.take(headAnd(4));
  wire.send('x'.repeat(99_997));
  wire.send(next);
  t.match(await wire.take(headAnd(5)), /\/next$/);
  t.notOk(whole);
  t.ok(
    room?.every((byte) => byte === 0),
    'its room belongs to another body',
  );
  wire.socket.destroy();
});
