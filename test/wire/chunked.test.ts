import { test } from 'tap';
import { ChunkedState, decodeChunked, maxSizeLine } from '../../src/wire/chunked.js';
import { cases, fc } from '../support/seed.js';

interface Outcome {
  body: string;
  done: boolean;
  problem: string | null;
  /** Bytes of the input that were used. */
  used: number;
}

/** Decodes `input` in the given pieces (lengths, repeated), each at an odd offset of a larger buffer. */
function decode(input: Buffer, pieces: readonly number[]): Outcome {
  const state = new ChunkedState();
  let body = '';
  let at = 0;
  for (let i = 0; at < input.length && !state.done; i++) {
    const piece = input.subarray(at, at + (pieces[i % pieces.length] as number));
    const buffer = Buffer.concat([Buffer.from('\r\n0'), piece, Buffer.from('\r\n0')]);
    const length = decodeChunked(state, buffer, 3, 3 + piece.length);
    if (length === -1) return { body, done: false, problem: state.problem, used: at };
    body += buffer.toString('latin1', state.payloadStart, state.payloadStart + length);
    at += state.done ? state.consumed - 3 : piece.length;
  }
  return { body, done: state.done, problem: null, used: at };
}

const bytes = (text: string) => Buffer.from(text, 'latin1');
const sample = '5\r\nhello\r\nA;x=y;z="q"\r\n0123456789\r\n1\r\n\n\r\n000\r\nA: b\r\nC:\td \r\n\r\n';

test('a body is decoded at every pair of split offsets, and stops at its end', async (t) => {
  const input = bytes(`${sample}HTTP/1.1`);
  let wrong = 0;
  for (let first = 1; first < input.length; first++) {
    for (let second = 1; second <= input.length - first; second++) {
      const { body, done, used } = decode(input, [first, second, input.length]);
      if (body !== 'hello0123456789\n' || !done || used !== sample.length) wrong++;
    }
  }
  t.equal(wrong, 0);
});

test('a body is decoded at every read size', async (t) => {
  const input = bytes(sample);
  for (let size = 1; size <= input.length; size++) {
    t.strictSame(decode(input, [size]), {
      body: 'hello0123456789\n',
      done: true,
      problem: null,
      used: input.length,
    });
  }
});

test('one read gives one slice without moving the bytes of its first chunk', async (t) => {
  const buffer = bytes('3\r\nabc\r\n3\r\ndef\r\n');
  const state = new ChunkedState();
  t.equal(decodeChunked(state, buffer, 0, buffer.length), 6);
  t.equal(state.payloadStart, 3);
  t.equal(buffer.toString('latin1', 3, 9), 'abcdef');
  t.equal(state.consumed, buffer.length);
  t.equal(state.done, false);
});

test('a state can be used again after a reset', async (t) => {
  const state = new ChunkedState();
  t.equal(decodeChunked(state, bytes('x'), 0, 1), -1);
  state.reset();
  const buffer = bytes('1\r\na\r\n0\r\n\r\n');
  t.equal(decodeChunked(state, buffer, 0, buffer.length), 1);
  t.ok(state.done);
});

test('malformed bodies are refused at every read size', async (t) => {
  const bad = [
    '\r\n',
    ' 5\r\nhello\r\n0\r\n\r\n',
    '5 \r\nhello\r\n0\r\n\r\n',
    '0x5\r\nhello\r\n0\r\n\r\n',
    '+5\r\nhello\r\n0\r\n\r\n',
    '-5\r\nhello\r\n0\r\n\r\n',
    'g\r\n',
    ';a\r\n',
    '5\nhello\r\n0\r\n\r\n',
    '5\r\nhello0\r\n\r\n',
    '5\r\nhello\n0\r\n\r\n',
    '5\r\nhello\rX0\r\n\r\n',
    '5\rhello\r\n0\r\n\r\n',
    '5;a\nhello\r\n0\r\n\r\n',
    '5;a\0\r\nhello\r\n0\r\n\r\n',
    '20000000000000\r\n',
    'ffffffffffffffffffff\r\n',
    '0\r\nbad name: x\r\n\r\n',
    '0\r\n: x\r\n\r\n',
    '0\r\nno-colon\r\n\r\n',
    '0\r\na: b\0\r\n\r\n',
    '0\r\na: b\n\r\n\r\n',
    '0\r\na: b\r\n c\r\n\r\n',
    '0\r\n\rx',
    '0\r\n\n',
    `${'0'.repeat(maxSizeLine)}1\r\n`,
    `1;${'a'.repeat(maxSizeLine)}\r\n`,
    `0\r\na: ${'b'.repeat(16 * 1024)}\r\n\r\n`,
  ];
  for (const text of bad) {
    for (const size of [1, 2, 7, text.length]) {
      t.type(decode(bytes(text), [size]).problem, 'string', JSON.stringify(text.slice(0, 40)));
    }
  }
});

