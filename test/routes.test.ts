import { test } from 'tap';
import { createRouter } from '../src/http/router.js';
import {
  buildRoutes,
  methodNotAllowed,
  pathSpellings,
  servedPaths,
  socketPaths,
  unknownOperation,
  unknownUrl,
} from '../src/routes.js';

const vendors = { vendorc: ['anthropic'], vendorg: ['goog'], vendork: ['kling'], vendorj: ['jimeng'] };
const routes = buildRoutes(vendors);
const router = createRouter(
  routes.map((route) => ({ method: route.method, path: route.path, value: route })),
);

function routeOf(method: string, path: string) {
  const match = router.find(method, path);
  if (match.kind !== 'found') throw new Error(`${method} ${path}: ${match.kind}`);
  return match;
}

test('the unimplemented family is in the table, behind a bearer key', async (t) => {
  const family: readonly (readonly [string, string])[] = [
    ['GET', '/v1/fine-tunes'],
    ['POST', '/v1/fine-tunes'],
    ['GET', '/v1/fine-tunes/ft-1'],
    ['POST', '/v1/fine-tunes/ft-1/cancel'],
    ['GET', '/v1/fine-tunes/ft-1/events'],
    ['GET', '/v1/files'],
    ['POST', '/v1/files'],
    ['GET', '/v1/files/f-1'],
    ['DELETE', '/v1/files/f-1'],
    ['GET', '/v1/files/f-1/content'],
  ];
  for (const [method, path] of family) {
    t.match(
      routeOf(method, path).value,
      { operation: 'unimplemented', auth: 'bearer', protocol: null, schema: null },
      `${method} ${path}`,
    );
  }
  t.equal(routes.filter((route) => route.operation === 'unimplemented').length, family.length);
  t.strictSame(router.find('PUT', '/v1/files/f-1'), { kind: 'methodNotAllowed', allow: 'DELETE, GET' });
});

test('every endpoint that calls a model has its error format, its credentials and its schema', async (t) => {
  const google = ['google', 'generateContent', 'generateContent'] as const;
  const surface = [
    ['/v1/chat/completions', 'openai', 'bearer', 'chat', 'asked'],
    ['/v1/responses', 'openai', 'bearer', 'responses', 'asked'],
    ['/v1/responses/compact', 'openai', 'bearer', 'responses', 'never'],
    ['/v1/responses/input_tokens', 'openai', 'bearer', 'responses', 'never'],
    ['/v1/messages', 'anthropic', 'messages', 'messages', 'asked'],
    ['/v1/messages/count_tokens', 'anthropic', 'messages', 'messages', 'never'],
    ...['/v1beta/models/', '/v1/models/'].flatMap((models) => [
      [`${models}org/m:free:generateContent`, ...google, 'never'] as const,
      [`${models}m:streamGenerateContent`, ...google, 'byQuery'] as const,
      [`${models}m:countTokens`, ...google, 'never'] as const,
      [`${models}m:embedContent`, 'google', 'generateContent', 'embeddings', 'never'] as const,
      [`${models}m:batchEmbedContents`, 'google', 'generateContent', 'embeddings', 'never'] as const,
    ]),
    ['/v1/completions', 'openai', 'bearer', 'completions', 'asked'],
    ['/v1/embeddings', 'openai', 'bearer', 'embeddings', 'never'],
    ['/v1/engines/m/embeddings', 'openai', 'bearer', 'embeddings', 'never'],
    ['/v1/embed', 'openai', 'bearer', 'embeddings', 'never'],
    ['/v2/embed', 'openai', 'bearer', 'embeddings', 'never'],
    ['/v1/rerank', 'openai', 'bearer', 'rerank', 'never'],
    ['/v2/rerank', 'openai', 'bearer', 'rerank', 'never'],
    ['/v1/moderations', 'openai', 'bearer', 'moderations', 'never'],
    ['/v1/audio/speech', 'openai', 'bearer', 'audio', 'never'],
  ] as const;
  for (const [path, errorFormat, auth, protocol, stream] of surface) {
    const { value } = routeOf('POST', path);
    t.match({ ...value, schema: null, endpoint: null }, { operation: 'call', auth, protocol, stream }, path);
    t.equal(value.errorFormat.name, errorFormat, path);
    t.equal(value.endpoint?.protocol, protocol, path);
  }
  t.equal(routes.filter((route) => route.operation === 'call').length, surface.length);
  const chat = routeOf('POST', '/v1/chat/completions').value;
  t.ok(chat.schema?.check({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }));
  t.strictSame(routeOf('POST', '/v1beta/models/org/m:free:generateContent').params, { model: 'org/m:free' });
});

