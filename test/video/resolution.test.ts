import { test } from 'tap';
import { resolutionOf } from '../../src/video/shape.js';

test('the resolution of a video is the one that is named, or follows from its size or mode', async (t) => {
  const none = { body: {}, form: null, width: null, height: null, mode: null };
  const size = { width: 1280, height: 720 };
  for (const [request, resolution] of [
    [none, null],
    [{ ...none, ...size }, '720p'],
    [{ ...none, width: 1024, height: 1792 }, '1024p'],
    [{ ...none, mode: 'pro' }, 'pro'],
    [{ ...none, ...size, mode: 'pro' }, '720p'],
    [{ ...none, ...size, body: { resolution: '1080P' } }, '1080p'],
    [{ ...none, body: { size: '480p' } }, '480p'],
    [{ ...none, ...size, body: { size: '1280x720' } }, '720p'],
    [{ ...none, body: { metadata: { resolution: '4k' } } }, '4k'],
    [{ ...none, body: { parameters: { resolution: '1080P' } } }, '1080p'],
    [{ ...none, body: { input: { parameters: { size: '4k' } } } }, '4k'],
    [{ ...none, body: { config: { resolution: '4k' }, resolution: '720p' } }, null],
    [{ ...none, ...size, body: { parameters: '{"resolution":"4k"}' } }, '4k'],
    [{ ...none, body: { resolution: '4k', extra_body: { resolution: '4K' } } }, '4k'],
    [{ ...none, ...size, body: { resolution: '480p', metadata: { resolution: '1080p' } } }, null],
    [{ ...none, body: { parameters: { size: '1920*1080' } } }, '1080p'],
    [{ ...none, ...size, body: { parameters: { size: '1920x1080' } } }, null],
    [{ ...none, body: { resolution: 'x'.repeat(65) } }, null],
    [{ ...none, body: { resolution: 7 } }, null],
  ] as const)
    t.equal(resolutionOf(request), resolution, JSON.stringify(request));
});
