import { type Test, test } from 'tap';
import { costOf } from '../../support/cost.js';
import { startGateway } from '../../support/gateway.js';
import { actionPath } from '../../support/media/client-formats.js';
import { ask, type Field, file, formOf, mediaConfig } from '../../support/media/gateway.js';
import { jsonAnswer, type RawRequest, type RawUpstream, startRawUpstream } from '../../support/upstream.js';

/*
 * What an upstream of the client's own format takes is for the upstream to say; what is said in another format is
 * checked.
 */

const kinds = { compat: 'chat', generic: 'generic', vendork: 'vendork', vendorj: 'vendorj' } as const;
type Format = keyof typeof kinds;

const taken = { id: 'theirs', task_id: 'theirs', status: 'queued', data: { task_id: 'theirs' } };

/** Creations, without the questions how tasks stand that the gateway asks of its own accord. */
function madeAt({ requests }: RawUpstream): readonly RawRequest[] {
  return requests.filter(({ head }) => head.startsWith('POST ') && !head.includes('GetResult'));
}

/** A gateway with a model for each format of upstreams, and for two of them at once, `both`. */
async function start(t: Test, price: object = { perCall: 1 }) {
  const upstream = await startRawUpstream(t, ({ socket, head }) => {
    const code = head.includes('Action=') ? { code: 10_000 } : head.includes('2video') ? { code: 0 } : {};
    socket.write(jsonAnswer(200, JSON.stringify({ ...taken, ...code })));
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        Object.entries(kinds).map(([name, kind]) => [
          name,
          { kind, baseUrl: upstream.url.replace(/\/v1$/, kind === 'vendork' ? '' : '/v1') },
        ]),
      ),
      models: {
        ...Object.fromEntries(
          Object.keys(kinds).map((name) => [
            name,
            { protocols: ['video'], targets: [{ upstream: name, model: 'v' }], price },
          ]),
        ),
        both: {
          protocols: ['video'],
          targets: ['vendorj', 'compat'].map((name, priority) => ({ upstream: name, model: 'v', priority })),
        },
      },
    }),
  });
  const lastBody = (): unknown => JSON.parse((madeAt(upstream).at(-1) as RawRequest).body.toString());
  return { gateway, upstream, lastBody };
}

const paths: Readonly<Record<Format | 'image', string>> = {
  compat: '/v1/videos',
  generic: '/v1/video/generations',
  vendork: '/vendork/v1/videos/text2video',
  image: '/vendork/v1/videos/image2video',
  vendorj: actionPath('CVSync2AsyncSubmitTask'),
};

/** Bodies of each format, without the model, and what reaches the upstream where it differs. */
const passed: readonly (readonly [path: Format | 'image', body: object, sent?: object])[] = [
  ['compat', { prompt: 'a', seconds: 8 }],
  ['compat', { prompt: 'a', seconds: 4.5 }],
  ['compat', { prompt: 'a', seconds: 'auto' }],
  ['compat', { prompt: 'a', size: '720p' }],
  ['compat', { prompt: 'a', size: '16:9' }],
  ['compat', { prompt: 'a', size: 720 }],
  ['compat', { prompt: 'a', input_reference: { file_id: 'file-1' } }],
  ['compat', { prompt: 'a', input_reference: 'gs://bucket/a.png' }],
  ['compat', { prompt: 'x'.repeat(32_001) }],
  ['compat', {}],
  ['generic', { prompt: 'a', duration: 5.5, metadata: { a: 1 } }],
  ['generic', { prompt: 'a', duration: '5.5', n: '2' }, { prompt: 'a', duration: 5.5, n: 2 }],
  ['generic', { prompt: 'a', duration: -1 }],
  ['generic', { image: 'https://a.invalid/a.png' }],
  ['generic', { image: 'gs://bucket/a.png', width: '1280', fps: 2.5, seed: 'any', metadata: { a: 1 } }],
  ['generic', {}],
  ['vendork', { prompt: 'a', cfg_scale: 2, mode: 7 }],
  ['vendork', { prompt: 'a', duration: 5.5 }, { prompt: 'a', duration: '5.5' }],
  ['vendork', { prompt: 'a', image: 'https://a.invalid/a.png', duration: 5 }],
  ['image', { image_tail: 'https://a.invalid/a.png' }],
  ['image', { image: 'gs://bucket/a.png', duration: 'long', dynamic_masks: ['x'] }],
  ['vendorj', {}],
  ['vendorj', { prompt: '', frames: '25' }, { prompt: '', frames: 25 }],
  ['vendorj', { prompt: 'a', frames: 'all' }],
  ['vendorj', { image_urls: ['gs://bucket/a.png'], seed: 1.5, aspect_ratio: 7 }],
  ['vendorj', { binary_data_base64: 'iVBORw0KGgo=' }],
];

