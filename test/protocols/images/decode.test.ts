import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { decodeImageBody } from '../../../src/protocols/images/decode.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { cases, fc } from '../../support/seed.js';
import { imageUrl, inputBody, plain, png, pngUrl, promptBody } from './samples.js';

const text = [{ text: 'A cat' }];
const edited = { images: [{ image_url: imageUrl }] };

test('a body with a prompt, and every setting of it', async (t) => {
  t.same(decodeImageBody('generate', promptBody()), plain);
  const extras = {
    quality: 'high',
    style: 'vivid',
    background: 'opaque',
    moderation: 'low',
    output_format: 'webp',
    output_compression: 50,
    partial_images: 2,
    input_fidelity: 'high',
    user: 'u',
    seed: 7,
    parameters: { a: 1 },
  };
  const body = {
    n: 2,
    size: '1536x1024',
    response_format: 'b64_json',
    stream: true,
    negative_prompt: 'dogs',
    prompt_extend: false,
    watermark: true,
    input: null,
    ...extras,
  };
  t.same(decodeImageBody('generate', promptBody(body)), {
    ...plain,
    count: 2,
    size: { width: 1536, height: 1024 },
    responseFormat: 'b64_json',
    stream: true,
    negativePrompt: 'dogs',
    promptExtend: false,
    watermark: true,
    extras,
  });
});

test('a body with input, and every parameter of it', async (t) => {
  const parameters = {
    negative_prompt: 'dogs',
    prompt_extend: true,
    watermark: false,
    size: '1328*928',
    n: 3,
    seed: 7,
    style: '<photo>',
  };
  t.same(decodeImageBody('generate', inputBody(text, { parameters, user: 'u' })), {
    ...plain,
    form: 'input',
    negativePrompt: 'dogs',
    promptExtend: true,
    watermark: false,
    size: { width: 1328, height: 928 },
    count: 3,
    responseFormat: 'url',
    extras: { user: 'u' },
    parameters: { seed: 7, style: '<photo>' },
  });
});

test('settings beside the input count where the parameters do not say them', async (t) => {
  const body = inputBody(text, {
    n: 2,
    size: '1x2',
    response_format: 'b64_json',
    parameters: { size: '3*4', n: null },
  });
  const request = decodeImageBody('generate', body);
  t.match(request, { count: 2, size: { width: 3, height: 4 }, responseFormat: 'b64_json' });
});

test('the prompt is the texts of all messages, with the role user, one of the client or none', async (t) => {
  const body = {
    model: 'm',
    input: {
      messages: [
        { role: 'user', content: [{ text: 'A cat' }, { text: '' }, { text: 'on a mat' }] },
        { content: null },
        { role: null, content: [{ text: 'at noon' }] },
        { role: 'human', content: [{ text: 'in Rome' }] },
        { role: '', content: [{ text: '.' }] },
      ],
    },
  };
  t.match(decodeImageBody('generate', body), {
    prompt: 'A cat\non a mat\nat noon\nin Rome\n.',
    unread: [],
  });
});

test('texts of other roles are no part of it, and are named as all else that is not read of the input', async (t) => {
  const user = { role: 'user', content: [{ type: 'text', text: 'on a mat', enable: true }], name: 'u' };
  const body = {
    model: 'm',
    input: {
      messages: [
        { role: 'system', content: [{ text: 'Draw cats.' }] },
        { role: 'assistant', content: [{ image: imageUrl }, { text: '' }] },
        user,
      ],
      ref_img: 'x',
      session_id: null,
    },
  };
  const { prompt, images, unread } = decodeImageBody('edit', body);
  t.equal(prompt, 'on a mat');
  t.match(images, [{ url: imageUrl }], 'an edit goes on with what the model has made');
  t.strictSame(unread, ['text', 'enable', 'name', 'input.ref_img']);
});

test('without a text of the user, the prompt is the texts of the other roles', async (t) => {
  const messages = [
    { role: 'system', content: [{ text: 'Draw a cat.' }] },
    { role: 'user', content: [{ text: '' }] },
    { role: 'assistant', content: [{ text: 'A black one.' }] },
  ];
  t.match(decodeImageBody('generate', { model: 'm', input: { messages } }), {
    prompt: 'Draw a cat.\nA black one.',
    unread: [],
  });
});

