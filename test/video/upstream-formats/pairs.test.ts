import { test } from 'tap';
import { readCompatForm } from '../../../src/video/client-formats/compat.js';
import { readGenericBody } from '../../../src/video/client-formats/generic.js';
import { readVendorjSubmit } from '../../../src/video/client-formats/vendorj.js';
import { readVendorkBody } from '../../../src/video/client-formats/vendork.js';
import { clientFormats, upstreamFormatOf, upstreamFormats } from '../../../src/video/formats.js';
import { type VideoFormat, type VideoRequest, videoFormats } from '../../../src/video/task.js';
import { formBody, jpegText, jsonBody, part, png, pngText } from '../samples.js';

/** A request of each format with every member that has a meaning beyond it. */
const requests: Record<VideoFormat, VideoRequest> = {
  compat: readCompatForm([
    part('model', 'film'),
    part('prompt', 'A cat'),
    part('seconds', '8'),
    part('size', '1280x720'),
    part('style', 'noir'),
    part('input_reference', png, { filename: 'cat.png', contentType: 'image/png' }),
  ]),
  vendork: readVendorkBody(
    {
      model_name: 'film',
      prompt: 'A cat',
      negative_prompt: 'dogs',
      image: `data:image/png;base64,${pngText}`,
      image_tail: jpegText,
      duration: '10',
      aspect_ratio: '9:16',
      mode: 'pro',
      cfg_scale: 0.5,
      camera_control: { type: 'simple' },
      static_mask: pngText,
      dynamic_masks: [{ mask: pngText }],
      sound: 'on',
      watermark_info: { enabled: false },
      external_task_id: 'mine',
      more: 1,
    },
    'image',
  ),
  vendorj: readVendorjSubmit({
    req_key: 'film',
    prompt: 'A cat',
    image_urls: ['https://h/first.png', 'https://h/last.png'],
    seed: 7,
    frames: 121,
    aspect_ratio: '1:1',
    more: 1,
  }),
  generic: readGenericBody({
    model: 'film',
    prompt: 'A cat',
    image: pngText,
    duration: 5.0,
    width: 720,
    height: 1280,
    fps: 30,
    seed: 7,
    n: 1,
    metadata: { negative_prompt: 'dogs', mode: 'std', cfg_scale: 0.1, camera_control: { type: 'simple' } },
    more: 1,
  }),
};

/** What the vendork format alone can say, taken out of its request so that others can be asked. */
const { compat, vendorj, generic, vendork } = requests;
const plainVendork = readVendorkBody(
  {
    ...vendork.body,
    negative_prompt: null,
    image_tail: '',
    camera_control: null,
    static_mask: null,
    dynamic_masks: null,
    sound: 'off',
  },
  'image',
);
const twoImages = readVendorkBody({ ...plainVendork.body, image_tail: jpegText }, 'image');
const oneImage = readVendorjSubmit({ ...vendorj.body, image_urls: ['https://h/first.png'] });
const plainGeneric = readGenericBody({ ...generic.body, metadata: { mode: 'std' } });

const file = { filename: 'image.png', contentType: 'image/png', data: pngText };

interface Pair {
  readonly from: VideoFormat;
  readonly to: VideoFormat;
  readonly request: VideoRequest;
  readonly path: string;
  readonly body: Record<string, unknown>;
}

const submit = '/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31';