const modelNames = {
  compat: 'model',
  generic: 'model',
  vendork: 'model_name',
  image: 'model_name',
  vendorj: 'req_key',
};

test('a body reaches an upstream of its own format, whatever is in it', async (t) => {
  const { gateway, lastBody } = await start(t);
  for (const [path, body, sent = body] of passed) {
    const named = modelNames[path];
    const model = path === 'image' ? 'vendork' : path;
    const heard = await ask(gateway, 'POST', paths[path], { body: { ...body, [named]: model } });
    t.equal(heard.status, 200, `${path} ${JSON.stringify(body).slice(0, 100)}: ${heard.text}`);
    const { external_task_id: _, ...reached } = lastBody() as Record<string, unknown>;
    const { duration } = sent as { readonly duration?: unknown };
    const length = model === 'vendork' && typeof duration === 'number' ? { duration: String(duration) } : {};
    t.strictSame(reached, { ...sent, ...length, [named]: 'v' });
  }
});

test('byte for byte, with the name of the model in its place', async (t) => {
  const { gateway, upstream } = await start(t);
  const rest = '"prompt":"\\u0061", "seed": 12345678901234567890,"cfg_scale":1.0,"more":[1e3, {"x":5.00}]';
  for (const path of ['compat', 'generic', 'vendork', 'image', 'vendorj'] as const) {
    const named = modelNames[path];
    const image = path === 'image' ? '"image":"https://a.invalid/a.png",' : '';
    const bodyOf = (model: string, first = '') => `{ ${first}"${named}" :"${model}",${image}${rest} }`;
    const body = Buffer.from(bodyOf(path === 'image' ? 'vendork' : path));
    const heard = await ask(gateway, 'POST', paths[path], { body });
    t.equal(heard.status, 200, heard.text);
    t.equal(heard.headers.get('x-gateway-path'), 'spliced');
    const sent = madeAt(upstream).at(-1)?.body.toString() ?? '';
    const id = /"external_task_id":"\w+",/.exec(sent)?.[0] ?? '';
    t.equal(id !== '', named === 'model_name', 'vendork finds a task by its id');
    t.equal(sent.replace(id, ''), bodyOf('v'), path);
  }
  const mine = '{"model_name":"vendork","prompt":"a","external_task_id":"mine","duration": "5"}';
  await ask(gateway, 'POST', paths.vendork, { body: Buffer.from(mine) });
  t.equal(madeAt(upstream).at(-1)?.body.toString(), mine.replace('vendork', 'v'));
});

test('a name that a body has twice reaches the upstream once, with the value that was read', async (t) => {
  const { gateway, lastBody } = await start(t);
  for (const [body, sent] of [
    ['{"model":"compat","prompt":"a","seconds":"4","n_seconds":60,"n_seconds":4}', { n_seconds: 4 }],
    [
      '{"model":"compat","prompt":"a","seconds":"4","input":{"duration":60},"input":{"duration":4}}',
      { input: { duration: 4 } },
    ],
  ] as const) {
    const heard = await ask(gateway, 'POST', paths.compat, { body: Buffer.from(body) });
    t.equal(heard.status, 200, heard.text);
    t.strictSame(lastBody(), { model: 'v', prompt: 'a', seconds: '4', ...sent });
  }
});

test('the path that a request took is told, and a form has taken it, too', async (t) => {
  const { gateway } = await start(t);
  const body = { prompt: 'a', model: 'generic' };
  t.equal((await ask(gateway, 'POST', paths.compat, { body })).headers.get('x-gateway-path'), 'translated');
  const form = formOf([
    ['model', 'compat'],
    ['prompt', 'a'],
  ]);
  t.equal(
    (await ask(gateway, 'POST', paths.compat, { body: form })).headers.get('x-gateway-path'),
    'spliced',
  );
});

