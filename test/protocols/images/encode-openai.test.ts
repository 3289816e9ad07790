import { test } from 'tap';
import type { ImageSource } from '../../../src/media/image.js';
import { encodeOpenai, unsupportedByOpenai } from '../../../src/protocols/images/encode-openai.js';
import type { ImageCall } from '../../../src/protocols/images/request.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { imageUrl, jpeg, jsonOf, plain, png } from './samples.js';

const source = (bytes: Buffer, mediaType: string, filename: string | null = null): ImageSource => ({
  kind: 'bytes',
  bytes,
  mediaType,
  filename,
  at: 'image',
});

/** A written form as another implementation reads it. */
async function readForm({ contentType, body }: ImageCall): Promise<[string, string | File][]> {
  const answer = new Response(Buffer.concat(body), { headers: { 'content-type': contentType } });
  return [...(await answer.formData()).entries()];
}

test('what a family of models refuses is left out, and named where the answer does not make it good', (t) => {
  const request = {
    ...plain,
    responseFormat: 'b64_json' as const,
    extras: { output_format: 'webp', background: null, quality: 'hd' },
  };
  const written = (model: string) => jsonOf(encodeOpenai(request, model).body);
  const rest = { prompt: 'A cat', quality: 'hd' };
  t.strictSame(written('gpt-image-1'), { model: 'gpt-image-1', ...rest, output_format: 'webp' });
  t.strictSame(written('dall-e-3'), { model: 'dall-e-3', ...rest, response_format: 'b64_json' });
  t.match(written('other'), { response_format: 'b64_json', output_format: 'webp' });
  t.strictSame(unsupportedByOpenai(request, 'gpt-image-1'), []);
  t.strictSame(unsupportedByOpenai(request, 'dall-e-3'), ['output_format']);
  t.strictSame(unsupportedByOpenai(request, 'other'), []);
  t.end();
});

test('a generation is JSON with the settings that the client gave', async (t) => {
  const call = encodeOpenai(plain, 'gpt-image-1');
  t.match(call, { path: '/images/generations', contentType: 'application/json' });
  t.strictSame(jsonOf(call.body), { model: 'gpt-image-1', prompt: 'A cat' });
  const full = encodeOpenai(
    {
      ...plain,
      size: { width: 1536, height: 1024 },
      count: 2,
      responseFormat: 'b64_json',
      stream: true,
      negativePrompt: 'dogs',
      promptExtend: false,
      watermark: true,
      extras: { quality: 'high', partial_images: 2, user: null, svg: { model: 's' } },
    },
    'u',
  );
  t.strictSame(jsonOf(full.body), {
    model: 'u',
    prompt: 'A cat',
    n: 2,
    size: '1536x1024',
    response_format: 'b64_json',
    negative_prompt: 'dogs',
    prompt_extend: false,
    watermark: true,
    stream: true,
    quality: 'high',
    partial_images: 2,
    svg: { model: 's' },
  });
});

test('a body with input gives what the API has words for, and a negative prompt in the text', async (t) => {
  const call = encodeOpenai(
    {
      ...plain,
      form: 'input',
      size: 'auto',
      count: 1,
      responseFormat: 'url',
      negativePrompt: 'dogs, cars',
      promptExtend: true,
      watermark: true,
      extras: { user: 'u' },
      parameters: { seed: 7 },
    },
    'u',
  );
  t.strictSame(jsonOf(call.body), {
    model: 'u',
    prompt: 'A cat\n\nThe image must not show: dogs, cars',
    n: 1,
    size: 'auto',
    user: 'u',
  });
});