test('an edit has its images in their order, each with its path', async (t) => {
  const raw = png.toString('base64');
  const spec = inputBody([{ image: imageUrl }, { image: pngUrl, text: 'A dog' }, { image: raw }]);
  const at = (index: number) => `input.messages[0].content[${index}].image`;
  const bytes = { kind: 'bytes', bytes: png, mediaType: 'image/png', filename: null };
  t.match(decodeImageBody('edit', spec), {
    operation: 'edit',
    prompt: 'A dog',
    images: [
      { kind: 'url', url: imageUrl, at: at(0) },
      { ...bytes, at: at(1) },
      { ...bytes, at: at(2) },
    ],
    mask: null,
  });
  const images = [{ image_url: imageUrl, file_id: null }, { image_url: pngUrl }];
  const request = decodeImageBody('edit', promptBody({ images, mask: { image_url: pngUrl } }));
  t.same(request.images, [
    { kind: 'url', url: imageUrl, at: 'images[0].image_url' },
    { ...bytes, at: 'images[1].image_url' },
  ]);
  t.same(request.mask, { ...bytes, at: 'mask.image_url' });
  t.same(request.extras, {});
});

test('an image may stand as a text, and in the member of its own', async (t) => {
  const imagesOf = (more: object) => decodeImageBody('edit', promptBody(more)).images;
  t.match(imagesOf({ images: [imageUrl, pngUrl] }), [
    { kind: 'url', url: imageUrl, at: 'images[0]' },
    { kind: 'bytes', at: 'images[1]' },
  ]);
  t.match(imagesOf({ image: imageUrl }), [{ url: imageUrl, at: 'image' }]);
  t.match(imagesOf({ image: [{ image_url: imageUrl }, pngUrl] }), [
    { url: imageUrl, at: 'image[0].image_url' },
    { kind: 'bytes', at: 'image[1]' },
  ]);
  const request = decodeImageBody('edit', promptBody({ image: imageUrl, mask: pngUrl }));
  t.match(request, { mask: { kind: 'bytes', at: 'mask' }, extras: {} });
  t.notOk('image' in request.extras, 'it is not sent twice');
});

test('sizes', async (t) => {
  const sizeOf = (size: unknown) => decodeImageBody('generate', promptBody({ size })).size;
  t.same(sizeOf('1024x768'), { width: 1024, height: 768 });
  t.same(sizeOf('1024*768'), { width: 1024, height: 768 });
  t.equal(sizeOf('auto'), 'auto');
  t.equal(sizeOf(null), null);
  for (const size of ['2K', '16:9', '0x1', '1024X1024'])
    t.equal(sizeOf(size), size, 'for the upstream to say');
  t.throws(() => sizeOf(1024), { status: 400, param: 'size', message: /a string/ });
});

test('a prompt has at most 32000 characters, however many units they take', async (t) => {
  const promptOf = (prompt: string) => decodeImageBody('generate', promptBody({ prompt })).prompt;
  t.equal(promptOf('a'.repeat(32_000)).length, 32_000);
  t.equal(promptOf('😀'.repeat(32_000)).length, 64_000);
  t.throws(() => promptOf('a'.repeat(32_001)), { status: 400, param: 'prompt', message: /32000/ });
  t.throws(() => decodeImageBody('generate', inputBody([{ text: 'a'.repeat(32_001) }])), {
    name: 'GatewayError',
    param: 'input.messages',
  });
});

interface Refusal {
  readonly operation: 'generate' | 'edit';
  readonly body: JsonObject;
  readonly param: string;
  readonly words: string;
}

