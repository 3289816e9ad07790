import { test } from 'tap';
import { createRouter, type Router, type RouterEntry } from '../../src/http/router.js';

const entry = (method: string, path: string): RouterEntry<string> => ({
  method,
  path,
  value: `${method} ${path}`,
});
const routerOf = (...routes: readonly (readonly [string, string])[]): Router<string> =>
  createRouter(routes.map(([method, path]) => entry(method, path)));
const found = (value: string, params: Record<string, string> = {}) => ({ kind: 'found', value, params });
const notFound = { kind: 'notFound' };

/** Every path of the API, with requests for it and the parameters they carry. */
const surface: readonly (readonly [string, string, string, Record<string, string>])[] = [
  ['GET', '/v1/models', '/v1/models', {}],
  ['GET', '/v1/models/{model...}', '/v1/models/org/name:free', { model: 'org/name:free' }],
  ['GET', '/v1beta/models', '/v1beta/models', {}],
  ['GET', '/v1beta/models/{model...}', '/v1beta/models/models/sim-text', { model: 'models/sim-text' }],
  ['POST', '/v1/chat/completions', '/v1/chat/completions', {}],
  ['POST', '/v1/responses', '/v1/responses', {}],
  ['GET', '/v1/responses', '/v1/responses', {}],
  ['POST', '/v1/responses/compact', '/v1/responses/compact', {}],
  ['POST', '/v1/messages', '/v1/messages', {}],
  ['POST', '/v1/messages/count_tokens', '/v1/messages/count_tokens', {}],
  [
    'POST',
    '/v1beta/models/{model}:generateContent',
    '/v1beta/models/sim-text:generateContent',
    { model: 'sim-text' },
  ],
  [
    'POST',
    '/v1beta/models/{model}:streamGenerateContent',
    '/v1beta/models/a/b:c:streamGenerateContent',
    { model: 'a/b:c' },
  ],
  [
    'POST',
    '/v1beta/models/{model}:countTokens',
    '/v1beta/models/models/x:countTokens',
    { model: 'models/x' },
  ],
  ['POST', '/v1/completions', '/v1/completions', {}],
  ['POST', '/v1/embeddings', '/v1/embeddings', {}],
  [
    'POST',
    '/v1/engines/{model}/embeddings',
    '/v1/engines/sim-embedding/embeddings',
    { model: 'sim-embedding' },
  ],
  ['POST', '/v1/rerank', '/v1/rerank', {}],
  ['POST', '/v1/moderations', '/v1/moderations', {}],
  ['POST', '/v1/audio/transcriptions', '/v1/audio/transcriptions', {}],
  ['POST', '/v1/audio/translations', '/v1/audio/translations', {}],
  ['POST', '/v1/audio/speech', '/v1/audio/speech', {}],
  ['POST', '/v1/images/generations', '/v1/images/generations', {}],
  ['POST', '/v1/images/edits', '/v1/images/edits', {}],
  ['POST', '/v1/videos', '/v1/videos', {}],
  ['GET', '/v1/videos/{task_id}', '/v1/videos/video_1', { task_id: 'video_1' }],
  ['GET', '/v1/videos/{task_id}/content', '/v1/videos/video_1/content', { task_id: 'video_1' }],
  ['POST', '/vendork/v1/videos/text2video', '/vendork/v1/videos/text2video', {}],
  ['GET', '/vendork/v1/videos/text2video/{task_id}', '/vendork/v1/videos/text2video/7', { task_id: '7' }],
  ['POST', '/vendork/v1/videos/image2video', '/vendork/v1/videos/image2video', {}],
  ['GET', '/vendork/v1/videos/image2video/{task_id}', '/vendork/v1/videos/image2video/7', { task_id: '7' }],
  ['POST', '/vendorj/', '/vendorj/', {}],
  ['POST', '/v1/video/generations', '/v1/video/generations', {}],
  ['GET', '/v1/video/generations/{task_id}', '/v1/video/generations/t-1', { task_id: 't-1' }],
  ['GET', '/v1/realtime', '/v1/realtime', {}],
  ['GET', '/v1/fine-tunes', '/v1/fine-tunes', {}],
  ['POST', '/v1/fine-tunes', '/v1/fine-tunes', {}],
  ['GET', '/v1/fine-tunes/{fine_tune_id}', '/v1/fine-tunes/ft-1', { fine_tune_id: 'ft-1' }],
  ['POST', '/v1/fine-tunes/{fine_tune_id}/cancel', '/v1/fine-tunes/ft-1/cancel', { fine_tune_id: 'ft-1' }],
  ['GET', '/v1/fine-tunes/{fine_tune_id}/events', '/v1/fine-tunes/ft-1/events', { fine_tune_id: 'ft-1' }],
  ['GET', '/v1/files', '/v1/files', {}],
  ['POST', '/v1/files', '/v1/files', {}],
  ['GET', '/v1/files/{file_id}', '/v1/files/file-1', { file_id: 'file-1' }],
  ['DELETE', '/v1/files/{file_id}', '/v1/files/file-1', { file_id: 'file-1' }],
  ['GET', '/v1/files/{file_id}/content', '/v1/files/file-1/content', { file_id: 'file-1' }],
];

