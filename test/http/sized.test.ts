import type { HttpResponse } from 'uWebSockets.js';
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type Test, test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { SizedAnswer } from '../../src/http/sized.js';
import { fc } from '../support/seed.js';
import { headAnd, hear, startServer, turns, Wire } from './http-server.js';
import { hashOf, MB, next, noise } from './uploads.js';

const request = 'GET /answer HTTP/1.1\r\nhost: x\r\n\r\n';
/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');

const hashOfText = (text: string) => hashOf(Buffer.from(text, 'latin1'));

/** Sends a body in pieces, as fast as the client takes them. */
class Feeder {
  sent = 0;
  stops = 0;
  readonly #exchange: Exchange;
  readonly #body: Buffer;
  readonly #piece: number;

  constructor(exchange: Exchange, body: Buffer, piece: number) {
    this.#exchange = exchange;
    this.#body = body;
    this.#piece = piece;
  }

  feed(): void {
    while (this.sent < this.#body.length) {
      const piece = Buffer.from(this.#body.subarray(this.sent, this.sent + this.#piece));
      this.sent += piece.length;
      const flowing = this.#exchange.write(piece);
      // The bytes were taken over.
      piece.fill(0);
      if (!flowing) {
        this.stops++;
        return;
      }
    }
    this.#exchange.end();
  }
}

/** A server that answers `/answer` as the test says, and everything else with its path. */
async function start(t: Test, onAnswer: (exchange: Exchange) => void) {
  let tell: (exchange: Exchange) => void;
  const asked = new Promise<Exchange>((done) => {
    tell = done;
  });
  const { port, server } = await startServer(t, (exchange) => {
    if (exchange.path !== '/answer') {
      exchange.respond(200, '', exchange.path);
      return;
    }
    onAnswer(exchange);
    tell(exchange);
  });
  const wire = new Wire(port);
  wire.send(request);
  return { wire, server, asked };
}

const bodyOf = (text: string) => text.slice(text.indexOf('\r\n\r\n') + 4);

test('an answer of known length has that length, whatever its pieces, and the connection goes on', async (t) => {
  const body = noise(200_000);
  for (const piece of [777, 16_384, 16_385, 65_536, body.length]) {
    const { wire, server } = await start(t, (exchange) => {
      exchange.begin(206, '\r\ncontent-type: video/mp4', body.length);
      const feeder = new Feeder(exchange, body, piece);
      hear(exchange, () => feeder.feed());
      feeder.feed();
    });
    const text = await wire.take(headAnd(body.length));
    t.match(text, /^HTTP\/1\.1 206 Partial Content\r\n/);
    const head = text.slice(0, text.indexOf('\r\n\r\n'));
    t.match(head, /\r\nx-request-id: req_[0-9a-f]{26}\r\ncontent-type: video\/mp4\r\n/);
    t.match(head, /\r\ncontent-length: 200000$/i);
    t.notMatch(head, /transfer-encoding/i);
    t.equal(hashOfText(bodyOf(text)), hashOf(body));
    wire.send(next);
    t.match(await wire.take(headAnd(5)), /\/next$/);
    t.equal(server.open(), 0);
    wire.socket.destroy();
  }
});

test('a reader that stalls is waited for, and gets every byte', async (t) => {
  const body = noise(32 * MB);
  for (const piece of [10_000, 65_536]) {
    let feeder: Feeder | null = null;
    const { wire, asked, server } = await start(t, (exchange) => {
      feeder = new Feeder(exchange, body, piece);
      hear(exchange, () => feeder?.feed());
      exchange.begin(200, '', body.length);
    });
    wire.socket.pause();
    const exchange = await asked;
    const { sent, stops } = feed(feeder);
    t.equal(stops, 1);
    t.ok(sent < 16 * MB, `${sent} were sent`);
    for (let round = 0; round < 5; round++) {
      exchange.onSweep();
      await turns(20);
    }
    t.equal(exchange.bytesOut, sent, 'nothing more is asked for');
    wire.socket.resume();
    const text = await wire.take((all) => all.length > body.length && headAnd(body.length)(all));
    t.equal(hashOfText(bodyOf(text)), hashOf(body));
    t.equal(server.open(), 0);
    wire.send(next);
    t.match(await wire.take(headAnd(5)), /\/next$/);
    wire.socket.destroy();
  }
});

function feed(feeder: Feeder | null): Feeder {
  if (feeder === null) throw new Error('nobody has asked yet');
  feeder.feed();
  return feeder;
}

test('a stalled reader is given up after five minutes, and not before', async (t) => {
  let gone = false;
  const { wire, asked } = await start(t, (exchange) => {
    exchange.begin(200, '', 100 * MB);
    hear(exchange).gone.then(() => {
      gone = true;
    });
    while (exchange.alive && exchange.write(Buffer.alloc(65_536)));
  });
  wire.socket.pause();
  const exchange = await asked;
  for (let round = 0; round < 75; round++) exchange.onSweep();
  t.ok(exchange.alive, 'at four seconds a round');
  exchange.onSweep();
  t.notOk(exchange.alive);
  await turns(1);
  t.ok(gone);
  wire.socket.destroy();
});

test('an answer that comes to an end too early is cut', async (t) => {
  const { wire, server } = await start(t, (exchange) => {
    exchange.begin(200, '', 1000);
    exchange.write(Buffer.alloc(999));
    setImmediate(() => exchange.end());
  });
  const text = await wire.ended();
  t.match(text, /content-length: 1000\r\n/i);
  t.equal(bodyOf(text).length, 999);
  t.equal(server.open(), 0);
});

test('an answer that grows too long is cut', async (t) => {
  const { wire, asked } = await start(t, (exchange) => {
    exchange.begin(200, '', 1000);
    exchange.write(Buffer.alloc(999));
    setImmediate(() => exchange.write(Buffer.alloc(2)));
  });
  t.ok(bodyOf(await wire.ended()).length <= 1000);
  t.notOk((await asked).alive);
});

test('an answer of no bytes has that length', async (t) => {
  const { wire } = await start(t, (exchange) => {
    exchange.begin(200, '', 0);
    exchange.end();
  });
  const text = await wire.take(headAnd(0));
  t.match(text, /\r\ncontent-length: 0\r\n\r\n$/i);
  wire.send(next);
  t.match(await wire.take(headAnd(5)), /\/next$/);
  wire.socket.destroy();
});

test('lengths beyond 32 bits are told and kept', async (t) => {
  const total = 2 ** 32 + 65_536;
  const { wire } = await start(t, (exchange) => {
    exchange.begin(200, '', total);
    exchange.write(Buffer.alloc(65_536));
    setImmediate(() => exchange.write(Buffer.alloc(65_536)));
  });
  const text = await wire.take(headAnd(131_072));
  t.match(text, new RegExp(`\r\ncontent-length: ${total}\r\n`, 'i'));
  t.notOk(wire.closed);
  wire.socket.destroy();
});

test('a client that leaves while it does not read is noticed', async (t) => {
  let gone: Promise<void> | null = null;
  const { wire, asked, server } = await start(t, (exchange) => {
    exchange.begin(200, '', 100 * MB);
    gone = hear(exchange).gone;
    while (exchange.alive && exchange.write(Buffer.alloc(65_536)));
  });
  wire.socket.pause();
  const exchange = await asked;
  wire.socket.destroy();
  await gone;
  t.ok(exchange.write(Buffer.alloc(10)), 'what comes after is let go');
  exchange.end();
  t.equal(server.open(), 0);
});

test('a request that does not wait for the answer before it ends both', async (t) => {
  let gone: Promise<void> | null = null;
  const { wire, asked } = await start(t, (exchange) => {
    exchange.begin(200, '', 1000);
    exchange.write(Buffer.alloc(500));
    gone = hear(exchange).gone;
  });
  await asked;
  wire.send(next);
  await gone;
  const text = await wire.ended();
  t.equal(text.match(/HTTP\/1\.1/g)?.length, 1);
});

test('a large whole answer waits for a slow reader, too', async (t) => {
  const body = noise(32 * MB);
  let drained = false;
  const { wire, asked, server } = await start(t, (exchange) => {
    hear(exchange, () => {
      drained = true;
    });
  });
  wire.socket.pause();
  const exchange = await asked;
  t.notOk(exchange.respond(200, '', body));
  exchange.onSweep();
  await turns(20);
  t.notOk(drained);
  wire.socket.resume();
  const text = await wire.take((all) => all.length > body.length && headAnd(body.length)(all));
  t.equal(hashOfText(bodyOf(text)), hashOf(body));
  t.ok(drained);
  t.equal(server.open(), 0);
  wire.socket.destroy();
});

test('a slow reader behind TLS gets every byte', async (t) => {
  const body = noise(24 * MB);
  const { port } = await startServer(
    t,
    (exchange) => {
      const feeder = new Feeder(exchange, body, 50_000);
      hear(exchange, () => feeder.feed());
      exchange.begin(200, '', body.length);
      feeder.feed();
    },
    { cert: `${fixtures}/localhost.pem`, key: `${fixtures}/localhost.key` },
  );
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.write(request);
  const hash = createHash('sha1');
  let head = '';
  let bytes = 0;
  for await (const chunk of socket) {
    let data = chunk as Buffer;
    if (head === '') {
      const end = data.indexOf('\r\n\r\n') + 4;
      head = data.toString('latin1', 0, end);
      data = data.subarray(end);
    }
    hash.update(data);
    bytes += data.length;
    if (bytes === body.length) break;
    if (bytes % 7 === 0) await turns(3);
  }
  t.match(head, /content-length: 25165824\r\n/i);
  t.equal(hash.digest('hex'), hashOf(body));
  socket.destroy();
});

/** uWS as it is: what is small is taken inside a cork, and kept if the socket does not take it when the cork ends. */
class Socket {
  /** What has reached the client. */
  readonly reached: Buffer[] = [];
  room: number;
  kept: Buffer = Buffer.alloc(0);
  #corked: Buffer | null = null;
  #offset = 0;