test('responses are shown and deleted under their ids', async (t) => {
  for (const [method, below, operation] of [
    ['GET', '', 'responseShow'],
    ['DELETE', '', 'responseDelete'],
    ['GET', '/input_items', 'responseItems'],
    ['POST', '/cancel', 'responseCancel'],
  ]) {
    const { value, params } = routeOf(method as string, `/v1/responses/resp_1${below}`);
    t.match(value, { operation, auth: 'bearer', protocol: null, schema: null, endpoint: null });
    t.strictSame(params, { response_id: 'resp_1' });
  }
  t.match(routeOf('POST', '/v1/responses/compact').value, { operation: 'call' });
});

test('media have their routes, neutral and real vendor paths alike', async (t) => {
  const surface = [
    ['POST', '/v1/audio/transcriptions', 'upload', 'openai', null],
    ['POST', '/v1/audio/translations', 'upload', 'openai', null],
    ['POST', '/v1/images/generations', 'image', 'openai', null],
    ['POST', '/v1/images/edits', 'image', 'openai', null],
    ['POST', '/v1/videos', 'videoCreate', 'openai', 'compat'],
    ['GET', '/v1/videos/video_1', 'videoShow', 'openai', 'compat'],
    ['GET', '/v1/videos/video_1/content', 'videoContent', 'openai', null],
    ['HEAD', '/v1/videos/video_1/content', 'videoContent', 'openai', null],
    ['POST', '/v1/video/generations', 'videoCreate', 'openai', 'generic'],
    ['GET', '/v1/video/generations/video_1', 'videoShow', 'openai', 'generic'],
    ...['vendork', 'kling'].flatMap((word) =>
      ['text2video', 'image2video'].flatMap((operation) => [
        ['POST', `/${word}/v1/videos/${operation}`, 'videoCreate', 'kling', 'vendork'] as const,
        ['GET', `/${word}/v1/videos/${operation}/video_1`, 'videoShow', 'kling', 'vendork'] as const,
      ]),
    ),
    ['POST', '/vendorj/', 'videoAction', 'jimeng', 'vendorj'],
    ['POST', '/jimeng/', 'videoAction', 'jimeng', 'vendorj'],
    ['POST', '/vendorj', 'videoAction', 'jimeng', 'vendorj'],
    ['POST', '/jimeng', 'videoAction', 'jimeng', 'vendorj'],
  ] as const;
  for (const [method, path, operation, errorFormat, format] of surface) {
    const { value, params } = routeOf(method, path);
    t.match({ ...value, schema: null, endpoint: null, form: null }, { operation, auth: 'bearer' }, path);
    t.equal(value.errorFormat.name, errorFormat, path);
    t.equal(value.video?.format ?? null, format, path);
    if (path.includes('video_1')) t.strictSame(params, { task_id: 'video_1' });
  }
  t.equal(routeOf('POST', '/kling/v1/videos/image2video').value.video?.operation, 'image');
  t.strictSame(router.find('PUT', '/v1/videos/video_1/content'), {
    kind: 'methodNotAllowed',
    allow: 'GET, HEAD',
  });
});

test('the model lists and single models accept what their format needs', async (t) => {
  t.match(routeOf('GET', '/v1/models').value, { operation: 'modelList', auth: 'modelList' });
  t.match(routeOf('GET', '/v1/models/org/name:free'), {
    value: { operation: 'model', auth: 'modelList' },
    params: { model: 'org/name:free' },
  });
  t.match(routeOf('GET', '/v1beta/models').value, { operation: 'googleModelList', auth: 'generateContent' });
  const single = routeOf('GET', '/v1beta/models/models/gemini');
  t.match(single, { value: { operation: 'googleModel' }, params: { model: 'models/gemini' } });
  t.equal(single.value.errorFormat.name, 'google');
});