test('every path of the API finds its own route', async (t) => {
  const router = createRouter(surface.map(([method, path]) => entry(method, path)));
  for (const [method, path, target, params] of surface) {
    t.strictSame(router.find(method, target), found(`${method} ${path}`, params), `${method} ${target}`);
    t.equal(router.find('PATCH', target).kind, 'methodNotAllowed', `PATCH ${target}`);
  }
});

test('every cut of a known path is another path or none', async (t) => {
  const router = createRouter(surface.map(([method, path]) => entry(method, path)));
  const complete = new Set(surface.map(([method, , target]) => `${method} ${target}`));
  for (const [method, path, target] of surface) {
    for (let length = 0; length < target.length; length++) {
      const cut = target.slice(0, length);
      const match = router.find(method, cut);
      if (match.kind !== 'found' || complete.has(`${method} ${cut}`)) continue;
      t.ok(Object.keys(match.params).length > 0, `${method} ${cut} (of ${path}) can only match a parameter`);
    }
  }
});

test('the last action of a path decides, and the model keeps the rest', async (t) => {
  const router = routerOf(
    ['POST', '/v1beta/models/{model}:generateContent'],
    ['POST', '/v1beta/models/{model}:countTokens'],
  );
  const model = (target: string) => {
    const match = router.find('POST', `/v1beta/models/${target}`);
    return match.kind === 'found' ? match.params.model : match.kind;
  };
  t.equal(model('a/b:c:generateContent'), 'a/b:c');
  t.equal(model('a:countTokens:generateContent'), 'a:countTokens');
  t.equal(model('models/a:generateContent'), 'models/a');
  t.equal(model('org%2Fname%3Afree:generateContent'), 'org/name:free');
  t.equal(model('a:generateContent:latest'), 'notFound');
  t.equal(model('a:GenerateContent'), 'notFound');
  t.equal(model('a:generateContent/b'), 'notFound');
  t.equal(model('a%3AgenerateContent'), 'notFound', 'an escaped colon is part of the name');
  t.equal(model(':generateContent'), 'notFound');
  t.equal(model('a/:generateContent'), 'notFound');
  t.equal(model('/a:generateContent'), 'notFound');
  t.equal(model('a//b:generateContent'), 'notFound');
  t.equal(model('generateContent'), 'notFound');
});

test('static text is tried before an action, an action before a parameter, the rest last', async (t) => {
  const router = routerOf(
    ['GET', '/m/{id...}'],
    ['GET', '/m/{id}'],
    ['GET', '/m/{id}:act'],
    ['GET', '/m/fixed'],
    ['GET', '/m/{id}/detail'],
  );
  t.strictSame(router.find('GET', '/m/fixed'), found('GET /m/fixed'));
  t.strictSame(router.find('GET', '/m/other:act'), found('GET /m/{id}:act', { id: 'other' }));
  t.strictSame(router.find('GET', '/m/other'), found('GET /m/{id}', { id: 'other' }));
  t.strictSame(router.find('GET', '/m/fixed/detail'), found('GET /m/{id}/detail', { id: 'fixed' }));
  t.strictSame(router.find('GET', '/m/fixed/detail/x'), found('GET /m/{id...}', { id: 'fixed/detail/x' }));
});

test('a branch that leads nowhere gives way to the next one, over several segments', async (t) => {
  const router = routerOf(
    ['GET', '/a/b/c/d'],
    ['GET', '/a/{x}/c/e'],
    ['GET', '/{y}/b/c/f'],
    ['GET', '/{y...}'],
  );
  t.strictSame(router.find('GET', '/a/b/c/e'), found('GET /a/{x}/c/e', { x: 'b' }));
  t.strictSame(router.find('GET', '/a/b/c/f'), found('GET /{y}/b/c/f', { y: 'a' }));
  t.strictSame(router.find('GET', '/a/b/c/g'), found('GET /{y...}', { y: 'a/b/c/g' }));
});

test('a known path with another method names the methods it has', async (t) => {
  const router = routerOf(['POST', '/v1/files'], ['GET', '/v1/files'], ['DELETE', '/v1/files/{id}']);
  t.strictSame(router.find('PUT', '/v1/files'), { kind: 'methodNotAllowed', allow: 'GET, POST' });
  t.strictSame(router.find('GET', '/v1/files/1'), { kind: 'methodNotAllowed', allow: 'DELETE' });
  t.strictSame(router.find('get', '/v1/files'), { kind: 'methodNotAllowed', allow: 'GET, POST' });
  t.strictSame(router.find('HEAD', '/v1/files'), { kind: 'methodNotAllowed', allow: 'GET, POST' });
});

