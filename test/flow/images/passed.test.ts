import { type Test, test } from 'tap';
import { readForm } from '../../../src/wire/multipart.js';
import { costOf } from '../../support/cost.js';
import { startGateway } from '../../support/gateway.js';
import { ask, type Field, file, formOf, mediaConfig } from '../../support/media/gateway.js';
import { inputBody, png } from '../../support/media/images.js';
import { postJson } from '../../support/post-json.js';
import { chunk, jsonAnswer, lastChunk, startRawUpstream } from '../../support/upstream.js';

/*
 * What an upstream of the body's own form takes is for the upstream to say: only what is converted is checked.
 */

const streamAnswer =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const limits = { parts: 9, headerBytes: 999, fieldBytes: 999, fileBytes: 9999 };

const generations = '/v1/images/generations';
const edits = '/v1/images/edits';
const base = { model: 'm', prompt: 'a fox' };
const data = `data:image/png;base64,${png.toString('base64')}`;
const answers = {
  openai: JSON.stringify({ created: 5, data: [{ url: 'https://images.invalid/a.png' }] }),
  dashscope: JSON.stringify({
    output: { choices: [{ message: { content: [{ image: 'https://images.invalid/a.png' }] } }] },
  }),
};

type Style = 'openai' | 'openai-files' | 'dashscope';

/** A gateway whose model `m` has a target of each of these styles, in this order. */
function start(t: Test, ...styles: readonly Style[]) {
  return startAnswering(
    t,
    styles,
    styles.map((style) => answers[style === 'dashscope' ? style : 'openai']),
  );
}

/** One whose upstream does not tell where OpenAI's would how many images it has made. */
function startUntold(t: Test) {
  return startAnswering(
    t,
    ['openai'],
    [JSON.stringify({ created: 5, images: ['https://images.invalid/a.png'] })],
  );
}

async function startAnswering(t: Test, styles: readonly Style[], bodies: readonly string[]) {
  const upstreams = await Promise.all(bodies.map((body) => startRawUpstream(t, () => jsonAnswer(200, body))));
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(upstreams.map(({ url }, index) => [`u${index}`, { baseUrl: url }])),
      models: {
        m: {
          protocols: ['images'],
          targets: styles.map((images, index) => ({
            upstream: `u${index}`,
            model: 'm',
            images,
            priority: index,
          })),
          price: { perCall: 1 },
        },
      },
    }),
  });
  return { gateway, upstreams };
}

const passed: readonly (readonly [path: string, more: object])[] = [
  [generations, { size: '2K' }],
  [generations, { size: 1024, quality: 7, style: {} }],
  [generations, { image: 'https://a.invalid/a.png' }],
  [generations, { image: ['https://a.invalid/a.png', 'no image'] }],
  [generations, { images: [{ image_url: data }], mask: data }],
  [generations, { n: 11 }],
  [generations, { prompt: '' }],
  [generations, { prompt: 'x'.repeat(32_001) }],
  [generations, { prompt: ['a fox'] }],
  [generations, { response_format: 'png' }],
  [generations, { partial_images: 9, output_compression: 101 }],
  [edits, {}],
  [edits, { images: [] }],
  [edits, { images: [{ file_id: 'file-1' }], mask: { file_id: 'file-2' } }],
  [edits, { images: ['https://a.invalid/a.png'] }],
  [edits, { image: 'https://a.invalid/a.png' }],
  [edits, { image_url: 'https://a.invalid/a.png' }],
  [edits, { images: [{ image_url: 'gs://bucket/a.png' }] }],
  [edits, { images: [{ image_url: 'data:image/png;base64,!!' }] }],
  [edits, { images: Array.from({ length: 17 }, () => ({ image_url: data })) }],
];

