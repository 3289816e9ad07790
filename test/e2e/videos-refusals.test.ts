import { test } from 'tap';
import { testKey } from '../support/gateway.js';
import { actionPath, clientFormats, vendork, vendorkAt } from '../support/media/client-formats.js';
import { ask, file, formOf, type MediaRequest, strangerKey } from '../support/media/gateway.js';
import { ended, make, onlyClientsAsk, startVideos, wires } from '../support/media/videos.js';

const submit = actionPath('CVSync2AsyncSubmitTask');
const result = actionPath('CVSync2AsyncGetResult');
const vendorkPaths = ['/vendork/v1/videos/text2video', '/kling/v1/videos/text2video'];
const image2video = ['/vendork/v1/videos/image2video', '/kling/v1/videos/image2video'];

/** A request that is refused: its path, what it sends, and the member at fault with the code of the chat family. */
type Wrong = readonly [path: string, sent: MediaRequest, param: string | null, code: string | null];

const missing = 'missing_required_parameter';
const image = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const text = (value: string): MediaRequest => ({
  body: Buffer.from(value),
  headers: { 'content-type': 'application/json' },
});

const compatWrongs: readonly Wrong[] = [
  ['/v1/videos', { body: { model: 'generic' } }, 'prompt', missing],
  ['/v1/videos', { body: { prompt: 'a' } }, 'model', missing],
  ['/v1/videos', { body: { model: 'generic', prompt: '' } }, 'prompt', null],
  ['/v1/videos', { body: { model: 'generic', prompt: 5 } }, 'prompt', null],
  ['/v1/videos', { body: { model: 'generic', prompt: 'x'.repeat(32_001) } }, 'prompt', 'invalid_value'],
  ['/v1/videos', { body: { model: 'generic', prompt: 'a', seconds: true } }, 'seconds', null],
  ['/v1/videos', { body: { model: 'generic', prompt: 'a', seconds: '0' } }, 'seconds', 'invalid_value'],
  ['/v1/videos', { body: { model: 'generic', prompt: 'a', seconds: 'four' } }, 'seconds', 'invalid_value'],
  ['/v1/videos', { body: { model: 'generic', prompt: 'a', size: '720' } }, 'size', 'invalid_value'],
  [
    '/v1/videos',
    { body: { model: 'generic', prompt: 'a', input_reference: { file_id: 'f' } } },
    'input_reference.file_id',
    'unsupported_parameter',
  ],
  [
    '/v1/videos',
    { body: { model: 'generic', prompt: 'a', input_reference: '?' } },
    'input_reference',
    'invalid_value',
  ],
  ['/v1/videos', text('{'), null, 'invalid_json'],
  ['/v1/videos', text('[]'), null, 'invalid_json'],
  ['/v1/videos', text(''), null, 'invalid_json'],
  ['/v1/videos', { body: formOf([['model', 'generic']]) }, 'prompt', missing],
  ['/v1/videos', { body: formOf([['prompt', 'a']]) }, 'model', missing],
  [
    '/v1/videos',
    {
      body: formOf([
        ['model', 'generic'],
        ['prompt', 'a'],
        ['prompt', 'b'],
      ]),
    },
    'prompt',
    'invalid_request_body',
  ],
  [
    '/v1/videos',
    {
      body: formOf([
        ['model', 'generic'],
        ['prompt', 'a'],
        ['input_reference', file('a.png', 'image/png', image)],
        ['input_reference', file('b.png', 'image/png', image)],
      ]),
    },
    'input_reference',
    'invalid_value',
  ],
];

const genericBody = { model: 'generic', prompt: 'a' };
/** Of a model whose upstream speaks another format than the path's: its own would be sent all of this. */
const sharedWrongs = (path: string, { model, ...asked }: typeof genericBody): readonly Wrong[] => [
  [path, { body: { model } }, 'prompt', missing],
  [path, { body: { prompt: 'a' } }, 'model', missing],
  [path, { body: { model, ...asked, prompt: '' } }, 'prompt', 'invalid_value'],
  [path, { body: { model, ...asked, duration: 0 } }, 'duration', 'invalid_value'],
  [path, { body: { model, ...asked, n: 1.5 } }, 'n', 'invalid_value'],
  [path, { body: { model, ...asked, duration: 'long' } }, 'duration', 'invalid_value'],
  [path, { body: { model, ...asked, width: '1' } }, 'width', null],
  [path, { body: { model, ...asked, height: -1 } }, 'height', null],
  [path, { body: { model, ...asked, fps: 0 } }, 'fps', null],
  [path, { body: { model, ...asked, metadata: [] } }, 'metadata', null],
  [path, text('{"model":'), null, 'invalid_json'],
  [path, text('null'), null, 'invalid_json'],
];

