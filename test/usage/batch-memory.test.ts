import { test } from 'tap';
import { BatchMemory } from '../../src/usage/batch-memory.js';

test('pages use the buffers of pages that are free again, and no others', (t) => {
  const memory = new BatchMemory();
  const first = memory.write('a'.repeat(40_000));
  const second = memory.write('b'.repeat(40_000));
  memory.free(first);
  const third = memory.write('ç'.repeat(20_500));
  t.equal(third.buffer, first.buffer);
  t.equal(third.toString(), 'ç'.repeat(20_500));
  t.equal(second.toString(), 'b'.repeat(40_000));
  t.not(memory.write('a'.repeat(40_000)).buffer, second.buffer);
  t.end();
});

test('a short page does not use a long buffer, which a store would copy as a whole', (t) => {
  const memory = new BatchMemory();
  const long = memory.write('a'.repeat(100_000));
  memory.free(long);
  t.not(memory.write('b').buffer, long.buffer);
  t.equal(memory.write('c'.repeat(90_000)).buffer, long.buffer);
  t.end();
});

test('few buffers are kept without a page', (t) => {
  const memory = new BatchMemory();
  const pages = Array.from({ length: 40 }, () => memory.write('a'));
  for (const page of pages) memory.free(page);
  const known = new Set(pages.map(({ buffer }) => buffer));
  const next = Array.from({ length: 40 }, () => memory.write('b'));
  t.equal(next.filter(({ buffer }) => known.has(buffer)).length, 16);
  t.end();
});
