import { type Test, test } from 'tap';
import { testKey } from '../support/gateway.js';
import { ask, type Heard } from '../support/media/gateway.js';
import { inputBody, pngSize, startImages, styles } from '../support/media/images.js';
import { collect, createClient, raised, sdks } from '../support/sdks/openai.js';

const generations = '/v1/images/generations';

interface Element {
  readonly url?: string;
  readonly b64_json?: string;
}

function elements({ json }: Heard): readonly Element[] {
  return (json.data ?? []) as readonly Element[];
}

async function bytesOf({ url, b64_json: base64 }: Element): Promise<Buffer> {
  if (base64 !== undefined) return Buffer.from(base64, 'base64');
  return (await ask({ url: '' }, 'GET', url ?? '')).bytes;
}

/** Of the headers of an error: the first version of the SDK has a plain object. */
function retryAfter(headers: unknown): unknown {
  return headers instanceof Headers
    ? headers.get('retry-after')
    : (headers as Record<string, string>)['retry-after'];
}

/** Holds that each element has its image as it was asked for, and gives the images. */
async function imagesIn(t: Test, heard: Heard, format: 'url' | 'b64_json'): Promise<readonly Buffer[]> {
  t.equal(heard.status, 200, heard.text.slice(0, 300));
  t.match(heard.json, { created: Number });
  for (const element of elements(heard)) {
    t.ok(format in element, `${format}: ${JSON.stringify(element).slice(0, 100)}`);
    t.notOk((format === 'url' ? 'b64_json' : 'url') in element);
  }
  return Promise.all(elements(heard).map(bytesOf));
}

for (const style of styles) {
  test(`${style}: images of both forms of a body, as URLs and as bytes`, async (t) => {
    const { gateway } = await startImages(t);
    const post = (body: object) => ask(gateway, 'POST', generations, { body });
    const spec = inputBody(style, [{ text: 'a fox' }], { size: '128*64', n: 2 });
    const sdk = { model: style, prompt: 'a fox', size: '128x64', n: 2 };
    const answers = [
      ['url', await post(spec)],
      ['url', await post({ ...spec, response_format: 'url' })],
      ['b64_json', await post({ ...spec, response_format: 'b64_json' })],
      ['url', await post(sdk)],
      ['url', await post({ ...sdk, response_format: 'url' })],
      ['b64_json', await post({ ...sdk, response_format: 'b64_json' })],
    ] as const;
    const seen = [];
    for (const [format, heard] of answers) {
      const images = await imagesIn(t, heard, format);
      t.equal(images.length, 2);
      for (const image of images) t.strictSame(pngSize(image), { width: 128, height: 64 });
      seen.push(images);
    }
    for (const images of seen) t.ok(images[0]?.equals(seen[0]?.[0] as Buffer), 'the same image every time');
  });

  test(`${style}: every documented member of the body with messages is taken`, async (t) => {
    const { gateway } = await startImages(t);
    const body = {
      model: style,
      input: {
        messages: [
          { role: 'user', content: [{ text: 'a fox' }, { text: 'in snow' }] },
          { content: [{ text: 'at night' }] },
        ],
      },
      parameters: {
        negative_prompt: 'dogs',
        prompt_extend: false,
        watermark: true,
        size: '64*128',
        own: 'kept for the same family',
      },
    };
    const heard = await ask(gateway, 'POST', generations, { body });
    const [image] = await imagesIn(t, heard, 'url');
    t.strictSame(pngSize(image as Buffer), { width: 64, height: 128 });
  });

  test(`${style}: the usage, where it is told, stands in the log`, async (t) => {
    const { gateway } = await startImages(t);
    const body = inputBody(style, [{ text: 'a fox' }], { size: '64*64' });
    const heard = await ask(gateway, 'POST', generations, { body });
    const line = await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
    t.match(line, {
      protocol: 'images',
      model: style,
      target: `${style}/sim-image`,
      status: 200,
      outcome: 'complete',
    });
    if (style === 'openai') {
      t.match(heard.json, { usage: { input_tokens: Number, output_tokens: 16, total_tokens: Number } });
      t.match(line, { inputTokens: Number, outputTokens: 16 });
    }
    t.notMatch(JSON.stringify(gateway.lines), /a fox/);
  });
}

