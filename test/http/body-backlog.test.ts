import { test } from 'tap';
import { createBodyPool } from '../../src/http/body.js';
import { BodyBacklog } from '../../src/http/body-stream.js';
import { fc } from '../support/seed.js';
import { noise } from './uploads.js';

const sizes = fc.oneof(fc.nat(20), fc.nat(40_000), fc.nat(1_200_000));

test('what waits is given back in order, and its buffers to the pool', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(sizes, fc.boolean()), { maxLength: 12 }), (steps) => {
      const pool = createBodyPool(64 * 1024 * 1024);
      const lent = new Set<Buffer>();
      const backlog = new BodyBacklog({
        take: (bytes) => {
          const buffer = pool.take(bytes);
          if (buffer !== null) lent.add(buffer);
          return buffer;
        },
        give: (buffer) => {
          if (!lent.delete(buffer)) throw new Error('given back twice');
          pool.give(buffer);
        },
        trim: () => {},
      });
      const body = noise(steps.reduce((sum, [size]) => sum + size, 0));
      const taken: Buffer[] = [];
      let waiting = 0;
      let at = 0;
      const takeFirst = () =>
        backlog.takeFirst((bytes) => {
          waiting -= bytes.length;
          taken.push(Buffer.from(bytes));
        });
      for (const [size, takes] of steps) {
        backlog.add(body.subarray(at, at + size));
        at += size;
        waiting += size;
        if (backlog.bytes !== waiting) return false;
        if (takes && waiting > 0) takeFirst();
      }
      while (backlog.bytes > 0) takeFirst();
      return waiting === 0 && lent.size === 0 && Buffer.concat(taken).equals(body);
    }),
  );
  t.pass('whatever the pieces');
});

test('what is let go goes back to the pool', async (t) => {
  const room = Buffer.alloc(131_072);
  const given: Buffer[] = [];
  const backlog = new BodyBacklog({ take: () => room, give: (buffer) => given.push(buffer), trim: () => {} });
  backlog.add(Buffer.alloc(100_000));
  backlog.clear();
  t.equal(backlog.bytes, 0);
  t.same([given.length, given[0] === room], [1, true]);
});
