import type { Socket } from 'node:net';
import { test } from 'tap';
import type { WebSocket } from 'ws';
import { createFrameWriter, type FrameSink } from '../../src/upstream/socket-frames.js';
import { eventually } from '../support/eventually.js';
import { fc } from '../support/seed.js';
import { onRequests, rawServer } from './raw.js';
import { acceptance, Heard, socketServer } from './socket-peers.js';

const echo = (socket: WebSocket) => socket.on('message', (data, binary) => socket.send(data, { binary }));
const same = (a: { data: Buffer; isBinary: boolean }, b: { data: Buffer; isBinary: boolean }) =>
  a.isBinary === b.isBinary && a.data.equals(b.data);

/** Of a text all are ASCII. */
const bytes = (size: number, seed: number, isBinary: boolean) => {
  const mask = isBinary ? 0xff : 0x7f;
  const data = Buffer.allocUnsafe(size);
  for (let i = 0; i < size; i++) data[i] = (i * 31 + seed * 17 + (i >> 8)) & mask;
  return data;
};

test('messages of every size come back as they were sent, in order', async (t) => {
  const server = await socketServer(t, echo, { maxPayload: 1 << 24 });
  const heard = await new Heard(server.origin).opened;
  const size = fc.oneof(
    fc.constantFrom(0, 1, 15, 16, 17, 125, 126, 127, 16_384, 16_385, 65_535, 65_536, 200_000),
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 0, max: 70_000 }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(size, fc.boolean(), fc.boolean()), { minLength: 1, maxLength: 30 }),
      async (plan) => {
        heard.messages.length = 0;
        const sent: { data: Buffer; isBinary: boolean }[] = [];
        for (const [length, isBinary, turn] of plan) {
          const data = bytes(length, sent.length, isBinary);
          sent.push({ data: Buffer.from(data), isBinary });
          heard.socket.send(new Uint8Array(data.buffer, data.byteOffset, length), isBinary);
          // The memory is taken back as soon as send has returned.
          data.fill(0xee);
          if (turn) await new Promise((resolve) => setImmediate(resolve));
        }
        await eventually(() => heard.messages.length === sent.length);
        return sent.every((message, i) => same(message, heard.messages[i] as typeof message));
      },
    ),
    { numRuns: 60 },
  );
  heard.socket.terminate();
});

test('thousands of messages in one read come in order, whoever pauses between them', async (t) => {
  const many = 20_000;
  let peer!: Socket;
  const server = await rawServer(t, (socket) => {
    peer = socket;
    onRequests(socket, (text) => socket.write(acceptance(text)));
  });
  const heard = await new Heard(server.origin).opened;
  const sent = Array.from({ length: many }, (_, index) =>
    Buffer.from(`\x82\x02${String.fromCharCode(index >> 8, index & 0xff)}`, 'latin1'),
  );
  peer.write(Buffer.concat(sent));
  heard.socket.pause();
  setImmediate(() => heard.socket.resume());
  await eventually(() => heard.messages.length > 3000);
  heard.socket.pause();
  const stopped = heard.messages.length;
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  t.equal(heard.messages.length, stopped, 'nothing comes in a pause');
  heard.socket.resume();
  await eventually(() => heard.messages.length === many);
  t.ok(heard.messages.every(({ data }, index) => data.readUInt16BE() === index));
  heard.socket.terminate();
});

test('what comes in fragments and in pieces of any size arrives whole', async (t) => {
  let peer!: Socket;
  const server = await rawServer(t, (socket) => {
    peer = socket;
    onRequests(socket, (text) => socket.write(acceptance(text)));
  });
  const heard = await new Heard(server.origin).opened;
  peer.removeAllListeners('data');
  const frame = (opcode: number, fin: boolean, data: Buffer) => {
    const long = data.length > 125;
    const head = Buffer.alloc(long ? 4 : 2);
    head[0] = opcode | (fin ? 0x80 : 0);
    head[1] = long ? 126 : data.length;
    if (long) head.writeUInt16BE(data.length, 2);
    return Buffer.concat([head, data]);
  };
  const message = fc.record({
    isBinary: fc.boolean(),
    parts: fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 4 }),
    ping: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { minLength: 1, maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 40 }),
      async (plan, cuts) => {
        heard.messages.length = 0;
        const frames: Buffer[] = [];
        const sent = plan.map(({ isBinary, parts, ping }, seed) => {
          const pieces = parts.map((size, i) => bytes(size, seed + i, isBinary));
          pieces.forEach((piece, i) => {
            frames.push(frame(i > 0 ? 0 : isBinary ? 2 : 1, i === pieces.length - 1, piece));
            if (ping) frames.push(frame(9, true, Buffer.from('p')));
          });
          return { isBinary, data: Buffer.concat(pieces) };
        });
        let rest = Buffer.concat(frames);
        for (let i = 0; rest.length > 0; i++) {
          const cut = i < cuts.length ? (cuts[i] as number) : rest.length;
          peer.write(rest.subarray(0, cut));
          rest = rest.subarray(cut);
          if (i % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        await eventually(() => heard.messages.length === sent.length);
        return sent.every((each, i) => same(each, heard.messages[i] as typeof each));
      },
    ),
    { numRuns: 60 },
  );
  heard.socket.terminate();
});

test('messages that come together with the answer come after onOpen', async (t) => {
  const server = await rawServer(t, (socket) =>
    onRequests(socket, (text) => socket.write(`${acceptance(text)}\x81\x02hi\x82\x00`, 'latin1')),
  );
  const heard = new Heard(server.origin);
  await eventually(() => heard.messages.length === 2);
  t.strictSame(heard.events, ['open', 'message', 'message']);
  t.strictSame(
    heard.messages.map(({ data, isBinary }) => [data.toString(), isBinary]),
    [
      ['hi', false],
      ['', true],
    ],
  );
  heard.socket.terminate();
});