test('so does a form', async (t) => {
  const { gateway, upstream } = await start(t);
  const picture = file('a.png', 'image/png', Buffer.from('PNG'));
  const forms: readonly (readonly Field[])[] = [
    [],
    [['prompt', 'x'.repeat(32_001)]],
    [
      ['seconds', '4.5'],
      ['size', '720p'],
    ],
    [
      ['seconds', ''],
      ['size', '16:9'],
    ],
    [['input_reference[file_id]', 'file-1']],
    [
      ['input_reference', picture],
      ['input_reference', picture],
    ],
  ];
  for (const [index, fields] of forms.entries()) {
    const heard = await ask(gateway, 'POST', paths.compat, {
      body: formOf([['model', 'compat'], ...fields]),
    });
    t.equal(heard.status, 200, `${index}: ${heard.text}`);
    const sent = madeAt(upstream).at(-1)?.body.toString('latin1') ?? '';
    t.equal(sent.split('Content-Disposition').length, fields.length + 2, String(index));
  }
});

test('another format refuses it by the name of the member, and a target of the own format is asked in its place', async (t) => {
  const { gateway, upstream } = await start(t);
  const body = { prompt: 'a', input_reference: { file_id: 'file-1' } };
  const refused = await ask(gateway, 'POST', paths.compat, { body: { ...body, model: 'vendorj' } });
  t.equal(refused.status, 400);
  t.match(refused.json, { error: { code: 'unsupported_parameter', param: 'input_reference.file_id' } });
  const bare = await ask(gateway, 'POST', paths.vendorj, { body: { req_key: 'generic' } });
  t.match(bare.json, { code: 50_400, message: /'prompt'/ }, 'what is missing');
  t.equal(madeAt(upstream).length, 0);
  const made = await ask(gateway, 'POST', paths.compat, { body: { ...body, model: 'both' } });
  t.equal(made.status, 200, made.text);
  t.match(madeAt(upstream).at(-1)?.head, /^POST \/v1\/videos HTTP/);
});

test('a text2video with an image is made and asked for as one from an image', async (t) => {
  const { gateway, upstream } = await start(t);
  const body = { model: 'vendork', prompt: 'a', image: 'gs://bucket/a.png', width: 1280, height: 720 };
  const made = await ask(gateway, 'POST', paths.vendork, { body });
  t.equal(made.status, 200, made.text);
  t.match(madeAt(upstream).at(-1)?.head, /^POST \/v1\/videos\/image2video HTTP/);
  const { task_id: id } = made.json.data as { readonly task_id: string };
  await ask(gateway, 'GET', `${paths.vendork}/${id}`);
  t.match(upstream.requests.at(-1)?.head, /^GET \/v1\/videos\/image2video\/theirs HTTP/);
});

test('a shape reaches other formats in their words', async (t) => {
  const { gateway, lastBody } = await start(t);
  const body = { prompt: 'a', size: '16:9', seconds: 2.5 };
  const cases = [
    ['vendork', { aspect_ratio: '16:9', duration: '2.5' }],
    ['vendorj', { aspect_ratio: '16:9', frames: 61 }],
    ['generic', { width: 1280, height: 720, duration: 2.5 }],
  ] as const;
  for (const [model, sent] of cases) {
    const heard = await ask(gateway, 'POST', paths.compat, { body: { ...body, model } });
    t.equal(heard.status, 200, heard.text);
    t.match(lastBody(), sent);
  }
});