test("a body of DashScope's form reaches it byte for byte, and one that it refuses is rewritten", async (t) => {
  const { gateway, upstreams } = await start(t, 'dashscope');
  const content =
    '[{"image":"https://images.example/1.png"},{"text":"a fox","own":1},{"image":"DATA"}]'.replace(
      'DATA',
      data,
    );
  const bodyOf = (role: string, more = '') =>
    `{ "model" : "m", "input": {"messages":[{${role}"content":${content}}${more}],"own":2},` +
    '"parameters":{"seed":18446744073709551615,"n":2} }';
  const send = async (body: string, lines = {}) => {
    const headers = { 'content-type': 'application/json', ...lines };
    const heard = await ask(gateway, 'POST', edits, { body: Buffer.from(body), headers });
    t.equal(heard.status, 200, heard.text);
    return { heard, sent: upstreams[0]?.requests.at(-1)?.body.toString() };
  };
  const own = await send(bodyOf('"role":"user",'));
  t.equal(own.sent, bodyOf('"role":"user",'));
  t.equal(own.heard.headers.get('x-gateway-left-out'), null);
  t.match(own.heard.json, { data: [{ url: 'https://images.invalid/a.png' }] });
  for (const other of [bodyOf(''), bodyOf('"role":"user",', ',{"role":"user","content":[{"text":"b"}]}')]) {
    const { sent = '' } = await send(other);
    t.match(JSON.parse(sent), { input: { messages: [{ role: 'user' }] } });
    t.equal((JSON.parse(sent) as { input: { messages: unknown[] } }).input.messages.length, 1);
  }
  const whole = JSON.parse(bodyOf('"role":"user",')) as object;
  const others = [
    [{ parameters: { size: '1024x1024' } }, { size: '1024*1024' }],
    [{ parameters: { n: 1, size: null, negative_prompt: null } }, { n: 1 }],
    [{ parameters: null, seed: 7 }, { seed: 7 }],
    [{ image: null, prompt: null, parameters: { watermark: false } }, { watermark: false }],
  ] as const;
  for (const [more, parameters] of others) {
    const { sent = '' } = await send(JSON.stringify({ ...whole, ...more }));
    const { input, ...rest } = JSON.parse(sent) as { input: object };
    t.match(input, { messages: [{ role: 'user' }] });
    t.strictSame(rest, { model: 'm', parameters }, JSON.stringify(more));
  }
});

test('a model that refuses response_format under its own name is not sent it, and the answer has the format', async (t) => {
  const image = png.toString('base64');
  const upstream = await startRawUpstream(
    t,
    jsonAnswer(200, JSON.stringify({ data: [{ b64_json: image }] })),
  );
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url } },
      models: { m: { protocols: ['images'], targets: [{ upstream: 'u', model: 'gpt-image-1' }] } },
    }),
  });
  for (const [format, data] of [
    ['b64_json', { b64_json: image }],
    ['url', { url: `data:image/png;base64,${image}` }],
  ] as const) {
    const heard = await ask(gateway, 'POST', generations, {
      body: { ...base, response_format: format, own: 1 },
    });
    t.match(heard.json, { data: [data] }, heard.text);
    const sent = JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '') as object;
    t.same(sent, { model: 'gpt-image-1', prompt: 'a fox', own: 1 });
  }
});

test('nor with an image that only such an upstream knows, and what it says of an error stays as it is', async (t) => {
  const image = png.toString('base64');
  const refusal = '{ "error": {"message":"No such file.","type":"invalid_request_error","own":1.0} }';
  const upstream = await startRawUpstream(t, ({ body }) =>
    body.includes('no-file')
      ? jsonAnswer(400, refusal)
      : jsonAnswer(200, JSON.stringify({ data: [{ b64_json: image }] })),
  );
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url } },
      models: { m: { protocols: ['images'], targets: [{ upstream: 'u', model: 'gpt-image-1' }] } },
    }),
  });
  const bodyOf = (id: string) => ({
    ...base,
    response_format: 'b64_json',
    images: [{ file_id: id }],
    own: { response_format: 1 },
  });
  const heard = await ask(gateway, 'POST', edits, { body: bodyOf('file-1') });
  t.match(heard, { status: 200, json: { data: [{ b64_json: image }] } }, heard.text);
  t.equal(heard.headers.get('x-gateway-path'), 'spliced');
  const { response_format: _, ...rest } = bodyOf('file-1');
  t.strictSame(JSON.parse(upstream.requests[0]?.body.toString() ?? ''), { ...rest, model: 'gpt-image-1' });
  const refused = await ask(gateway, 'POST', edits, { body: bodyOf('no-file') });
  t.match(refused, { status: 400, text: refusal });
});

