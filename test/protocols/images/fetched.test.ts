import { test } from 'tap';
import type { ImageSource } from '../../../src/media/image.js';
import { imagesToFetch, withFetched } from '../../../src/protocols/images/fetched.js';
import { imageUrl, jpeg, plain, png } from './samples.js';

const remote = (url: string, at: string): ImageSource => ({ kind: 'url', url, at });
const here: ImageSource = {
  kind: 'bytes',
  bytes: png,
  mediaType: 'image/png',
  filename: null,
  at: 'images[1]',
};
const request = {
  ...plain,
  operation: 'edit',
  images: [remote(imageUrl, 'images[0]'), here, remote(imageUrl, 'images[2]')],
  mask: remote('https://h/m', 'mask'),
} as const;

test('what is given by URL is fetched once, for an upstream that takes bytes alone', async (t) => {
  t.same(imagesToFetch(request, 'openai-files'), [
    remote(imageUrl, 'images[0]'),
    remote('https://h/m', 'mask'),
  ]);
  for (const style of ['openai', 'dashscope'] as const) t.same(imagesToFetch(request, style), []);
  t.same(imagesToFetch(plain, 'openai-files'), []);
});

test('what was fetched takes the place of its URL', async (t) => {
  const file = { data: jpeg, contentType: 'text/html', filename: null };
  const fetched = withFetched(request, new Map([[imageUrl, file]]));
  const bytes = { kind: 'bytes', bytes: jpeg, mediaType: 'image/jpeg', filename: null };
  t.same(fetched.images, [{ ...bytes, at: 'images[0]' }, here, { ...bytes, at: 'images[2]' }]);
  t.same(fetched.mask, request.mask);
  t.same(imagesToFetch(fetched, 'openai-files'), [request.mask]);
});

test('an empty file is refused by the path of its image', async (t) => {
  const file = { data: Buffer.alloc(0), contentType: null, filename: null };
  t.throws(() => withFetched(request, new Map([['https://h/m', file]])), {
    name: 'GatewayError',
    status: 400,
    param: 'mask',
  });
});
