import { performance } from 'node:perf_hooks';
import { mock } from 'node:test';
import { open } from 'lmdb';
import { pino } from 'pino';
import t, { test } from 'tap';
import type { SocketSettings } from '../../src/config/types.js';
import type { Running } from '../../src/flow/running.js';
import { SessionMemory } from '../../src/flow/sockets/session-memory.js';
import { type OpenSession, SessionList } from '../../src/flow/sockets/sessions.js';
import { ownMemory, UnseenMemory } from '../../src/flow/sockets/unseen.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const mebibyte = 1024 * 1024;
const log = pino({ level: 'silent' });

const tooMuch = { kind: 'rate_limit_exceeded' } as unknown as Error;
const full = { kind: 'overloaded' } as unknown as Error;
const settings = {
  messageBytes: 16 * mebibyte,
  perKey: 1000,
  heldBytes: 256 * mebibyte,
  heldBytesPerKey: 64 * mebibyte,
} as SocketSettings;

test('a place is given back once, however often it is tried', async (t) => {
  const memory = new SessionMemory(() => ({ ...settings, perKey: 2 }));
  const [first] = [memory.takeSlot('a'), memory.takeSlot('a')];
  t.throws(() => memory.takeSlot('a'), tooMuch);
  first?.part().hold(1000);
  for (let round = 0; round < 3; round++) first?.give();
  memory.takeSlot('a');
  t.throws(() => memory.takeSlot('a'), tooMuch);
});

test('one key holds a part of what all may, and the others the rest', async (t) => {
  const memory = new SessionMemory(() => settings);
  const [a, b] = [memory.takeSlot('a'), memory.takeSlot('b')];
  const part = a.part();
  t.equal(part.hold(63 * mebibyte), true);
  t.equal(part.hold(64 * mebibyte), false);
  t.throws(() => {
    for (;;) memory.takeSlot('a');
  }, tooMuch);
  t.equal(b.part().hold(60 * mebibyte), true);
  for (const key of ['c', 'd'])
    t.equal(
      memory
        .takeSlot(key)
        .part()
        .hold(60 * mebibyte),
      true,
    );
  t.equal(
    memory
      .takeSlot('e')
      .part()
      .hold(60 * mebibyte),
    false,
    'beyond what all may hold',
  );
  a.isCut = true;
  a.give();
  t.equal(
    memory
      .takeSlot('e')
      .part()
      .hold(60 * mebibyte),
    true,
  );
});

test('a key whose sockets are cut again while it is barred is barred from then on, and told for how long', async (t) => {
  let now = 1_000_000;
  t.intercept(performance, 'now', { value: () => now });
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const pass = (ms: number): void => {
    now += ms;
    mock.timers.tick(ms);
  };
  const memory = new SessionMemory(() => settings);
  memory.bar('hostile');
  pass(20_000);
  memory.bar('hostile');
  pass(10_000);
  const barred = { kind: 'rate_limit_exceeded', retryAfter: 20, message: /were closed/ } as unknown as Error;
  t.throws(() => memory.takeSlot('hostile'), barred);
  pass(20_000);
  memory.takeSlot('hostile');
});

test('a worker takes two thousand sockets of two keys, and refuses more where uWS holds too much', async (t) => {
  const memory = new SessionMemory(() => settings);
  for (let count = 0; count < 1000; count++) for (const key of ['a', 'b']) memory.takeSlot(key);
  memory.unseenBytes = settings.heldBytes;
  t.throws(() => memory.takeSlot('c'), full);
  memory.unseenBytes = 0;
  memory.takeSlot('c');
});

test('a key that sends more than its part in one long turn of the event loop is turned away, and no other', async (t) => {
  const memory = new SessionMemory(() => settings);
  const [hostile, other] = [memory.takeSlot('hostile'), memory.takeSlot('other')];
  memory.turned(1000);
  for (let sent = 0; sent < 100; sent++) t.equal(hostile.arrived(mebibyte, 1400), true, 'the turn is short');
  t.equal(hostile.arrived(mebibyte, 1600), false);
  t.equal(memory.takeSlot('hostile').arrived(1, 1700), false, 'on any of its sockets');
  t.equal(other.arrived(mebibyte, 1700), true);
  memory.turned(1800);
  t.equal(hostile.arrived(mebibyte, 1900), true);
  t.equal(
    hostile.arrived(mebibyte, 9000),
    true,
    'what it sends in the turn itself counts, not that it is long',
  );
});

test('a key whose messages take long is turned away in the turn that they make long, and no other', async (t) => {
  const memory = new SessionMemory(() => settings);
  const [hostile, other] = [memory.takeSlot('hostile'), memory.takeSlot('other')];
  memory.turned(1000);
  t.equal(hostile.arrived(1, 1000), true);
  for (let message = 0; message < 3; message++) hostile.took(100);
  hostile.took(10_000);
  t.equal(memory.takeSlot('hostile').arrived(1, 1400), true, "a process that was stopped is nobody's doing");
  hostile.took(100);
  t.equal(hostile.arrived(1, 1500), false);
  t.equal(memory.takeSlot('hostile').arrived(1, 1500), false, 'on any of its sockets');
  t.equal(other.arrived(1, 1500), true);
  memory.turned(1600);
  t.equal(hostile.arrived(1, 1600), true);
});