test('nor in a stream that asks for base64, which is all that such a model sends; and only there', async (t) => {
  const event = `data: ${JSON.stringify({ type: 'image_generation.completed', b64_json: 'eA==' })}\n\n`;
  const upstream = await startRawUpstream(t, () => streamAnswer + chunk(event) + lastChunk);
  const target = { upstream: 'u', model: 'gpt-image-1' };
  const config = mediaConfig(t, {
    upstreams: { u: { baseUrl: upstream.url } },
    models: {
      m: { protocols: ['images'], targets: [target] },
      ruled: {
        protocols: ['images'],
        targets: [{ ...target, rules: { rename: { response_format: 'format' }, set: { user: 'u' } } }],
      },
      set: {
        protocols: ['images'],
        targets: [{ ...target, rules: { set: { response_format: 'b64_json' } } }],
      },
      other: { protocols: ['images'], targets: [{ upstream: 'u', model: 'other' }] },
    },
  });
  const gateway = await startGateway(t, { config });
  const rest = { prompt: 'a fox', stream: true, size: '1024*1024', quality: null };
  const cases = [
    ['m', 'b64_json', 'gpt-image-1', {}],
    ...(['url', null, '', 'png'] as const).map(
      (value) => ['m', value, 'gpt-image-1', { response_format: value }] as const,
    ),
    ['ruled', 'b64_json', 'gpt-image-1', { format: 'b64_json', user: 'u' }],
    ['set', 'b64_json', 'gpt-image-1', { response_format: 'b64_json' }],
    ['other', 'b64_json', 'other', { response_format: 'b64_json' }],
  ] as const;
  const form: Field[] = [
    ['prompt', 'a fox'],
    ['stream', 'true'],
    ['size', '1024*1024'],
    ['image', file('a.png', 'image/png', png)],
  ];
  for (const [model, value, there, more] of cases) {
    const note = `${model}, ${value}`;
    for (const path of [generations, edits]) {
      const body = { model, response_format: value, ...rest };
      const heard = await ask(gateway, 'POST', path, { body });
      t.match(heard, { status: 200, text: event }, heard.text);
      t.equal(heard.headers.get('x-gateway-left-out'), null);
      t.strictSame(
        JSON.parse(upstream.requests.at(-1)?.body.toString() ?? ''),
        { model: there, ...rest, ...more },
        note,
      );
    }
    if (model === 'ruled' || model === 'set') continue;
    const fields: Field[] = [['response_format', value ?? ''], ['model', model], ...form];
    const heard = await ask(gateway, 'POST', edits, { body: formOf(fields) });
    t.match(heard, { status: 200, text: event }, heard.text);
    const { head = '', body = Buffer.alloc(0) } = upstream.requests.at(-1) ?? {};
    const [, boundary = ''] = /boundary="?([^"\r]+)/.exec(head) ?? [];
    const sent = readForm(body, boundary, limits).map(({ name, data }) => [name, data.toString('latin1')]);
    const format = Object.hasOwn(more, 'response_format') ? [['response_format', value ?? '']] : [];
    const kept = form.slice(0, -1);
    t.strictSame(sent, [...format, ['model', there], ...kept, ['image', png.toString('latin1')]], note);
  }
});

test('a body with a prompt reaches an upstream of its form byte for byte, whatever is in it', async (t) => {
  const { gateway, upstreams } = await start(t, 'openai');
  for (const [path, more] of passed) {
    const body = JSON.stringify({ ...base, ...more });
    const heard = await ask(gateway, 'POST', path, {
      body: Buffer.from(body),
      headers: { 'content-type': 'application/json' },
    });
    t.equal(heard.status, 200, `${body.slice(0, 120)}: ${heard.text}`);
    t.equal(heard.headers.get('x-gateway-path'), 'exact', body.slice(0, 120));
    t.equal(upstreams[0]?.requests.at(-1)?.body.toString(), body);
  }
});