test('the longest size line and the largest size are taken', async (t) => {
  t.equal(decode(bytes(`${'0'.repeat(maxSizeLine - 1)}1\r\na\r\n0\r\n\r\n`), [64]).body, 'a');
  t.equal(decode(bytes('1fffffffffffff\r\nabc'), [64]).body, 'abc');
});

test('whatever is cut into chunks comes out whole, whatever the reads', async () => {
  const extension = fc.constantFrom('', ';a', ';a=b', ';a="b c"', ';\xe9');
  const chunk = fc.tuple(fc.string({ minLength: 1, maxLength: 120, unit: 'binary-ascii' }), extension);
  fc.assert(
    fc.property(
      fc.array(chunk, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 8 }),
      fc.boolean(),
      (chunks, pieces, upper) => {
        const size = (text: string) =>
          upper ? text.length.toString(16).toUpperCase() : text.length.toString(16);
        const coded = chunks.map(([text, more]) => `${size(text)}${more}\r\n${text}\r\n`).join('');
        const input = bytes(`${coded}0\r\nx-trailer: 1\r\n\r\nleft`);
        const outcome = decode(input, pieces);
        const body = chunks.map(([text]) => text).join('');
        return outcome.done && outcome.body === body && outcome.used === input.length - 4;
      },
    ),
    { numRuns: cases(500) },
  );
});

test('the verdict on any bytes does not depend on the reads', async () => {
  const part = fc.constantFrom(
    '0',
    '1',
    'a',
    '\r',
    '\n',
    '\r\n',
    ';',
    'x',
    ':',
    ' ',
    '\0',
    '1\r\na\r\n',
    '0\r\n\r\n',
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 14 }), fc.integer({ min: 1, max: 5 }), (parts, size) => {
      const input = bytes(parts.join(''));
      const whole = decode(input, [input.length + 1]);
      const split = decode(input, [size]);
      return (
        whole.done === split.done && whole.problem === split.problem && split.body.startsWith(whole.body)
      );
    }),
    { numRuns: cases(2000) },
  );
});

test('one read of many chunks gives what a read of each byte gives', (t) => {
  const size = fc.oneof(
    fc.integer({ min: 0, max: 40 }),
    fc.constantFrom(255, 256, 4095, 4096, 65_535, 65_536),
  );
  const sizeLine = fc.constantFrom(
    ...[(hex: string) => hex, (hex: string) => hex.toUpperCase(), (hex: string) => `0${hex}`],
    ...[(hex: string) => `000${hex}`, (hex: string) => `${hex};a=b`, (hex: string) => `${hex}x`],
  );
  const lineEnd = fc.oneof(
    { arbitrary: fc.constant('\r\n'), weight: 30 },
    fc.constantFrom('\n', '\r', '', '\r\r\n'),
  );
  const chunk = fc.tuple(size, sizeLine, lineEnd, lineEnd);
  const write = (chunks: readonly (typeof chunk extends fc.Arbitrary<infer Each> ? Each : never)[]): Buffer =>
    bytes(
      chunks
        .map(
          ([length, line, first, second]) =>
            line(length.toString(16)) + first + 'd\r'.repeat(length).slice(0, length) + second,
        )
        .join(''),
    );
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 8 }), fc.boolean(), fc.nat(20), (chunks, ends, less) => {
      const whole = Buffer.concat([write(chunks), bytes(ends ? '0\r\n\r\n' : '')]);
      const input = whole.subarray(0, Math.max(1, whole.length - less));
      const atOnce = decode(input, [input.length]);
      const byByte = decode(input, [1]);
      // What is refused is so at the same place, but of one read nothing is used then.
      if (atOnce.problem !== null || byByte.problem !== null) return atOnce.problem === byByte.problem;
      return atOnce.body === byByte.body && atOnce.done === byByte.done && atOnce.used === byByte.used;
    }),
    { numRuns: cases(400) },
  );
  t.end();
});