  constructor(room: number) {
    this.room = room;
  }

  cork(write: () => void): void {
    this.#corked = Buffer.alloc(0);
    write();
    const corked = this.#corked;
    this.#corked = null;
    if (corked !== null) this.kept = Buffer.concat([this.kept, corked]);
    this.flush();
  }

  tryEnd(bytes: Buffer, total: number): [boolean, boolean] {
    this.flush();
    let taken = 0;
    if (bytes.length > 0 && this.kept.length === 0) {
      if (this.#corked !== null && this.#corked.length + bytes.length <= 16_384) {
        this.#corked = Buffer.concat([this.#corked, bytes]);
        taken = bytes.length;
      } else {
        if (this.#corked !== null) this.kept = this.#corked;
        this.#corked = null;
        this.flush();
        if (this.kept.length === 0) taken = this.#give(bytes);
      }
    }
    this.#offset += taken;
    return [taken === bytes.length, this.#offset === total];
  }

  getWriteOffset(): number {
    return this.#offset;
  }

  flush(): void {
    this.kept = this.kept.subarray(this.#give(this.kept));
  }

  #give(bytes: Buffer): number {
    const taken = Math.min(this.room, bytes.length);
    this.reached.push(Buffer.from(bytes.subarray(0, taken)));
    this.room -= taken;
    return taken;
  }
}

test('an answer is complete when no more than its last byte can still wait inside uWS', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 12 }),
      fc.infiniteStream(fc.nat(30_000)),
      (pieces, rooms) => {
        const body = noise(pieces.reduce((sum, piece) => sum + piece, 0));
        const socket = new Socket(rooms.next().value ?? 0);
        const answer = new SizedAnswer(socket as unknown as HttpResponse, body.length);
        let at = 0;
        for (const piece of pieces) {
          let state = answer.write(body.subarray(at, at + piece), null);
          at += piece;
          while (state === 'waiting') {
            socket.room += 1 + (rooms.next().value ?? 0);
            state = answer.flush();
          }
          if ((state === 'complete') !== (at === body.length)) return false;
          if (state === 'complete' && socket.kept.length > 1) return false;
        }
        socket.room = 1;
        socket.flush();
        return Buffer.concat(socket.reached).equals(body);
      },
    ),
  );
  t.pass('for every cut and every reader');
});
