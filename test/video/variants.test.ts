import { test } from 'tap';
import { videoVariant } from '../../src/video/task.js';

test('the variants of a video and what they are sent as', async (t) => {
  t.same(videoVariant('video'), { name: 'video', contentType: 'video/mp4' });
  t.same(videoVariant(''), { name: 'video', contentType: 'video/mp4' });
  t.same(videoVariant('thumbnail'), { name: 'thumbnail', contentType: 'image/webp' });
  t.same(videoVariant('spritesheet'), { name: 'spritesheet', contentType: 'image/jpeg' });
});

test('another variant is refused', async (t) => {
  for (const text of ['Video', 'gif', 'constructor', 'video,thumbnail'])
    t.throws(
      () => videoVariant(text),
      { name: 'GatewayError', kind: 'invalid_value', status: 400, param: 'variant' },
      text,
    );
});
