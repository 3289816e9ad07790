import { test } from 'tap';
import type { MediaPart, MediaSource } from '../../../src/conversation/request.js';
import { withMedia } from '../../../src/flow/upstream/fetch-media.js';
import { decodeRequest } from '../../../src/protocols/chat/request/decode.js';

test('a file by URL is an image once its bytes say so, as it is in a data URL', async (t) => {
  const file = (url: string, more = {}) => ({
    type: 'file',
    file: { file_data: url, filename: 'a' },
    ...more,
  });
  const [image, pdf, none] = ['https://x/image', 'https://x/pdf', 'https://x/none'];
  const content = [
    file(image, { cache_control: { type: 'ephemeral' } }),
    file(pdf),
    file(none),
    { type: 'image_url', image_url: { url: image, detail: 'low' } },
  ];
  const request = decodeRequest({ messages: [{ role: 'user', content }] }, false);
  const data = (mediaType: string) => ({ kind: 'data', mediaType, data: 'AA==' }) as const;
  const fetched = new Map<string, MediaSource>([
    [image, data('image/png')],
    [pdf, data('application/pdf')],
  ]);
  const [turn] = withMedia(request, fetched).turns;
  const [first, second, third, fourth] = (turn?.role === 'user' ? turn.parts : []) as readonly MediaPart[];
  const before = request.turns[0]?.role === 'user' ? request.turns[0].parts : [];
  t.match(first, { kind: 'image', source: data('image/png'), detail: null, name: null, cache: {} });
  t.match(second, { kind: 'document', source: data('application/pdf'), name: 'a' });
  t.equal(third, before[2], 'what was not fetched stays');
  t.match(fourth, { kind: 'image', source: data('image/png'), detail: 'low' });
});
