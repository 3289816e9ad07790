import { test } from 'tap';
import { FrameReader } from '../../src/upstream/socket-reader.js';
import { cases, fc } from '../support/seed.js';

const limit = 70_000;

interface Frame {
  readonly first: number;
  readonly data: Buffer;
}

function encode({ first, data }: Frame): Buffer {
  const { length } = data;
  const head = Buffer.alloc(length < 126 ? 2 : length < 0x10000 ? 4 : 10);
  head[0] = first;
  head[1] = length < 126 ? length : length < 0x10000 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, data]);
}

/** Everything that a reader finds in bytes that come in reads of the given sizes. */
function readAll(bytes: Buffer, cuts: readonly number[]): string[] {
  const reader = new FrameReader(limit, () => true);
  const found: string[] = [];
  // One piece of memory for all reads, as a connection has it: views of an earlier one change.
  const shared = Buffer.alloc(bytes.length + 1);
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = Math.min(cuts[i % cuts.length] ?? 1, bytes.length - at);
    bytes.copy(shared, 1, at, at + size);
    at += size;
    reader.begin(shared, 1, 1 + size);
    for (;;) {
      const kind = reader.next();
      if (kind === 'more') break;
      const payload = reader.payload.toString('latin1');
      if (kind === 'message') found.push(`${reader.isBinary ? 'binary' : 'text'} ${payload}`);
      else if (kind === 'fault') found.push(`fault ${reader.code}`);
      else found.push(kind === 'close' ? `close ${reader.code} ${payload}` : `${kind} ${payload}`);
      if (kind === 'fault' || kind === 'close') return found;
    }
  }
  return found;
}

const cuts = fc.array(fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 90_000 })), {
  minLength: 1,
  maxLength: 20,
});

const piece = fc
  .tuple(
    fc.oneof(fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536), fc.integer({ min: 0, max: 3000 })),
    fc.nat(255),
  )
  .map(([size, seed]) => Buffer.from(Array.from({ length: size }, (_, i) => (i * 7 + seed) & 0xff)));
const ascii = (bytes: Buffer): Buffer => Buffer.from(bytes.map((byte) => byte & 0x7f));
const small = fc.uint8Array({ maxLength: 125 }).map((bytes) => Buffer.from(bytes));

test('messages and control frames are read alike however they come', (t) => {
  const message = fc.record({
    isBinary: fc.boolean(),
    parts: fc.array(piece, { minLength: 1, maxLength: 3 }),
    between: fc.option(fc.tuple(fc.constantFrom(9, 10), small), { nil: null }),
  });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 5 }), cuts, (messages, sizes) => {
      const frames: Frame[] = [];
      const expected: string[] = [];
      let isWithin = true;
      for (const { isBinary, parts: bytes, between } of messages) {
        const parts = isBinary ? bytes : bytes.map(ascii);
        const whole = Buffer.concat(parts);
        let length = 0;
        parts.forEach((data, i) => {
          if (!isWithin) return;
          const opcode = i > 0 ? 0 : isBinary ? 2 : 1;
          frames.push({ first: opcode | (i === parts.length - 1 ? 0x80 : 0), data });
          length += data.length;
          isWithin = length <= limit;
          if (!isWithin || between === null) return;
          frames.push({ first: 0x80 | between[0], data: between[1] });
          // After the last part it comes after the message.
          if (i < parts.length - 1) {
            expected.push(`${between[0] === 9 ? 'ping' : 'pong'} ${between[1].toString('latin1')}`);
          }
        });
        if (!isWithin) {
          expected.push('fault 1009');
          break;
        }
        expected.push(`${isBinary ? 'binary' : 'text'} ${whole.toString('latin1')}`);
        if (between !== null) {
          expected.push(`${between[0] === 9 ? 'ping' : 'pong'} ${between[1].toString('latin1')}`);
        }
      }
      return readAll(Buffer.concat(frames.map(encode)), sizes).join('\n') === expected.join('\n');
    }),
    { numRuns: cases(300) },
  );
  t.end();
});

test('any bytes are read alike however they come, and the reader stops at what is wrong', (t) => {
  const first = fc.constantFrom(0x81, 0x82, 0x01, 0x00, 0x80, 0x88, 0x89, 0x8a, 0x08, 0x83, 0xc1, 0xff);
  const second = fc.constantFrom(0, 1, 2, 5, 125, 126, 127, 0x80, 0xff);
  const junk = fc
    .array(fc.tuple(first, second, fc.uint8Array({ maxLength: 140 })), { maxLength: 12 })
    .map((list) => Buffer.concat(list.map(([a, b, rest]) => Buffer.from([a, b, ...rest]))));
  fc.assert(
    fc.property(fc.oneof(junk, small), cuts, (bytes, sizes) => {
      return readAll(bytes, sizes).join('\n') === readAll(bytes, [bytes.length]).join('\n');
    }),
    { numRuns: cases(2000) },
  );
  t.end();
});

test('a text is UTF-8, wherever its fragments are cut, and a part of one that is not kept is not looked at', (t) => {
  const euro = Buffer.from('€');
  const frames = (first: number, ...parts: Buffer[]) =>
    Buffer.concat(
      parts.map((data, i) =>
        encode({ first: (i === 0 ? first : 0) | (i === parts.length - 1 ? 0x80 : 0), data }),
      ),
    );
  const halves = [euro.subarray(0, 2), euro.subarray(2)];
  const kept = euro.toString('latin1');
  for (const sizes of [[1], [3], [100]]) {
    t.strictSame(readAll(frames(1, ...halves), sizes), [`text ${kept}`]);
    t.strictSame(readAll(frames(1, ...halves.slice(0, 1)), sizes), ['fault 1007']);
    t.strictSame(readAll(frames(1, Buffer.from([0x7b, 0xff])), sizes), ['fault 1007']);
    t.strictSame(readAll(frames(2, ...halves.slice(0, 1)), sizes), ['binary \xe2\x82']);
  }
  const reader = new FrameReader(limit, () => true);
  reader.discard();
  const bytes = frames(1, ...halves);
  reader.begin(bytes, 0, bytes.length);
  t.equal(reader.next(), 'message');
  t.end();
});

test('closing frames', (t) => {
  const close = (...data: number[]) => readAll(encode({ first: 0x88, data: Buffer.from(data) }), [3]);
  t.strictSame(close(), ['close 1005 ']);
  t.strictSame(close(3, 0xe8), ['close 1000 ']);
  t.strictSame(close(3, 0xe9, 0x62, 0x79, 0x65), ['close 1001 bye']);
  t.strictSame(close(3), ['fault 1002']);
  for (const code of [0, 999, 1004, 1005, 1006, 1015, 2999, 5000]) {
    t.strictSame(close(code >> 8, code & 0xff), ['fault 1002'], `${code}`);
  }
  t.end();
});

test('a length that is announced takes no memory before it comes', (t) => {
  const reader = new FrameReader(1 << 30, () => true);
  const before = process.memoryUsage().arrayBuffers;
  const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0xff]);
  reader.begin(head, 0, head.length);
  t.equal(reader.next(), 'more');
  const some = Buffer.alloc(100_000);
  reader.begin(some, 0, some.length);
  t.equal(reader.next(), 'more');
  t.ok(process.memoryUsage().arrayBuffers - before < 1 << 20);
  t.end();
});
