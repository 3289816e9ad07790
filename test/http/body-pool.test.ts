import { test } from 'tap';
import { createBodyPool } from '../../src/http/body.js';

const KB = 1024;

test('a buffer that was given back serves the next body of its size', async (t) => {
  const pool = createBodyPool(1024 * KB);
  const first = pool.take(150 * KB);
  t.equal(first?.length, 256 * KB);
  if (first) pool.give(first);
  t.ok(pool.take(200 * KB) === first);
  t.ok(pool.take(200 * KB) !== first, 'it is not handed out twice');
});

test('small and huge bodies are not kept', async (t) => {
  const pool = createBodyPool(1024 * KB);
  t.equal(pool.take(511), null);
  t.equal(pool.take(1024 * KB + 1), null);
  t.equal(pool.take(512)?.length, 512);
  t.equal(pool.take(1024 * KB)?.length, 1024 * KB);
});

test('no more waits than the limit', async (t) => {
  const pool = createBodyPool(64 * KB);
  const buffers = [1, 2, 3].map(() => pool.take(32 * KB) as Buffer);
  for (const buffer of buffers) pool.give(buffer);
  t.same(
    [1, 2, 3].map(() => buffers.includes(pool.take(32 * KB) as Buffer)),
    [true, true, false],
  );
});

test('what is not used between two trims is let go', async (t) => {
  const pool = createBodyPool(1024 * KB);
  const buffers = [pool.take(32 * KB) as Buffer, pool.take(32 * KB) as Buffer];
  for (const buffer of buffers) pool.give(buffer);
  pool.trim();
  const used = pool.take(32 * KB) as Buffer;
  pool.give(used);
  pool.trim();
  t.ok(pool.take(32 * KB) === used, 'one of the two was in use');
  t.notOk(buffers.includes(pool.take(32 * KB) as Buffer), 'the other was not');
});