test('HEAD is a method of its own beside GET', async (t) => {
  const router = routerOf(['GET', '/v/{id}/content'], ['HEAD', '/v/{id}/content']);
  t.strictSame(router.find('HEAD', '/v/1/content'), found('HEAD /v/{id}/content', { id: '1' }));
  t.strictSame(router.find('GET', '/v/1/content'), found('GET /v/{id}/content', { id: '1' }));
  t.strictSame(router.find('POST', '/v/1/content'), { kind: 'methodNotAllowed', allow: 'GET, HEAD' });
});

test('the most specific path decides before the method does', async (t) => {
  const router = routerOf(['POST', '/m/{model}:act'], ['GET', '/m/{model...}']);
  t.strictSame(router.find('GET', '/m/x:act'), { kind: 'methodNotAllowed', allow: 'POST' });
  t.strictSame(router.find('GET', '/m/x:other'), found('GET /m/{model...}', { model: 'x:other' }));
});

test('a trailing slash counts, and a parameter takes no empty segment', async (t) => {
  const router = routerOf(['GET', '/a/{id}'], ['GET', '/a/{id}/b'], ['GET', '/c/{rest...}'], ['POST', '/d/']);
  for (const path of [
    '/a/',
    '/a',
    '/a/x/',
    '/a//b',
    '/a/x/b/',
    '/c/',
    '/c//x',
    '/c/x/',
    '/c/x//y',
    '/d',
    '/d//',
    '',
    '/',
    '*',
  ]) {
    t.strictSame(router.find('GET', path), notFound, path);
  }
});

test('parameters are decoded once, and a malformed escape is not found', async (t) => {
  const router = routerOf(['GET', '/a/{id}'], ['GET', '/b/{rest...}']);
  t.strictSame(router.find('GET', '/a/x%2Fy'), found('GET /a/{id}', { id: 'x/y' }));
  t.strictSame(router.find('GET', '/a/%2541'), found('GET /a/{id}', { id: '%41' }));
  t.strictSame(router.find('GET', '/b/%E4%BD%A0/+'), found('GET /b/{rest...}', { rest: '你/+' }));
  for (const path of ['/a/%', '/a/%4', '/a/%zz', '/a/%ff', '/b/x/%C3'])
    t.strictSame(router.find('GET', path), notFound, path);
  t.strictSame(router.find('GET', '/%61/x'), notFound, 'static text has one spelling');
});

test('a path without parameters gives the same frozen answer each time', async (t) => {
  const router = routerOf(['GET', '/v1/models'], ['GET', '/v1/{id}']);
  const match = router.find('GET', '/v1/models');
  t.equal(router.find('GET', '/v1/models'), match);
  t.ok(Object.isFrozen(match));
  t.equal(router.find('PUT', '/v1/models'), router.find('PUT', '/v1/models'));
});

test('answers with parameters do not share them', async (t) => {
  const router = routerOf(['GET', '/a/{id}']);
  const first = router.find('GET', '/a/1');
  router.find('GET', '/a/2');
  t.strictSame(first, found('GET /a/{id}', { id: '1' }));
});

test('a table that cannot be meant is refused when it is built', async (t) => {
  const refused: readonly (readonly (readonly [string, string])[])[] = [
    [
      ['GET', '/a'],
      ['GET', '/a'],
    ],
    [
      ['GET', '/a/{id}'],
      ['GET', '/a/{id}'],
    ],
    [
      ['GET', '/a/{id}'],
      ['GET', '/a/{name}'],
    ],
    [
      ['GET', '/a/{id}'],
      ['GET', '/a/{name}/b'],
    ],
    [
      ['GET', '/a/{id}:act'],
      ['GET', '/a/{name...}'],
    ],
    [['GET', 'a']],
    [['GET', '']],
    [['GET', '/a//b']],
    [['GET', '/a/{id']],
    [['GET', '/a/id}']],
    [['GET', '/a/{}']],
    [['GET', '/a/{1d}']],
    [['GET', '/a/{__proto__}']],
    [['GET', '/a/x{id}']],
    [['GET', '/a/{id}x']],
    [['GET', '/a/{id}:']],
    [['GET', '/a/{id...}:act']],
    [['GET', '/a/{id...}/b']],
    [['GET', '/a/{id}:act/b']],
    [['GET', '/a/{id}/{id}']],
    [['GET', '/a?b']],
    [['GET', '/a b']],
    [['', '/a']],
    [['GET /', '/a']],
  ];
  for (const routes of refused) t.throws(() => routerOf(...routes), JSON.stringify(routes));
});
