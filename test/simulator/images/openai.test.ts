import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { simulate } from '../../support/simulator.js';
import { type Field, file, type Given, get, originOf, postForm, postJson } from '../media-ask.js';

const generations = '/v1/images/generations';
const edits = '/v1/images/edits';
const size = '64x48';
const body = (more: object = {}): object => ({ model: 'sim-image', prompt: 'a fox', size, ...more });
const png = (name = 'a.png', bytes = 'one'): File => file(name, 'image/png', Buffer.from(bytes));
const form: readonly Field[] = [
  ['model', 'sim-image'],
  ['prompt', 'a fox'],
  ['size', size],
];

/** Width and height that a PNG says it has. */
function sizeOf(bytes: Buffer): string {
  return bytes.toString('latin1', 1, 4) === 'PNG'
    ? `${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`
    : 'no PNG';
}

const dataOf = (heard: Given): { url: string; b64_json: string }[] => JSON.parse(heard.text).data;

test('an image comes as an address, and the address gives it', async (t) => {
  const simulator = await simulate(t);
  const heard = await postJson(simulator, generations, body());
  t.equal(heard.status, 200);
  t.match(JSON.parse(heard.text), {
    created: Number,
    data: [{ url: new RegExp(`^${originOf(simulator)}/__simulator/media/[\\w-]+\\.png$`) }],
    background: 'opaque',
    output_format: 'png',
    quality: 'high',
    size,
    usage: {
      input_tokens: 2,
      output_tokens: 12,
      total_tokens: 14,
      input_tokens_details: { text_tokens: 2, image_tokens: 0 },
    },
  });
  const image = await get(simulator, dataOf(heard)[0]?.url ?? '');
  t.equal(image.headers.get('content-type'), 'image/png');
  t.equal(sizeOf(image.bytes), size);
});

test('an address outlives the simulator that gave it', async (t) => {
  const first = await simulate(t);
  const url = dataOf(await postJson(first, generations, body()))[0]?.url ?? '';
  const image = await get(first, url);
  const second = await simulate(t);
  const again = await get(second, new URL(url).pathname);
  t.ok(again.bytes.equals(image.bytes));
  const changed = new URL(url).pathname.replace(/.(?=\.png$)/, (last) => (last === '0' ? '1' : '0'));
  t.equal((await get(second, changed)).status, 404);
});

test('as base64 it is the same image, and n of them differ', async (t) => {
  const simulator = await simulate(t);
  const urls = dataOf(await postJson(simulator, generations, body({ n: 3 })));
  const heard = await postJson(simulator, generations, body({ n: 3, response_format: 'b64_json' }));
  t.match(JSON.parse(heard.text), {
    created: Number,
    output_format: 'png',
    size,
    usage: { output_tokens: 36 },
  });
  const found = dataOf(heard);
  t.equal(new Set(found.map((one) => one.b64_json)).size, 3);
  for (const [index, { b64_json: encoded }] of found.entries()) {
    t.notOk('url' in (found[index] ?? {}));
    const image = await get(simulator, urls[index]?.url ?? '');
    t.ok(image.bytes.equals(Buffer.from(encoded, 'base64')));
  }
});

test('a large one comes whole', async (t) => {
  const simulator = await simulate(t);
  const large = { size: '1536x1024', response_format: 'b64_json' };
  const heard = await postJson(simulator, generations, body(large));
  t.equal(sizeOf(Buffer.from(dataOf(heard)[0]?.b64_json ?? '', 'base64')), '1536x1024');
  const automatic = await postJson(simulator, generations, body({ size: 'auto' }));
  t.equal(JSON.parse(automatic.text).size, '1024x1024');
});

test('a stream has partial images, then the whole one', async (t) => {
  const simulator = await simulate(t);
  const heard = await postJson(simulator, generations, body({ stream: true, partial_images: 2 }));
  t.match(heard.headers.get('content-type'), /^text\/event-stream/);
  t.strictSame(
    heard.events.map((event) => [event.type, event.partial_image_index]),
    [
      ['image_generation.partial_image', 0],
      ['image_generation.partial_image', 1],
      ['image_generation.completed', undefined],
    ],
  );
  t.match(heard.events[2], { created_at: Number, size, usage: { total_tokens: 14 } });
  for (const event of heard.events) {
    t.equal(sizeOf(Buffer.from(String(event.b64_json), 'base64')), size);
  }
  const edited = await postForm(simulator, edits, [...form, ['image', png()], ['stream', 'true']]);
  t.strictSame(
    edited.events.map((event) => event.type),
    ['image_edit.completed'],
  );
});

