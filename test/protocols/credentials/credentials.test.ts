import { test } from 'tap';
import type { Upstream } from '../../../src/config/types.js';
import { nativeProtocols } from '../../../src/config/upstream-kinds.js';
import { protocols, upstreamKinds } from '../../../src/config/words.js';
import { GatewayError } from '../../../src/errors.js';
import {
  type AuthStyle,
  type CredentialSource,
  checkVendorcVersion,
  credentialLine,
  modelListFormat,
  presentedKey,
  vendorLines,
} from '../../../src/protocols/credentials/credentials.js';

const nothing: CredentialSource = {
  authorization: '',
  apiKey: '',
  azureKey: '',
  vendorgKey: '',
  vendorcVersion: '',
  socketProtocols: '',
  query: '',
};
const source = (fields: Partial<CredentialSource>): CredentialSource => ({ ...nothing, ...fields });
const styles: readonly AuthStyle[] = ['bearer', 'messages', 'generateContent', 'modelList', 'realtime'];

const bearer = source({ authorization: 'Bearer sk-1' });
const apiKey = source({ apiKey: 'sk-1' });
const apiKeyAndVersion = source({ apiKey: 'sk-1', vendorcVersion: '2023-06-01' });
const vendorgKey = source({ vendorgKey: 'sk-1' });
const queryKey = source({ query: 'alt=sse&key=sk-1' });

/** The acceptance matrix: which place opens which style. */
const matrix: readonly (readonly [string, CredentialSource, readonly AuthStyle[]])[] = [
  ['bearer', bearer, styles],
  ['x-api-key', apiKey, ['messages', 'modelList']],
  ['x-api-key with a version', apiKeyAndVersion, ['messages', 'modelList']],
  ['api-key', source({ azureKey: 'sk-1' }), styles],
  ['x-vendorg-api-key', vendorgKey, ['generateContent', 'modelList']],
  ['key query', queryKey, ['generateContent', 'modelList']],
  ['nothing', nothing, []],
];

function refusal(style: AuthStyle, from: CredentialSource): GatewayError {
  const result = presentedKey(style, from);
  if (typeof result === 'string') throw new Error(`expected a refusal, got a key`);
  return result;
}

test('each style accepts the key in its own places and as a bearer token, and nowhere else', async (t) => {
  for (const [name, from, accepting] of matrix) {
    for (const style of styles) {
      const result = presentedKey(style, from);
      if (accepting.includes(style)) t.equal(result, 'sk-1', `${style} takes ${name}`);
      else t.match(result, { kind: 'invalid_api_key', status: 401 }, `${style} refuses ${name}`);
    }
  }
});

test('of two keys the one in the place of the protocol counts', async (t) => {
  const all = source({
    authorization: 'Bearer b',
    apiKey: 'a',
    vendorgKey: 'g',
    query: 'key=q',
    vendorcVersion: '2023-06-01',
  });
  t.equal(presentedKey('bearer', all), 'b');
  t.equal(presentedKey('messages', all), 'a');
  t.equal(presentedKey('generateContent', all), 'g');
  t.equal(presentedKey('generateContent', { ...all, vendorgKey: '' }), 'q');
  t.equal(presentedKey('generateContent', { ...all, vendorgKey: '', query: '' }), 'b');
});

test('a model list takes the key from the place that also chose its format', async (t) => {
  const all = source({
    authorization: 'Bearer b',
    apiKey: 'a',
    vendorgKey: 'g',
    query: 'key=q',
    vendorcVersion: '2023-06-01',
  });
  t.equal(presentedKey('modelList', all), 'a');
  t.equal(presentedKey('modelList', { ...all, vendorcVersion: '' }), 'g');
  t.equal(presentedKey('modelList', { ...all, vendorcVersion: '', vendorgKey: '' }), 'q');
  t.equal(presentedKey('modelList', { ...all, vendorcVersion: '', vendorgKey: '', query: '' }), 'b');
  t.equal(presentedKey('modelList', source({ authorization: 'Basic b', apiKey: 'a' })), 'a');
});

test('a key in a wrong place is told apart from no key, and both say where it belongs', async (t) => {
  t.match(refusal('bearer', apiKey).message, /came in the header 'x-api-key'.*Authorization: Bearer/);
  t.match(
    refusal('bearer', vendorgKey).message,
    /came in the header 'x-vendorg-api-key'.*Authorization: Bearer/,
  );
  t.match(refusal('bearer', queryKey).message, /came in the query parameter 'key'.*Authorization: Bearer/);
  t.match(refusal('messages', vendorgKey).message, /x-vendorg-api-key.*x-api-key/);
  t.match(refusal('generateContent', apiKey).message, /x-api-key.*x-vendorg-api-key.*'key'/);
  for (const style of styles)
    t.match(refusal(style, nothing).message, /has no API key.*Authorization: Bearer/);
});

test('an authorization header that holds no bearer token is no key', async (t) => {
  for (const authorization of [
    'Basic c2stMQ==',
    'Bearer',
    'Bearer ',
    'Bearer   ',
    'sk-1',
    'Bearersk-1',
    'Token x',
  ]) {
    for (const style of styles) {
      t.match(
        refusal(style, source({ authorization })),
        { kind: 'invalid_api_key', message: /no bearer token/ },
        authorization,
      );
    }
  }
});

