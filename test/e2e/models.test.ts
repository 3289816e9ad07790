import { test } from 'tap';
import type { ResolvedConfig, ResolvedModel } from '../../src/config/resolve.js';
import { type DemoGateway, startGateway } from '../support/gateway.js';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

async function get(
  gateway: DemoGateway,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(`${gateway.url}${path}`, { headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const key = 'sk-demo';
const trialKey = 'sk-demo-trial';
const bearer = { authorization: `Bearer ${key}` };
const version = { 'anthropic-version': '2023-06-01' };
const created = 1_700_000_000;
const createdAt = '2023-11-14T22:13:20Z';

const chatItem = { id: 'sim-text', object: 'model', created, owned_by: 'model-gateway' };
const messagesItem = {
  type: 'model',
  id: 'sim-text',
  display_name: 'sim-text',
  created_at: createdAt,
  capabilities: null,
  max_input_tokens: null,
  max_tokens: null,
  lifecycle: 'active',
  line: null,
  deprecated_at: null,
  retires_at: null,
};
const googleItem = {
  name: 'models/sim-text',
  version: '001',
  displayName: 'sim-text',
  description: '',
  inputTokenLimit: null,
  outputTokenLimit: null,
  supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
};

/** The demo with more models: `a/b:0` to `a/b:6`, for messages and generateContent. */
function withMore(config: ResolvedConfig): ResolvedConfig {
  const [first] = config.models;
  const more = Array.from(
    { length: 7 },
    (_, index): ResolvedModel => ({
      ...(first as ResolvedModel),
      name: `a/b:${index}`,
      protocols: ['messages', 'generateContent'],
    }),
  );
  return { ...config, models: [...config.models, ...more] };
}
const moreNames = ['a/b:0', 'a/b:1', 'a/b:2', 'a/b:3', 'a/b:4', 'a/b:5', 'a/b:6', 'sim-text'];

interface MessagesPage {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

interface GooglePage {
  readonly models: readonly { readonly name: string }[];
  readonly nextPageToken?: string;
}

test('a bearer token gets the chat list, with every model of an OpenAI-shaped endpoint', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator', adapt: withMore });
  const { status, headers, body } = await get(gateway, '/v1/models', bearer);
  t.equal(status, 200);
  t.match(headers.get('content-type'), /^application\/json/);
  t.match(headers.get('x-request-id'), /^req_/);
  const { object, data } = body as { object: string; data: { id: string }[] };
  t.equal(object, 'list');
  const names = ['embedding', 'image', 'moderation', 'realtime', 'rerank', 'speech', 'text', 'transcribe'];
  t.strictSame(
    data.map((model) => model.id),
    [...names, 'video'].map((name) => `sim-${name}`),
  );
  t.strictSame(data[6], chatItem);
  const one = await get(gateway, '/v1/models/sim-text', bearer);
  t.strictSame(one.body, chatItem);
  t.equal((await get(gateway, '/v1/models/a/b:0', bearer)).status, 404, 'only messages and generateContent');
  t.strictSame(
    (await get(gateway, '/v1/models', { 'x-api-key': key })).body,
    body,
    'x-api-key without a version',
  );
});

test('x-api-key with a version gets the messages list', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const messagesForm = { 'x-api-key': key, ...version };
  const list = await get(gateway, '/v1/models?limit=1000', messagesForm);
  t.strictSame(list.body, {
    data: [messagesItem],
    has_more: false,
    first_id: 'sim-text',
    last_id: 'sim-text',
  });
  t.equal(list.headers.get('request-id'), list.headers.get('x-request-id'));
  t.strictSame((await get(gateway, '/v1/models/sim-text', messagesForm)).body, messagesItem);
  const neutral = await get(gateway, '/v1/models', { 'x-api-key': key, 'vendorc-version': '2026-10-21' });
  t.strictSame(neutral.body, list.body, 'the neutral header name does the same');
  const missing = await get(gateway, '/v1/models/sim-video', messagesForm);
  t.equal(missing.status, 404);
  t.match(missing.body, {
    type: 'error',
    error: { type: 'not_found_error', message: /sim-video/ },
    request_id: missing.headers.get('request-id'),
  });
  const stranger = await get(gateway, '/v1/models', { 'x-api-key': 'sk-unknown', ...version });
  t.match([stranger.status, stranger.body], [401, { error: { type: 'authentication_error' } }]);
});

test('a bearer token with a version gets a list that both kinds of clients can read', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const headers = { ...bearer, 'anthropic-version': '2026-10-21' };
  const both = { ...chatItem, type: 'model', display_name: 'sim-text', created_at: createdAt };
  const { body } = await get(gateway, '/v1/models', headers);
  t.match(body, { object: 'list', has_more: false, first_id: 'sim-embedding', last_id: 'sim-video' });
  t.strictSame((body as { data: unknown[] }).data[6], both);
  t.strictSame((await get(gateway, '/v1/models/sim-text', headers)).body, both);
  const more = await startGateway(t, { demo: 'simulator', adapt: withMore });
  const { data } = (await get(more, '/v1/models', headers)).body as { data: { id: string }[] };
  t.ok(
    data.some(({ id }) => id === 'a/b:0'),
    'one that is offered in the messages protocol alone is in it',
  );
  t.match((await get(more, '/v1/models/a/b:0', headers)).body, { id: 'a/b:0', type: 'model' });
});

test('x-goog-api-key or a key in the query gets the generateContent list', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const image = { ...googleItem, name: 'models/sim-image', displayName: 'sim-image' };
  const embedding = {
    ...googleItem,
    name: 'models/sim-embedding',
    displayName: 'sim-embedding',
    supportedGenerationMethods: ['embedContent', 'batchEmbedContents'],
  };
  const lists = [
    get(gateway, '/v1/models', { 'x-goog-api-key': key }),
    get(gateway, '/v1/models', { 'x-vendorg-api-key': key }),
    get(gateway, `/v1/models?key=${key}`),
    get(gateway, '/v1beta/models', { 'x-goog-api-key': key }),
    get(gateway, `/v1beta/models?pageSize=10&key=${key}`),
    get(gateway, '/v1beta/models', bearer),
  ];
  for (const list of await Promise.all(lists)) {
    t.equal(list.status, 200);
    t.strictSame(list.body, { models: [embedding, image, googleItem] });
  }
  const models = [
    get(gateway, '/v1/models/sim-text', { 'x-goog-api-key': key }),
    get(gateway, `/v1beta/models/sim-text?key=${key}`),
    get(gateway, '/v1beta/models/models/sim-text', bearer),
  ];
  for (const model of await Promise.all(models)) t.strictSame(model.body, googleItem);
  const missing = await get(gateway, '/v1beta/models/sim-video', bearer);
  t.match([missing.status, missing.body], [404, { error: { code: 404, status: 'NOT_FOUND' } }]);
  for (const headers of [{}, { 'x-api-key': key }, { 'x-goog-api-key': 'sk-unknown' }]) {
    const refused = await get(gateway, '/v1beta/models', headers as Record<string, string>);
    t.match([refused.status, refused.body], [401, { error: { code: 401, status: 'UNAUTHENTICATED' } }]);
  }
});