const genericWrongs: readonly Wrong[] = [
  ...sharedWrongs('/v1/video/generations', { ...genericBody, model: 'vendork' }),
  [
    '/v1/video/generations',
    { body: { ...genericBody, model: 'vendork', image: 'no base64?' } },
    'image',
    'invalid_value',
  ],
];

const vendorkWrongs: readonly Wrong[] = [
  ...vendorkPaths.flatMap((path): Wrong[] => [
    ...sharedWrongs(path, genericBody),
    [path, { body: { ...genericBody, model_name: 'vendork' } }, 'model_name', 'invalid_value'],
    [path, { body: { ...genericBody, cfg_scale: 2 } }, 'cfg_scale', null],
  ]),
  ...image2video.flatMap((path): Wrong[] => [
    [path, { body: genericBody }, 'image', missing],
    [path, { body: { ...genericBody, image: '' } }, 'image', missing],
    [path, { body: { ...genericBody, image: null } }, 'image', missing],
    [path, { body: { ...genericBody, image: '???' } }, 'image', 'invalid_value'],
  ]),
];

const vendorjWrongs: readonly Wrong[] = [
  ['/vendorj/', { body: {} }, 'Action', null],
  ['/jimeng/?Version=2022-08-31', { body: {} }, 'Action', null],
  ['/vendorj/?Action=Nothing&Version=2022-08-31', { body: {} }, 'Action', null],
  ['/vendorj/?Action=CVSync2AsyncSubmitTask', { body: {} }, 'Version', null],
  ['/vendorj/?Action=CVSync2AsyncSubmitTask&Version=latest', { body: {} }, 'Version', null],
  ['/vendorj/?Action=CVSync2AsyncSubmitTask&Version=2022-13-01', { body: {} }, 'Version', null],
  ['/jimeng/?Action=CVSync2AsyncGetResult&Version=', { body: {} }, 'Version', null],
  [submit, { body: { prompt: 'a' } }, 'req_key', null],
  [submit, { body: { req_key: 'generic' } }, 'prompt', null],
  [submit, { body: { req_key: 'generic', prompt: 7 } }, 'prompt', null],
  [
    submit,
    { body: { req_key: 'generic', prompt: 'a', binary_data_base64: 'x' } },
    'binary_data_base64',
    null,
  ],
  [submit, { body: { req_key: 'generic', binary_data_base64: ['?'] } }, 'binary_data_base64[0]', null],
  [submit, { body: { req_key: 'generic', prompt: 'a', frames: 'many' } }, 'frames', null],
  [submit, text('no'), null, null],
  [result, { body: { req_key: 'vendorj' } }, 'task_id', null],
  [result, { body: { task_id: 5 } }, 'task_id', null],
  [result, text(''), null, null],
];

test('a wrong request is answered with 400 in the words of its format, and reaches no upstream', async (t) => {
  const { gateway, simulator } = await startVideos(t);
  for (const [path, sent, param, code] of [...compatWrongs, ...genericWrongs, ...vendorkWrongs]) {
    const heard = await ask(gateway, 'POST', path, sent);
    const about = `${path} ${param}`;
    t.equal(heard.status, 400, `${about}: ${heard.text}`);
    t.match(heard.json, { error: { message: /\w/, type: 'invalid_request_error', param } }, about);
    if (code !== null) t.match(heard.json, { error: { code } }, about);
    if (param !== null) t.match((heard.json.error as { message: string }).message, `'${param}'`, about);
    t.equal(simulator.state().totalRequests, 0, about);
  }
  for (const [path, sent] of vendorkWrongs) {
    const { json } = await ask(gateway, 'POST', path, sent);
    t.ok([1200, 1201].includes(Number(json.code)), 'the number of the vendor');
    t.match(json, { message: /\w/, request_id: /^req_/, data: null });
    t.equal(json.message, (json.error as { message: string }).message);
  }
  for (const [path, sent, param] of vendorjWrongs) {
    const heard = await ask(gateway, 'POST', path, sent);
    t.equal(heard.status, 400, `${path} ${heard.text}`);
    t.match(heard.json, { code: 50_400, message: /\w/, data: {}, request_id: /^req_/ });
    if (param !== null) t.match(heard.json.message, `'${param}'`, path);
  }
  t.equal(simulator.state().totalRequests, 0);
});