test('frames of several sockets in one turn go each to its own', async (t) => {
  const server = await socketServer(t, echo);
  const all = await Promise.all([0, 1, 2].map(() => new Heard(server.origin).opened));
  for (let i = 0; i < 300; i++) all[i % 3]?.socket.send(Buffer.from(`${i}${'x'.repeat(i * 7)}`), false);
  t.ok(all.every(({ socket }) => socket.waitingBytes > 0));
  await eventually(() => all.every(({ messages }) => messages.length === 100));
  t.ok(
    all.every(({ messages }, j) =>
      messages.every(({ data }, i) => data.equals(Buffer.from(`${3 * i + j}${'x'.repeat((3 * i + j) * 7)}`))),
    ),
  );
  t.ok(all.every(({ socket }) => socket.waitingBytes === 0));
  for (const { socket } of all) socket.terminate();
});

test('a batch that a socket still reads from is not written again', async (t) => {
  const writer = createFrameWriter();
  const kept: { piece: Buffer; copy: Buffer }[] = [];
  const sink = (writableLength: number): FrameSink => ({
    batched: 0,
    takesFrames: true,
    onFault: (_where, fault) => {
      throw fault;
    },
    raw: {
      writableLength,
      write: (piece: Buffer) => writableLength > 0 && kept.push({ piece, copy: Buffer.from(piece) }),
    } as unknown as Socket,
  });
  const slow = sink(1);
  const fast = sink(0);
  for (let i = 0; i < 2000; i++) {
    writer.write(i % 7 === 0 ? slow : fast, bytes(100 + i, i, true), true);
    if (i % 11 === 0) writer.flush();
  }
  writer.flush();
  t.ok(kept.length > 100);
  t.ok(kept.every(({ piece, copy }) => piece.equals(copy)));
  t.equal(slow.batched + fast.batched, 0);
});

test('a slow upstream makes send say false, and onDrained follows', async (t) => {
  const server = await socketServer(t, (socket) => socket.pause());
  const heard = await new Heard(server.origin).opened;
  const chunk = Buffer.alloc(10_000, 1);
  let sent = 0;
  while (heard.socket.send(chunk, true)) {
    sent++;
    if (sent % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  t.ok(heard.socket.waitingBytes > 64 * 1024);
  t.ok(heard.socket.waitingBytes < 256 * 1024, `${heard.socket.waitingBytes}`);
  t.strictSame(heard.events, ['open']);
  let received = 0;
  server.peers[0]!.socket.on('message', () => received++);
  server.peers[0]!.socket.resume();
  await eventually(() => heard.events.includes('drained'));
  t.ok(heard.socket.waitingBytes < 64 * 1024);
  await eventually(() => received === sent + 1);
  t.strictSame(heard.events, ['open', 'drained']);
  heard.socket.terminate();
});

test('pause holds a fast upstream back, and resume loses nothing', async (t) => {
  const count = 40_000;
  const server = await socketServer(t, (socket) => {
    for (let i = 0; i < count; i++) socket.send(Buffer.from(`${i} `.padEnd(1000)));
  });
  const heard = new Heard(server.origin);
  let isPaused = false;
  heard.onEvent = (event) => {
    if (event !== 'message' || heard.messages.length % 5000 !== 1) return;
    isPaused = true;
    heard.socket.pause();
  };
  for (let pauses = 0; heard.messages.length < count; ) {
    await eventually(() => isPaused || heard.messages.length === count);
    if (heard.messages.length === count) break;
    isPaused = false;
    const before = heard.messages.length;
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.equal(heard.messages.length, before);
    if (++pauses === 1) {
      await eventually(() => server.peers[0]!.socket.bufferedAmount > 0);
      t.ok(server.peers[0]!.socket.bufferedAmount > 10 << 20, 'the rest waits at the server');
    }
    heard.socket.resume();
  }
  t.ok(heard.messages.every(({ data }, i) => Number(data.toString()) === i));
  heard.socket.terminate();
});

test('paused before it is open, and at each message', async (t) => {
  const server = await rawServer(t, (socket) =>
    onRequests(socket, (text) =>
      socket.write(`${acceptance(text)}\x81\x01a\x81\x01b\x81\x01c\x88\x02\x03\xe8`, 'latin1'),
    ),
  );
  const heard = new Heard(server.origin);
  heard.socket.pause();
  heard.onEvent = (event) => {
    if (event === 'message') heard.socket.pause();
  };
  await heard.opened;
  for (let expected = 0; expected <= 3; expected++) {
    if (expected > 0) heard.socket.resume();
    await eventually(() => heard.messages.length >= expected);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.equal(heard.messages.length, expected);
  }
  heard.socket.resume();
  await heard.over;
  t.equal(heard.messages.map(({ data }) => data.toString()).join(''), 'abc');
  t.strictSame(heard.closed, { code: 1000, reason: '' });
});

test('a listener that throws loses its connection, and the error reaches the process', async (t) => {
  const server = await socketServer(t, (socket) => socket.send('x'));
  const heard = new Heard(server.origin);
  heard.onEvent = (event) => {
    if (event === 'message') throw new Error('mine');
  };
  const thrown = new Promise((resolve) => process.once('uncaughtException', resolve));
  t.match(await thrown, { message: 'mine' });
  await eventually(() => server.peers[0]?.raw.destroyed === true);
  t.strictSame(heard.events, ['open', 'message']);
});
