import { test } from 'tap';
import type { Model, Protocol } from '../../../src/config/types.js';
import { modelList, modelListErrorFormat, modelObject } from '../../../src/protocols/models/list.js';
import { refusalOf } from '../../support/refusal.js';

const model = (name: string, ...protocols: readonly Protocol[]): Model => ({
  name,
  protocols: new Set(protocols),
  targets: [],
  drawing: [],
  created: 1_735_689_600,
  price: null,
  limits: null,
  budget: null,
  hedgeMs: null,
  tokens: { input: null, output: null },
});
const mapOf = (...models: readonly Model[]): ReadonlyMap<string, Model> =>
  new Map(models.map((entry) => [entry.name, entry]));

const models = mapOf(
  model('all', 'chat', 'messages', 'generateContent'),
  model('claude', 'messages'),
  model('embedding', 'embeddings'),
  model('gemini', 'generateContent'),
  model('org/name:free', 'chat', 'generateContent'),
  model('video', 'video'),
);
const many = mapOf(
  ...Array.from({ length: 120 }, (_, i) =>
    model(`m${String(i).padStart(3, '0')}`, 'messages', 'generateContent'),
  ),
);

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
const messagesPage = (query: string): MessagesPage => JSON.parse(modelList('messages', many, query));
const googlePage = (query: string): GooglePage => JSON.parse(modelList('generateContent', many, query));

test('the chat list has the models of every OpenAI-shaped endpoint', async (t) => {
  t.strictSame(JSON.parse(modelList('chat', models, '')), {
    object: 'list',
    data: ['all', 'embedding', 'org/name:free', 'video'].map((id) => ({
      id,
      object: 'model',
      created: 1_735_689_600,
      owned_by: 'model-gateway',
    })),
  });
});

test('the chat list for messages clients has the fields of both', async (t) => {
  const list = JSON.parse(modelList('chatAndMessages', models, ''));
  t.match(list, { object: 'list', has_more: false, first_id: 'all', last_id: 'video' });
  t.strictSame(list.data[0], {
    id: 'all',
    object: 'model',
    created: 1_735_689_600,
    owned_by: 'model-gateway',
    type: 'model',
    display_name: 'all',
    created_at: '2025-01-01T00:00:00Z',
  });
});

test('the messages list has the models of that protocol', async (t) => {
  const list = JSON.parse(modelList('messages', models, ''));
  t.match(list, { has_more: false, first_id: 'all', last_id: 'claude' });
  t.strictSame(list.data[1], {
    type: 'model',
    id: 'claude',
    display_name: 'claude',
    created_at: '2025-01-01T00:00:00Z',
    capabilities: null,
    max_input_tokens: null,
    max_tokens: null,
    lifecycle: 'active',
    line: null,
    deprecated_at: null,
    retires_at: null,
  });
});

test('the generateContent list has the models of that protocol, and those that embed', async (t) => {
  const list: GooglePage = JSON.parse(modelList('generateContent', models, ''));
  t.strictSame(
    list.models.map(({ name }) => name),
    ['models/all', 'models/embedding', 'models/gemini', 'models/org/name:free'],
  );
  t.notOk('nextPageToken' in list);
  t.match(list.models[1], { supportedGenerationMethods: ['embedContent', 'batchEmbedContents'] });
  t.strictSame(list.models[2], {
    name: 'models/gemini',
    version: '001',
    displayName: 'gemini',
    description: '',
    inputTokenLimit: null,
    outputTokenLimit: null,
    supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
  });
});

test('the token limits of the config are in the lists that have them', async (t) => {
  const limited = {
    ...model('limited', 'messages', 'generateContent'),
    tokens: { input: 200_000, output: 8192 },
  };
  t.match(JSON.parse(modelObject('messages', mapOf(limited), 'limited')), {
    max_input_tokens: 200_000,
    max_tokens: 8192,
  });
  t.match(JSON.parse(modelObject('generateContent', mapOf(limited), 'limited')), {
    inputTokenLimit: 200_000,
    outputTokenLimit: 8192,
  });
});

test('a key without models gets empty lists', async (t) => {
  const none = mapOf();
  t.equal(modelList('chat', none, ''), '{"object":"list","data":[]}');
  t.equal(modelList('messages', none, ''), '{"data":[],"has_more":false,"first_id":null,"last_id":null}');
  t.equal(modelList('generateContent', none, ''), '{"models":[]}');
  t.match(JSON.parse(modelList('chatAndMessages', none, '')), { data: [], first_id: null, last_id: null });
});

