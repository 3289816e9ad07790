import { test } from 'tap';
import { isPlainAscii } from '../../src/wire/plain-text.js';
import { cases, fc } from '../support/seed.js';

test('plain signs of ASCII are told wherever the bytes begin and whatever is their number', (t) => {
  const isPlain = (byte: number): boolean => byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
  for (let byte = 0; byte < 256; byte++)
    for (const bytes of [[byte], [0x61, byte, 0x61, 0x61, 0x61], [0xff, byte, byte, 0xff]])
      t.equal(isPlainAscii(Buffer.from(bytes)), bytes.every(isPlain), String(bytes));
  const edge = fc.constantFrom(0x1f, 0x20, 0x5b, 0x5c, 0x5d, 0x7e, 0x7f, 0x80, 0xff, 0);
  const bytes = fc.array(fc.oneof({ arbitrary: fc.integer({ min: 0x20, max: 0x7e }), weight: 9 }, edge), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(bytes, fc.nat(7), (all, from) => {
      const whole = Buffer.alloc(all.length + from);
      whole.set(all, from);
      return isPlainAscii(whole.subarray(from)) === all.every(isPlain);
    }),
    { numRuns: cases(2000) },
  );
  t.end();
});

test('one sign is found wherever it stands in short and long bytes', (t) => {
  for (const length of [15, 16, 17, 63, 64, 1024, 16_383, 16_384, 16_385, 40_000]) {
    const bytes = Buffer.alloc(length, 0x61);
    t.ok(isPlainAscii(bytes), String(length));
    for (const at of [0, 1, 14, 15, length >> 1, 16_383, 16_384, length - 2, length - 1])
      for (const byte of [0x1f, 0x5c, 0x7f, 0x80]) {
        if (at >= length) continue;
        bytes[at] = byte;
        t.notOk(isPlainAscii(bytes), `${byte} at ${at} of ${length}`);
        bytes[at] = 0x61;
      }
  }
  t.end();
});
