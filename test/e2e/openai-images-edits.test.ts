import { test } from 'tap';
import { testKey } from '../support/gateway.js';
import { ask, type Field, file, formOf } from '../support/media/gateway.js';
import { inputBody, png, pngSize, startImages, styles } from '../support/media/images.js';
import { collect, createClient, raised, sdks } from '../support/sdks/openai.js';
import { simulate } from '../support/simulator.js';
import { startRawUpstream } from '../support/upstream.js';

const edits = '/v1/images/edits';
const data = `data:image/png;base64,${png.toString('base64')}`;

/** A server that has one image, and counts how often it is asked. */
async function startPictures(t: Parameters<typeof startRawUpstream>[0]) {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${png.length}\r\n\r\n`;
  return startRawUpstream(t, () => Buffer.concat([Buffer.from(head), png]));
}

for (const style of styles) {
  test(`${style}: edits of each form and with each way to give an image`, async (t) => {
    const { gateway, simulator } = await startImages(t);
    const prompt = 'make it blue';
    const settings: Field[] = [
      ['model', style],
      ['prompt', prompt],
      ['size', '128x64'],
      ['n', '2'],
    ];
    const picture = file('a.png', 'image/png', png);
    const bodies: readonly (object | FormData)[] = [
      inputBody(style, [{ image: data }, { text: prompt }], { size: '128*64', n: 2 }),
      { model: style, prompt, size: '128x64', n: 2, images: [{ image_url: data }] },
      formOf([...settings, ['image', picture]]),
      formOf([['image', picture], ...settings]),
      formOf([...settings, ['image[]', picture], ['image[]', picture]]),
      formOf([...settings, ['image', picture], ['image', picture]]),
      formOf([...settings, ['image[0]', picture], ['image[1]', picture]]),
      formOf([...settings, ['image', data]]),
    ];
    for (const [index, body] of bodies.entries()) {
      // The simulator knows a file by its name `image` alone.
      if (style === 'openai' && index >= 6) continue;
      for (const format of ['url', 'b64_json'] as const) {
        if (body instanceof FormData) body.set('response_format', format);
        const sent = body instanceof FormData ? body : { ...body, response_format: format };
        const heard = await ask(gateway, 'POST', edits, { body: sent });
        t.equal(heard.status, 200, `${index} ${format}: ${heard.text.slice(0, 300)}`);
        const images = heard.json.data as readonly Record<string, string>[];
        t.equal(images.length, 2);
        for (const image of images)
          t.strictSame(
            Object.keys(image).filter((key) => key !== 'revised_prompt'),
            [format],
          );
        const { url, b64_json: base64 } = images[0] ?? {};
        const bytes =
          url === undefined
            ? Buffer.from(base64 ?? '', 'base64')
            : (await ask({ url: '' }, 'GET', url)).bytes;
        t.strictSame(pngSize(bytes), { width: 128, height: 64 });
      }
    }
    t.ok(simulator.state().totalRequests > 0);
  });
}

test('the images reach an upstream of the other style as it takes them', async (t) => {
  const { gateway, simulator } = await startImages(t);
  const last = () => simulator.lastRequest()?.body.toString('latin1') ?? '';
  await ask(gateway, 'POST', edits, {
    body: inputBody('openai', [{ image: data }, { image: data }, { text: 'a' }], { n: 3 }),
  });
  t.equal(simulator.lastRequest()?.target, '/v1/images/edits');
  const sent = last();
  t.equal(sent.split('name="image[]"; filename="').length, 3);
  t.equal(sent.split(png.toString('latin1')).length, 3);
  t.match(sent, /name="model"\r\n\r\nsim-image\r\n/);
  t.match(sent, /name="n"\r\n\r\n3\r\n/);
  const form = formOf([
    ['model', 'dashscope'],
    ['prompt', 'a'],
    ['image', file('a.png', 'image/png', png)],
  ]);
  await ask(gateway, 'POST', edits, { body: form });
  t.strictSame(JSON.parse(last()).input.messages[0].content, [{ image: data }, { text: 'a' }]);
  const url = 'https://images.invalid/a.png';
  await ask(gateway, 'POST', edits, { body: inputBody('dashscope', [{ image: url }, { text: 'a' }]) });
  t.strictSame(
    JSON.parse(last()).input.messages[0].content,
    [{ image: url }, { text: 'a' }],
    'a URL stays one',
  );
});

test('an image in a private network is fetched only where the config allows it', async (t) => {
  const pictures = await startPictures(t);
  const simulator = await simulate(t);
  const origin = `http://127.0.0.1:${simulator.port}/v1`;
  const target = (upstream: string) => ({
    protocols: ['images'],
    targets: [{ upstream, model: 'sim-image', images: 'openai-files' }],
  });
  const { gateway } = await startImages(t, {
    upstreams: { open: { baseUrl: origin, fetchPrivate: true }, closed: { baseUrl: origin } },
    models: { open: target('open'), closed: target('closed') },
  });
  const url = `${pictures.url}/a.png`;
  const content = [{ text: 'a' }, { image: data }, { image: url }, { image: url }];
  const refused = await ask(gateway, 'POST', edits, { body: inputBody('closed', content) });
  t.equal(refused.status, 400);
  t.match(refused.json, { error: { code: 'invalid_value', param: 'input.messages[0].content[2].image' } });
  t.equal(pictures.requests.length, 0);
  t.equal(simulator.state().totalRequests, 0);
  const made = await ask(gateway, 'POST', edits, { body: inputBody('open', content) });
  t.equal(made.status, 200, made.text);
  t.equal(pictures.requests.length, 1, 'each address once');
  t.notMatch(pictures.requests[0]?.head, /upstream-key|sk-test/);
  t.equal(simulator.lastRequest()?.body.toString('latin1').split(png.toString('latin1')).length, 4);
});

