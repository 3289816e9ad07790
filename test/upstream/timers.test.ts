import { test } from 'tap';
import { Timed, TimerWheel } from '../../src/upstream/timers.js';
import { eventually } from '../support/eventually.js';
import { fc } from '../support/seed.js';
import { answering, Call, get, makeClient, onRequests, plainOrigin, rawServer, unhurried } from './raw.js';

class Probe extends Timed {
  firedAt = 0;
  fired = 0;
  override onFault(_where: string, fault: unknown): void {
    throw fault;
  }
  expire(now: number): void {
    this.firedAt = now;
    this.fired++;
  }
}

test('entries fire once and never early, whatever is set, moved and cleared', async (t) => {
  const wheel = new TimerWheel();
  const moves = fc.sample(fc.array(fc.integer({ min: -100, max: 900 }), { minLength: 1, maxLength: 6 }), 200);
  const probes = moves.map((delays) => {
    const probe = new Probe();
    for (const delay of delays) wheel.set(probe, performance.now() + delay);
    return probe;
  });
  const dues = probes.map((probe) => probe.due);
  const cleared = new Set(probes.filter((_probe, i) => i % 5 === 0));
  for (const probe of cleared) wheel.clear(probe);
  const keepAlive = setInterval(() => {}, 1000);
  await eventually(() => probes.every((probe) => probe.fired > 0 || cleared.has(probe)));
  clearInterval(keepAlive);
  t.ok(probes.every((probe, i) => cleared.has(probe) || probe.firedAt >= (dues[i] as number)));
  t.ok(probes.every((probe) => probe.fired === (cleared.has(probe) ? 0 : 1)));
});

test('an entry may set itself again, and others, when it fires', async (t) => {
  const wheel = new TimerWheel();
  const other = new Probe();
  class Again extends Probe {
    left = 3;
    override expire(now: number): void {
      if (--this.left > 0) wheel.set(this, now + 10);
      else wheel.clear(other);
    }
  }
  const again = new Again();
  wheel.set(other, performance.now() + 60_000_000);
  wheel.set(again, performance.now());
  const keepAlive = setInterval(() => {}, 1000);
  await eventually(() => again.left === 0);
  clearInterval(keepAlive);
  t.equal(other.tick, -1);
  t.equal(other.fired, 0);
});

const part = 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nabc';

test('a handshake that does not end is a connect timeout', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, () => {});
  const origin = plainOrigin(server.port, { secure: true, serverName: 'localhost' });
  const call = await new Call(client, origin, get(), { ...unhurried, connectMs: 50 }).over;
  t.match(call.failure, { reason: 'connect_timeout', bytesSent: false, headSeen: false });
});

test('an answer that does not begin, or stops within its head, is a first-byte timeout', async (t) => {
  const client = makeClient(t);
  for (const text of ['', 'HTTP/1.1 200 OK\r\nconte', 'HTTP/1.1 100 Continue\r\n\r\n']) {
    const server = await rawServer(t, answering(text));
    const call = await new Call(client, server.origin, get(), { ...unhurried, firstByteMs: 50 }).over;
    t.match(call.failure, { reason: 'first_byte_timeout', bytesSent: true, headSeen: false });
  }
  t.equal(client.stats().open, 0);
});

test('a reused connection that does not answer is a timeout, not a stale connection', async (t) => {
  const client = makeClient(t);
  let served = 0;
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => served++ === 0 && socket.write('HTTP/1.1 204 No Content\r\n\r\n')),
  );
  await new Call(client, server.origin).over;
  const call = await new Call(client, server.origin, get(), { ...unhurried, firstByteMs: 50 }).over;
  t.match(call.failure, { reason: 'first_byte_timeout' });
  t.equal(server.sockets.length, 1);
});

test('a body that stalls is an idle timeout', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(part));
  const call = await new Call(client, server.origin, get(), { ...unhurried, idleMs: 50 }).over;
  t.match(call.failure, { reason: 'idle_timeout', bytesSent: true, headSeen: true });
  t.equal(call.body, 'abc');
});

test('every read starts the idle deadline anew', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, (socket) =>
    onRequests(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n');
      let left = 12;
      const timer = setInterval(() => {
        socket.write('x');
        if (--left === 0) clearInterval(timer);
      }, 100);
    }),
  );
  const call = await new Call(client, server.origin, get(), { ...unhurried, idleMs: 800 }).over;
  t.equal(call.failure, null);
});

test('the idle deadline does not run while the receiver has paused, and runs again after', async (t) => {
  const client = makeClient(t);
  const server = await rawServer(t, answering(part));
  const call = new Call(client, server.origin, get(), { ...unhurried, idleMs: 50 });
  call.wanting = false;
  await eventually(() => call.bytes > 0);
  // Another request of the same client meets the same deadline meanwhile.
  const other = await rawServer(t, answering(part));
  for (let i = 0; i < 2; i++) await new Call(client, other.origin, get(), { ...unhurried, idleMs: 100 }).over;
  t.strictSame(call.events, ['head', 'data']);
  call.wanting = true;
  call.exchange.resume();
  await call.over;
  t.match(call.failure, { reason: 'idle_timeout' });
});

test('the total deadline holds in every state', async (t) => {
  const client = makeClient(t);
  const deadlines = { ...unhurried, totalMs: 50 };
  const silent = await rawServer(t, () => {});
  const secure = plainOrigin(silent.port, { identity: 'tls', secure: true, serverName: 'localhost' });
  const connecting = await new Call(client, secure, get(), deadlines).over;
  t.match(connecting.failure, { reason: 'total_timeout', bytesSent: false });

  const single = plainOrigin(silent.port, { maxConnections: 1 });
  const sent = new Call(client, single, get());
  const waiting = await new Call(client, single, get(), deadlines).over;
  t.match(waiting.failure, { reason: 'total_timeout', bytesSent: false });
  t.equal(client.stats().waiting, 0);
  sent.exchange.cancel();
  t.match((await new Call(client, single, get(), deadlines).over).failure, {
    reason: 'total_timeout',
    bytesSent: true,
    headSeen: false,
  });

  const talking = await rawServer(t, answering(part));
  const paused = new Call(client, talking.origin, get(), deadlines);
  paused.wanting = false;
  await paused.over;
  t.match(paused.failure, { reason: 'total_timeout', headSeen: true });
});
