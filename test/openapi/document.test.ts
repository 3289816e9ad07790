import { test } from 'tap';
import { createOpenApi } from '../../src/openapi/document.js';
import { chatRequestType } from '../../src/protocols/chat/request/schema.js';
import { buildRoutes } from '../../src/routes.js';
import { operationsIn, problemsOf, referencesIn } from './rules.js';
import { document, words } from './samples.js';

const none = { vendorc: [], vendorg: [], vendork: [], vendorj: [] };
const many = {
  vendorc: ['anthropic', 'other'],
  vendorg: ['goog', 'my-cloud'],
  vendork: ['kling', 'my-kling'],
  vendorj: ['jimeng', 'dream', 'dream-2'],
};
const options = { version: '1', publicUrl: null };

function operationOf(method: string, path: string): Readonly<Record<string, unknown>> {
  const found = operationsIn(document).find((each) => each.method === method && each.path === path);
  if (found === undefined) throw new Error(`${method} ${path} is not there`);
  return found.operation;
}

const statusesOf = (method: string, path: string) =>
  Object.keys(operationOf(method, path).responses as object);
const parametersOf = (method: string, path: string) =>
  ((operationOf(method, path).parameters ?? []) as readonly { name?: string; $ref?: string }[]).map(
    ({ name, $ref }) => name ?? $ref?.split('/').at(-1),
  );
const schemesOf = (method: string, path: string) =>
  (operationOf(method, path).security as readonly object[]).flatMap(Object.keys);

test('the document keeps the rules of OpenAPI 3.1, whatever the vendor words', async (t) => {
  for (const each of [words, none, many]) {
    t.strictSame(problemsOf(createOpenApi({ ...options, words: each })), []);
  }
  t.strictSame(problemsOf(document), []);
});

type Paths = Readonly<Record<string, Readonly<Record<string, Record<string, unknown>>>>>;

test('the rules find what is wrong', async (t) => {
  const broken = (change: (chat: Record<string, unknown>) => void) => {
    const copy = structuredClone(document) as unknown as { readonly paths: Paths };
    change(copy.paths['/v1/chat/completions']?.post ?? {});
    return problemsOf(copy).join('\n');
  };
  t.match(
    broken((chat) => {
      chat.responses = {};
    }),
    /fewer than 1 members/,
  );
  t.match(
    broken((chat) => {
      chat.operationId = 'createResponse';
    }),
    /two operations are createResponse/,
  );
  t.match(
    broken((chat) => {
      chat.parameters = [{ name: 'x', in: 'path', required: true, schema: {} }];
    }),
    /has the parameters path x/,
  );
  t.match(
    broken((chat) => {
      chat.requestBody = {
        content: { 'application/json': { schema: { $ref: '#/components/schemas/No' } } },
      };
    }),
    /leads to #\/components\/schemas\/No/,
  );
  t.match(
    broken((chat) => {
      chat.requestBody = { content: { 'application/json': { schema: { '~kind': 'String' } } } };
    }),
    /unknown ~kind/,
  );
});

test('every route is there exactly once', async (t) => {
  for (const each of [words, none, many]) {
    const expected = buildRoutes(each).map(
      ({ method, path }) => `${method.toLowerCase()} ${path.replace('...}', '}')}`,
    );
    const found = operationsIn(createOpenApi({ ...options, words: each })).map(
      ({ method, path }) => `${method} ${path}`,
    );
    t.strictSame([...found].sort(), [...expected].sort());
  }
});

test('the same options give the same text, and no call touches what another gave', async (t) => {
  const first = createOpenApi({ ...options, words });
  const text = JSON.stringify(first);
  const chat = first.components.schemas.ChatRequest as { required: string[] };
  chat.required.push('broken');
  t.equal(JSON.stringify(createOpenApi({ ...options, words })), text);
  t.notOk(chatRequestType.required.includes('broken' as never));
});

test('the document is plain JSON of a bounded size', async (t) => {
  const { length } = JSON.stringify(document);
  t.ok(length < 200_000, `${length} bytes`);
  t.strictSame(JSON.parse(JSON.stringify(document)), document);
});

test('an operation keeps its id when vendor words come and go', async (t) => {
  const idsWith = (each: typeof words) =>
    new Map(
      operationsIn(createOpenApi({ ...options, words: each })).map(({ method, path, operation }) => [
        `${method} ${path}`,
        operation.operationId,
      ]),
    );
  const [few, more] = [idsWith(none), idsWith(many)];
  for (const [route, id] of few) t.equal(more.get(route), id, route);
  t.equal(more.get('post /my-kling/v1/videos/text2video'), 'createVendorkTextVideoMyKling');
});

test('words that would make one id get two', async (t) => {
  const twins = { ...none, vendorj: ['a-b', 'a--b'] };
  t.strictSame(problemsOf(createOpenApi({ ...options, words: twins })), []);
});

test('every component is referred to', async (t) => {
  const used = new Set(referencesIn(document).map(([, to]) => to));
  for (const [section, components] of Object.entries(document.components)) {
    if (section === 'securitySchemes') continue;
    for (const name of Object.keys(components)) t.ok(used.has(`#/components/${section}/${name}`), name);
  }
  const schemes = new Set(
    operationsIn(document).flatMap(({ operation }) => (operation.security as object[]).flatMap(Object.keys)),
  );
  t.strictSame([...schemes].sort(), Object.keys(document.components.securitySchemes).sort());
});