test('every format shows only what the key opens', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator', adapt: withMore });
  const trial = { authorization: `Bearer ${trialKey}` };
  t.strictSame((await get(gateway, '/v1/models', trial)).body, { object: 'list', data: [chatItem] });
  const messages = await get(gateway, '/v1/models', { 'x-api-key': trialKey, ...version });
  t.strictSame((messages.body as MessagesPage).data, [messagesItem]);
  const google = { models: [googleItem] };
  t.strictSame((await get(gateway, `/v1/models?key=${trialKey}`)).body, google);
  t.strictSame((await get(gateway, '/v1beta/models', { 'x-goog-api-key': trialKey })).body, google);
  t.equal((await get(gateway, '/v1beta/models/a/b:0', trial)).status, 404);
});

test('the messages list pages forwards and backwards', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator', adapt: withMore });
  const page = async (query: string) =>
    (await get(gateway, `/v1/models?${query}`, { 'x-api-key': key, ...version })).body as MessagesPage;
  const names: string[] = [];
  let last = await page('limit=3');
  names.push(...last.data.map((model) => model.id));
  while (last.has_more) {
    t.equal(last.last_id, names.at(-1));
    last = await page(`limit=3&after_id=${encodeURIComponent(last.last_id ?? '')}`);
    names.push(...last.data.map((model) => model.id));
  }
  t.strictSame(names, moreNames);
  t.match(await page('limit=2&before_id=a/b:3'), {
    data: [{ id: 'a/b:1' }, { id: 'a/b:2' }],
    has_more: true,
    first_id: 'a/b:1',
    last_id: 'a/b:2',
  });
  t.match(await page('after_id=sim-text'), { data: [], has_more: false, first_id: null, last_id: null });
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'after_id=nope']) {
    const refused = await get(gateway, `/v1/models?${query}`, { 'x-api-key': key, ...version });
    t.match([refused.status, refused.body], [400, { error: { type: 'invalid_request_error' } }], query);
  }
});

test('the generateContent list pages by token', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator', adapt: withMore });
  const names: string[] = [];
  let token = '';
  do {
    const query = `pageSize=4&key=${key}${token === '' ? '' : `&pageToken=${encodeURIComponent(token)}`}`;
    const page = (await get(gateway, `/v1beta/models?${query}`)).body as GooglePage;
    names.push(...page.models.map((model) => model.name));
    token = page.nextPageToken ?? '';
  } while (token !== '');
  t.strictSame(
    names,
    [...moreNames.slice(0, -1), 'sim-embedding', 'sim-image', 'sim-text'].map((name) => `models/${name}`),
  );
  for (const query of ['pageToken=nope', 'pageSize=-1']) {
    const refused = await get(gateway, `/v1beta/models?key=${key}&${query}`);
    t.match([refused.status, refused.body], [400, { error: { status: 'INVALID_ARGUMENT' } }], query);
  }
});

test('a model whose name has slashes and colons is found as it is and percent-encoded', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator', adapt: withMore });
  for (const name of ['a/b:3', 'a%2Fb%3A3', 'a/b%3a3']) {
    const messages = await get(gateway, `/v1/models/${name}`, { 'x-api-key': key, ...version });
    t.match(messages.body, { id: 'a/b:3', type: 'model' }, name);
    const google = await get(gateway, `/v1beta/models/${name}?key=${key}`);
    t.match(google.body, { name: 'models/a/b:3' }, name);
  }
});
