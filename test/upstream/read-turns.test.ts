import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { createServer } from 'node:tls';
import { type Test, test } from 'tap';
import { ReadTurns } from '../../src/upstream/read-turns.js';
import { Call, get, listen, makeClient, onRequests, rawServer, unhurried } from './raw.js';

const connections = 6;
const answerBytes = 768 * 1024;

/** Occupies the event loop. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Bytes whose place can be told by their value: the period divides no size of a read. */
const period = Buffer.from(Array.from({ length: 251 }, (_, at) => at));
const all = Buffer.alloc(answerBytes + 2 * connections, period);

function answerOf(index: number): Buffer {
  return all.subarray(index, index + answerBytes);
}

/** Answers each request with all bytes at once: `/3` with those of number 3. */
function startFast(t: Test) {
  return rawServer(t, (socket) =>
    onRequests(socket, (text) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${answerBytes}\r\n\r\n`);
      socket.write(answerOf(Number(/^GET \/(\d+)/.exec(text)?.[1])));
    }),
  );
}

/** Counts what happens in each turn of the event loop. @returns the most in one turn */
function countTurns() {
  let count = 0;
  let most = 0;
  let running = true;
  const onTurn = (): void => {
    most = Math.max(most, count);
    count = 0;
    if (running) setImmediate(onTurn);
  };
  setImmediate(onTurn);
  return {
    add: () => count++,
    stop: () => {
      running = false;
      return most;
    },
  };
}

class Received extends Call {
  readonly pieces: Buffer[] = [];
  onPiece: (size: number) => boolean = () => true;

  override onData(chunk: Buffer): boolean {
    this.pieces.push(Buffer.from(chunk));
    super.onData(chunk);
    return this.onPiece(chunk.length);
  }
}

test('a turn of the event loop reads each of many fast answers once, not as long as it has data', async (t) => {
  const client = makeClient(t);
  const { origin } = await startFast(t);
  const turns = countTurns();
  const calls = Array.from({ length: connections }, (_, index) => {
    const call = new Received(client, origin, get(`/${index}`));
    call.onPiece = () => {
      turns.add();
      work(5);
      return true;
    };
    return call;
  });
  await Promise.all(calls.map(({ over }) => over));
  t.ok(turns.stop() <= connections, 'one read of each at most');
  for (const [index, { failure, pieces }] of calls.entries()) {
    t.equal(failure, null);
    t.ok(Buffer.concat(pieces).equals(answerOf(index)), 'all bytes in order');
  }
});

test('a connection whose reading waits is resumed, whether its client pauses, and serves the next request', async (t) => {
  const client = makeClient(t);
  const { origin, sockets } = await startFast(t);
  for (let round = 0; round < 2; round++) {
    const calls = Array.from({ length: connections }, (_, index) => {
      const call = new Received(client, origin, get(`/${index + round}`));
      call.onPiece = () => {
        work(5);
        if ((call.pieces.length + index) % 2 === 0) return true;
        // Sometimes before the connection's turn, sometimes after it.
        if (index % 2 === 0) setImmediate(() => call.exchange.resume());
        else setTimeout(() => call.exchange.resume(), 20);
        return false;
      };
      return call;
    });
    await Promise.all(calls.map(({ over }) => over));
    for (const [index, { failure, pieces }] of calls.entries()) {
      t.equal(failure, null);
      t.ok(Buffer.concat(pieces).equals(answerOf(index + round)));
    }
  }
  t.equal(sockets.length, connections, 'the second round on the same connections');
});

test('the wait for its turn is no silence of an upstream, also while several turns are of others', async (t) => {
  const client = makeClient(t);
  const { origin } = await startFast(t);
  // More than read in one turn: otherwise no connection still waits when deadlines are checked, between two turns.
  const many = { ...origin, maxConnections: 48 };
  const deadlines = { ...unhurried, idleMs: 50 };
  let paused = 0;
  const calls = Array.from({ length: many.maxConnections }, () => {
    const call = new Received(client, many, get('/0'), deadlines);
    call.onPiece = () => {
      work(5);
      if (call.pieces.length > 1) return true;
      // All of them read on at the same time, so that they wait for one another.
      if (++paused === calls.length)
        setImmediate(() => calls.forEach(({ exchange }) => void exchange.resume()));
      return false;
    };
    return call;
  });
  for (const { failure } of await Promise.all(calls.map(({ over }) => over))) t.equal(failure, null);
});

test('a cancelled connection loses its turn, and the others keep theirs', async (t) => {
  const client = makeClient(t);
  const { origin } = await startFast(t);
  const calls = Array.from({ length: connections }, (_, index) => {
    const call = new Received(client, origin, get(`/${index}`));
    call.onPiece = () => {
      work(5);
      if (index % 2 === 0) setImmediate(() => call.exchange.cancel());
      return true;
    };
    return call;
  });
  const kept = calls.filter((_, index) => index % 2 === 1);
  for (const { failure, bytes } of await Promise.all(kept.map(({ over }) => over))) {
    t.equal(failure, null);
    t.equal(bytes, answerBytes);
  }
});

for (const [when, mayPause] of [
  ['at the end', (bytes: number) => bytes === answerBytes],
  ['before the end', (bytes: number) => bytes < answerBytes],
] as const) {
  test(`over TLS, an answer whose client pauses ${when} leaves a connection that serves the next request`, async (t) => {
    const client = makeClient(t);
    const pem = (name: string): string =>
      readFileSync(new URL(`../../../test/fixtures/tls/${name}`, import.meta.url), 'utf8');
    const certificate = { cert: pem('localhost.pem'), key: pem('localhost.key') };
    const server = await listen(t, createServer(certificate), (socket) =>
      onRequests(socket, (text) => {
        const size = /^GET \/(\d+)/.exec(text)?.[1] === undefined ? 2 : answerBytes;
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
        socket.write(all.subarray(0, size));
      }),
    );
    const tls = { secure: true, serverName: 'localhost', ca: pem('ca.pem'), identity: 'tls' };
    const origin = { ...server.origin, ...tls, maxConnections: connections };
    for (let round = 0; round < 2; round++) {
      const large = Array.from({ length: connections }, (_, index) => {
        const call = new Received(client, origin, get(`/${index}`));
        call.onPiece = () => {
          work(1);
          if (!mayPause(call.bytes) || (call.pieces.length + index) % 3 !== 0) return true;
          if (index % 2 === 0) setImmediate(() => call.exchange.resume());
          else setTimeout(() => call.exchange.resume(), 20);
          return false;
        };
        return call;
      });
      for (const { failure, bytes } of await Promise.all(large.map(({ over }) => over))) {
        t.equal(failure, null);
        t.equal(bytes, answerBytes);
      }
      const deadlines = { ...unhurried, firstByteMs: 5000 };
      const small = Array.from(
        { length: connections },
        () => new Call(client, origin, get('/small'), deadlines),
      );
      for (const { failure } of await Promise.all(small.map(({ over }) => over))) t.equal(failure, null);
    }
  });
}

test('readers continue in order, some of them in each turn, also after one that throws', async (t) => {
  const turns = new ReadTurns();
  const resumed: number[] = [];
  const faults: unknown[] = [];
  const readers = Array.from({ length: 40 }, (_, index) => ({
    readOn: () => {
      resumed.push(index);
      if (index === 5) throw new Error('of the sixth');
    },
    onFault: (_where: string, fault: unknown) => faults.push(`${index}: ${(fault as Error).message}`),
  }));
  const [first, ...rest] = readers as [(typeof readers)[number], ...typeof readers];
  t.equal(turns.mayReadOn(first), true, 'the first of a turn');
  work(5);
  for (const reader of rest) t.equal(turns.mayReadOn(reader), false);
  const sizes: number[] = [];
  while (resumed.length < rest.length) {
    await new Promise((resolve) => setImmediate(resolve));
    sizes.push(resumed.length);
  }
  t.same(
    resumed,
    rest.map((_, index) => index + 1),
  );
  t.same(sizes, [16, 32, 39]);
  t.same(faults, ['5: of the sixth'], 'told to its owner');
});