test('keys may sit where each style of signing in looks for them', async (t) => {
  t.strictSame(schemesOf('post', '/v1/chat/completions'), ['bearer', 'api-key']);
  t.strictSame(schemesOf('post', '/v1/messages'), ['x-api-key', 'bearer', 'api-key']);
  t.strictSame(schemesOf('post', '/v1beta/models/{model}:generateContent'), [
    'x-vendorg-api-key',
    'x-goog-api-key',
    'key',
    'bearer',
    'api-key',
  ]);
  t.strictSame(schemesOf('get', '/v1/realtime'), ['bearer', 'api-key', 'socketProtocol']);
  t.match(document.components.securitySchemes, {
    bearer: { type: 'http', scheme: 'bearer' },
    'x-goog-api-key': { type: 'apiKey', in: 'header', name: 'x-goog-api-key' },
    key: { type: 'apiKey', in: 'query', name: 'key' },
  });
});

test('operations have the parameters that they read', async (t) => {
  t.strictSame(parametersOf('post', '/v1/messages'), ['vendorc-version', 'anthropic-version']);
  t.strictSame(parametersOf('post', '/v1beta/models/{model}:streamGenerateContent'), ['model', 'key', 'alt']);
  t.strictSame(parametersOf('get', '/v1beta/models'), ['key', 'pageSize', 'pageToken']);
  t.strictSame(parametersOf('get', '/v1/realtime'), ['realtimeModel']);
  t.strictSame(parametersOf('post', '/jimeng/'), ['action', 'actionVersion', 'idempotencyKey']);
  t.strictSame(parametersOf('head', '/v1/videos/{task_id}/content'), ['task_id', 'variant', 'ifNoneMatch']);
  t.match(operationOf('get', '/v1/models/{model}').parameters, [
    { name: 'model', in: 'path', required: true, description: /slashes/ },
  ]);
});

test('where a call may name no model, the document says what decides', async (t) => {
  t.match(operationOf('post', '/v1/rerank').description, /Without a `model`.*`defaultModels\.rerank`/);
  const { realtimeModel } = document.components.parameters as Readonly<Record<string, object>>;
  t.match(realtimeModel, { required: false, description: /without it.*`defaultModels\.realtime`/ });
});

test('the version header is required where it has one name alone', async (t) => {
  const versionOf = (each: typeof words) =>
    createOpenApi({ ...options, words: each }).components.parameters['vendorc-version'];
  t.match(versionOf(none), { required: true });
  t.match(versionOf(words), {
    required: false,
    description: /`vendorc-version`, `anthropic-version` is required/,
  });
});

test('operations have the answers that they give', async (t) => {
  const calls = ['400', '401', '403', '404', '408', '413', '415', '429', '500', '502', '503', '504'];
  t.strictSame(statusesOf('post', '/v1/chat/completions'), ['200', ...calls, 'default']);
  t.strictSame(statusesOf('get', '/v1/files'), ['401', '500', '501']);
  t.ok(
    ['101', '400', '401', '404', '429'].every((status) => statusesOf('get', '/v1/realtime').includes(status)),
  );
  t.strictSame(statusesOf('get', '/v1/responses'), ['101', '400', '401', '426', '429', '500', '503']);
  t.strictSame(statusesOf('get', '/v1/videos/{task_id}'), [
    '200',
    ...['400', '401', '404', '500', '502', '503', '504'],
  ]);
  t.ok(
    ['200', '206', '304', '404', '416'].every((status) =>
      statusesOf('get', '/v1/videos/{task_id}/content').includes(status),
    ),
  );
  const contentOf = (path: string) =>
    Object.keys((operationOf('post', path).responses as { 200: { content: object } })[200].content);
  t.strictSame(contentOf('/v1/messages'), ['application/json', 'text/event-stream']);
  t.strictSame(contentOf('/v1/embeddings'), ['application/json']);
  t.strictSame(contentOf('/v1/audio/speech'), ['audio/mpeg', 'audio/*', 'text/event-stream']);
  t.strictSame(contentOf('/v1/audio/transcriptions'), [
    'application/json',
    'text/plain',
    'text/event-stream',
  ]);
});

test('bodies are JSON, forms or either', async (t) => {
  const typesOf = (path: string) =>
    Object.keys((operationOf('post', path).requestBody as { content: object }).content);
  t.strictSame(typesOf('/v1/chat/completions'), ['application/json']);
  t.strictSame(typesOf('/v1/audio/transcriptions'), ['multipart/form-data']);
  t.strictSame(typesOf('/v1/images/edits'), ['application/json', 'multipart/form-data']);
  t.strictSame(typesOf('/v1/videos'), ['application/json', 'multipart/form-data']);
  t.match(document.components.schemas.TranscriptionForm, {
    required: ['file', 'model'],
    properties: { file: { type: 'string', format: 'binary' } },
  });
});

test('the server is where clients reach the gateway', async (t) => {
  t.strictSame(document.servers, [{ url: 'https://gateway.example' }]);
  t.strictSame(createOpenApi({ ...options, words }).servers, [{ url: '/' }]);
  t.equal(document.info.version, '1.2.3');
});