test('an upstream of the family takes addresses in JSON itself', async (t) => {
  const { gateway, simulator } = await startImages(t);
  const body = {
    model: 'openai',
    prompt: 'a',
    images: [{ image_url: 'https://images.invalid/a.png' }],
    mask: { image_url: data },
  };
  const heard = await ask(gateway, 'POST', edits, { body });
  t.equal(heard.status, 200, heard.text);
  t.strictSame(JSON.parse(simulator.lastRequest()?.body.toString() ?? ''), { ...body, model: 'sim-image' });
  t.equal(heard.headers.get('x-gateway-path'), 'spliced');
});

for (const sdk of sdks) {
  test(`${sdk.name}: images are edited, one and several, with a mask and as a stream`, async (t) => {
    const { gateway, simulator } = await startImages(t);
    const client = createClient(sdk, gateway, { apiKey: testKey });
    const picture = () => file('a.png', 'image/png', png);
    for (const style of styles) {
      const asked = { model: style, prompt: 'make it blue', size: '256x256' } as const;
      const one = await client.images.edit({ ...asked, image: picture(), response_format: 'b64_json' });
      t.strictSame(pngSize(Buffer.from(one.data?.[0]?.b64_json ?? '', 'base64')), {
        width: 256,
        height: 256,
      });
      const two = await client.images.edit({ ...asked, image: [picture(), picture()], n: 2 });
      t.equal(two.data?.length, 2);
      t.match(two.data?.[0]?.url, /^http/);
    }
    const asked = { model: 'openai', prompt: 'make it blue', image: picture(), mask: picture() } as const;
    t.ok((await client.images.edit(asked)).data?.[0]?.url);
    t.match(simulator.lastRequest()?.body.toString('latin1'), /name="mask"; filename="a.png"/);
    const masked = await raised(sdk, client.images.edit({ ...asked, model: 'dashscope' }));
    t.match(masked, { status: 400, param: 'mask', code: 'unsupported_parameter' });
    if (sdk.name === 'openai 4') return;
    const stream = await client.images.edit({ ...asked, stream: true, partial_images: 1 });
    const events = await collect(stream);
    t.strictSame(
      events.map(({ type }) => type),
      ['image_edit.partial_image', 'image_edit.completed'],
    );
  });
}

test('a wrong edit that has to be converted is refused at its place, and reaches no upstream', async (t) => {
  const { gateway, simulator } = await startImages(t);
  const picture = file('a.png', 'image/png', png);
  const named: Field[] = [
    ['model', 'dashscope'],
    ['prompt', 'a'],
  ];
  const sdk = { model: 'dashscope', prompt: 'a' };
  const wrongs: readonly (readonly [object | FormData, string | null])[] = [
    [inputBody('dashscope', [{ text: 'a' }]), 'input.messages'],
    [inputBody('dashscope', [{ image: data }]), 'input.messages'],
    [inputBody('dashscope', [{ text: 'a' }, { image: '?' }]), 'input.messages[0].content[1].image'],
    [inputBody('dashscope', [{ text: 'a' }, { image: 5 }]), 'input.messages[0].content[1].image'],
    [inputBody('dashscope', [{ text: 'a' }, { image: data }], { n: 0 }), 'parameters.n'],
    [sdk, 'images'],
    [{ ...sdk, images: [] }, 'images'],
    [{ ...sdk, images: [{}] }, 'images[0].image_url'],
    [{ ...sdk, images: [{ file_id: 'file-1' }] }, 'images[0].file_id'],
    [{ ...sdk, images: [{ image_url: '?' }] }, 'images[0].image_url'],
    [{ ...sdk, images: Array.from({ length: 17 }, () => ({ image_url: data })) }, 'images'],
    [formOf(named), 'image'],
    [formOf([...named, ['prompt', 'b'], ['image', picture]]), 'prompt'],
    [
      formOf([
        ['model', 'dashscope'],
        ['image', picture],
      ]),
      'prompt',
    ],
    [
      formOf([
        ['prompt', 'a'],
        ['image', picture],
      ]),
      'model',
    ],
    [formOf([...named, ['n', 'two'], ['image', picture]]), 'n'],
    [formOf([...named, ['n', '1001'], ['image', picture]]), 'n'],
    [formOf([...named, ['stream', 'maybe'], ['image', picture]]), 'stream'],
    [formOf([...named, ['image', picture], ['mask', picture], ['mask', picture]]), 'mask'],
    [formOf([...named, ...Array.from({ length: 17 }, () => ['image', picture] as const)]), 'image'],
    [formOf([...named, ['image', picture], ['size', picture]]), 'size'],
  ];
  for (const [index, [body, param]] of wrongs.entries()) {
    const heard = await ask(gateway, 'POST', edits, { body });
    t.equal(heard.status, 400, `${index} ${heard.text.slice(0, 300)}`);
    t.equal(simulator.state().totalRequests, 0, String(index));
    t.match(
      heard.json,
      { error: { type: 'invalid_request_error', param, message: String } },
      `${index} ${heard.text.slice(0, 300)}`,
    );
  }
  const onGeneration = await ask(gateway, 'POST', '/v1/images/generations', {
    body: formOf([...named, ['image', picture]]),
  });
  t.match(onGeneration.json, { error: { param: 'image', code: 'unsupported_parameter' } });
  t.equal(simulator.state().totalRequests, 0);
});
