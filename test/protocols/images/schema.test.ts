import { test } from 'tap';
import { outlineOfBody } from '../../../src/protocols/images/outline.js';
import {
  editsRequest,
  generationsRequest,
  passedEditsRequest,
  passedGenerationsRequest,
} from '../../../src/protocols/images/schema.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { isValid, type Refused, refuses, takes } from '../verdicts.js';
import { imageUrl, inputBody, pngUrl, promptBody } from './samples.js';

const text = [{ text: 'A cat' }];
const settings = {
  n: 10,
  size: '1024x1024',
  response_format: 'b64_json',
  stream: true,
  negative_prompt: 'dogs',
  prompt_extend: true,
  watermark: false,
  quality: 'high',
  style: 'vivid',
  background: 'transparent',
  moderation: 'low',
  output_format: 'webp',
  output_compression: 100,
  partial_images: 3,
  input_fidelity: 'high',
  user: 'u',
};
const nothing = Object.fromEntries(Object.keys(settings).map((key) => [key, null]));
const parameters = {
  negative_prompt: 'dogs',
  prompt_extend: true,
  watermark: false,
  size: '1024*1024',
  n: 2,
  seed: 7,
};

test('every documented member of both forms is accepted, and members unknown here', async (t) => {
  for (const schema of [generationsRequest, editsRequest]) {
    isValid(t, schema, promptBody());
    isValid(t, schema, promptBody(settings));
    isValid(t, schema, promptBody({ ...nothing, input: null }));
    isValid(t, schema, promptBody({ frame_count: 2, svg: { model: 's' }, parameters: 1 }));
    isValid(t, schema, inputBody(text));
    isValid(t, schema, inputBody(text, { parameters, response_format: 'b64_json', other: [] }));
    isValid(t, schema, inputBody(text, { parameters: null, prompt: null }));
    isValid(t, schema, inputBody([{ text: 'A' }, { image: imageUrl }, { text: null, image: pngUrl }]));
    isValid(t, schema, { model: 'm', input: { messages: [{ content: text }, { role: 'user' }] } });
  }
});

test('an edit has its images and its mask as objects or texts', async (t) => {
  const images = [{ image_url: imageUrl }, { image_url: pngUrl, file_id: null }, { file_id: 'f' }];
  isValid(t, editsRequest, promptBody({ images, mask: { image_url: pngUrl } }));
  isValid(t, editsRequest, promptBody({ images: Array(16).fill(images[0]), mask: null }));
  isValid(t, editsRequest, promptBody({ images: [imageUrl, pngUrl], mask: pngUrl }));
  for (const image of [imageUrl, [imageUrl], { image_url: imageUrl }])
    isValid(t, editsRequest, promptBody({ image }));
});

test('the findings of the fast check are those of the body', async (t) => {
  const bytes = Buffer.from(JSON.stringify(promptBody({ stream: true })));
  t.match(passedGenerationsRequest.accept(bytes), { model: 'm', stream: true });
});

