import { type Test, test } from 'tap';
import type { WebSocket } from 'ws';
import { surfaceFault } from '../../src/errors.js';
import type { Origin } from '../../src/upstream/origin.js';
import { SocketCalls, type SocketOwner } from '../../src/upstream/socket-calls.js';
import type { Deadlines, ResponseHead, UpstreamFailure, UpstreamHandler } from '../../src/upstream/types.js';
import { eventually } from '../support/eventually.js';
import { plainOrigin, rawServer } from './raw.js';
import { dialer, socketRequest, socketServer } from './socket-peers.js';

const rules: SocketOwner = {
  hold: () => true,
  judge: (message) => {
    const text = message.toString();
    return text.startsWith('last') ? 'last' : text.startsWith('error') ? 'error' : 'more';
  },
  refusal: (message) => ({ status: 418, body: Buffer.from(message) }),
};

const unhurried: Deadlines = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 };

/** What one call has heard. */
class Heard implements UpstreamHandler {
  head: ResponseHead | null = null;
  text = '';
  failure: UpstreamFailure | null = null;
  isOver = false;
  hasNoSocket = false;
  takes = true;

  onHead(head: ResponseHead): void {
    this.head = head;
  }

  onData(chunk: Buffer): boolean {
    this.text += chunk.toString();
    return this.takes;
  }

  onEnd(): void {
    this.isOver = true;
  }

  onFailure(failure: UpstreamFailure): void {
    this.failure = failure;
    this.isOver = true;
  }

  onFault(_where: string, fault: unknown): void {
    surfaceFault(fault);
  }
}

function callsTo(t: Test, origin: Origin): SocketCalls {
  const calls = new SocketCalls(socketRequest(origin), dialer, rules);
  t.teardown(() => calls.close());
  return calls;
}

function ask(calls: SocketCalls, text: string, deadlines: Partial<Deadlines> = {}) {
  const heard = new Heard();
  const exchange = calls.send(
    Buffer.from(text),
    () => false,
    { ...unhurried, ...deadlines },
    heard,
    () => {
      heard.hasNoSocket = true;
      heard.isOver = true;
    },
  );
  return { heard, exchange };
}

/** A server whose answer to each message is given by the message. */
const server = (t: Test, answer: (socket: WebSocket, message: string) => void) =>
  socketServer(t, (socket) => socket.on('message', (data) => answer(socket, data.toString())));

test('an answer is told as a stream of events, call after call over one socket', async (t) => {
  const { origin, peers } = await server(t, (socket, message) => {
    socket.send('{\n"pretty": "one\\n"\r\n}');
    socket.send(`last ${message}`);
    socket.send('between');
  });
  const calls = callsTo(t, origin);
  for (const word of ['a', 'b', 'c']) {
    const { heard, exchange } = ask(calls, word);
    t.equal(heard.head, null, 'nothing is told before send has returned');
    await eventually(() => heard.isOver);
    t.match(heard, { failure: null, head: { status: 200, contentType: 'text/event-stream' } });
    t.equal(heard.text, `data: { "pretty": "one\\n"  }\n\ndata: last ${word}\n\n`);
    t.ok(exchange.sentAt > 0);
  }
  t.equal(peers.length, 1);
});

test('an error in place of an answer is an answer of its own, and within one its end', async (t) => {
  const { origin } = await server(t, (socket, message) => {
    if (message === 'within') socket.send('event');
    socket.send('error x');
  });
  const calls = callsTo(t, origin);
  const first = ask(calls, 'alone').heard;
  await eventually(() => first.isOver);
  t.match(first, { head: { status: 418, contentType: 'application/json' }, text: 'error x', failure: null });
  const second = ask(calls, 'within').heard;
  await eventually(() => second.isOver);
  t.match(second, { head: { status: 200 }, text: 'data: event\n\ndata: error x\n\n', failure: null });
});

test('a receiver that pauses stops the upstream', async (t) => {
  const count = 30_000;
  const { origin, peers } = await server(t, (socket) => {
    for (let i = 0; i < count; i++) socket.send(`${i} `.padEnd(1000));
    socket.send('last');
  });
  const calls = callsTo(t, origin);
  const { heard, exchange } = ask(calls, 'x');
  heard.takes = false;
  await eventually(() => heard.text !== '');
  await eventually(() => (peers[0]?.socket.bufferedAmount ?? 0) > 10 << 20);
  const before = heard.text.length;
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  t.equal(heard.text.length, before);
  heard.takes = true;
  exchange.resume();
  await eventually(() => heard.isOver);
  t.equal(heard.failure, null);
  t.equal(heard.text.split('data: ').length - 1, count + 1);
});

test('the end of an answer waits for a receiver that has paused', async (t) => {
  const { origin } = await server(t, (socket) => socket.send('last'));
  const { heard, exchange } = ask(callsTo(t, origin), 'x');
  heard.takes = false;
  await eventually(() => heard.text !== '');
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  t.equal(heard.isOver, false);
  exchange.resume();
  t.equal(heard.isOver, true);
});