test('so does a form', async (t) => {
  const { gateway, upstreams } = await start(t, 'openai-files');
  const picture = file('a.png', 'image/png', png);
  const forms: readonly (readonly [path: string, fields: readonly Field[]])[] = [
    [edits, [['image', picture]]],
    [
      edits,
      [['model', 'm'] as const, ...Array.from({ length: 17 }, () => ['image[]', picture] as const)].slice(1),
    ],
    [edits, [['prompt', 'x'.repeat(32_001)]]],
    [edits, [['image', file('a.png', 'image/png', Buffer.alloc(0))]]],
    [
      edits,
      [
        ['n', '12'],
        ['size', '2K'],
        ['partial_images', 'all'],
        ['response_format', 'png'],
      ],
    ],
    [edits, [['quality', picture]]],
    [
      generations,
      [
        ['prompt', 'a'],
        ['image', picture],
        ['markup', picture],
      ],
    ],
  ];
  for (const [index, [path, fields]] of forms.entries()) {
    const heard = await ask(gateway, 'POST', path, { body: formOf([['model', 'm'], ...fields]) });
    t.equal(heard.status, 200, `${index}: ${heard.text}`);
    t.equal(heard.headers.get('x-gateway-path'), 'exact', String(index));
    const sent = upstreams[0]?.requests.at(-1)?.body.toString('latin1') ?? '';
    t.equal(sent.split('Content-Disposition').length, fields.length + 2, String(index));
  }
});

test('what is asked for is met without a look at the images', async (t) => {
  const { gateway } = await start(t, 'openai');
  const body = { ...base, response_format: 'url', images: [{ file_id: 'file-1' }] };
  const heard = await ask(gateway, 'POST', edits, { body });
  t.match(heard.json, { data: [{ url: 'https://images.invalid/a.png' }] }, heard.text);
});

test('an answer in the form that is asked for passes to the byte, as its request did', async (t) => {
  const odd = '{ "created": 5, "data": [ { "url": "https://images.invalid/a.png" , "x": 1.0 } ], "own": [] }';
  const { gateway, upstreams } = await startAnswering(t, ['openai'], [odd]);
  const body = '{ "prompt": "a fox", "response_format" : "url", "model": "m", "own": 1.0 }';
  const answer = await postJson(gateway.url + generations, body);
  t.equal(await answer.text(), odd);
  t.equal(answer.headers.get('x-gateway-path'), 'exact');
  t.equal(upstreams[0]?.requests[0]?.body.toString(), body);
});

test('a target that needs another form is passed over where the body has none', async (t) => {
  const { gateway, upstreams } = await start(t, 'dashscope', 'openai-files', 'openai');
  const body = { ...base, images: [{ file_id: 'file-1' }] };
  const heard = await ask(gateway, 'POST', edits, { body });
  t.equal(heard.status, 200, heard.text);
  t.strictSame(
    upstreams.map(({ requests }) => requests.length),
    [0, 0, 1],
  );
  t.strictSame(JSON.parse(upstreams[2]?.requests[0]?.body.toString() ?? ''), body);
  const none = await start(t, 'dashscope', 'openai-files');
  const refused = await ask(none.gateway, 'POST', edits, { body });
  t.equal(refused.status, 400);
  t.match(refused.json, { error: { code: 'unsupported_parameter', param: 'images[0].file_id' } });
});

test('a text in place of an image becomes what the upstream takes', async (t) => {
  const { gateway, upstreams } = await start(t, 'dashscope');
  const url = 'https://a.invalid/a.png';
  for (const more of [{ image: url }, { image: [url] }, { images: [url] }, { image: { image_url: url } }]) {
    const heard = await ask(gateway, 'POST', edits, { body: { ...base, ...more } });
    t.equal(heard.status, 200, heard.text);
    t.match(JSON.parse(upstreams[0]?.requests.at(-1)?.body.toString() ?? ''), {
      input: { messages: [{ content: [{ image: url }, { text: 'a fox' }] }] },
    });
  }
  const files = await start(t, 'openai-files');
  const heard = await ask(files.gateway, 'POST', edits, { body: { ...base, images: [data], mask: data } });
  t.equal(heard.status, 200, heard.text);
  const sent = files.upstreams[0]?.requests[0]?.body.toString('latin1');
  t.match(sent, /name="image"; filename="image-1\.png"/);
  t.match(sent, /name="mask"; filename="mask\.png"/);
});

test('each image that is asked for is metered, and a model that is not open is found before anything else', async (t) => {
  const { gateway } = await startUntold(t);
  const heard = await ask(gateway, 'POST', generations, { body: { ...base, n: 12, size: '2K' } });
  await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
  t.equal(costOf(gateway), 12_000_000_000);
  for (const body of [
    { ...base, model: 'nobody', images: [{ image_url: '!' }] },
    { ...inputBody('nobody', [{ text: 'a' }, { image: '!' }]) },
  ]) {
    const missing = await ask(gateway, 'POST', edits, { body });
    t.equal(missing.status, 404, missing.text);
    t.match(missing.json, { error: { code: 'model_not_found' } });
  }
});

