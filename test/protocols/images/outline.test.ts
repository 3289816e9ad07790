import { test } from 'tap';
import { outlineOfBody, outlineOfForm, passesTo } from '../../../src/protocols/images/outline.js';
import type { ImageOperation } from '../../../src/protocols/images/request.js';
import type { JsonObject } from '../../../src/wire/json.js';
import type { FormPart } from '../../../src/wire/multipart.js';
import { imageUrl, inputBody, png, promptBody } from './samples.js';

const field = (name: string, value: string): FormPart => ({
  name,
  filename: null,
  contentType: null,
  data: Buffer.from(value),
});
const file = (name: string): FormPart => ({
  name,
  filename: 'a.png',
  contentType: 'image/png',
  data: png,
});
const start = [field('model', 'm'), field('prompt', 'A cat')];
const nothing = {
  form: 'prompt',
  model: 'm',
  count: null,
  stream: false,
  responseFormat: null,
  size: null,
  quality: null,
  hasImageTexts: false,
};

const outlineOf = (operation: ImageOperation, body: JsonObject) => outlineOfBody(operation, body, () => body);

test('of a body with a prompt: what it is routed and metered by', async (t) => {
  t.strictSame(outlineOf('generate', promptBody()), nothing);
  t.strictSame(
    outlineOf('generate', promptBody({ n: 11, stream: true, response_format: 'url', image: imageUrl })),
    { ...nothing, count: 11, stream: true, responseFormat: 'url' },
  );
  t.strictSame(outlineOf('generate', promptBody({ size: '1024x1536', quality: 'high' })), {
    ...nothing,
    size: '1024x1536',
    quality: 'high',
  });
  t.match(outlineOf('generate', inputBody([], { size: '1x1', parameters: { size: '1024*768' } })), {
    size: '1024x768',
    quality: null,
  });
  const twoSizes = { size: '1024x1536', parameters: { size: '1*1' } };
  const large = { size: '512x512', width: 1440, height: 1440 };
  for (const other of [
    large,
    { width: 1440 },
    { image_size: '1440x1440' },
    { image_size: {} },
    { resolution: '2k' },
  ])
    t.equal(
      outlineOf('generate', promptBody({ size: '512x512', ...other })).size,
      null,
      JSON.stringify(other),
    );
  for (const same of [
    { width: 512, height: '512' },
    { image_size: '512*512' },
    { resolution: null, width: '' },
  ])
    t.equal(
      outlineOf('generate', promptBody({ size: '512x512', ...same })).size,
      '512x512',
      JSON.stringify(same),
    );
  t.equal(outlineOf('generate', promptBody(twoSizes)).size, '1024x1536', 'that of the form of the body');
  t.strictSame(outlineOf('edit', promptBody({ response_format: 'png', n: null })), nothing);
  for (const more of [{ image: imageUrl }, { images: [{ file_id: 'f' }] }, { mask: {} }])
    t.strictSame(outlineOf('edit', promptBody(more)), { ...nothing, hasImageTexts: true });
});

test('of a body with input: the larger number counts, and URLs are the rule', async (t) => {
  const outline = { ...nothing, form: 'input', responseFormat: 'url' };
  t.strictSame(outlineOf('edit', inputBody([])), outline);
  t.strictSame(outlineOf('edit', inputBody([], { n: 3, parameters: { n: 2 } })), {
    ...outline,
    count: 3,
  });
  t.match(outlineOf('edit', inputBody([], { n: 3, response_format: 'b64_json' })), {
    count: 3,
    responseFormat: 'b64_json',
  });
});

test('of a form: its fields, and whether its images are files', async (t) => {
  t.strictSame(outlineOfForm('edit', [...start, file('image[]'), file('mask')]), nothing);
  t.strictSame(outlineOfForm('edit', [...start, field('image', imageUrl)]), {
    ...nothing,
    hasImageTexts: true,
  });
  t.strictSame(outlineOfForm('generate', [...start, field('image', imageUrl)]), nothing);
  t.strictSame(
    outlineOfForm('edit', [
      ...start,
      field('n', '12'),
      field('stream', 'True'),
      field('response_format', 'url'),
    ]),
    { ...nothing, count: 12, stream: true, responseFormat: 'url' },
  );
  t.strictSame(outlineOfForm('edit', [...start, field('n', ''), field('stream', 'false')]), nothing);
  t.strictSame(outlineOfForm('edit', [...start, field('size', '1x1'), field('quality', 'low')]), {
    ...nothing,
    size: '1x1',
    quality: 'low',
  });
  t.match(outlineOfForm('edit', [...start, file('size')]), { size: null });
  const twice = [field('size', '1x1'), field('width', '2')];
  t.match(outlineOfForm('edit', [...start, ...twice]), { size: null }, 'that another field contradicts');
  t.equal(outlineOfForm('edit', [file('image')]).model, '');
});

test('a form is refused at what cannot be read of that', async (t) => {
  for (const [part, param] of [
    [field('n', '0'), 'n'],
    [field('n', '1001'), 'n'],
    [field('n', 'two'), 'n'],
    [field('stream', '1'), 'stream'],
    [file('n'), 'n'],
    [file('batch_size'), 'batch_size'],
    [field('parameters[n]', '0'), 'parameters[n]'],
    [file('stream'), 'stream'],
    [file('response_format'), 'response_format'],
  ] as const)
    t.throws(() => outlineOfForm('edit', [...start, part]), { name: 'GatewayError', param });
  t.throws(() => outlineOfForm('edit', [file('model')]), { name: 'GatewayError', param: 'model' });
});

test('which upstreams take the body as it came', async (t) => {
  const prompt = outlineOf('edit', promptBody());
  const withTexts = outlineOf('edit', promptBody({ image: imageUrl }));
  const input = outlineOf('edit', inputBody([]));
  for (const [style, outline, passes] of [
    ['openai', prompt, true],
    ['openai', withTexts, true],
    ['openai', input, false],
    ['openai-files', prompt, true],
    ['openai-files', withTexts, false],
    ['dashscope', prompt, false],
  ] as const)
    t.equal(passesTo(style, outline), passes, `${style} ${JSON.stringify(outline)}`);
});
