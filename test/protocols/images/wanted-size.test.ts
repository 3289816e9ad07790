import { test } from 'tap';
import { wantedSize } from '../../../src/protocols/images/wanted-size.js';

const ratio = (value: number) => ({ value, at: 'aspectRatio' });
const edge = (value: number) => ({ value, at: 'imageSize' });

test('what is left open stays open', async (t) => {
  for (const style of ['openai', 'openai-files', 'dashscope'] as const)
    t.strictSame(wantedSize(style, { ratio: null, edge: null }), { size: null, leftOut: [] });
});

test('the nearest size that all models take, and what it does not say', async (t) => {
  const square = { width: 1024, height: 1024 };
  const wide = { width: 1536, height: 1024 };
  const high = { width: 1024, height: 1536 };
  for (const [value, size, leftOut] of [
    [1, square, []],
    [3 / 2, wide, []],
    [2 / 3, high, []],
    [16 / 9, wide, ['aspectRatio']],
    [9 / 16, high, ['aspectRatio']],
    [21 / 9, wide, ['aspectRatio']],
    [5 / 4, wide, ['aspectRatio']],
    [4 / 5, high, ['aspectRatio']],
  ] as const)
    t.strictSame(wantedSize('openai', { ratio: ratio(value), edge: null }), { size, leftOut }, String(value));
  t.strictSame(wantedSize('openai-files', { ratio: ratio(1), edge: edge(1024) }), {
    size: square,
    leftOut: [],
  });
  t.strictSame(wantedSize('openai', { ratio: null, edge: edge(2048) }), {
    size: null,
    leftOut: ['imageSize'],
  });
  t.strictSame(wantedSize('openai', { ratio: ratio(2), edge: edge(4096) }), {
    size: wide,
    leftOut: ['aspectRatio', 'imageSize'],
  });
});

test('the size itself where any is taken, in whole blocks', async (t) => {
  for (const [shape, resolution, size] of [
    [1, null, { width: 1024, height: 1024 }],
    [16 / 9, null, { width: 1360, height: 768 }],
    [16 / 9, 2048, { width: 2736, height: 1536 }],
    [9 / 16, 1024, { width: 768, height: 1360 }],
    [null, 512, { width: 512, height: 512 }],
    [9999, 512, { width: 51_200, height: 16 }],
  ] as const) {
    const wanted = {
      ratio: shape === null ? null : ratio(shape),
      edge: resolution === null ? null : edge(resolution),
    };
    t.strictSame(wantedSize('dashscope', wanted), { size, leftOut: [] }, `${shape} ${resolution}`);
  }
});