test('an edit of one image is a form with that file', async (t) => {
  const svg = { model: 's', reasoning: { effort: 'low', summary: null } };
  const call = encodeOpenai(
    {
      ...plain,
      operation: 'edit',
      prompt: 'Ein „Hut“\r\n--x',
      images: [source(jpeg, 'image/jpeg')],
      count: 2,
      size: { width: 1, height: 2 },
      extras: { quality: 'high', tags: ['a', null, 'b'], output_compression: 0, svg },
    },
    'u',
  );
  t.equal(call.path, '/images/edits');
  t.match(call.contentType, /^multipart\/form-data; boundary=/);
  const entries = await readForm(call);
  t.strictSame(entries.slice(0, -1), [
    ['model', 'u'],
    ['prompt', 'Ein „Hut“\r\n--x'],
    ['n', '2'],
    ['size', '1x2'],
    ['quality', 'high'],
    ['tags', 'a'],
    ['tags', 'b'],
    ['output_compression', '0'],
    ['svg[model]', 's'],
    ['svg[reasoning][effort]', 'low'],
  ]);
  const [name, file] = entries.at(-1) as [string, File];
  t.equal(name, 'image');
  t.match(file, { name: 'image-1.jpg', type: 'image/jpeg' });
  t.ok(Buffer.from(await file.arrayBuffer()).equals(jpeg));
});

test('objects in lists and empty ones stay JSON in a form', async (t) => {
  const images = [source(png, 'image/png')];
  const lists = { loras: [{ path: 'a', scale: 1 }, { path: 'b' }, [{ path: 'c' }, 1]], empty: {}, none: [] };
  const extras = { ...lists, svg: { parts: [{ id: 1 }, {}, 'x'], style: {} } };
  const call = encodeOpenai({ ...plain, operation: 'edit', images, extras }, 'u');
  t.strictSame((await readForm(call)).slice(2, -1), [
    ['loras', '{"path":"a","scale":1}'],
    ['loras', '{"path":"b"}'],
    ['loras', '{"path":"c"}'],
    ['loras', '1'],
    ['empty', '{}'],
    ['svg[parts]', '{"id":1}'],
    ['svg[parts]', '{}'],
    ['svg[parts]', 'x'],
    ['svg[style]', '{}'],
  ]);
});

test('members that are too many fields of a form, or that a form would have twice, are refused', async (t) => {
  const images = [source(png, 'image/png')];
  const refused = (extras: JsonObject, param: string) =>
    t.throws(() => encodeOpenai({ ...plain, operation: 'edit', images, extras }, 'u'), {
      name: 'GatewayError',
      param,
    });
  refused({ tags: Array(1001).fill('x') }, 'tags');
  refused({ tags: { inner: Array(1001).fill('x') } }, 'tags');
  refused({ ['x'.repeat(1001)]: { a: 1 } }, 'x'.repeat(1000));
  refused({ 'model[]': 'other' }, 'model');
  refused({ 'prompt[]': ['a', 'b'] }, 'prompt');
});

test('several images have brackets behind their name, and the mask comes last', async (t) => {
  const images = [source(png, 'image/png', 'a "b".png'), source(jpeg, 'image/jpeg')];
  const mask = source(png, 'image/png');
  const entries = await readForm(encodeOpenai({ ...plain, operation: 'edit', images, mask }, 'u'));
  const files = entries.slice(2) as [string, File][];
  t.strictSame(
    files.map(([name, file]) => [name, file.name, file.type, file.size]),
    [
      ['image[]', 'a "b".png', 'image/png', png.length],
      ['image[]', 'image-2.jpg', 'image/jpeg', jpeg.length],
      ['mask', 'mask.png', 'image/png', png.length],
    ],
  );
});

test('the bytes of an image are not copied', async (t) => {
  const request = { ...plain, operation: 'edit', images: [source(png, 'image/png')] } as const;
  t.ok(encodeOpenai(request, 'u').body.includes(png));
});

test('an image that is given by its URL goes as one', async (t) => {
  const images: ImageSource[] = [{ kind: 'url', url: imageUrl, at: 'images[0].image_url' }];
  const { contentType, body } = encodeOpenai({ ...plain, operation: 'edit', images }, 'u');
  t.equal(contentType, 'application/json');
  t.strictSame(JSON.parse(Buffer.concat(body).toString()).images, [{ image_url: imageUrl }]);
});
