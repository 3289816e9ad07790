import { test } from 'tap';
import { noParts } from '../../../src/conversation/usage.js';
import { GatewayError } from '../../../src/errors.js';
import { readDashscopeAnswer, readOpenaiAnswer } from '../../../src/protocols/images/answer-decode.js';
import { imageGenerations } from '../../../src/protocols/images/index.js';
import { cases, fc } from '../../support/seed.js';
import { imageUrl, png, pngUrl } from './samples.js';

const base64 = png.toString('base64');
const bytes = (body: unknown) => Buffer.from(JSON.stringify(body));
const image = { url: null, base64: null, revisedPrompt: null, members: {} };

test("an answer of OpenAI's API", async (t) => {
  const answer = {
    created: 1_700_000_000,
    data: [
      { b64_json: base64, revised_prompt: 'A tabby' },
      { url: imageUrl, size: '1x2' },
    ],
    background: 'opaque',
    output_format: 'png',
    quality: 'high',
    size: '1024x1024',
    usage: {
      input_tokens: 50,
      output_tokens: 50,
      total_tokens: 100,
      input_tokens_details: { text_tokens: 10, image_tokens: 40 },
    },
  };
  t.same(readOpenaiAnswer(bytes(answer)), {
    created: 1_700_000_000,
    images: [
      { url: null, base64, revisedPrompt: 'A tabby', members: {} },
      { url: imageUrl, base64: null, revisedPrompt: null, members: { size: '1x2' } },
    ],
    usage: {
      input: 50,
      output: 50,
      cached: 0,
      cacheWritten: 0,
      reasoning: 0,
      parts: { ...noParts, imageInput: 40, imageOutput: 50 },
    },
    size: '1024x1024',
    outputFormat: 'png',
    quality: 'high',
    members: without(answer, 'data'),
  });
});

test('what is billed is read of an answer for another form as of one that is passed on', async (t) => {
  const answer = {
    data: [{ url: imageUrl }],
    usage: {
      input_tokens: 50,
      output_tokens: 60,
      input_tokens_details: { text_tokens: 10, image_tokens: 40, cached_tokens: 20 },
      output_tokens_details: { image_tokens: 45, text_tokens: 15 },
      generated_images: 1,
    },
    service_tier: 'flex',
  };
  const { usage } = readOpenaiAnswer(bytes(answer));
  t.same(usage, imageGenerations.usageOf(bytes(answer)));
  t.match(usage, {
    cached: 20,
    calls: 1,
    tier: 'flex',
    parts: { imageInput: 40, imageOutput: 45 },
  });
});

function without({ ...rest }: Record<string, unknown>, name: string): Record<string, unknown> {
  delete rest[name];
  return rest;
}

test('an answer with little in it', async (t) => {
  t.same(readOpenaiAnswer(bytes({ data: [{ url: imageUrl }] })), {
    created: null,
    images: [{ ...image, url: imageUrl }],
    usage: null,
    size: null,
    outputFormat: null,
    quality: null,
    members: {},
  });
});

test('base64 is found in a data URL, wherever it stands', async (t) => {
  const data = [{ url: pngUrl }, { b64_json: pngUrl }, { url: 'x', b64_json: base64 }];
  t.same(readOpenaiAnswer(bytes({ data })).images, [
    { ...image, url: pngUrl, base64 },
    { ...image, base64 },
    { ...image, base64 },
  ]);
});

