import { test } from 'tap';
import { readCompatBody, readCompatForm } from '../../src/video/client-formats/compat.js';
import { readGenericBody } from '../../src/video/client-formats/generic.js';
import { readVendorjSubmit } from '../../src/video/client-formats/vendorj.js';
import { readVendorkBody } from '../../src/video/client-formats/vendork.js';
import { upstreamFormats } from '../../src/video/formats.js';
import { type VideoFormat, type VideoRequest, videoFormats } from '../../src/video/task.js';
import { leftOutMembers } from '../../src/video/unsupported.js';
import type { JsonObject } from '../../src/wire/json.js';
import { jsonBody, part, pngText } from './samples.js';

const kind = (more: JsonObject) => readVendorkBody({ model_name: 'film', prompt: 'x', ...more }, 'text');
const generic = (more: JsonObject) => readGenericBody({ model: 'film', prompt: 'x', ...more });
const compat = (more: JsonObject) => readCompatBody({ model: 'film', prompt: 'x', seconds: '5', ...more });
const form2 = (...fields: readonly string[]) =>
  readCompatForm(
    ['model', 'film', 'prompt', 'x', ...fields].flatMap((name, at, all) =>
      at % 2 === 0 ? [part(name, all[at + 1] ?? '')] : [],
    ),
  );
const vendorj = (more: JsonObject) => readVendorjSubmit({ req_key: 'film', prompt: 'x', ...more });
const lostAt = (request: VideoRequest, to: VideoFormat) =>
  leftOutMembers(request, to, upstreamFormats[to].lacks);

test('every member that a translation does not read is named, and none that it sends', async (t) => {
  const extra = { quality: 'high', user: 'u', foo: 1, empty: '', none: null };
  const cases: readonly (readonly [VideoRequest, VideoFormat, readonly string[]])[] = [
    [
      compat({ ...extra, seed: 5, negative_prompt: 'no dogs' }),
      'vendork',
      ['seed', 'quality', 'user', 'foo'],
    ],
    [compat({ ...extra, seed: 5, negative_prompt: 'no dogs' }), 'generic', ['quality', 'user', 'foo']],
    [compat({ seed: 5, aspect_ratio: '9:16', metadata: { a: 1 } }), 'vendorj', ['metadata.a']],
    [compat({ size: '1280x720', aspect_ratio: '9:16' }), 'vendorj', ['aspect_ratio']],
    [compat({ metadata: 'text' }), 'vendorj', ['metadata']],
    [
      generic({ resolution: '1080p', user: 'u', response_format: 'url', metadata: { a: 1, mode: 'pro' } }),
      'vendork',
      ['resolution', 'user', 'response_format', 'metadata.a'],
    ],
    [generic({ metadata: { watermark_info: {}, multi_shot: true } }), 'vendork', []],
    [
      generic({ metadata: { watermark_info: {}, multi_shot: false, a: 1 } }),
      'compat',
      ['metadata.watermark_info', 'metadata.a'],
    ],
    [
      kind({ watermark_info: { enabled: true }, sound: 'off', external_task_id: 'e' }),
      'compat',
      ['watermark_info'],
    ],
    [kind({ watermark_info: { enabled: true }, response_format: 'url' }), 'generic', ['response_format']],
    [
      readVendorkBody({ model_name: 'film', image: pngText, aspect_ratio: '1:1', more: 1 }, 'image'),
      'vendorj',
      ['more'],
    ],
    [
      readGenericBody({ model: 'film', image: pngText, metadata: { aspect_ratio: '1:1' } }),
      'vendork',
      ['metadata.aspect_ratio'],
    ],
    [generic({ metadata: { mode: 3, cfg_scale: '1' } }), 'vendork', ['metadata.mode', 'metadata.cfg_scale']],
    [vendorj({ seed: -1, frames: 121, more: [1] }), 'vendork', ['more']],
  ];
  for (const [request, to, lost] of cases) {
    t.strictSame(lostAt(request, to), lost, `${request.format} to ${to}`);
    t.strictSame(lostAt(request, request.format), [], `${request.format} to its own`);
  }
});