test('a body of the other form is said in the words of the upstream', async (t) => {
  const { gateway, simulator } = await startImages(t);
  const parameters = {
    negative_prompt: 'dogs',
    prompt_extend: false,
    watermark: true,
    size: '64*128',
    n: 2,
    own: 1,
  };
  await ask(gateway, 'POST', generations, { body: inputBody('openai', [{ text: 'a fox' }], parameters) });
  const openai = simulator.lastRequest();
  t.equal(openai?.target, '/v1/images/generations');
  t.strictSame(JSON.parse(openai?.body.toString() ?? ''), {
    model: 'sim-image',
    prompt: 'a fox\n\nThe image must not show: dogs',
    n: 2,
    size: '64x128',
  });
  await ask(gateway, 'POST', generations, {
    body: { model: 'dashscope', prompt: 'a fox', size: '64x128', n: 2, user: 'me' },
  });
  const dashscope = simulator.lastRequest();
  t.equal(dashscope?.target, '/api/v1/services/aigc/multimodal-generation/generation');
  t.strictSame(JSON.parse(dashscope?.body.toString() ?? ''), {
    model: 'sim-image',
    input: { messages: [{ role: 'user', content: [{ text: 'a fox' }] }] },
    parameters: { size: '64*128', n: 2 },
  });
  await ask(gateway, 'POST', generations, { body: inputBody('dashscope', [{ text: 'a fox' }], parameters) });
  t.strictSame(JSON.parse(simulator.lastRequest()?.body.toString() ?? '').parameters, parameters);
});

for (const sdk of sdks) {
  test(`${sdk.name}: images are made, as URLs and as bytes, by both styles of upstreams`, async (t) => {
    const { gateway } = await startImages(t);
    const client = createClient(sdk, gateway, { apiKey: testKey });
    for (const style of styles) {
      const asked = { model: style, prompt: 'a fox', size: '256x256', n: 2 } as const;
      const made = await client.images.generate(asked);
      t.match(made, { created: Number });
      t.equal(made.data?.length, 2);
      const url = await bytesOf((made.data?.[0] ?? {}) as Element);
      const encoded = await client.images.generate({ ...asked, response_format: 'b64_json' });
      const image = Buffer.from(encoded.data?.[0]?.b64_json ?? '', 'base64');
      t.strictSame(pngSize(image), { width: 256, height: 256 });
      t.ok(image.equals(url), 'the same image');
      t.equal(encoded.data?.[1]?.url, undefined);
    }
  });

  test(`${sdk.name}: a stream of images passes through`, async (t) => {
    const { gateway } = await startImages(t);
    const client = createClient(sdk, gateway, { apiKey: testKey });
    const asked = {
      model: 'openai',
      prompt: 'a fox',
      size: '256x256',
      stream: true,
      partial_images: 2,
    } as const;
    const stream = await client.images.generate(asked);
    const events = await collect(stream as AsyncIterable<Record<string, unknown>>);
    if (sdk.name !== 'openai 4') {
      t.strictSame(
        events.map(({ type }) => type),
        ['image_generation.partial_image', 'image_generation.partial_image', 'image_generation.completed'],
      );
      t.match(events.at(-1), { b64_json: /^iVBOR/, usage: { output_tokens: Number } });
      t.match(await gateway.line(({ protocol }) => protocol === 'images'), {
        outcome: 'complete',
        outputTokens: Number,
      });
    }
    const refused = await raised(
      sdk,
      client.images.generate({ ...asked, model: 'dashscope' }) as PromiseLike<unknown>,
    );
    t.match(refused, { status: 400, param: 'stream', code: 'unsupported_parameter' });
  });

  test(`${sdk.name}: refusals of both styles of upstreams are errors of the SDK`, async (t) => {
    const { gateway } = await startImages(t);
    const client = createClient(sdk, gateway, { apiKey: testKey });
    for (const style of styles) {
      for (const status of [400, 429, 500, 503]) {
        const prompt = `[[fault:status=${status} retry-after=7]] a fox`;
        const error = await raised(sdk, client.images.generate({ model: style, prompt }));
        t.equal(error.status, status, style);
        t.match(error.message, /\w/);
        if (status === 429) t.ok(error instanceof sdk.module.RateLimitError);
        t.equal(retryAfter(error.headers), '7');
      }
      const ours = client.images.generate({ model: style, prompt: '[[fault:status=403]] a fox' });
      t.equal((await raised(sdk, ours)).status, 502, 'the right that is missing is the gateway’s');
      const size = '4x4' as '256x256';
      const wrong = await raised(sdk, client.images.generate({ model: style, prompt: 'a fox', size }));
      t.equal(wrong.status, 400);
    }
    t.match(await raised(sdk, client.images.generate({ model: 'nobody', prompt: 'a' })), {
      status: 404,
      code: 'model_not_found',
      param: 'model',
    });
    const nobody = createClient(sdk, gateway, { apiKey: 'sk-nobody' });
    t.match(await raised(sdk, nobody.images.generate({ model: 'openai', prompt: 'a' })), { status: 401 });
  });
}