const image = [{ text: 'A cat' }, { image: imageUrl }];
const refusals: readonly Refusal[] = [
  { operation: 'generate', body: { model: 'm' }, param: 'prompt', words: 'neither' },
  { operation: 'generate', body: promptBody({ input: {} }), param: 'input', words: 'both' },
  {
    operation: 'generate',
    body: inputBody(image),
    param: 'input.messages[0].content[1].image',
    words: 'POST /v1/images/edits',
  },
  { operation: 'generate', body: promptBody(edited), param: 'images', words: '/v1/images/edits' },
  { operation: 'generate', body: promptBody({ image: imageUrl }), param: 'image', words: 'edits' },
  { operation: 'generate', body: promptBody({ mask: {} }), param: 'mask', words: 'edits' },
  { operation: 'generate', body: inputBody([]), param: 'input.messages', words: 'has no text' },
  { operation: 'generate', body: inputBody([{ text: '' }]), param: 'input.messages', words: 'no text' },
  { operation: 'edit', body: inputBody([{ image: imageUrl }]), param: 'input.messages', words: 'no text' },
  { operation: 'edit', body: inputBody([{}]), param: 'input.messages[0].content[0]', words: "'image'" },
  { operation: 'edit', body: inputBody(text), param: 'input.messages', words: 'an image to edit' },
  { operation: 'edit', body: promptBody(), param: 'images', words: 'an image to edit' },
  { operation: 'edit', body: promptBody({ images: [{}] }), param: 'images[0].image_url', words: 'Missing' },
  {
    operation: 'edit',
    body: promptBody({ images: [{ image_url: imageUrl }, { file_id: 'file-1' }] }),
    param: 'images[1].file_id',
    words: 'files are not kept here',
  },
  {
    operation: 'edit',
    body: promptBody({ ...edited, mask: { file_id: 'file-1' } }),
    param: 'mask.file_id',
    words: 'mask.image_url',
  },
  {
    operation: 'edit',
    body: promptBody({ images: [{ image_url: 'no image' }] }),
    param: 'images[0].image_url',
    words: 'expected an http(s) URL',
  },
  {
    operation: 'edit',
    body: inputBody([...text, ...Array(17).fill({ image: imageUrl })]),
    param: 'input.messages',
    words: 'at most 16 images',
  },
  { operation: 'edit', body: inputBody(image, { mask: {} }), param: 'mask', words: "beside 'input'" },
  {
    operation: 'generate',
    body: inputBody(text, { stream: true }),
    param: 'stream',
    words: "beside 'input'",
  },
  {
    operation: 'generate',
    body: inputBody(text, { parameters: { n: 1001 } }),
    param: 'parameters.n',
    words: 'between 1 and 1000',
  },
];
for (const { operation, body, param, words } of refusals) {
  test(`to ${operation}, refused at ${param}: ${JSON.stringify(body).slice(0, 70)}`, async (t) => {
    t.throws(() => decodeImageBody(operation, body), {
      name: 'GatewayError',
      status: 400,
      param,
      message: words,
    });
  });
}

/** Bodies that are almost right. */
const body = fc.record(
  {
    model: fc.constantFrom('m', '', null, 1),
    prompt: fc.constantFrom('A cat', '', null, 1),
    input: fc.oneof(
      fc.constant(null),
      fc.record(
        {
          messages: fc.array(
            fc.record(
              {
                role: fc.constantFrom('user', 'system', null, 1),
                content: fc.oneof(
                  fc.array(
                    fc.oneof(
                      fc.record(
                        {
                          text: fc.oneof(fc.string(), fc.jsonValue()),
                          image: fc.constantFrom(imageUrl, pngUrl, '!', 1),
                        },
                        { requiredKeys: [] },
                      ),
                      fc.jsonValue(),
                    ),
                  ),
                  fc.jsonValue(),
                ),
              },
              { requiredKeys: [] },
            ),
          ),
        },
        { requiredKeys: [] },
      ),
      fc.jsonValue(),
    ),
    parameters: fc.jsonValue(),
    images: fc.oneof(fc.constant([{ image_url: pngUrl }]), fc.jsonValue()),
    mask: fc.constantFrom(null, 1, { image_url: imageUrl }, { file_id: 'f' }),
    size: fc.constantFrom('1x1', 'x', null, 1),
    n: fc.constantFrom(1, 0, null, '1'),
    stream: fc.constantFrom(true, false, null, 1),
  },
  { requiredKeys: [] },
);

test('any body is decoded or refused with a 400 that names a place', async () => {
  fc.assert(
    fc.property(body, fc.constantFrom('generate', 'edit'), (given, operation) => {
      const value = JSON.parse(JSON.stringify(given)) as JsonObject;
      try {
        const request = decodeImageBody(operation, value);
        return request.prompt !== '' && (operation === 'generate') === (request.images.length === 0);
      } catch (error) {
        return error instanceof GatewayError && error.status === 400 && error.param !== null;
      }
    }),
    { numRuns: cases(500) },
  );
});