test('a socket that was closed is opened again, also when a call is on its way already', async (t) => {
  let isLeaving = false;
  const { origin, peers } = await server(t, (socket, message) => {
    if (isLeaving) {
      isLeaving = false;
      socket.terminate();
    } else socket.send(`last ${message}`);
  });
  const calls = callsTo(t, origin);
  const first = ask(calls, 'a').heard;
  await eventually(() => first.isOver);
  peers[0]?.socket.close(1000);
  await eventually(() => !calls.isOpen);
  const second = ask(calls, 'b').heard;
  await eventually(() => second.isOver);
  t.match(second, { text: 'data: last b\n\n', failure: null });
  isLeaving = true;
  const third = ask(calls, 'c').heard;
  await eventually(() => third.isOver);
  t.match(third, { text: 'data: last c\n\n', failure: null });
  t.equal(peers.length, 3);
});

test('a call is not sent a third time, and not again once its answer has begun', async (t) => {
  const { origin, peers } = await server(t, (socket, message) => {
    if (message === 'begin') socket.send('event', () => socket.terminate());
    else if (message === 'ok') socket.send('last');
    else socket.terminate();
  });
  const calls = callsTo(t, origin);
  const first = ask(calls, 'ok').heard;
  await eventually(() => first.isOver);
  const second = ask(calls, 'refuse').heard;
  await eventually(() => second.isOver);
  t.match(second, { head: null, failure: { reason: 'reset', bytesSent: true, headSeen: false } });
  t.equal(peers.length, 2);
  const third = ask(calls, 'begin').heard;
  await eventually(() => third.isOver);
  t.match(third, { text: 'data: event\n\n', failure: { reason: 'truncated', headSeen: true } });
});

test('a call whose answer cannot be taken is not sent again, and how its socket ended is told', async (t) => {
  const { origin, peers } = await server(t, (socket, message) => socket.send(message));
  const calls = callsTo(t, origin);
  const first = ask(calls, 'last').heard;
  await eventually(() => first.isOver);
  peers[0]?.socket.removeAllListeners('message').once('message', () => {
    peers[0]?.raw.write('\x83\x00', 'latin1');
  });
  const second = ask(calls, 'x').heard;
  await eventually(() => second.isOver);
  t.match(second.failure, { reason: 'malformed_answer', detail: 'a frame against RFC 6455' });
  t.equal(peers.length, 1);
  const third = ask(calls, 'begin').heard;
  await eventually(() => third.text !== '');
  peers[1]?.raw.resetAndDestroy();
  await eventually(() => third.isOver);
  t.match(third.failure, { reason: 'truncated', detail: 'ECONNRESET' });
});

test('silence, binary messages and the whole time have their ends', async (t) => {
  const { origin } = await server(t, (socket, message) => {
    if (message === 'binary') socket.send(Buffer.from('x'), { binary: true });
    if (message === 'begin') socket.send('event');
    if (message === 'trickle') setInterval(() => socket.send('event'), 20).unref();
  });
  const cases = [
    ['mute', { firstByteMs: 100 }, 'first_byte_timeout'],
    ['begin', { idleMs: 100 }, 'idle_timeout'],
    ['trickle', { totalMs: 300 }, 'total_timeout'],
    ['binary', {}, 'malformed_answer'],
  ] as const;
  await Promise.all(
    cases.map(async ([message, deadlines, reason]) => {
      const calls = callsTo(t, origin);
      const { heard } = ask(calls, message, deadlines);
      await eventually(() => heard.isOver);
      t.match(heard.failure, { reason }, message);
      t.equal(calls.isOpen, false);
    }),
  );
});

test('an upstream without a WebSocket, one that refuses and one that is not there', async (t) => {
  const refusing = (status: string) =>
    rawServer(t, (socket) =>
      socket.once('data', () => socket.write(`HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\n{}`)),
    );
  for (const status of ['200 OK', '404 X', '405 X', '426 X', '501 X']) {
    const { heard } = ask(callsTo(t, (await refusing(status)).origin), 'x');
    await eventually(() => heard.isOver);
    t.match(heard, { hasNoSocket: true, head: null, failure: null }, status);
  }
  for (const status of ['401 X', '429 X', '503 X']) {
    const { heard } = ask(callsTo(t, (await refusing(status)).origin), 'x');
    await eventually(() => heard.isOver);
    t.match(heard, { hasNoSocket: false, head: { status: Number(status.slice(0, 3)) }, text: '{}' });
  }
  const { heard } = ask(callsTo(t, plainOrigin(1)), 'x');
  await eventually(() => heard.isOver);
  t.match(heard.failure, { reason: 'connect_failed', bytesSent: false });
});

test('a call that is given up takes its socket with it, and nothing more is told', async (t) => {
  const { origin, peers } = await server(t, (socket) => {
    socket.send('event');
    setInterval(() => socket.send('event'), 5).unref();
  });
  const calls = callsTo(t, origin);
  const { heard, exchange } = ask(calls, 'x');
  await eventually(() => heard.text !== '');
  exchange.cancel();
  const { text } = heard;
  await eventually(() => peers[0]?.raw.destroyed === true);
  t.equal(heard.text, text);
  t.equal(heard.isOver, false);
  exchange.cancel();
  exchange.resume();
  const early = ask(calls, 'y');
  early.exchange.cancel();
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.match(early.heard, { head: null, isOver: false });
});