test('a body of another content type is refused with what is taken, and JSON is taken under any', async (t) => {
  const { gateway, simulator } = await startVideos(t);
  const asked = { model: 'generic', model_name: 'generic', req_key: 'generic', prompt: 'a fox' };
  const paths = ['/v1/videos', '/v1/video/generations', vendorkPaths[0] ?? '', submit];
  for (const path of paths) {
    const send = (body: string, type: string) =>
      ask(gateway, 'POST', path, { body: Buffer.from(body), headers: { 'content-type': type } });
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain; charset=utf-8',
      `x/${'y'.repeat(2000)}`,
    ]) {
      const heard = await send('model=generic&prompt=a', type);
      t.equal(heard.status, 415, `${path} ${heard.text}`);
      t.match(heard.text, 'application/json');
      t.equal(heard.text.includes('multipart/form-data'), path === '/v1/videos');
      t.ok(heard.text.includes((type.split(';')[0] ?? '').slice(0, 50)));
      t.ok(heard.text.length < 700);
      t.equal((await send('[1]', type)).status, 400, 'JSON, but no object');
    }
    for (const type of ['', 'application/json', 'application/problem+json', 'text/json'])
      t.equal((await send('model=generic', type)).status, 400, type);
    t.equal(simulator.state().videosMade, 0);
  }
  const form = formOf([
    ['model', 'generic'],
    ['prompt', 'a'],
  ]);
  for (const path of paths.slice(1))
    t.equal((await ask(gateway, 'POST', path, { body: form })).status, 415, path);
  for (const path of paths) {
    for (const type of ['', 'application/x-www-form-urlencoded', 'text/plain']) {
      const body = Buffer.from(JSON.stringify(asked));
      const heard = await ask(gateway, 'POST', path, { body, headers: { 'content-type': type } });
      t.equal(heard.status, 200, `${path} ${type}: ${heard.text}`);
    }
  }
});

test('a key that is not known gets 401 on every route', async (t) => {
  const { gateway } = await startVideos(t);
  const routes: readonly (readonly [string, string])[] = [
    ['POST', '/v1/videos'],
    ['GET', '/v1/videos/video_x'],
    ['GET', '/v1/videos/video_x/content'],
    ['HEAD', '/v1/videos/video_x/content'],
    ['POST', '/v1/video/generations'],
    ['GET', '/v1/video/generations/video_x'],
    ...[...vendorkPaths, ...image2video].flatMap((path) => [
      ['POST', path] as const,
      ['GET', `${path}/video_x`] as const,
    ]),
    ...['/vendorj/', '/jimeng/'].flatMap((prefix) => [
      ['POST', actionPath('CVSync2AsyncSubmitTask', prefix)] as const,
      ['POST', actionPath('CVSync2AsyncGetResult', prefix)] as const,
    ]),
  ];
  for (const [method, path] of routes) {
    for (const key of [null, 'sk-wrong']) {
      const heard = await ask(gateway, method, path, { key });
      t.equal(heard.status, 401, `${method} ${path}`);
      if (method === 'HEAD') continue;
      if (/jimeng|vendorj/.test(path)) t.match(heard.json, { code: 50_401, message: String, data: {} });
      else t.match(heard.json, { error: { code: 'invalid_api_key', type: 'invalid_request_error' } });
      if (/kling|vendork/.test(path)) t.match(heard.json, { code: 1000, message: String });
    }
    // Not the header of this protocol.
    const wrong = await ask(gateway, method, path, { key: null, headers: { 'x-goog-api-key': testKey } });
    t.equal(wrong.status, 401, `${method} ${path}`);
  }
});

test('a model that is unknown, or of another protocol, is not found in the words of each format', async (t) => {
  const { gateway, simulator } = await startVideos(t);
  for (const clientFormat of [...clientFormats, vendorkAt('/kling/v1/videos/text2video')]) {
    const heard = await clientFormat.create(gateway, { model: 'nobody', prompt: 'a' });
    t.equal(heard.status, 404);
    if (clientFormat.format === 'vendorj') t.match(heard.json, { code: 50_404, message: /'nobody'/ });
    else t.match(heard.json, { error: { code: 'model_not_found', param: 'model' } });
    if (clientFormat.format === 'vendork') t.match(heard.json, { code: 1203 });
  }
  const other = await ask(gateway, 'POST', '/v1/chat/completions', {
    body: { model: 'compat', messages: [{ role: 'user', content: 'a' }] },
  });
  t.match(other.json, { error: { code: 'model_not_found' } });
  t.equal(simulator.state().totalRequests, 0);
});

