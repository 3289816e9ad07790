import { test } from 'tap';
import { encodeDashscope, unsupportedByDashscope } from '../../../src/protocols/images/encode-dashscope.js';
import type { ImageRequest } from '../../../src/protocols/images/request.js';
import { imageUrl, jsonOf, plain, png, pngUrl } from './samples.js';

const mask = { kind: 'bytes', bytes: png, mediaType: 'image/png', filename: null, at: 'mask' } as const;

test('a generation is one message of the user', async (t) => {
  const call = encodeDashscope({ ...plain, prompt: 'Ein „Hut“ "x"\n' }, 'qwen-image');
  t.match(call, {
    path: '/services/aigc/multimodal-generation/generation',
    contentType: 'application/json',
  });
  t.strictSame(jsonOf(call.body), {
    model: 'qwen-image',
    input: { messages: [{ role: 'user', content: [{ text: 'Ein „Hut“ "x"\n' }] }] },
    parameters: {},
  });
});

test('every setting that it has a word for', async (t) => {
  const call = encodeDashscope(
    {
      ...plain,
      negativePrompt: 'dogs',
      promptExtend: false,
      watermark: true,
      size: { width: 1328, height: 928 },
      count: 2,
      responseFormat: 'b64_json',
      extras: {
        quality: 'high',
        style: 'vivid',
        user: 'u',
        background: 'opaque',
        output_format: 'png',
        seed: '7',
      },
      parameters: { other: [1] },
    },
    'u',
  );
  t.strictSame(jsonOf(call.body).parameters, {
    negative_prompt: 'dogs',
    prompt_extend: false,
    watermark: true,
    size: '1328*928',
    n: 2,
    seed: 7,
    other: [1],
  });
  t.strictSame(jsonOf(encodeDashscope({ ...plain, size: 'auto' }, 'u').body).parameters, {});
});

test('a seed is a whole number, and the one in the parameters counts', async (t) => {
  const seedOf = (extras: object, parameters = {}) =>
    (
      jsonOf(encodeDashscope({ ...plain, extras: { ...extras }, parameters }, 'u').body).parameters as {
        seed?: unknown;
      }
    ).seed;
  t.equal(seedOf({ seed: 0 }), 0);
  t.equal(seedOf({ seed: 1.5 }), undefined);
  t.equal(seedOf({ seed: 'x' }), undefined);
  t.equal(seedOf({ seed: 1 }, { seed: 2 }), 2);
});

test('images stand before the text: bytes as data URLs, URLs as they are', async (t) => {
  const images = [{ kind: 'url', url: `${imageUrl}?a="b"`, at: 'a' } as const, mask];
  const call = encodeDashscope({ ...plain, operation: 'edit', images }, 'u');
  t.strictSame(jsonOf(call.body).input, {
    messages: [
      { role: 'user', content: [{ image: `${imageUrl}?a="b"` }, { image: pngUrl }, { text: 'A cat' }] },
    ],
  });
});

test('a format of the file that it cannot make is left out and named, and PNG is what it makes', (t) => {
  const asked = (output_format: string) => ({ ...plain, extras: { output_format } });
  t.strictSame(jsonOf(encodeDashscope(asked('webp'), 'u').body).parameters, {});
  t.strictSame(unsupportedByDashscope(asked('webp')), ['output_format']);
  t.strictSame(unsupportedByDashscope(asked('png')), []);
  t.end();
});

test('what it cannot say is refused by the name that the client has for it', async (t) => {
  const refused: [Partial<ImageRequest>, string][] = [
    [{ mask }, 'mask'],
    [{ otherFiles: [{ name: 'markup', filename: 'a', contentType: null, data: png }] }, 'markup'],
    [{ stream: true }, 'stream'],
    [{ extras: { background: 'transparent' } }, 'background'],
  ];
  for (const [part, param] of refused) {
    t.throws(() => encodeDashscope({ ...plain, ...part }, 'u'), {
      name: 'GatewayError',
      kind: 'unsupported_parameter',
      status: 400,
      param,
    });
  }
});
