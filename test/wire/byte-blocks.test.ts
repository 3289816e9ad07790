import { test } from 'tap';
import { ByteBlocks } from '../../src/wire/byte-blocks.js';
import { fc } from '../support/seed.js';

test('pieces of any size are kept, and can be had from any offset on', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 50 }),
      fc.nat(100_000),
      (pieces, from) => {
        const held = new ByteBlocks();
        const early = { length: 0, pieces: [] as Buffer[] };
        for (const [index, piece] of pieces.entries()) {
          held.add(Buffer.from(piece));
          if (index !== pieces.length >> 1) continue;
          early.length = held.length;
          early.pieces = held.pieces();
        }
        const whole = Buffer.concat(pieces);
        return (
          held.length === whole.length &&
          Buffer.concat(held.pieces()).equals(whole) &&
          Buffer.concat(held.pieces(from)).equals(whole.subarray(from)) &&
          Buffer.concat(early.pieces).equals(whole.subarray(0, early.length))
        );
      },
    ),
  );
  t.end();
});

test('single bytes are kept in blocks', (t) => {
  const held = new ByteBlocks();
  for (let index = 0; index < 1_000_000; index++) held.add(Buffer.of(index & 0xff));
  const pieces = held.pieces();
  t.ok(pieces.length < 32, `${pieces.length} blocks`);
  const size = pieces.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
  t.ok(size < 1_100_000, `${size} bytes`);
  held.clear();
  t.equal(held.length, 0);
  t.strictSame(held.pieces(), []);
  t.end();
});

test('a piece that comes alone takes no more than its size', (t) => {
  const held = new ByteBlocks();
  held.add(Buffer.alloc(100_000));
  t.equal(held.pieces()[0]?.buffer.byteLength, 100_000);
  t.end();
});
