import { textProtocols } from '../../src/conversation/request.js';
import { hashKey } from '../../src/keys/secret.js';
import { testKey } from './gateway.js';

/** A client's request, in parts that a test can change before it is sent. */
export interface EntryRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
}

/** One way through the gateway: a client's request, and the upstream that serves it. */
export interface EntryPoint {
  readonly name: string;
  readonly request: EntryRequest;
}

/** The key of a second tenant, whose calls use the same connections. */
export const otherKey = 'sk-other';

const boundary = 'limit-of-parts';

const bearer = ['authorization', `Bearer ${testKey}`] as const;
const json = ['content-type', 'application/json'] as const;

function post(path: string, body: object, headers: EntryRequest['headers'] = [bearer]): EntryRequest {
  const [plain = '', query = ''] = path.split('?');
  return { method: 'POST', path: plain, query, headers: [...headers, json], body: JSON.stringify(body) };
}

/** @param files of the form, in addition to its fields */
function form(
  path: string,
  fields: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
): EntryRequest {
  const part = (head: string, value: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
  const text =
    Object.entries(fields)
      .map(([name, value]) => part(`name="${name}"`, value))
      .join('') +
    Object.entries(files)
      .map(([name, filename]) =>
        part(`name="${name}"; filename="${filename}"\r\ncontent-type: image/png`, 'PNG'),
      )
      .join('');
  return {
    method: 'POST',
    path,
    query: '',
    headers: [bearer, ['content-type', `multipart/form-data; boundary=${boundary}`]],
    body: `${text}--${boundary}--\r\n`,
  };
}

const user = [{ role: 'user', content: 'hi' }];
const messagesHead = [
  ['x-api-key', testKey],
  ['anthropic-version', '2023-06-01'],
] as const;
const contents = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };

/** Requests of each text protocol. */
const texts: Readonly<Record<string, (model: string) => EntryRequest>> = {
  chat: (model) => post('/v1/chat/completions', { model, messages: user }),
  'chat stream': (model) => post('/v1/chat/completions', { model, messages: user, stream: true }),
  responses: (model) => post('/v1/responses', { model, input: 'hi' }),
  messages: (model) => post('/v1/messages', { model, max_tokens: 9, messages: user }, messagesHead),
  'messages, beta': (model) =>
    post('/v1/messages?beta=true', { model, max_tokens: 9, messages: user, stream: true }, messagesHead),
  generateContent: (model) =>
    post(`/v1beta/models/${model}:generateContent`, contents, [['x-goog-api-key', testKey]]),
  'generateContent stream': (model) =>
    post(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, contents, [['x-goog-api-key', testKey]]),
};

function upgrade(path: string, query: string): EntryRequest {
  return {
    method: 'GET',
    path,
    query,
    headers: [
      bearer,
      ['connection', 'Upgrade'],
      ['upgrade', 'websocket'],
      ['sec-websocket-version', '13'],
      ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='],
    ],
    body: null,
  };
}

const clip = { prompt: 'a fox' };