test('whole seconds and videos are paid for in whatever form they come, and no length that cannot be read', async (t) => {
  const { gateway, upstream } = await start(t, { perSecond: 1 });
  const cases = [
    [paths.compat, { model: 'compat', prompt: 'a', seconds: 4.5, size: '720p' }, 5],
    [paths.compat, { model: 'compat', prompt: 'a', seconds: 0.001 }, 1],
    [paths.generic, { model: 'generic', prompt: 'a', duration: 0.001, n: 3 }, 3],
    [paths.compat, { model: 'compat', prompt: 'a', seconds: '8' }, 8],
    [paths.generic, { model: 'generic', prompt: 'a', duration: '2.5', n: '2', cfg_scale: 2 }, 6],
    [paths.vendork, { model_name: 'vendork', prompt: 'a', duration: 10, cfg_scale: 2 }, 10],
    [paths.vendorj, { req_key: 'vendorj', frames: '241' }, 10],
    [paths.vendorj, { req_key: 'vendorj' }, 5],
  ] as const;
  let paid = 0;
  for (const [path, body, seconds] of cases) {
    const heard = await ask(gateway, 'POST', path, { body });
    t.equal(heard.status, 200, heard.text);
    await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
    paid += seconds * 1e9;
    t.equal(costOf(gateway), paid, JSON.stringify(body));
  }
  const asked = madeAt(upstream).length;
  const unread = [
    [paths.compat, { model: 'compat', prompt: 'a', seconds: 'auto' }, 'seconds'],
    [paths.compat, { model: 'compat', prompt: 'a', seconds: '60s' }, 'seconds'],
    [paths.generic, { model: 'generic', prompt: 'a', duration: -1 }, 'duration'],
    [paths.vendork, { model_name: 'vendork', prompt: 'a', duration: '1e2' }, 'duration'],
    [paths.vendorj, { req_key: 'vendorj', prompt: 'a', frames: [241] }, 'frames'],
  ] as const;
  for (const [path, body, member] of unread) {
    const heard = await ask(gateway, 'POST', path, { body });
    t.equal(heard.status, 400, JSON.stringify(body));
    t.match(heard.text, `'${member}'`);
  }
  t.equal(madeAt(upstream).length, asked);
});

test('a resolution is paid for where the upstream is told it', async (t) => {
  const { gateway } = await start(t, { perSecond: 0.1, seconds: [{ resolution: '1080p', usd: 0.3 }] });
  const named = { prompt: 'a', duration: 5, resolution: '1080p' };
  const sized = { prompt: 'a', duration: 5, width: 1920, height: 1080 };
  const cases = [
    [{ ...named, model: 'generic' }, 1.5, null],
    [{ ...named, model: 'vendork' }, 0.5, 'resolution'],
    [{ ...named, model: 'compat' }, 0.5, 'resolution'],
    [{ ...sized, model: 'compat' }, 1.5, null],
    [{ ...sized, model: 'vendork' }, 0.5, null],
  ] as const;
  let paid = 0;
  for (const [body, usd, lost] of cases) {
    const heard = await ask(gateway, 'POST', paths.generic, { body });
    t.equal(heard.status, 200, heard.text);
    t.equal(heard.headers.get('x-gateway-left-out'), lost, JSON.stringify(body));
    await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
    paid += Math.round(usd * 1e9);
    t.equal(costOf(gateway), paid, JSON.stringify(body));
  }
});

test('forms that differ in a file alone are not the same request', async (t) => {
  const { gateway, upstream } = await start(t);
  const headers = { 'idempotency-key': 'once' };
  const form = (text: string) =>
    formOf([
      ['model', 'compat'],
      ['prompt', 'a'],
      ['input_reference', file('a.png', 'image/png', Buffer.from(text))],
      ['input_reference', file('b.png', 'image/png', Buffer.from('b'))],
    ]);
  const first = await ask(gateway, 'POST', paths.compat, { body: form('a'), headers });
  t.equal(first.status, 200, first.text);
  t.equal((await ask(gateway, 'POST', paths.compat, { body: form('a'), headers })).json.id, first.json.id);
  t.equal((await ask(gateway, 'POST', paths.compat, { body: form('c'), headers })).status, 409);
  t.equal(madeAt(upstream).length, 1);
});

test('hints that another format cannot say are named', async (t) => {
  const { gateway } = await start(t);
  const hints = { fps: 24, seed: 7, metadata: { mode: 'pro', cfg_scale: 0.5 } };
  for (const [model, named] of [
    ['compat', 'fps, seed, metadata.mode, metadata.cfg_scale'],
    ['vendork', 'fps, seed'],
    ['vendorj', 'fps, metadata.mode, metadata.cfg_scale'],
    ['generic', null],
  ] as const) {
    const heard = await ask(gateway, 'POST', paths.generic, { body: { model, prompt: 'a', ...hints } });
    t.equal(heard.status, 200, heard.text);
    t.equal(heard.headers.get('x-gateway-left-out'), named, model);
  }
});