test('what only one vendor has of the content of a video is sent to it, in the place of a generic body, or refused', async (t) => {
  const own = {
    multi_shot: true,
    multi_prompt: [{ index: 1 }],
    element_list: [1],
    voice_list: [{ voice_id: 'v' }],
  };
  const camera = { template_id: 'zoom', camera_strength: 'strong' };
  const sent = (request: VideoRequest, to: VideoFormat) =>
    jsonBody(upstreamFormats[to].create(request, 'film-1', 'video_1'));
  t.match(sent(generic({ metadata: own }), 'vendork'), own);
  t.strictSame(sent(kind(own), 'generic').metadata, own);
  t.match(sent(generic({ metadata: camera }), 'vendorj'), camera);
  t.strictSame(sent(vendorj(camera), 'generic').metadata, camera);
  for (const [format, members] of [
    ['vendork', own],
    ['vendorj', camera],
  ] as const)
    for (const [name, value] of Object.entries(members)) {
      const request = format === 'vendork' ? kind({ [name]: value }) : vendorj({ [name]: value });
      for (const to of videoFormats.filter((other) => other !== format && other !== 'generic'))
        t.throws(
          () => upstreamFormats[to].create(request, 'film-1', 'video_1'),
          { name: 'GatewayError', kind: 'unsupported_parameter', param: name },
          `${name} to ${to}`,
        );
    }
  t.throws(() => sent(vendorj({ callback_url: 'https://c' }), 'vendork'), {
    name: 'GatewayError',
    param: 'callback_url',
  });
});

test('a compat body says seed, negative prompt and ratio to formats that have them', async (t) => {
  const sent = (request: VideoRequest, to: VideoFormat) =>
    jsonBody(upstreamFormats[to].create(request, 'film-1', 'video_1'));
  t.match(sent(compat({ negative_prompt: 'dogs', aspect_ratio: '9:16' }), 'vendork'), {
    negative_prompt: 'dogs',
    aspect_ratio: '9:16',
  });
  t.match(sent(compat({ seed: 5, metadata: { aspect_ratio: '9:16' } }), 'vendorj'), {
    seed: 5,
    aspect_ratio: '9:16',
  });
  const form = readCompatForm([part('model', 'film'), part('prompt', 'x'), part('seed', '-5')]);
  t.match(sent(form, 'generic'), { seed: -5 });
  t.throws(() => sent(compat({ negative_prompt: 'dogs' }), 'vendorj'), {
    name: 'GatewayError',
    param: 'negative_prompt',
  });
});

test('a seed or ratio of a compat body that is none is left out and named, as is a ratio beside a size', async (t) => {
  const seeds = [
    form2('seed', '1', 'seed', '2'),
    form2('seed', ' '),
    compat({ seed: 'random' }),
    compat({ seed: true }),
  ];
  for (const request of [...seeds, compat({ seed: 1.5 })]) {
    t.strictSame(lostAt(request, 'generic'), ['seed']);
    t.equal(jsonBody(upstreamFormats.generic.create(request, 'film-1', 'video_1')).seed, undefined);
  }
  for (const ratio of [1.5, 'auto', ['16:9']])
    for (const to of ['generic', 'vendork', 'vendorj'] as const) {
      const request = compat({ metadata: { aspect_ratio: ratio } });
      t.strictSame(lostAt(request, to), ['metadata.aspect_ratio'], to);
      t.doesNotThrow(() => upstreamFormats[to].create(request, 'film-1', 'video_1'));
    }
  const both = compat({ size: '16:9', aspect_ratio: '9:16' });
  t.strictSame(lostAt(both, 'vendork'), ['aspect_ratio']);
  t.match(jsonBody(upstreamFormats.vendork.create(both, 'film-1', 'video_1')), { aspect_ratio: '16:9' });
  t.strictSame(lostAt(compat({ size: '16:9', aspect_ratio: '16:9' }), 'vendork'), []);
  const shaped = compat({ size: '16:9', input_reference: 'https://a.invalid/a.png' });
  t.strictSame(lostAt(shaped, 'vendork'), ['size'], 'since the image decides it');
});
