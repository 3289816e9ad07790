import { test } from 'tap';
import { Gather } from '../../src/stream/gather.js';

test('pieces are put together in order, and only up to the limit', async (t) => {
  const gather = new Gather(10_000);
  const piece = Buffer.from('abc');
  t.ok(
    Array.from({ length: 3333 }, () => gather.add(piece, 0)).every((isTaken) => isTaken),
    'none is refused below the limit',
  );
  piece.fill(0);
  t.equal(gather.add(Buffer.alloc(2), 0), false);
  t.equal(gather.length, 9999);
  t.ok(gather.take().equals(Buffer.from('abc'.repeat(3333))));
  t.equal(gather.length, 0);
  t.equal(gather.take().length, 0);
});

test('what was taken stays as it was', async (t) => {
  const gather = new Gather(100);
  gather.add(Buffer.from('first'), 5);
  const first = gather.take();
  gather.add(Buffer.from('other'), 5);
  t.equal(first.toString(), 'first');
});