/** Every way in which a client's request becomes one to an upstream. */
export const entryPoints: readonly EntryPoint[] = [
  ...textProtocols.flatMap((kind) =>
    Object.entries(texts).map(([name, request]) => ({
      name: `${name} -> ${kind}`,
      request: request(`by-${kind}`),
    })),
  ),
  {
    name: 'count tokens -> messages',
    request: post('/v1/messages/count_tokens', { model: 'by-messages', messages: user }, messagesHead),
  },
  {
    name: 'count tokens -> generateContent',
    request: post('/v1beta/models/by-generateContent:countTokens', contents, [['x-goog-api-key', testKey]]),
  },
  { name: 'completions', request: post('/v1/completions', { model: 'by-chat', prompt: 'hi' }) },
  { name: 'embeddings', request: post('/v1/embeddings', { model: 'by-chat', input: 'hi' }) },
  { name: 'rerank', request: post('/v1/rerank', { model: 'by-chat', query: 'a', documents: ['b'] }) },
  { name: 'moderations', request: post('/v1/moderations', { model: 'by-chat', input: 'hi' }) },
  { name: 'speech', request: post('/v1/audio/speech', { model: 'by-chat', input: 'hi', voice: 'v' }) },
  {
    name: 'transcription',
    request: form('/v1/audio/transcriptions', { model: 'by-chat' }, { file: 'talk.mp3' }),
  },
  { name: 'images', request: post('/v1/images/generations', { model: 'by-chat', prompt: 'a fox' }) },
  {
    name: 'images -> dashscope',
    request: post('/v1/images/generations', { model: 'by-dashscope', prompt: 'a fox' }),
  },
  {
    name: 'image edit',
    request: form('/v1/images/edits', { model: 'by-chat', prompt: 'a fox' }, { image: 'a.png' }),
  },
  ...['by-chat', 'by-generic', 'by-vendork', 'by-vendorj'].flatMap((model) => [
    { name: `compat video, ${model}`, request: post('/v1/videos', { model, ...clip }) },
    { name: `generic video, ${model}`, request: post('/v1/video/generations', { model, ...clip }) },
    {
      name: `vendork video, ${model}`,
      request: post('/kling/v1/videos/text2video', { model_name: model, ...clip }),
    },
    {
      name: `vendorj video, ${model}`,
      request: post('/jimeng/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31', { req_key: model, ...clip }),
    },
  ]),
  {
    name: 'compat video, form',
    request: form('/v1/videos', { model: 'by-chat', prompt: 'a fox' }, { input_reference: 'a.png' }),
  },
  { name: 'realtime', request: upgrade('/v1/realtime', 'model=by-chat') },
];

/** Makes the config of a gateway with all of them. @param url of the upstream, which ends in `/v1` */
export function entryPointsConfig(url: string): Record<string, unknown> {
  const kinds = ['chat', 'messages', 'generateContent', 'generic', 'vendork', 'vendorj'];
  const media = [
    'completions',
    'embeddings',
    'rerank',
    'moderations',
    'audio',
    'images',
    'video',
    'realtime',
  ];
  const model = (protocols: readonly string[], upstream: string, more = {}) => ({
    protocols,
    targets: [{ upstream, model: 'real', ...more }],
  });
  return {
    upstreams: Object.fromEntries(
      kinds.map((kind) => [
        kind,
        { kind, baseUrl: url, apiKeys: ['upstream-key'], headers: { 'x-own': 'own' } },
      ]),
    ),
    models: {
      'by-chat': model([...textProtocols, ...media], 'chat'),
      'by-responses': model(textProtocols, 'chat', { responses: 'only' }),
      'by-messages': model(textProtocols, 'messages'),
      'by-generateContent': model(textProtocols, 'generateContent'),
      'by-dashscope': model(['images'], 'chat', { images: 'dashscope' }),
      'by-generic': model(['video'], 'generic'),
      'by-vendork': model(['video'], 'vendork'),
      'by-vendorj': model(['video'], 'vendorj'),
    },
    usage: { ledger: false },
    keys: [testKey, otherKey].map((key) => ({
      id: key,
      hash: hashKey(key),
      groups: ['default'],
      mayRoute: true,
    })),
  };
}

/**
 * Encodes text as UTF-8 in which halves of surrogate pairs are encoded on their own (WTF-8), or as the low byte of
 * each character.
 */
export function encoded(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  if (encoding === 'latin1') return Buffer.from(text, 'latin1');
  return Buffer.concat(
    Array.from(text, (character) => {
      const code = character.codePointAt(0) as number;
      if (code < 0xd800 || code > 0xdfff) return Buffer.from(character);
      return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
    }),
  );
}

/** Returns the bytes of a request. */
export function bytesOf(request: EntryRequest, encoding: 'utf8' | 'latin1' = 'utf8'): Buffer {
  const { method, path, query, headers, body } = request;
  const bytes = encoded(body ?? '', encoding);
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const length = body === null ? '' : `content-length: ${bytes.length}\r\n`;
  const target = query === '' ? path : `${path}?${query}`;
  const head = `${method} ${target} HTTP/1.1\r\nhost: gateway.test\r\n${lines}${length}\r\n`;
  return Buffer.concat([encoded(head, encoding), bytes]);
}