test('an answer of DashScope, with several images in its choices', async (t) => {
  const choice = (...urls: string[]) => ({
    finish_reason: 'stop',
    message: { role: 'assistant', content: urls.map((url) => ({ image: url })) },
  });
  const answer = {
    output: { choices: [choice(imageUrl, 'https://h/2'), choice('https://h/3')] },
    usage: { image_count: 3, width: 1328, height: 928 },
    request_id: 'r',
  };
  t.same(readDashscopeAnswer(bytes(answer)), {
    created: null,
    images: [imageUrl, 'https://h/2', 'https://h/3'].map((url) => ({ ...image, url })),
    usage: null,
    size: '1328x928',
    outputFormat: null,
    quality: null,
    members: {},
  });
  const input_tokens_details = { text_tokens: 3, image_tokens: 4 };
  const counted = { ...answer, usage: { input_tokens: 7, output_tokens: 8, input_tokens_details } };
  t.match(readDashscopeAnswer(bytes(counted)), {
    usage: { input: 7, output: 8 },
    members: { usage: { input_tokens_details } },
  });
});

test('DashScope errors in an answer of status 200', async (t) => {
  const failure = (code: string) => bytes({ code, message: 'No.', request_id: 'r' });
  const kinds: [string, string, number][] = [
    ['Throttling.RateQuota', 'rate_limit_exceeded', 429],
    ['rate_limit_exceeded', 'rate_limit_exceeded', 429],
    ['InvalidParameter', 'invalid_request', 400],
    ['DataInspectionFailed', 'invalid_request', 400],
    ['InternalError', 'upstream_error', 502],
  ];
  for (const [code, kind, status] of kinds)
    t.throws(
      () => readDashscopeAnswer(failure(code)),
      { kind, status, message: 'No.', source: 'upstream' },
      code,
    );
});

test("OpenAI's error in an answer of status 200", async (t) => {
  t.throws(() => readOpenaiAnswer(bytes({ error: { message: 'slow', code: 'rate_limit_exceeded' } })), {
    kind: 'rate_limit_exceeded',
    message: 'slow',
  });
  t.throws(() => readOpenaiAnswer(bytes({ error: 'broken' })), { kind: 'upstream_error', message: 'broken' });
});

test('an answer without an image is an error of the upstream', async (t) => {
  const none: unknown[] = [
    null,
    1,
    [],
    {},
    { data: [] },
    { data: [{}, { url: '' }, { url: '/i.png' }] },
    { output: {} },
  ];
  for (const body of none) {
    t.throws(() => readOpenaiAnswer(bytes(body)), {
      name: 'GatewayError',
      kind: 'upstream_error',
      status: 502,
    });
    t.throws(() => readDashscopeAnswer(bytes(body)), {
      name: 'GatewayError',
      kind: 'upstream_error',
      status: 502,
    });
  }
  t.throws(() => readOpenaiAnswer(Buffer.from('<html>')), { name: 'GatewayError', kind: 'upstream_error' });
});

const any = fc.oneof(fc.jsonValue(), fc.constantFrom(imageUrl, pngUrl, 'x', ''));
const shapes = fc.record(
  {
    created: any,
    data: fc.oneof(any, fc.array(fc.oneof(any, fc.record({ url: any, b64_json: any, revised_prompt: any })))),
    output: fc.oneof(
      any,
      fc.record({
        choices: fc.oneof(
          any,
          fc.array(
            fc.oneof(
              any,
              fc.record({
                message: fc.oneof(
                  any,
                  fc.record({ content: fc.oneof(any, fc.array(fc.record({ image: any }))) }),
                ),
              }),
            ),
          ),
        ),
      }),
    ),
    usage: fc.oneof(
      any,
      fc.record({ input_tokens: any, output_tokens: any, input_tokens_details: any, width: any }),
    ),
    error: any,
    code: any,
    message: any,
    size: any,
  },
  { requiredKeys: [] },
);

test('any JSON is an answer with images or an error of the gateway', async () => {
  fc.assert(
    fc.property(fc.oneof(shapes, fc.jsonValue()), (body) =>
      [readOpenaiAnswer, readDashscopeAnswer].every((read) => {
        try {
          return read(bytes(body)).images.every(({ url, base64: data }) => url !== null || data !== null);
        } catch (error) {
          return error instanceof GatewayError;
        }
      }),
    ),
    { numRuns: cases(500) },
  );
});
