import { test } from 'tap';
import { bareRequest } from '../../src/video/request.js';
import { aspectRatioFor, parseSize, sizeFor } from '../../src/video/shape.js';
import type { VideoRequest } from '../../src/video/task.js';
import { fc } from '../support/seed.js';

const request = (changes: Partial<VideoRequest>, body = {}) => ({
  ...bareRequest('generic', 'film', body),
  ...changes,
});

test('sizes as text', async (t) => {
  t.same(parseSize('1280x720'), { width: 1280, height: 720 });
  for (const text of [
    '',
    '1280',
    '1280X720',
    '1280*720',
    '0x720',
    '1280x-1',
    ' 1x1',
    '123456x1',
    '1.5x2',
    'auto',
  ])
    t.equal(parseSize(text), null, text);
});

test('a size as the shape that is nearest', async (t) => {
  const cases: [number, number, string][] = [
    [1280, 720, '16:9'],
    [720, 1280, '9:16'],
    [1792, 1024, '16:9'],
    [1024, 1792, '9:16'],
    [848, 480, '16:9'],
    [1024, 1024, '1:1'],
    [640, 480, '4:3'],
    [480, 640, '3:4'],
    [2560, 1080, '21:9'],
    [1500, 1000, '3:2'],
    [100, 7, '100:7'],
  ];
  for (const [width, height, ratio] of cases)
    t.equal(aspectRatioFor(request({ width, height })), ratio, `${width}x${height}`);
  t.equal(aspectRatioFor(request({ aspectRatio: '5:4' })), '5:4', "the client's own words");
  t.equal(aspectRatioFor(request({})), null);
});

test('a shape as a size', async (t) => {
  const cases: [string, number, number][] = [
    ['16:9', 1280, 720],
    ['9:16', 720, 1280],
    ['1:1', 720, 720],
    ['4:3', 960, 720],
    ['21:9', 1680, 720],
  ];
  for (const [aspectRatio, width, height] of cases)
    t.same(sizeFor(request({ aspectRatio }), 'compat'), { width, height }, aspectRatio);
  t.same(sizeFor(request({ width: 3, height: 4, aspectRatio: '16:9' }), 'compat'), { width: 3, height: 4 });
  t.equal(sizeFor(request({}), 'compat'), null);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9999 }), fc.integer({ min: 1, max: 9999 }), (across, down) => {
      const size = sizeFor(request({ aspectRatio: `${across}:${down}` }), 'compat');
      return (
        size !== null && Math.min(size.width, size.height) === 720 && (size.width + size.height) % 2 === 0
      );
    }),
  );
});

test('half a size and no shape are refused', async (t) => {
  const missing = { name: 'GatewayError', kind: 'missing_parameter', status: 400 };
  t.throws(() => sizeFor(request({ width: 5 }), 'compat'), { ...missing, param: 'height' });
  t.throws(() => aspectRatioFor(request({ height: 5 })), { ...missing, param: 'width' });
  t.throws(() => sizeFor(request({ aspectRatio: 'wide' }), 'compat'), {
    name: 'GatewayError',
    kind: 'unsupported_parameter',
    param: 'aspect_ratio',
  });
  const nested = { metadata: { aspect_ratio: '0:1' } };
  t.throws(() => sizeFor(request({ aspectRatio: '0:1' }, nested), 'compat'), {
    name: 'GatewayError',
    param: 'metadata.aspect_ratio',
  });
});