test('a wrong body that has to be converted is refused at its place, and reaches no upstream', async (t) => {
  const { gateway, simulator } = await startImages(t);
  const sdk = { model: 'dashscope', prompt: 'a' };
  const spec = inputBody('dashscope', [{ text: 'a' }]);
  const wrongs: readonly (readonly [object, string | null])[] = [
    [{}, 'prompt'],
    [{ model: 'dashscope' }, 'prompt'],
    [{ prompt: 'a' }, 'model'],
    [{ ...sdk, ...spec }, 'input'],
    [{ ...sdk, prompt: '' }, 'prompt'],
    [{ ...sdk, prompt: 'x'.repeat(32_001) }, 'prompt'],
    [{ ...sdk, n: 0 }, 'n'],
    [{ ...sdk, n: 1001 }, 'n'],
    [{ ...sdk, response_format: 'png' }, 'response_format'],
    [{ ...sdk, stream: 'yes' }, 'stream'],
    [{ ...sdk, images: [{ image_url: 'https://a.invalid' }] }, 'images'],
    [{ ...spec, model: undefined }, 'model'],
    [{ ...spec, input: {} }, 'input.messages'],
    [{ ...spec, input: { messages: [] } }, 'input.messages'],
    [{ ...spec, input: { messages: [{ content: [] }] } }, 'input.messages'],
    [inputBody('dashscope', [{ text: 5 }]), 'input.messages[0].content[0].text'],
    [inputBody('dashscope', [{}]), 'input.messages[0].content[0]'],
    [
      inputBody('dashscope', [{ text: 'a', image: 'https://a.invalid' }]),
      'input.messages[0].content[0].image',
    ],
    [{ ...spec, parameters: { watermark: 'no' } }, 'parameters.watermark'],
    [{ ...spec, parameters: { prompt_extend: 1 } }, 'parameters.prompt_extend'],
    [{ ...spec, parameters: { negative_prompt: 1 } }, 'parameters.negative_prompt'],
    [{ ...spec, stream: true }, 'stream'],
    [{ model: 'dashscope', messages: [] }, 'messages'],
  ];
  for (const [body, param] of wrongs) {
    const heard = await ask(gateway, 'POST', generations, { body });
    t.equal(heard.status, 400, JSON.stringify(body).slice(0, 200));
    t.match(
      heard.json,
      { error: { type: 'invalid_request_error', param, message: String } },
      heard.text.slice(0, 300),
    );
  }
  const headers = { 'content-type': 'application/json' };
  for (const text of ['', '{', '[]', 'null', '"a"']) {
    const heard = await ask(gateway, 'POST', generations, { body: Buffer.from(text), headers });
    t.equal(heard.status, 400, text);
  }
  t.equal(simulator.state().totalRequests, 0);
});
