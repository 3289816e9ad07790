import { test } from 'tap';
import { Tail, tailBytes } from '../../src/wire/tail.js';

test('the end of a stream is kept whatever the pieces', async (t) => {
  const all = Buffer.from(Array.from({ length: 50_000 }, (_, index) => index % 251));
  for (const size of [1, 100, tailBytes - 1, tailBytes, tailBytes + 1, 3 * tailBytes, all.length]) {
    const tail = new Tail();
    for (let at = 0; at < all.length; at += size) tail.add(all.subarray(at, at + size));
    const kept = tail.bytes();
    t.ok(
      kept.length >= tailBytes && kept.length <= 2 * tailBytes,
      `${kept.length} bytes of pieces of ${size}`,
    );
    t.ok(kept.equals(all.subarray(all.length - kept.length)));
  }
});

test('an empty stream has an empty tail', async (t) => {
  t.equal(new Tail().bytes().length, 0);
});