test('a count is metered by whatever name an upstream could read it', async (t) => {
  const { gateway, upstreams } = await startUntold(t);
  const cost = () => costOf(gateway) / 1e9;
  const counts: readonly (readonly [more: object, count: number])[] = [
    [{ n: 1, parameters: { n: 10 } }, 10],
    [{ n: 3, parameters: { n: '2' } }, 3],
    [{ batch_size: 4 }, 4],
    [{ num_images: '5' }, 5],
    [{ numberOfImages: 6, n: null }, 6],
    [{ sequential_image_generation_options: { max_images: 7 } }, 7],
    [{ metadata: { parameters: { sample_count: 8 } } }, 8],
    [{ count: null, other: { n: 9 } }, 1],
  ];
  let paid = 0;
  for (const [more, count] of counts) {
    const heard = await ask(gateway, 'POST', generations, { body: { ...base, ...more } });
    t.equal(heard.status, 200, heard.text);
    await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
    paid += count;
    t.equal(cost(), paid, JSON.stringify(more));
  }
  const form = await ask(gateway, 'POST', edits, {
    body: formOf([
      ['model', 'm'],
      ['prompt', 'a fox'],
      ['image', file('a.png', 'image/png', png)],
      ['parameters[n]', '2'],
    ]),
  });
  await gateway.line(({ id }) => id === form.headers.get('x-request-id'));
  t.equal(cost(), paid + 2, form.text);
  const asked = upstreams[0]?.requests.length;
  for (const [more, at] of [
    [{ parameters: { n: 'ten' } }, 'parameters.n'],
    [{ batch_size: [10] }, 'batch_size'],
    [{ num_images: 1e9 }, 'num_images'],
  ] as const) {
    const heard = await ask(gateway, 'POST', generations, { body: { ...base, ...more } });
    t.equal(heard.status, 400, at);
    t.match(heard.json, { error: { param: at } });
  }
  const doubled = Buffer.from('{"model":"m","prompt":"a fox","batch_size":10,"batch_size":1}');
  const headers = { 'content-type': 'application/json' };
  t.match(await ask(gateway, 'POST', generations, { body: doubled, headers }), { status: 400 });
  t.equal(upstreams[0]?.requests.length, asked);
});

test('a count that cannot be metered is refused', async (t) => {
  const { gateway, upstreams } = await start(t, 'openai');
  for (const n of [0, -1, 1.5, 1001, '2', [1]]) {
    const heard = await ask(gateway, 'POST', generations, { body: { ...base, n } });
    t.equal(heard.status, 400, JSON.stringify(n));
    t.match(heard.json, { error: { param: 'n' } });
  }
  t.equal(upstreams[0]?.requests.length, 0);
});

test('what an upstream of another form is not told is named', async (t) => {
  const cases = [
    [
      { ...base, quality: 'high', style: 'vivid', user: 'u', seed: 7, n: 2, background: 'auto' },
      'dashscope',
      'quality, style, user',
    ],
    [{ ...base, 'x\r\nset-cookie: a=b\r\nx': 1, quality: null }, 'dashscope', null],
    [
      { ...inputBody('m', [{ text: 'a fox' }]), parameters: { watermark: true, n: 2, extra: 1 } },
      'openai',
      'watermark, extra',
    ],
    ...(['openai', 'dashscope'] as const).map((to) => {
      const messages = [
        { role: 'system', content: [{ text: 'Draw foxes.' }] },
        { role: 'user', content: [{ text: 'a fox' }] },
      ];
      return [{ model: 'm', input: { messages, ref_img: 'x' } }, to, 'text, input.ref_img'] as const;
    }),
    [{ ...base, quality: 'high' }, 'openai', null],
  ] as const;
  for (const [body, style, named] of cases) {
    const { gateway } = await start(t, style);
    const heard = await ask(gateway, 'POST', generations, { body });
    t.equal(heard.status, 200, heard.text);
    t.equal(heard.headers.get('x-gateway-left-out'), named);
    t.equal(heard.headers.get('set-cookie'), null);
  }
});
