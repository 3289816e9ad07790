import { test } from 'tap';
import { decodeImageBody } from '../../../src/protocols/images/decode.js';
import { decodeImageForm } from '../../../src/protocols/images/decode-form.js';
import { encodeDashscope } from '../../../src/protocols/images/encode-dashscope.js';
import { encodeOpenai } from '../../../src/protocols/images/encode-openai.js';
import { imagesToFetch, withFetched } from '../../../src/protocols/images/fetched.js';
import type { ImageOperation } from '../../../src/protocols/images/request.js';
import { editsRequest, generationsRequest } from '../../../src/protocols/images/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { readForm } from '../../../src/wire/multipart.js';
import { boundaryOf } from '../../../src/wire/multipart-type.js';
import { imageUrl, inputBody, jpeg, jsonOf, plain, png, pngUrl, promptBody } from './samples.js';

const limits = { parts: 64, headerBytes: 4096, fieldBytes: 1 << 18, fileBytes: 1 << 20 };

function decode(operation: ImageOperation, body: JsonObject) {
  const schema = operation === 'edit' ? editsRequest : generationsRequest;
  if (!schema.check(body)) throw schema.explain(body);
  return decodeImageBody(operation, body);
}

test('a generation from input to prompt and back', async (t) => {
  const body = inputBody([{ text: 'A cat' }], { parameters: { size: '1328*928', n: 2 } });
  const spec = decode('generate', body);
  const asPrompt = decode('generate', jsonOf(encodeOpenai(spec, 'm').body));
  t.same(asPrompt, { ...plain, size: { width: 1328, height: 928 }, count: 2 });
  t.same(decode('generate', jsonOf(encodeDashscope(asPrompt, 'm').body)), spec);
  t.strictSame(jsonOf(encodeDashscope(spec, 'm').body), body);
});

test('settings of a body with a prompt survive the way through the other form', async (t) => {
  const body = promptBody({
    size: '1024x1024',
    n: 1,
    negative_prompt: 'dogs',
    prompt_extend: true,
    watermark: false,
  });
  const given = decode('generate', body);
  const there = decode('generate', jsonOf(encodeDashscope(given, 'm').body));
  t.same({ ...there, form: 'prompt', responseFormat: null }, given);
  t.strictSame(jsonOf(encodeOpenai(given, 'm').body), body);
});

test('an edit from input to a form and back, with an image that was fetched', async (t) => {
  const content = [{ image: pngUrl }, { image: imageUrl }, { text: 'Make it a "dog" 🐕' }];
  const spec = decode('edit', inputBody(content, { parameters: { size: '512*512' } }));
  t.match(imagesToFetch(spec, 'openai-files'), [{ url: imageUrl }]);
  const file = { data: jpeg, contentType: 'image/jpeg', filename: null };
  const { path, contentType, body } = encodeOpenai(withFetched(spec, new Map([[imageUrl, file]])), 'm');
  t.equal(path, '/images/edits');
  const parts = readForm(Buffer.concat(body), boundaryOf(contentType), limits);
  const form = decodeImageForm('edit', parts);
  t.match(form, {
    operation: 'edit',
    prompt: 'Make it a "dog" 🐕',
    size: { width: 512, height: 512 },
    images: [
      { bytes: png, mediaType: 'image/png', filename: 'image-1.png' },
      { bytes: jpeg, mediaType: 'image/jpeg', filename: 'image-2.jpg' },
    ],
  });
  t.strictSame(jsonOf(encodeDashscope(form, 'm').body), {
    model: 'm',
    input: {
      messages: [
        {
          role: 'user',
          content: [
            { image: pngUrl },
            { image: `data:image/jpeg;base64,${jpeg.toString('base64')}` },
            { text: 'Make it a "dog" 🐕' },
          ],
        },
      ],
    },
    parameters: { size: '512*512' },
  });
});

test('a form is written again as it came', async (t) => {
  const file = (name: string, data: Buffer) => ({
    name,
    filename: `${name}.png`,
    contentType: 'image/png',
    data,
  });
  const field = (name: string, value: string) => ({
    name,
    filename: null,
    contentType: null,
    data: Buffer.from(value),
  });
  const given = [
    field('model', 'm'),
    field('prompt', 'A\r\ncat'),
    field('n', '2'),
    field('size', 'auto'),
    field('response_format', 'b64_json'),
    field('stream', 'true'),
    field('quality', 'high'),
    field('partial_images', '2'),
    field('tags[]', 'a'),
    field('tags[]', 'b'),
    file('image', png),
    file('mask', png),
    file('markup', png),
  ];
  const { contentType, body } = encodeOpenai(decodeImageForm('edit', given), 'm');
  t.strictSame(
    readForm(Buffer.concat(body), boundaryOf(contentType), limits).map((part) => ({ ...part })),
    given,
  );
});
