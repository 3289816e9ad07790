import { test } from 'tap';
import {
  type ImageAnswer,
  missingBytes,
  withBytes,
  writeAnswer,
} from '../../../src/protocols/images/answer.js';
import { imageUrl, jpeg, png, pngUrl } from './samples.js';

const base64 = png.toString('base64');
const remote = { url: imageUrl, base64: null, revisedPrompt: null, members: {} };
const inline = { url: null, base64, revisedPrompt: null, members: {} };
const answer: ImageAnswer = {
  created: 1_700_000_000,
  images: [remote],
  usage: null,
  size: null,
  outputFormat: null,
  quality: null,
  members: {},
};
const counted = { cached: 0, cacheWritten: 0, reasoning: 0 };
const now = 1_800_000_000_999;
const written = (given: ImageAnswer, format: 'url' | 'b64_json' | null) =>
  JSON.parse(writeAnswer(given, format, now)) as { data: unknown };

test('all that is known is written, and nothing else', async (t) => {
  t.strictSame(written(answer, 'url'), { created: 1_700_000_000, data: [{ url: imageUrl }] });
  const full: ImageAnswer = {
    created: null,
    images: [{ ...inline, revisedPrompt: 'A tabby', members: { size: '1x2', index: 0, error: null } }],
    usage: { ...counted, input: 50, output: 60 },
    size: '1024x1024',
    outputFormat: 'png',
    quality: 'high',
    members: {
      created: null,
      background: 'opaque',
      size: '',
      safety_identifier: 's',
      svg_usage: { model: 'm', input_tokens: 1, output_tokens: 1 },
      usage: {
        input_tokens: 49,
        output_tokens: 59,
        total_tokens: 108,
        output_tokens_details: { image_tokens: 59 },
      },
    },
  };
  t.strictSame(written(full, 'b64_json'), {
    created: 1_800_000_000,
    data: [{ b64_json: base64, revised_prompt: 'A tabby', size: '1x2', index: 0 }],
    background: 'opaque',
    output_format: 'png',
    quality: 'high',
    size: '1024x1024',
    safety_identifier: 's',
    svg_usage: { model: 'm', input_tokens: 1, output_tokens: 1 },
    // As reported: what is charged includes the tokens of the SVG.
    usage: {
      input_tokens: 49,
      output_tokens: 59,
      total_tokens: 108,
      output_tokens_details: { image_tokens: 59 },
    },
  });
  t.strictSame(written({ ...answer, usage: { ...counted, input: 1, output: 2 } }, null), {
    created: 1_700_000_000,
    data: [{ url: imageUrl }],
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  });
});

test('what its upstream writes as null is left out, and each usage has three numbers', async (t) => {
  const usage = { input_tokens: null, output_tokens: 7, prompt_tokens: 5, total_tokens: null };
  const members = { usage, error: null, own: 1 };
  t.strictSame(written({ ...answer, members, usage: { ...counted, input: 5, output: 7 } }, 'url'), {
    created: 1_700_000_000,
    data: [{ url: imageUrl }],
    own: 1,
    usage: { input_tokens: 5, output_tokens: 7, prompt_tokens: 5, total_tokens: 12 },
  });
  t.strictSame(written({ ...answer, members: { usage: null } }, 'url'), {
    created: 1_700_000_000,
    data: [{ url: imageUrl }],
  });
});

test('every image has exactly what was asked for', async (t) => {
  const both = { ...remote, base64 };
  const images = [inline, both];
  t.strictSame(written({ ...answer, images }, 'url').data, [{ url: pngUrl }, { url: imageUrl }]);
  t.strictSame(written({ ...answer, images }, 'b64_json').data, [{ b64_json: base64 }, { b64_json: base64 }]);
  t.strictSame(written({ ...answer, images: [...images, remote] }, null).data, [
    { b64_json: base64 },
    { url: imageUrl },
    { url: imageUrl },
  ]);
});

test('a data URL has the type of the bytes, or the one that the given names', async (t) => {
  const urlOf = (bytes: Buffer, outputFormat: string | null) =>
    written({ ...answer, images: [{ ...inline, base64: bytes.toString('base64') }], outputFormat }, 'url')
      .data as [{ url: string }];
  const other = Buffer.from('<svg/>');
  const types: [Buffer, string | null, string][] = [
    [jpeg, 'png', 'image/jpeg'],
    [other, 'webp', 'image/webp'],
    [other, 'svg', 'image/svg+xml'],
    [other, null, 'application/octet-stream'],
  ];
  for (const [bytes, format, type] of types) {
    t.equal(urlOf(bytes, format)[0].url, `data:${type};base64,${bytes.toString('base64')}`);
  }
});

test('what must be fetched for base64 is told once, and taken in', async (t) => {
  const images = [remote, inline, remote, { ...remote, url: 'https://h/2' }];
  const given = { ...answer, images };
  t.same(missingBytes(given, 'url'), []);
  t.same(missingBytes(given, null), []);
  t.same(missingBytes(given, 'b64_json'), [imageUrl, 'https://h/2']);
  t.throws(() => writeAnswer(given, 'b64_json', now), { name: 'GatewayError', kind: 'internal_error' });
  const fetched = withBytes(
    given,
    new Map([
      [imageUrl, png],
      ['https://h/2', jpeg],
    ]),
  );
  t.same(missingBytes(fetched, 'b64_json'), []);
  t.strictSame(
    written(fetched, 'b64_json').data,
    [png, png, png, jpeg].map((bytes) => ({ b64_json: bytes.toString('base64') })),
  );
});
