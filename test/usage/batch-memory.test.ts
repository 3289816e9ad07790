import { test } from 'tap';
import { BatchMemory, bytesOf } from '../../src/usage/batch-memory.js';

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
  const pages = Array.from({ length: 40 }, () => memory.write('a'.repeat(10_000)));
  for (const page of pages) memory.free(page);
  const known = new Set(pages.map(({ buffer }) => buffer));
  const next = Array.from({ length: 40 }, () => memory.write('b'.repeat(10_000)));
  t.equal(next.filter(({ buffer }) => known.has(buffer)).length, 16);
  t.end();
});

test('many small pages take little more memory than their bytes, and their buffers are not used again', (t) => {
  const memory = new BatchMemory();
  const pages = Array.from({ length: 1000 }, (_, index) => memory.write(String(index).repeat(100)));
  const bytes = pages.reduce((sum, page) => sum + page.length, 0);
  const buffers = new Set(pages.map(({ buffer }) => buffer));
  const held = [...buffers].reduce((sum, buffer) => sum + buffer.byteLength, 0);
  t.ok(held < 2 * bytes, `${held} for ${bytes}`);
  for (const page of pages) memory.free(page);
  t.notOk(buffers.has(memory.write('a'.repeat(10_000)).buffer));
  t.end();
});

test('a page counts as the memory that it takes', (t) => {
  const memory = new BatchMemory();
  t.equal(bytesOf(memory.write('a'.repeat(300))), 300);
  t.equal(bytesOf(memory.write('a'.repeat(17_000))), 32_768);
  t.end();
});