const both = "'prompt' with its settings beside it";
const refusedByBoth: readonly Refused[] = [
  [{}, 'prompt', 'neither'],
  [{ model: 'm' }, 'prompt', both],
  [{ model: 'm', prompt: null, input: null }, 'prompt', "'input' with 'messages'"],
  [promptBody({ input: { messages: [{ content: text }] } }), 'input', "both 'prompt' and 'input'"],
  [promptBody({ input: 'x' }), 'input', both],
  [{ model: 'm', messages: [] }, 'messages', 'POST /v1/chat/completions'],
  [{ model: 'm', contents: [] }, 'contents', 'generateContent'],
  [{ prompt: 'x' }, 'model', "Missing required parameter 'model'"],
  [{ input: { messages: [{ content: text }] } }, 'model', "Missing required parameter 'model'"],
  [promptBody({ model: '' }), 'model', 'a non-empty string'],
  [promptBody({ prompt: '' }), 'prompt', 'a non-empty string'],
  [promptBody({ prompt: ['x'] }), 'prompt', 'expected a non-empty string, found an array'],
  [promptBody({ n: 0 }), 'n', 'between 1 and 1000'],
  [promptBody({ n: 1001 }), 'n', 'between 1 and 1000'],
  [promptBody({ n: '1' }), 'n', 'found a string'],
  [promptBody({ size: 1024 }), 'size', 'expected a string'],
  [promptBody({ response_format: 'png' }), 'response_format', '"url" or "b64_json"'],
  [promptBody({ stream: 'yes' }), 'stream', 'expected a boolean'],
  [promptBody({ quality: 1 }), 'quality', 'expected a string'],
  [promptBody({ user: {} }), 'user', 'expected a string'],
  [{ model: 'm', input: 'x' }, 'input', 'expected an object, found a string'],
  [{ model: 'm', input: {} }, 'input.messages', "Missing required parameter 'input.messages'"],
  [{ model: 'm', input: { messages: [] } }, 'input.messages', 'at least 1 item'],
  [{ model: 'm', input: { messages: ['x'] } }, 'input.messages[0]', 'expected an object'],
  [{ model: 'm', input: { messages: [{ role: 1 }] } }, 'input.messages[0].role', 'expected a string'],
  [{ model: 'm', input: { messages: [{ content: 'x' }] } }, 'input.messages[0].content', 'expected an array'],
  [inputBody([{ text: 1 }]), 'input.messages[0].content[0].text', 'expected a string'],
  [inputBody([{ image: {} }]), 'input.messages[0].content[0].image', 'expected a string'],
  [inputBody(text, { parameters: [] }), 'parameters', 'expected an object'],
  [inputBody(text, { parameters: { negative_prompt: 1 } }), 'parameters.negative_prompt', 'a string'],
  [inputBody(text, { parameters: { prompt_extend: 'true' } }), 'parameters.prompt_extend', 'a boolean'],
  [inputBody(text, { parameters: { watermark: 0 } }), 'parameters.watermark', 'a boolean'],
  [inputBody(text, { parameters: { size: [1, 2] } }), 'parameters.size', 'a string'],
  [inputBody(text, { parameters: { n: 1.5 } }), 'parameters.n', 'an integer'],
  [[], null, 'the request body'],
];
for (const one of refusedByBoth) {
  test(`refused with its place: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) => {
    refuses(t, generationsRequest, one);
    refuses(t, editsRequest, one);
  });
}

const refusedEdits: readonly Refused[] = [
  [promptBody({ images: [] }), 'images', 'an array of 1 to 16 items'],
  [promptBody({ images: Array(17).fill({ image_url: imageUrl }) }), 'images', 'found an array of 17 items'],
  [promptBody({ images: [{ image_url: { url: imageUrl } }] }), 'images[0].image_url', 'expected a string'],
  [promptBody({ image: [] }), 'image', 'an array of 1 to 16 items'],
  [promptBody({ mask: 5 }), 'mask', 'expected a string, an object or null'],
];
for (const one of refusedEdits) {
  test(`an edit is refused with its place: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) =>
    refuses(t, editsRequest, one));
}

const passed = [passedGenerationsRequest, passedEditsRequest];

test('of a body with a prompt that passes, model, count and stream are checked alone', async (t) => {
  for (const schema of passed) {
    takes(t, schema, promptBody({ ...settings, ...nothing }));
    takes(t, schema, promptBody({ size: 1024, response_format: 'png', quality: 1, partial_images: 9 }));
    takes(t, schema, promptBody({ image: imageUrl, images: [5], mask: { file_id: 'f' }, image_url: 'x' }));
    for (const prompt of ['', ['A cat'], { text: 'A cat' }]) takes(t, schema, promptBody({ prompt }));
    for (const n of [1, 11, 1000]) takes(t, schema, promptBody({ n }));
  }
});

const refusedAlways: readonly Refused[] = [
  ...refusedByBoth.slice(0, 10),
  [promptBody({ n: 0 }), 'n', 'between 1 and 1000'],
  [promptBody({ n: 1.5 }), 'n', 'an integer'],
  [promptBody({ stream: 'yes' }), 'stream', 'expected a boolean'],
  [inputBody(text, { parameters: { n: 1.5 } }), 'parameters.n', 'an integer'],
];
for (const one of refusedAlways) {
  test(`refused whoever is to take it: ${JSON.stringify(one[0]).slice(0, 80)}`, async (t) => {
    // What it is made of is told by its prompt or its input, which are looked at once it has passed.
    const body = one[0] as JsonObject;
    for (const schema of passed) {
      if (schema.check(body))
        t.throws(() => outlineOfBody('edit', body, () => body), { name: 'GatewayError', param: one[1] });
      else refuses(t, schema, one);
    }
  });
}
