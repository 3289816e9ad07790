import t, { test } from 'tap';
import type { Exchange, ExchangeHost } from '../../src/http/exchange.js';
import { acceptSocket, ClientSocket } from '../../src/http/socket.js';

/** A socket whose client takes what the test says, with what its owner hears. */
function stage(most = Number.POSITIVE_INFINITY, mayGoOn = true) {
  const heard: string[] = [];
  let buffered = 0;
  let free = 0;
  const held = { unread: 0, received: 0 };
  const room = (part: 'unread' | 'received') => ({
    hold(bytes: number) {
      if (bytes > most) return false;
      held[part] = bytes;
      return true;
    },
  });
  const listener = {
    onMessage: () => heard.push('message'),
    onBlocked: () => heard.push('blocked'),
    onDrained: () => heard.push('drained'),
    onFault: (_where: string, fault: unknown) => {
      throw fault;
    },
    onClosed: (code: number) => heard.push(`closed ${code}`),
  };
  const host = { open: 0, onIdle: null } as unknown as ExchangeHost;
  const socket = new ClientSocket(listener, host, {
    unread: room('unread'),
    received: room('received'),
    arrived: () => mayGoOn,
    took: () => heard.push('took'),
  });
  const take = (bytes: number) => {
    const taken = Math.min(free, bytes);
    free -= taken;
    buffered += bytes - taken;
  };
  socket.onOpen({
    cork: (work: () => void) => work(),
    send: (data: Buffer | string) => take(Buffer.byteLength(data)),
    ping: () => take(2),
    getBufferedAmount: () => buffered,
    end: (code: number, reason: string) => socket.onClose(code, reason),
    close: () => socket.onClose(1006, ''),
  } as never);
  return {
    socket,
    heard,
    held,
    /** The client sends a ping, which uWS answers. */
    ping(times: number) {
      for (let count = 0; count < times; count++) {
        take(127);
        socket.onPing();
      }
    },
    read(bytes: number) {
      buffered = Math.max(0, buffered - bytes);
      socket.onDrain();
    },
    send(bytes: number) {
      socket.send(Buffer.alloc(bytes));
      socket.flush();
    },
  };
}

const mebibyte = 1024 * 1024;

test('what waits for a client that does not read stays within 1 MiB of the message under way, then 1013', async (t) => {
  const { heard, held, send } = stage();
  send(20 * mebibyte);
  t.strictSame(heard, ['blocked']);
  for (let sent = 0; sent < 100 && heard.length === 1; sent++) send(10_000);
  t.strictSame(heard, ['blocked', 'closed 1013']);
  t.ok(held.unread <= 21 * mebibyte, `${held.unread} bytes`);
  const small = stage();
  for (let sent = 0; sent < 1000 && small.heard.length < 2; sent++) small.send(2000);
  t.strictSame(small.heard, ['blocked', 'closed 1013']);
  t.ok(small.held.unread <= mebibyte, `${small.held.unread} bytes`);
});

test('pings, which uWS answers by itself, count like messages, and are not too many', async (t) => {
  const deaf = stage();
  for (let second = 0; second < 100 && deaf.heard.length < 2; second++) {
    deaf.ping(90);
    deaf.socket.check(second * 1000, 120_000);
  }
  t.strictSame(deaf.heard, ['blocked', 'closed 1013']);
  t.ok(deaf.held.unread <= mebibyte);
  const flood = stage();
  flood.ping(1);
  flood.read(127);
  flood.ping(200);
  t.ok(flood.heard.at(-1)?.startsWith('closed'));
});

test('how long its owner is busy with a message is told', async (t) => {
  const { socket, heard } = stage();
  socket.onMessage(new ArrayBuffer(1), true);
  t.strictSame(heard, ['message', 'took']);
});

test('what finds no room is not kept: the connection is cut', async (t) => {
  const { heard, held, send } = stage(100_000);
  send(200_000);
  t.strictSame(heard, ['closed 1006']);
  t.equal(held.unread, 0);
  const received = stage(100_000);
  received.socket.onMessage(new ArrayBuffer(200_000), true);
  t.strictSame(received.heard, ['closed 1013'], 'nor is a message, of which its client is told');
});

test('a message that finds no room ends with a word, where that can be written and costs little', async (t) => {
  const large = stage(100_000);
  large.socket.onMessage(new ArrayBuffer(2 * mebibyte), true);
  t.strictSame(large.heard, ['closed 1006'], 'uWS would keep what it has of it until the client has left');
  const deaf = stage(100_000);
  deaf.send(50_000);
  deaf.socket.onMessage(new ArrayBuffer(200_000), true);
  t.strictSame(deaf.heard, ['blocked', 'closed 1006'], 'nothing can be written');
});

test('a client whose key sends more than can be taken is not listened to any more', async (t) => {
  const { socket, heard } = stage(Number.POSITIVE_INFINITY, false);
  socket.onMessage(new ArrayBuffer(1000), true);
  t.strictSame(heard, ['closed 1013']);
});

test('a client that ends no frame is given up, one that reads slowly is not', async (t) => {
  const silent = stage();
  const begin = performance.now();
  for (let at = 0; at <= 130_000 && silent.heard.length < 2; at += 1000)
    silent.socket.check(begin + at, 120_000);
  t.equal(silent.heard.at(-1), 'closed 1013', 'it does not take the ping either');
  const slow = stage();
  slow.send(mebibyte);
  for (let at = 0; at < 100_000; at += 1000) {
    slow.socket.check(performance.now() + at / 1000, 120_000);
    slow.read(1000);
  }
  t.strictSame(slow.heard, ['blocked']);
});

test('a key of another length than uWS reads is given to no handshake', async (t) => {
  for (const socketKey of ['', 'A', 'A'.repeat(60)]) {
    const exchange = { offer: {}, head: { socketKey }, handOver: () => false } as unknown as Exchange;
    t.throws(() => acceptSocket(exchange, '', {} as never, {} as never), /asks for no WebSocket/);
  }
});

t.end();