test('the families of chat and messages are served behind a prefix, too, and content where the cloud has it', async (t) => {
  const pathsOf = (method: string, path: string) => servedPaths(routeOf(method, path).value);
  t.strictSame(pathsOf('POST', '/v1/chat/completions'), [
    '/v1/chat/completions',
    '/openai/v1/chat/completions',
    '/openai/chat/completions',
    '/openai/deployments/{model}/chat/completions',
    '/v1/openai/chat/completions',
    '/v1beta/openai/chat/completions',
  ]);
  t.strictSame(pathsOf('POST', '/v1/messages'), ['/v1/messages', '/anthropic/v1/messages']);
  t.strictSame(pathsOf('GET', '/v1/models'), [
    '/v1/models',
    '/openai/v1/models',
    '/anthropic/v1/models',
    '/openai/models',
    '/v1/openai/models',
    '/v1beta/openai/models',
  ]);
  for (const operation of ['generateContent', 'streamGenerateContent', 'countTokens'])
    t.strictSame(pathsOf('POST', `/v1beta/models/m:${operation}`), [
      `/v1beta/models/{model}:${operation}`,
      `/v1alpha/models/{model}:${operation}`,
      `/v1beta1/publishers/google/models/{model}:${operation}`,
      `/v1beta1/projects/{project}/locations/{location}/publishers/google/models/{model}:${operation}`,
      `/v1/publishers/google/models/{model}:${operation}`,
      `/v1/projects/{project}/locations/{location}/publishers/google/models/{model}:${operation}`,
    ]);
  for (const path of ['/v1/models/m:generateContent', '/v2/rerank'])
    t.equal(pathsOf('POST', path).length, 1, path);
  t.strictSame(pathsOf('POST', '/v1beta/models/m:embedContent'), [
    '/v1beta/models/{model}:embedContent',
    '/v1alpha/models/{model}:embedContent',
  ]);
  t.strictSame(pathsOf('GET', '/v1beta/models'), ['/v1beta/models', '/v1alpha/models']);
  for (const path of ['/v1/audio/transcriptions', '/v1/images/edits', '/v1/responses'])
    t.ok(pathsOf('POST', path).includes(`/openai/deployments/{model}${path.slice(3)}`), path);
  t.strictSame(pathsOf('GET', '/v1/responses/r').slice(2), [
    '/openai/responses/{response_id}',
    '/v1/openai/responses/{response_id}',
    '/v1beta/openai/responses/{response_id}',
  ]);
  t.equal(pathsOf('POST', '/kling/v1/videos/text2video').length, 1);
  t.ok(socketPaths.includes('/openai/v1/realtime') && socketPaths.includes('/openai/v1/responses'));
});

test('an operation of a model that is not served is told by its name', async (t) => {
  for (const models of ['/v1/models', '/v1beta/models', '/v1alpha/models']) {
    t.match(unknownOperation('POST', `${models}/org/m:predict`), {
      operation: 'unimplemented',
      auth: 'generateContent',
      path: `${models}/{model}:predict`,
    });
    t.match(unknownOperation('POST', `${models}/org/m:foo`), { status: 404, message: /'foo'/ });
    t.equal(unknownOperation('POST', `${models}/m`), null);
    t.equal(unknownOperation('PUT', `${models}/m:predict`), null);
  }
});

test('a WebSocket on the responses path has a route of its own', async (t) => {
  t.match(routeOf('GET', '/v1/responses').value, {
    operation: 'responsesSocket',
    auth: 'bearer',
  });
});

test('a route that calls a model has a check of its body, and nothing else has', async (t) => {
  for (const { method, path, protocol, schema, form, video, operation } of routes) {
    const isChecked =
      schema !== null ||
      form !== null ||
      video !== null ||
      operation === 'videoContent' ||
      operation === 'realtime';
    t.equal(protocol !== null, isChecked, `${method} ${path}`);
  }
});

test('routes cannot be changed', async (t) => {
  for (const route of routes) t.ok(Object.isFrozen(route));
});

test('a vendor prefix has every spelling of the config once', async (t) => {
  t.strictSame(pathSpellings('/vendork/v1/videos', vendors), ['/vendork/v1/videos', '/kling/v1/videos']);
  t.strictSame(pathSpellings('/vendorj/', { ...vendors, vendorj: ['jimeng', 'vendorj', 'dream'] }), [
    '/vendorj/',
    '/jimeng/',
    '/dream/',
  ]);
  t.strictSame(pathSpellings('/vendorj', vendors), ['/vendorj', '/jimeng']);
  for (const path of ['/v1/vendork/', '/vendorjay/x', '/vendorjay'])
    t.strictSame(pathSpellings(path, vendors), [path]);
});

test('an unknown path is named with its method', async (t) => {
  t.match(unknownUrl('GET', '/v1/nothing'), {
    kind: 'unknown_url',
    status: 404,
    message: 'Unknown request URL: GET /v1/nothing.',
  });
  t.ok(unknownUrl('GET', `/${'x'.repeat(10_000)}`).message.length < 300);
});

test('a version twice in the path is named as the mistake', async (t) => {
  for (const path of ['/v1/v1/chat/completions', '/v1/v1', '/v1/v1beta/models', '/v1/v1/messages']) {
    t.match(unknownUrl('POST', path).message, /already ends in \/v1,.*twice/, path);
    t.equal(router.find('POST', path).kind, 'notFound');
  }
  t.match(unknownUrl('POST', '/v1beta/v1beta/models/x:generateContent').message, /already ends in \/v1beta,/);
  t.match(
    unknownUrl('POST', '/v1/v1beta1/publishers/google/models/m:generateContent').message,
    /already ends in \/v1,/,
  );
  t.notMatch(unknownUrl('POST', '/v1/v1x').message, /twice/);
});

test('a method that a path has not is refused with those it has', async (t) => {
  t.match(methodNotAllowed('PUT', 'GET, POST'), {
    kind: 'method_not_allowed',
    allow: 'GET, POST',
    message: /PUT.*GET, POST/,
  });
});