test('the bearer scheme is known in any case, and space around the token is not part of it', async (t) => {
  for (const authorization of ['bearer sk-1', 'BEARER sk-1', 'Bearer   sk-1', 'Bearer sk-1 \t']) {
    t.equal(presentedKey('bearer', source({ authorization })), 'sk-1', authorization);
  }
});

test('a key in the query is percent-decoded', async (t) => {
  t.equal(presentedKey('generateContent', source({ query: 'key=sk%2D1' })), 'sk-1');
});

test('no refusal shows the key', async (t) => {
  for (const style of styles) {
    for (const [, from] of matrix) {
      const result = presentedKey(style, from);
      if (result instanceof GatewayError) t.notMatch(result.message, 'sk-1');
    }
  }
});

test('the headers choose the format of a model list', async (t) => {
  t.equal(modelListFormat(bearer), 'chat');
  t.equal(modelListFormat(nothing), 'chat');
  t.equal(modelListFormat(apiKey), 'chat', 'x-api-key without a version is not enough');
  t.equal(modelListFormat(apiKeyAndVersion), 'messages');
  t.equal(modelListFormat({ ...apiKeyAndVersion, vendorgKey: 'g' }), 'messages');
  t.equal(modelListFormat(vendorgKey), 'generateContent');
  t.equal(modelListFormat(queryKey), 'generateContent');
  t.equal(modelListFormat({ ...bearer, vendorgKey: 'g' }), 'generateContent');
  t.equal(modelListFormat({ ...bearer, vendorcVersion: '2026-10-21' }), 'chatAndMessages');
});

test('any date is a version, and nothing else is', async (t) => {
  for (const version of ['2023-06-01', '2026-10-21', '1999-12-31'])
    t.equal(checkVendorcVersion('messages', version), null, version);
  t.match(checkVendorcVersion('messages', ''), {
    status: 400,
    kind: 'missing_parameter',
    param: 'vendorc-version',
  });
  for (const version of [
    'latest',
    '2023-6-1',
    '2023-13-01',
    '2023-00-10',
    '2023-01-32',
    '2023-06-01T00:00:00Z',
    ' 2023-06-01',
    '20230601',
  ]) {
    t.match(
      checkVendorcVersion('messages', version),
      { status: 400, kind: 'invalid_value', param: 'vendorc-version' },
      version,
    );
  }
});

test('only the messages protocol wants a version, and a list of models does not look at its form', async (t) => {
  t.equal(checkVendorcVersion('bearer', ''), null);
  t.match(checkVendorcVersion('bearer', 'latest'), { kind: 'invalid_value' });
  t.equal(checkVendorcVersion('modelList', 'latest'), null);
});

/** What a client says to both vendors. */
const spoken = { openaiBeta: 'assistants=v2', vendorcBeta: 'a-2025-01-01', vendorcVersion: '2023-06-01' };
const anthropicLines = 'anthropic-version: 2023-06-01\r\nanthropic-beta: a-2025-01-01\r\n';
const openaiLine = 'openai-beta: assistants=v2\r\n';

test('an upstream gets the header lines of the vendor of the protocol it is called in, and of no other', async (t) => {
  const said: Record<string, string[]> = { [openaiLine]: [], [anthropicLines]: [], '': [] };
  for (const kind of upstreamKinds) {
    const upstream = { kind, headers: [] as readonly string[], clientHeaders: null } as unknown as Upstream;
    for (const protocol of protocols)
      if (nativeProtocols(kind, true).has(protocol))
        said[vendorLines(protocol, spoken, upstream.kind, upstream)]?.push(`${kind} ${protocol}`);
  }
  const openai = [
    ...['chat', 'responses', 'completions', 'embeddings', 'moderations', 'audio', 'images', 'video'],
    'realtime',
  ];
  const expected = {
    [openaiLine]: ['chat', 'simulator'].flatMap((kind) => openai.map((protocol) => `${kind} ${protocol}`)),
    [anthropicLines]: ['messages messages', 'simulator messages'],
  };
  t.same([...(said[openaiLine] ?? [])].sort(), [...expected[openaiLine]].sort());
  t.same(said[anthropicLines], expected[anthropicLines]);
  t.ok(said['']?.includes('vendork video'));
  t.ok(said['']?.includes('generateContent generateContent'));
  t.ok(said['']?.includes('chat rerank'));
});

test('each kind of upstream has its key in one place', async (t) => {
  const lineOf = (kind: Upstream['kind'], keyHeader: Upstream['keyHeader'] = null) =>
    credentialLine({ kind, keyHeader }, 'k');
  t.same(lineOf('chat', 'api-key'), 'api-key: k\r\n');
  t.same(lineOf('messages', 'authorization'), 'authorization: Bearer k\r\n');
  t.same(Object.fromEntries(upstreamKinds.map((kind) => [kind, lineOf(kind)])), {
    chat: 'authorization: Bearer k\r\n',
    messages: 'x-api-key: k\r\n',
    generateContent: 'x-goog-api-key: k\r\n',
    vendork: 'authorization: Bearer k\r\n',
    vendorj: 'authorization: Bearer k\r\n',
    generic: 'authorization: Bearer k\r\n',
    simulator: 'authorization: Bearer k\r\n',
  });
});