test('of messages of a few bytes a key may send some ten thousand in one long turn', async (t) => {
  const memory = new SessionMemory(() => settings);
  const hostile = memory.takeSlot('hostile');
  memory.turned(1000);
  let taken = 0;
  while (taken < 1_000_000 && hostile.arrived(2, 1600)) taken++;
  t.equal(taken, settings.heldBytesPerKey / 4096);
  memory.turned(1700);
  t.equal(hostile.arrived(2, 2600), true, 'in the next turn it may again');
});

test('what an upstream has yet to take stays counted after the end of its session', async (t) => {
  const memory = new SessionMemory(() => settings);
  const slot = memory.takeSlot('a');
  slot.isCut = true;
  slot.leftBytes = 60 * mebibyte;
  slot.give();
  t.ok(memory.bytesOf('a') >= 60 * mebibyte);
  t.equal(
    memory
      .takeSlot('a')
      .part()
      .hold(5 * mebibyte),
    false,
  );
});

const noneLeft = (): never => {
  throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
};

test('memory is read though no descriptor is free', async (t) => {
  const reading = ownMemory();
  t.teardown(() => reading.close());
  t.intercept(process.memoryUsage, 'rss', { value: noneLeft });
  const [resident, native] = [reading.resident(), reading.native()];
  t.ok(resident > native, `${resident} bytes, ${native} of them native`);
  t.ok(Number.isSafeInteger(native));
});

test('memory that cannot be read, for want of a descriptor, is what it was', async (t) => {
  const reading = ownMemory('/none');
  const before = { resident: reading.resident(), native: reading.native() };
  t.ok(before.resident > before.native && before.native > 0);
  t.intercept(process.memoryUsage, 'rss', { value: noneLeft });
  t.strictSame({ resident: reading.resident(), native: reading.native() }, before);
});

test('what is read of an embedded store is no memory of sockets', async (t) => {
  const path = temporaryFolder(t);
  const values = 64;
  const written = open<Buffer, number>({ path, encoding: 'binary' });
  for (let key = 0; key < values; key++) await written.put(key, Buffer.alloc(mebibyte, 1));
  await written.close();
  const store = open<Buffer, number>({ path, encoding: 'binary' });
  t.teardown(() => store.close());
  const reading = ownMemory();
  t.teardown(() => reading.close());
  const [native, resident] = [reading.native(), process.memoryUsage.rss()];
  for (let key = 0; key < values; key++) t.equal(store.getBinaryFast(key)?.[0], 1);
  const mapped = process.memoryUsage.rss() - resident;
  t.ok(mapped > (values / 2) * mebibyte, `${mapped} bytes are mapped`);
  const more = reading.native() - native;
  t.ok(more < (values / 4) * mebibyte, `${more} bytes count`);
});

interface SocketsToAdd {
  readonly bytes?: number;
  readonly answers?: boolean;
  readonly fault?: ((thrown: unknown) => void) | null;
}

/** Sockets that hold what a test says, in a process whose memory is theirs and no other. */
function stage() {
  const memory = new SessionMemory(() => settings);
  const sessions = new SessionList(memory);
  let native = 100 * mebibyte;
  const reading = { resident: () => native, native: () => native, close: () => {} };
  const unseen = new UnseenMemory(sessions, log, reading);
  const running = { keys: { current: (key: unknown) => key } } as unknown as Running;
  const open = new Map<string, Set<object>>();
  let now = 0;
  return {
    memory,
    /** Memory that is nobody's. */
    grow(bytes: number) {
      native += bytes;
    },
    /** @param options `fault` hears what is thrown by whatever a socket is asked */
    add(keyId: string, count: number, options: SocketsToAdd = {}) {
      const { bytes = 0, answers = true, fault = null } = options;
      const sockets = open.get(keyId) ?? new Set();
      open.set(keyId, sockets);
      for (let number = 0; number < count; number++) {
        native += bytes;
        let askedAt = 0;
        const client = {
          isOpen: true,
          countedBytes: 0,
          silence(at: number) {
            if (fault !== null) throw new Error('silence');
            return askedAt === 0 ? 0 : at - askedAt;
          },
          ask(at: number) {
            if (fault !== null) throw new Error('ask');
            if (!answers && askedAt === 0) askedAt = at;
          },
          cut: () => {
            client.isOpen = false;
            native -= bytes;
            sockets.delete(client);
            sessions.remove(session);
          },
        };
        const session = {
          key: { id: keyId, expiresAt: null },
          modelName: null,
          client,
          onFault: (_where: unknown, thrown: unknown) => fault?.(thrown),
        } as unknown as OpenSession;
        sockets.add(client);
        sessions.add(session, running);
      }
    },
    /** Messages come, and no timer runs. */
    arrive(bytes: number) {
      memory.onMuch = (at) => unseen.onMuch(at);
      memory.takeSlot('sender').arrived(bytes, now + 10_000);
    },
    pass(ms: number) {
      for (const until = now + ms; now < until; now += 50) unseen.tick(now + 50);
    },
    left: (keyId: string) => open.get(keyId)?.size ?? 0,
    held: () => native - 100 * mebibyte,
  };
}