const pairs: readonly Pair[] = [
  {
    from: 'compat',
    to: 'compat',
    request: compat,
    path: '/videos',
    body: {
      model: 'film-1',
      prompt: 'A cat',
      seconds: '8',
      size: '1280x720',
      style: 'noir',
      input_reference: { ...file, filename: 'cat.png' },
    },
  },
  {
    from: 'compat',
    to: 'vendork',
    request: compat,
    path: '/v1/videos/image2video',
    body: {
      model_name: 'film-1',
      prompt: 'A cat',
      image: pngText,
      duration: '8',
      external_task_id: 'video_1',
    },
  },
  {
    from: 'compat',
    to: 'vendorj',
    request: compat,
    path: submit,
    body: {
      req_key: 'film-1',
      prompt: 'A cat',
      binary_data_base64: [pngText],
      frames: 193,
      aspect_ratio: '16:9',
    },
  },
  {
    from: 'compat',
    to: 'generic',
    request: compat,
    path: '/video/generations',
    body: { model: 'film-1', prompt: 'A cat', image: pngText, duration: 8, width: 1280, height: 720 },
  },
  {
    from: 'vendork',
    to: 'compat',
    request: plainVendork,
    path: '/videos',
    body: { model: 'film-1', prompt: 'A cat', seconds: '10', size: '720x1280', input_reference: file },
  },
  {
    from: 'vendork',
    to: 'vendork',
    request: vendork,
    path: '/v1/videos/image2video',
    body: { ...vendork.body, model_name: 'film-1', image: pngText },
  },
  {
    from: 'vendork',
    to: 'vendorj',
    request: twoImages,
    path: submit,
    body: {
      req_key: 'film-1',
      prompt: 'A cat',
      binary_data_base64: [pngText, jpegText],
      frames: 241,
      aspect_ratio: '9:16',
    },
  },
  {
    from: 'vendork',
    to: 'generic',
    request: vendork,
    path: '/video/generations',
    body: {
      model: 'film-1',
      prompt: 'A cat',
      image: pngText,
      duration: 10,
      width: 720,
      height: 1280,
      metadata: {
        negative_prompt: 'dogs',
        image_tail: jpegText,
        mode: 'pro',
        cfg_scale: 0.5,
        camera_control: { type: 'simple' },
        static_mask: pngText,
        dynamic_masks: [{ mask: pngText }],
        sound: 'on',
        watermark_info: { enabled: false },
      },
    },
  },
  {
    from: 'vendorj',
    to: 'compat',
    request: oneImage,
    path: '/videos',
    body: {
      model: 'film-1',
      prompt: 'A cat',
      seconds: '5',
      size: '720x720',
      'input_reference[image_url]': 'https://h/first.png',
    },
  },
  {
    from: 'vendorj',
    to: 'vendork',
    request: vendorj,
    path: '/v1/videos/image2video',
    body: {
      model_name: 'film-1',
      prompt: 'A cat',
      image: 'https://h/first.png',
      image_tail: 'https://h/last.png',
      duration: '5',
      external_task_id: 'video_1',
    },
  },
  {
    from: 'vendorj',
    to: 'vendorj',
    request: vendorj,
    path: submit,
    body: { ...vendorj.body, req_key: 'film-1' },
  },
  {
    from: 'vendorj',
    to: 'generic',
    request: vendorj,
    path: '/video/generations',
    body: {
      model: 'film-1',
      prompt: 'A cat',
      image: 'https://h/first.png',
      duration: 5,
      width: 720,
      height: 720,
      seed: 7,
      metadata: { image_tail: 'https://h/last.png' },
    },
  },
  {
    from: 'generic',
    to: 'compat',
    request: plainGeneric,
    path: '/videos',
    body: { model: 'film-1', prompt: 'A cat', seconds: '5', size: '720x1280', input_reference: file },
  },
  {
    from: 'generic',
    to: 'vendork',
    request: generic,
    path: '/v1/videos/image2video',
    body: {
      model_name: 'film-1',
      prompt: 'A cat',
      negative_prompt: 'dogs',
      image: pngText,
      duration: '5',
      mode: 'std',
      cfg_scale: 0.1,
      camera_control: { type: 'simple' },
      external_task_id: 'video_1',
    },
  },
  {
    from: 'generic',
    to: 'vendorj',
    request: plainGeneric,
    path: submit,
    body: {
      req_key: 'film-1',
      prompt: 'A cat',
      binary_data_base64: [pngText],
      seed: 7,
      frames: 121,
      aspect_ratio: '9:16',
    },
  },
  {
    from: 'generic',
    to: 'generic',
    request: generic,
    path: '/video/generations',
    body: { ...generic.body, model: 'film-1' },
  },
];

test('every format is told to every upstream', async (t) => {
  t.equal(new Set(pairs.map(({ from, to }) => `${from} ${to}`)).size, videoFormats.length ** 2);
  for (const { from, to, request, path, body } of pairs) {
    const call = upstreamFormats[to].create(request, 'film-1', 'video_1');
    t.equal(request.format, from);
    t.match(call, { method: 'POST', path }, `${from} to ${to}`);
    const isForm = to === 'compat';
    t.match(call.contentType, isForm ? /^multipart\/form-data; boundary=/ : /^application\/json$/);
    t.strictSame(isForm ? formBody(call) : jsonBody(call), body, `${from} to ${to}`);
  }
});

test('every format has a client format and an upstream format, and every kind of upstream a format', async (t) => {
  t.same(Object.keys(clientFormats).sort(), [...videoFormats].sort());
  t.same(Object.keys(upstreamFormats).sort(), [...videoFormats].sort());
  t.equal(upstreamFormatOf('chat'), 'compat');
  t.equal(upstreamFormatOf('simulator'), 'compat');
  t.equal(upstreamFormatOf('vendork'), 'vendork');
  t.equal(upstreamFormatOf('vendorj'), 'vendorj');
  t.equal(upstreamFormatOf('generic'), 'generic');
});

test('a request of a text alone goes to every upstream', async (t) => {
  const request = readGenericBody({ model: 'film', prompt: 'A cat', width: 1280, height: 720 });
  const create = (to: VideoFormat) => upstreamFormats[to].create(request, 'film-1', 'video_1');
  t.strictSame(formBody(create('compat')), { model: 'film-1', prompt: 'A cat', size: '1280x720' });
  t.equal(create('vendork').path, '/v1/videos/text2video');
  t.strictSame(jsonBody(create('vendork')), {
    model_name: 'film-1',
    prompt: 'A cat',
    aspect_ratio: '16:9',
    external_task_id: 'video_1',
  });
  t.strictSame(jsonBody(create('vendorj')), { req_key: 'film-1', prompt: 'A cat', aspect_ratio: '16:9' });
});