test('a model name with quotes and controls stays one JSON string', async (t) => {
  const odd = mapOf(model('a"b\\c\n', 'chat', 'messages', 'generateContent'));
  for (const format of ['chat', 'chatAndMessages', 'messages', 'generateContent'] as const) {
    t.match(JSON.stringify(JSON.parse(modelList(format, odd, ''))), /a\\"b\\\\c\\n/, format);
  }
});

test('a messages client that follows last_id sees every model once', async (t) => {
  for (const limit of ['', 'limit=1&', 'limit=7&', 'limit=1000&']) {
    const seen: string[] = [];
    let page = messagesPage(limit);
    seen.push(...page.data.map(({ id }) => id));
    while (page.has_more) {
      page = messagesPage(`${limit}after_id=${page.last_id}`);
      seen.push(...page.data.map(({ id }) => id));
    }
    t.strictSame(seen, [...many.keys()], limit);
  }
  t.equal(messagesPage('').data.length, 20);
});

test('before_id gives the page just before a model', async (t) => {
  t.match(messagesPage('limit=3&before_id=m010'), { has_more: true, first_id: 'm007', last_id: 'm009' });
  t.match(messagesPage('limit=3&before_id=m002'), { has_more: false, first_id: 'm000', last_id: 'm001' });
  t.match(messagesPage('before_id=m000'), { has_more: false, data: [], first_id: null });
});

test('the messages list has no models for a query of other stages of life than theirs', async (t) => {
  for (const query of [
    'lifecycle[]=retired',
    'lifecycle%5B%5D=retired&lifecycle%5B%5D=deprecated',
    'lifecycle=retired',
    'lifecycle=retired,deprecated',
    'lifecycle=retired&after_id=m001',
    'lifecycle=retired&before_id=m009&limit=2',
  ])
    t.match(messagesPage(query), { data: [], has_more: false, first_id: null }, query);
  for (const query of [
    'lifecycle%5B%5D=retired&lifecycle%5B%5D=active',
    'lifecycle=active',
    'lifecycle=active,deprecated',
    'lifecycle=',
    'x=lifecycle',
  ])
    t.equal(messagesPage(query).data.length, 20, query);
});

test('a bad messages page is refused by the name of its parameter', async (t) => {
  for (const limit of ['0', '-1', '1001', 'x', '1.5', '1e2', '99999999999']) {
    t.match(
      refusalOf(() => messagesPage(`limit=${limit}`)),
      { kind: 'invalid_value', status: 400, param: 'limit' },
      limit,
    );
  }
  t.match(
    refusalOf(() => messagesPage('after_id=none')),
    { kind: 'invalid_value', param: 'after_id' },
  );
  t.match(
    refusalOf(() => messagesPage('before_id=none')),
    { kind: 'invalid_value', param: 'before_id' },
  );
  t.match(
    refusalOf(() => messagesPage('after_id=m001&before_id=m009')),
    { kind: 'invalid_value', param: 'before_id' },
  );
});

test('a generateContent client that follows its tokens sees every model once', async (t) => {
  for (const size of ['', 'pageSize=0&', 'pageSize=1&', 'pageSize=40&', 'pageSize=5000&']) {
    const seen: string[] = [];
    let page = googlePage(size);
    seen.push(...page.models.map(({ name }) => name));
    while (page.nextPageToken !== undefined) {
      page = googlePage(`${size}pageToken=${page.nextPageToken}`);
      seen.push(...page.models.map(({ name }) => name));
    }
    t.strictSame(
      seen,
      [...many.keys()].map((name) => `models/${name}`),
      size,
    );
  }
  t.equal(googlePage('').models.length, 50);
});

test('a bad generateContent page is refused by the name of its parameter', async (t) => {
  for (const size of ['-1', 'x', '2.5'])
    t.match(
      refusalOf(() => googlePage(`pageSize=${size}`)),
      { kind: 'invalid_value', param: 'pageSize' },
      size,
    );
  for (const token of ['x', '!!!', 'bm9uZQ', 'bTAwMQ==', 'm001']) {
    t.match(
      refusalOf(() => googlePage(`pageToken=${token}`)),
      { kind: 'invalid_value', status: 400, param: 'pageToken' },
      token,
    );
  }
});

test('one model is written as its list writes it', async (t) => {
  for (const format of ['chat', 'chatAndMessages', 'messages', 'generateContent'] as const) {
    const list = JSON.parse(modelList(format, models, ''));
    t.strictSame(JSON.parse(modelObject(format, models, 'all')), (list.data ?? list.models)[0], format);
  }
  t.match(JSON.parse(modelObject('generateContent', models, 'models/org/name:free')), {
    name: 'models/org/name:free',
  });
});

test('a model that the key or the format has not is not found', async (t) => {
  const notFound = { kind: 'model_not_found', status: 404, param: 'model' };
  t.match(
    refusalOf(() => modelObject('chat', models, 'none')),
    notFound,
  );
  t.match(
    refusalOf(() => modelObject('chat', models, 'claude')),
    notFound,
  );
  t.match(
    refusalOf(() => modelObject('chat', models, 'models/all')),
    notFound,
  );
  t.match(
    refusalOf(() => modelObject('messages', models, 'gemini')),
    notFound,
  );
  t.match(
    refusalOf(() => modelObject('generateContent', models, 'models/claude')),
    notFound,
  );
});

test('a list is refused in the words of its format', async (t) => {
  t.equal(modelListErrorFormat('chat').name, 'openai');
  t.equal(modelListErrorFormat('chatAndMessages').name, 'openai');
  t.equal(modelListErrorFormat('messages').name, 'anthropic');
  t.equal(modelListErrorFormat('generateContent').name, 'google');
});
