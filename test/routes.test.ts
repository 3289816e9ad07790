import { test } from 'tap';
import { createRouter } from '../src/http/router.js';
import { buildRoutes, methodNotAllowed, pathSpellings, unknownUrl } from '../src/routes.js';

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

test('chat is validated JSON behind a bearer key', async (t) => {
  const { value } = routeOf('POST', '/v1/chat/completions');
  t.match(value, { operation: 'chat', protocol: 'chat', auth: 'bearer' });
  t.equal(value.dialect.name, 'openai');
  t.ok(value.schema?.check({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }));
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
  t.equal(single.value.dialect.name, 'google');
});

test('a WebSocket on the responses path has a route of its own', async (t) => {
  t.match(routeOf('GET', '/v1/responses').value, {
    operation: 'responsesSocket',
    auth: 'bearer',
  });
});

test('a route that calls a model has a schema, and nothing else has', async (t) => {
  for (const route of routes)
    t.equal(route.protocol !== null, route.schema !== null, `${route.method} ${route.path}`);
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
  t.strictSame(pathSpellings('/v1/vendork/', vendors), ['/v1/vendork/']);
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
  t.notMatch(unknownUrl('POST', '/v1/v1x').message, /twice/);
});

test('a method that a path has not is refused with those it has', async (t) => {
  t.match(methodNotAllowed('PUT', 'GET, POST'), {
    kind: 'method_not_allowed',
    allow: 'GET, POST',
    message: /PUT.*GET, POST/,
  });
});