/** Every way to ask for a task, apart from the vendorj format, which answers 200. */
const taskRoutes = (id: string): readonly (readonly [string, string])[] => [
  ['GET', `/v1/videos/${id}`],
  ['GET', `/v1/videos/${id}/content`],
  ['GET', `/v1/videos/${id}/content?variant=thumbnail`],
  ['HEAD', `/v1/videos/${id}/content`],
  ['GET', `/v1/video/generations/${id}`],
  ...[...vendorkPaths, ...image2video].map((path) => ['GET', `${path}/${id}`] as const),
];

test('a task that is not there, and one of another group, look alike on every route', async (t) => {
  onlyClientsAsk(t);
  const { gateway, simulator } = await startVideos(t);
  const id = await make(vendork, gateway, 'compat', 'a fox');
  await ended(vendork, gateway, id);
  const before = simulator.state().totalRequests;
  const strange = [
    'video_00000000000000000000000000000000',
    'video_x',
    'x'.repeat(3000),
    '%00',
    '%F0%9F%A6%8A',
    '..%2f..%2fmodels',
    'tasks',
  ];
  const asked = [...strange.map((other) => [other, testKey] as const), [id, strangerKey] as const];
  for (const [other, key] of asked) {
    for (const [method, path] of taskRoutes(other)) {
      const heard = await ask(gateway, method, path, { key });
      t.equal(heard.status, 404, `${method} ${path.slice(0, 80)}: ${heard.status} ${heard.text}`);
      if (method === 'HEAD') t.equal(heard.bytes.length, 0);
      else
        t.match(heard.json, { error: { code: 'not_found', type: 'invalid_request_error', message: String } });
      if (/kling|vendork/.test(path)) t.match(heard.json, { code: 1203, data: null });
      if (other === id) t.notMatch(heard.text, /fox|compat/);
    }
    for (const path of [result, actionPath('CVSync2AsyncGetResult', '/jimeng/')]) {
      const heard = await ask(gateway, 'POST', path, { key, body: { task_id: decodeURIComponent(other) } });
      t.equal(heard.status, 200);
      t.match(heard.json, { code: 10_000, data: { status: 'not_found' } });
      t.notOk('video_url' in (heard.json.data as object));
    }
  }
  t.equal(simulator.state().totalRequests, before, 'no upstream hears of it');
});

test('methods that a route has not are refused with those that it has', async (t) => {
  const { gateway } = await startVideos(t);
  for (const [method, path, allow] of [
    ['GET', '/v1/videos', 'POST'],
    ['DELETE', '/v1/videos/video_x', 'GET'],
    ['POST', '/v1/videos/video_x/content', 'GET, HEAD'],
    ['GET', '/vendorj/', 'POST'],
    ['PUT', '/vendork/v1/videos/text2video', 'POST'],
  ] as const) {
    const heard = await ask(gateway, method, path);
    t.equal(heard.status, 405, `${method} ${path}`);
    t.equal(heard.headers.get('allow'), allow);
  }
});

test('a refusal of the upstream is told in the format of the client, with its status', async (t) => {
  const { gateway } = await startVideos(t);
  const faulty = (status: number): string => `[[fault:status=${status} retry-after=7]] a fox`;
  for (const model of wires) {
    for (const clientFormat of clientFormats) {
      const ours = await clientFormat.create(gateway, { model, prompt: faulty(403) });
      t.equal(ours.status, 502, 'the right that is missing is the gateway’s');
      for (const status of [400, 429, 500, 503]) {
        const heard = await clientFormat.create(gateway, { model, prompt: faulty(status) });
        t.equal(heard.status, status, `${clientFormat.format} on ${model}: ${heard.text}`);
        t.match(heard.headers.get('content-type'), /^application\/json/);
        if (clientFormat.format === 'vendorj') t.match(heard.json, { code: Number, message: String });
        else if (clientFormat.format === 'vendork')
          t.match(heard.json, { code: Number, message: String, request_id: String });
        else t.match(heard.json, { error: { message: String, type: String } });
        t.equal(heard.headers.get('retry-after'), '7');
      }
    }
  }
  const form = formOf([
    ['model', 'compat'],
    ['prompt', 'a'],
    ['input_reference', file('a.txt', 'text/plain', Buffer.from('no image'))],
  ]);
  const heard = await ask(gateway, 'POST', '/v1/videos', { body: form });
  t.equal(heard.status, 400);
  t.match(heard.json, { error: { param: 'input_reference', code: 'unsupported_file_mimetype' } });
});
