import { test } from 'tap';
import { readCompatBody, readCompatForm } from '../../../src/video/client-formats/compat.js';
import { readGenericBody } from '../../../src/video/client-formats/generic.js';
import { readVendorjSubmit } from '../../../src/video/client-formats/vendorj.js';
import { readVendorkBody } from '../../../src/video/client-formats/vendork.js';
import { upstreamFormats } from '../../../src/video/formats.js';
import { type VideoFormat, type VideoRequest, videoFormats } from '../../../src/video/task.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { jpegText, jsonBody, part, png, pngText } from '../samples.js';

const kind = (more: JsonObject) => readVendorkBody({ model_name: 'film', prompt: 'x', ...more }, 'text');
const imageKind = (more: JsonObject) =>
  readVendorkBody({ model_name: 'film', prompt: 'x', image: pngText, ...more }, 'image');
const generic = (more: JsonObject) => readGenericBody({ model: 'film', prompt: 'x', ...more });
const vendorj = (more: JsonObject) => readVendorjSubmit({ req_key: 'film', prompt: 'x', ...more });
const form = readCompatForm([
  part('model', 'film'),
  part('prompt', 'x'),
  part('mask', png, { filename: 'mask.png', contentType: 'image/png' }),
]);

/** What cannot be said to an upstream, with the member that is named. */
const refused: readonly [request: VideoRequest, to: VideoFormat, param: string][] = [
  [kind({ negative_prompt: 'dogs' }), 'compat', 'negative_prompt'],
  [kind({ negative_prompt: 'dogs' }), 'vendorj', 'negative_prompt'],
  [generic({ metadata: { negative_prompt: 'dogs' } }), 'vendorj', 'metadata.negative_prompt'],
  [imageKind({ image_tail: jpegText }), 'compat', 'image_tail'],
  [imageKind({ image_tail: 'https://h/last' }), 'vendorj', 'image_tail'],
  [generic({ metadata: { image_tail: jpegText } }), 'vendorj', 'metadata.image_tail'],
  [vendorj({ image_urls: ['https://h/1', 'https://h/2'] }), 'compat', 'image_urls[1]'],
  ...(['compat', 'vendork', 'generic'] as const).map((to): (typeof refused)[number] => [
    vendorj({ binary_data_base64: [pngText], image_urls: ['https://h/2', 'https://h/3'] }),
    to,
    'image_urls[1]',
  ]),
  [vendorj({ binary_data_base64: [pngText, pngText, pngText] }), 'vendork', 'binary_data_base64[2]'],
  [generic({ n: 2 }), 'compat', 'n'],
  [generic({ n: 2 }), 'vendork', 'n'],
  [generic({ n: 2 }), 'vendorj', 'n'],
  [kind({ camera_control: { type: 'simple' } }), 'compat', 'camera_control'],
  [kind({ camera_control: { type: 'simple' } }), 'vendorj', 'camera_control'],
  [imageKind({ static_mask: pngText }), 'compat', 'static_mask'],
  [imageKind({ dynamic_masks: [{}] }), 'vendorj', 'dynamic_masks'],
  [kind({ sound: 'on' }), 'compat', 'sound'],
  [generic({ metadata: { camera_control: {} } }), 'compat', 'metadata.camera_control'],
  [kind({ callback_url: 'https://c' }), 'compat', 'callback_url'],
  [kind({ callback_url: 'https://c' }), 'vendorj', 'callback_url'],
  [kind({ callback_url: 'https://c' }), 'generic', 'callback_url'],
  [generic({ metadata: { callback_url: 'https://c' } }), 'vendork', 'metadata.callback_url'],
  [vendorj({ aspect_ratio: 'adaptive' }), 'compat', 'aspect_ratio'],
  [vendorj({ aspect_ratio: 'adaptive' }), 'generic', 'aspect_ratio'],
  [form, 'vendork', 'mask'],
  [form, 'vendorj', 'mask'],
  [form, 'generic', 'mask'],
];

test('what an upstream cannot be told is refused by the name that the client gave it', async (t) => {
  for (const [request, to, param] of refused) {
    const name = `${request.format} ${param} to ${to}`;
    const wanted = { name: 'GatewayError', kind: 'unsupported_parameter', status: 400, param };
    t.throws(() => upstreamFormats[to].create(request, 'film-1', 'video_1'), wanted, name);
    t.doesNotThrow(() => upstreamFormats[request.format].create(request, 'film-1', 'video_1'), name);
  }
});

test('several videos of a request are for a vendork upstream to make or refuse if its client speaks its format', async (t) => {
  for (const n of [2, '2'])
    t.match(jsonBody(upstreamFormats.vendork.create(kind({ n }), 'film-1', 'video_1')), { n });
  const tooMany = { kind: 'unsupported_parameter', param: 'n', message: /'n' above 10 is not supported/ };
  t.throws(() => upstreamFormats.vendork.create(kind({ n: 11 }), 'film-1', 'video_1'), tooMany);
});

test('what an upstream needs and the client did not give is asked for', async (t) => {
  const request = imageKind({ prompt: null });
  const wanted = { name: 'GatewayError', kind: 'missing_parameter', param: 'prompt' };
  t.throws(() => upstreamFormats.compat.create(request, 'm', 'video_1'), wanted);
  t.throws(() => upstreamFormats.vendork.create(generic({ width: 5 }), 'm', 'video_1'), {
    name: 'GatewayError',
    kind: 'missing_parameter',
    param: 'height',
  });
});

test('what only shades a video is left out', async (t) => {
  const request = kind({
    mode: 'pro',
    cfg_scale: 1,
    sound: 'off',
    watermark_info: {},
    seed: 3,
    fps: 30,
    n: 1,
  });
  for (const to of ['compat', 'vendorj', 'generic'] as const)
    t.doesNotThrow(() => upstreamFormats[to].create(request, 'm', 'video_1'), to);
});

/** What is not as the client's format documents it, with the member that is named. */
const passed: readonly [request: VideoRequest, param: string][] = [
  [readCompatBody({ model: 'film', prompt: 'x', size: '720p' }), 'size'],
  [readCompatForm([part('model', 'film')]), 'prompt'],
  [generic({ duration: -1 }), 'duration'],
  [generic({ image: 'gs://b/a.png' }), 'image'],
  [kind({ cfg_scale: 2 }), 'cfg_scale'],
  [vendorj({ prompt: '' }), 'prompt'],
];

test('what its own documents do not have reaches an upstream of the same format alone', async (t) => {
  for (const [request, param] of passed)
    for (const to of videoFormats) {
      const create = () => upstreamFormats[to].create(request, 'film-1', 'video_1');
      if (to === request.format) t.doesNotThrow(create, `${param} to ${to}`);
      else t.throws(create, { name: 'GatewayError', status: 400, param }, `${param} to ${to}`);
    }
});
