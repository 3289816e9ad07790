import { test } from 'tap';
import { decodeImageForm } from '../../../src/protocols/images/decode-form.js';
import type { FormPart } from '../../../src/wire/multipart.js';
import { imageUrl, jpeg, plain, png, pngUrl } from './samples.js';

const field = (name: string, value: string): FormPart => ({
  name,
  filename: null,
  contentType: null,
  data: Buffer.from(value),
});
const file = (name: string, data: Buffer = png, contentType: string | null = 'image/png'): FormPart => ({
  name,
  filename: `${name}.png`,
  contentType,
  data,
});
const start = [field('model', 'm'), field('prompt', 'A cat')];

test('one image, and settings before and behind it', async (t) => {
  const request = decodeImageForm('edit', [
    field('model', 'm'),
    file('image'),
    field('prompt', 'Füge „Hut“ hinzu 🎩'),
    field('n', '2'),
    field('size', '1024x1536'),
    field('response_format', 'b64_json'),
    field('quality', 'high'),
    field('output_compression', '80'),
    field('partial_images', '0'),
    field('frame_count', '4'),
    field('frame_duration_ms', '200'),
    field('stream', 'true'),
    field('watermark', 'False'),
    field('seed', '7'),
    field('tags[]', 'a'),
    field('tags[]', 'b'),
    field('user', ''),
  ]);
  t.same(request, {
    ...plain,
    operation: 'edit',
    prompt: 'Füge „Hut“ hinzu 🎩',
    images: [{ kind: 'bytes', bytes: png, mediaType: 'image/png', filename: 'image.png', at: 'image' }],
    count: 2,
    size: { width: 1024, height: 1536 },
    responseFormat: 'b64_json',
    stream: true,
    watermark: false,
    extras: {
      quality: 'high',
      output_compression: 80,
      partial_images: 0,
      frame_count: 4,
      frame_duration_ms: 200,
      seed: '7',
      'tags[]': ['a', 'b'],
    },
  });
});

test('up to sixteen images in any spelling, and a mask', async (t) => {
  const names = ['image', 'image[]', 'image[]', 'image[0]'];
  const some = decodeImageForm('edit', [...start, ...names.map((name) => file(name)), file('mask')]);
  t.same(
    some.images.map(({ at }) => at),
    names,
  );
  t.match(some.mask, { kind: 'bytes', at: 'mask', bytes: png });
  t.equal(decodeImageForm('edit', [...start, ...Array(16).fill(file('image[]'))]).images.length, 16);
});

test('the type of a file is read from its bytes where the client does not know it', async (t) => {
  const request = decodeImageForm('edit', [...start, file('image', jpeg, 'application/octet-stream')]);
  t.match(request.images, [{ mediaType: 'image/jpeg' }]);
});

test('other files are kept for an upstream that knows them', async (t) => {
  const markup = file('markup');
  t.same(decodeImageForm('edit', [...start, file('image'), markup]).otherFiles, [markup]);
});

test('an image may come as text', async (t) => {
  const request = decodeImageForm('edit', [...start, field('image[]', imageUrl), field('image[]', pngUrl)]);
  t.match(request.images, [
    { kind: 'url', url: imageUrl, at: 'image[]' },
    { kind: 'bytes', bytes: png, at: 'image[]' },
  ]);
});

test('a form without images makes a new one', async (t) => {
  const unchosen: FormPart = { name: 'image', filename: '', contentType: null, data: Buffer.alloc(0) };
  t.same(decodeImageForm('generate', [...start, unchosen]), plain);
});

interface Refusal {
  readonly operation?: 'generate';
  readonly parts: readonly FormPart[];
  readonly param: string;
  readonly words: string;
}

const refusals: readonly Refusal[] = [
  { parts: [field('prompt', 'x'), file('image')], param: 'model', words: "parameter 'model'" },
  { parts: [field('model', 'm'), file('image')], param: 'prompt', words: "parameter 'prompt'" },
  { parts: [field('model', 'm'), field('prompt', ''), file('image')], param: 'prompt', words: 'non-empty' },
  { parts: start, param: 'image', words: 'an image to edit' },
  { parts: [...start, ...Array(17).fill(file('image[]'))], param: 'image', words: 'at most 16' },
  { parts: [...start, file('image', Buffer.alloc(0))], param: 'image', words: 'the file is empty' },
  { parts: [...start, field('image', '!')], param: 'image', words: 'http(s) URL' },
  { parts: [...start, file('image'), file('mask'), file('mask')], param: 'mask', words: 'more than once' },
  { parts: [...start, file('image'), file('quality')], param: 'quality', words: 'not taken as a file' },
  { operation: 'generate', parts: [...start, file('markup')], param: 'markup', words: 'not taken as a file' },
  { parts: [...start, field('prompt', 'y'), file('image')], param: 'prompt', words: 'more than once' },
  { parts: [...start, field('n', '1001'), file('image')], param: 'n', words: 'between 1 and 1000' },
  { parts: [...start, field('n', 'two'), file('image')], param: 'n', words: 'found a string' },
  { parts: [...start, field('n', '1.0'), file('image')], param: 'n', words: 'an integer' },
  { parts: [...start, field('stream', '1'), file('image')], param: 'stream', words: 'a boolean' },
  {
    parts: [...start, field('response_format', 'png'), file('image')],
    param: 'response_format',
    words: 'url',
  },
  { operation: 'generate', parts: [...start, file('image')], param: 'image', words: '/v1/images/edits' },
  { operation: 'generate', parts: [...start, file('mask')], param: 'mask', words: '/v1/images/edits' },
];
for (const { operation = 'edit', parts, param, words } of refusals) {
  test(`to ${operation}, a form is refused at ${param}: ${words}`, async (t) => {
    t.throws(() => decodeImageForm(operation, parts), {
      name: 'GatewayError',
      status: 400,
      param,
      message: words,
    });
  });
}