test('an edit takes one file, several files, a mask, or addresses in JSON', async (t) => {
  const simulator = await simulate(t);
  const given: readonly (readonly Field[])[] = [
    [['image', png()]],
    [
      ['image[]', png()],
      ['image[]', png('b.png', 'two')],
    ],
    [
      ['image', png()],
      ['mask', png('mask.png', 'three')],
      ['n', '2'],
    ],
  ];
  const urls: string[] = [];
  for (const more of given) {
    const heard = await postForm(simulator, edits, [...form, ...more]);
    t.equal(heard.status, 200, heard.text);
    t.ok(JSON.parse(heard.text).usage.input_tokens_details.image_tokens > 0);
    urls.push(...dataOf(heard).map((one) => one.url));
  }
  t.equal(urls.length, 4);
  t.equal(new Set(urls).size, 4, 'the images that are given count');
  const images = [{ image_url: 'https://example.com/a.png' }, { image_url: 'data:image/png;base64,AAAA' }];
  const heard = await postJson(simulator, edits, body({ images, mask: { file_id: 'file-1' } }));
  t.equal(heard.status, 200);
  t.equal(dataOf(heard).length, 1);
});

const refusedOfBoth: readonly [object, number, string][] = [
  [{ model: undefined }, 400, 'model'],
  [{ model: 'nope' }, 404, 'model'],
  [{ prompt: undefined }, 400, 'prompt'],
  [{ prompt: '' }, 400, 'prompt'],
  [{ prompt: 'x'.repeat(32_001) }, 400, 'prompt'],
  [{ n: 0 }, 400, 'n'],
  [{ n: 11 }, 400, 'n'],
  [{ n: '2' }, 400, 'n'],
  [{ size: '1024*1024' }, 400, 'size'],
  [{ size: '8x8' }, 400, 'size'],
  [{ size: 'large' }, 400, 'size'],
  [{ response_format: 'png' }, 400, 'response_format'],
  [{ output_format: 'webp' }, 400, 'output_format'],
  [{ output_compression: 50 }, 400, 'output_compression'],
  [{ quality: 'best' }, 400, 'quality'],
  [{ background: 'red' }, 400, 'background'],
  [{ partial_images: 4 }, 400, 'partial_images'],
  [{ stream: 'true' }, 400, 'stream'],
  [{ input: { messages: [] } }, 400, 'input'],
  [{ negative_prompt: 'red' }, 400, 'negative_prompt'],
];

async function refuses(simulator: Simulator, path: string, sent: object): Promise<[number, string]> {
  const heard = await postJson(simulator, path, sent);
  return [heard.status, JSON.parse(heard.text).error?.param];
}

test('what the real one refuses is refused, with the parameter', async (t) => {
  const simulator = await simulate(t);
  const images = [{ image_url: 'https://example.com/a.png' }];
  for (const [more, status, param] of refusedOfBoth) {
    const shown = JSON.stringify(more).slice(0, 80);
    t.strictSame(await refuses(simulator, generations, body(more)), [status, param], shown);
    t.strictSame(await refuses(simulator, edits, body({ images, ...more })), [status, param], shown);
  }
  const ofOne: readonly [string, object, string][] = [
    [generations, { images }, 'images'],
    [generations, { style: 'grim' }, 'style'],
    [edits, {}, 'images'],
    [edits, { images: [] }, 'images'],
    [edits, { images: Array(17).fill(images[0]) }, 'images'],
    [edits, { images: [{ image_url: 'ftp://example.com/a.png' }] }, 'images[0].image_url'],
    [edits, { images, mask: { image_url: 'data:text/plain,a' } }, 'mask.image_url'],
  ];
  for (const [path, more, param] of ofOne) {
    t.strictSame(await refuses(simulator, path, body(more)), [400, param], JSON.stringify(more).slice(0, 80));
  }
});

test('a form is refused for a generation, and files that are no images for an edit', async (t) => {
  const simulator = await simulate(t);
  t.equal((await postForm(simulator, generations, form)).status, 400);
  const refused: readonly [readonly Field[], string][] = [
    [[], 'image'],
    [[['image', 'text']], 'image'],
    [[['image', file('a.png', '')]], 'image'],
    [[['image', file('a.txt', 'text/plain')]], 'image'],
    [[['image', file('a.png', 'image/png', Buffer.alloc(0))]], 'image'],
    [
      [
        ['image', png()],
        ['mask', png()],
        ['mask', png()],
      ],
      'mask',
    ],
    [
      [
        ['image', png()],
        ['n', 'two'],
      ],
      'n',
    ],
    [
      [
        ['image', png()],
        ['input', '{}'],
      ],
      'input',
    ],
  ];
  for (const [more, param] of refused) {
    const heard = await postForm(simulator, edits, [...form, ...more]);
    t.equal(heard.status, 400, param);
    t.equal(JSON.parse(heard.text).error.param, param);
  }
});

test('faults of the answer and of the address are asked for in the prompt', async (t) => {
  const simulator = await simulate(t);
  const failed = await postJson(simulator, generations, body({ prompt: '[[fault:status=500]] a fox' }));
  t.equal(failed.status, 500);
  const prompt = '[[content:status=503 times=1]] a fox';
  const url = dataOf(await postJson(simulator, generations, body({ prompt })))[0]?.url ?? '';
  t.equal((await get(simulator, url)).status, 503);
  const image = await get(simulator, url);
  t.equal(sizeOf(image.bytes), size);
  const broken = await postJson(
    simulator,
    generations,
    body({ prompt: '[[fault:error-event after=1]] a fox', stream: true, partial_images: 3 }),
  );
  t.equal(broken.events.length, 2);
});