test('a key within frames that do not end is brought down to its share, and no other loses a socket', async (t) => {
  const sockets = stage();
  sockets.add('honest', 500);
  sockets.add('hostile', 12, { bytes: 16 * mebibyte, answers: false });
  sockets.pass(2000);
  t.equal(sockets.left('honest'), 500);
  t.equal(sockets.left('hostile'), 4);
  t.ok(sockets.held() <= settings.heldBytesPerKey);
});

test('fragments are found out by a client that answers pings, at the cost of few others', async (t) => {
  const sockets = stage();
  for (const key of ['a', 'b', 'c']) sockets.add(key, 300);
  sockets.add('hostile', 100, { bytes: 16 * mebibyte });
  sockets.pass(2000);
  t.ok(sockets.held() <= settings.heldBytes, `${sockets.held()} bytes are held`);
  for (const key of ['a', 'b', 'c'])
    t.ok(sockets.left(key) >= 298, `${sockets.left(key)} of ${key} are left`);
});

test('much held in many small parts, and among many that hold nothing, is found as well', async (t) => {
  const sockets = stage();
  sockets.add('honest', 900);
  sockets.add('hostile', 900, { bytes: mebibyte / 2 });
  sockets.pass(2000);
  t.ok(sockets.held() <= settings.heldBytes, `${sockets.held()} bytes in small parts`);
  t.ok(sockets.left('honest') >= 890, `${sockets.left('honest')} are left`);
  const hidden = stage();
  hidden.add('honest', 300);
  hidden.add('hostile', 400);
  hidden.add('hostile', 100, { bytes: 8 * mebibyte });
  hidden.pass(120_000);
  t.ok(hidden.held() <= settings.heldBytes, `${hidden.held()} bytes among idle sockets`);
  t.ok(hidden.left('honest') >= 230, `${hidden.left('honest')} are left`);
});

test('memory that no socket holds costs few sockets, and refuses none for long', async (t) => {
  const sockets = stage();
  sockets.add('a', 200);
  sockets.add('b', 200, { answers: false });
  sockets.grow(1024 * mebibyte);
  sockets.pass(60_000);
  t.ok(sockets.left('a') >= 160, `${sockets.left('a')} of a are left`);
  t.ok(sockets.left('b') >= 160, `${sockets.left('b')} of b are left`);
  sockets.memory.takeSlot('c');
});

test('much that comes within one turn is looked at then, and costs those that hold it', async (t) => {
  const sockets = stage();
  sockets.add('honest', 100, { answers: false });
  sockets.pass(200);
  sockets.add('hostile', 60, { bytes: 8 * mebibyte });
  sockets.arrive(7 * mebibyte);
  t.ok(sockets.held() > settings.heldBytes);
  sockets.arrive(2 * mebibyte);
  t.ok(sockets.held() <= settings.heldBytes, `${sockets.held()} bytes are held`);
  t.ok(sockets.left('honest') >= 95, `${sockets.left('honest')} are left`);
});

test('a socket of which nothing can be told ends, and the others are looked at all the same', async (t) => {
  const sockets = stage();
  const faults: unknown[] = [];
  sockets.add('broken', 1, { answers: false, fault: (fault) => faults.push(fault) });
  sockets.add('hostile', 12, { bytes: 16 * mebibyte, answers: false });
  sockets.pass(2000);
  t.equal(sockets.left('hostile'), 4);
  t.ok(faults.length > 0);
});

test('what sockets held is forgotten once none is open', async (t) => {
  const sockets = stage();
  sockets.add('hostile', 12, { bytes: 16 * mebibyte });
  sockets.pass(200);
  sockets.grow(500 * mebibyte);
  sockets.pass(200_000);
  sockets.memory.takeSlot('c');
  t.ok(sockets.memory.unseenBytes < settings.heldBytes);
});

test('sockets that owe a pong and hold nothing do not hide those that answer and hold much', async (t) => {
  const sockets = stage();
  sockets.add('honest', 100);
  sockets.add('hostile', 60, { answers: false });
  sockets.add('hostile', 10, { bytes: 16 * mebibyte });
  sockets.pass(2000);
  sockets.add('hostile', 100, { bytes: 16 * mebibyte });
  sockets.pass(2000);
  t.ok(sockets.held() <= settings.heldBytes, `${sockets.held()} bytes are held`);
  t.ok(sockets.left('honest') >= 98, `${sockets.left('honest')} are left`);
});

t.end();
