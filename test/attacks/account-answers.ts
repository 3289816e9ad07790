import { testKey } from '../support/gateway.js';
import { exchange, type RawAnswer } from '../support/raw-client.js';

/** The upstream's key, and what its vendor says of it and of whose it is. None of it may reach a client or the log. */
export const ownKey = 'sk-proj-Zq8WvN3mLr5TyXc7';
export const quotedKey = 'sk-proj-********Xc7';
export const organisation = 'org-LeakyOwner42';
export const leak = /Zq8WvN3|\*{3}|Xc7|LeakyOwner42|AIzaLeaky|leaky-project/i;

/** Header lines that name the account. */
export const leakyLines =
  `www-authenticate: Bearer realm="${organisation}"\r\nopenai-organization: ${organisation}\r\n` +
  `openai-project: leaky-project\r\nx-ratelimit-limit-requests: 7\r\nset-cookie: own=${ownKey}\r\n`;

const error = (members: object): string => JSON.stringify({ error: members });
const named = `Incorrect API key provided: ${quotedKey} of ${organisation}.`;

/** What upstreams answer that do not accept the gateway's account: the status, and the body. */
export const accountAnswers: readonly (readonly [string, number, string])[] = [
  ['a wrong key', 401, error({ message: named, type: 'invalid_request_error', code: 'invalid_api_key' })],
  ['a wrong key without a body', 401, ''],
  ['a wrong key as text', 401, named],
  ['a wrong key as a page', 401, `<html>${named}</html>`],
  ['a wrong key as a JSON text', 401, JSON.stringify(named)],
  ['a spent account', 402, error({ message: `${organisation} has no credits`, code: 402 })],
  ['a missing right', 403, error({ message: `${organisation} may not`, type: 'permission_error' })],
  ['a missing right as a page', 403, `<html>${organisation}</html>`],
  ['a proxy that wants a password', 407, `<html>${organisation}</html>`],
  [
    'a wrong key told as 400',
    400,
    error({
      code: 400,
      message: 'API key not valid. Please pass a valid API key.',
      status: 'INVALID_ARGUMENT',
      details: [
        { reason: 'API_KEY_INVALID', metadata: { consumer: 'projects/leaky-project', key: 'AIzaLeaky' } },
      ],
    }),
  ],
  [
    'a wrong key told as 400 in an array',
    400,
    `[${error({ code: 400, message: `API key expired. ${organisation}`, status: 'INVALID_ARGUMENT' })}]`,
  ],
  ['a wrong key told as 400 by its code', 400, error({ message: named, code: 'invalid_api_key' })],
  ['a key that is told as 404', 404, error({ message: organisation, type: 'authentication_error' })],
  ['a key that is told as 500', 500, error({ message: named, code: 'invalid_api_key' })],
  [
    'a spent account told as 400',
    400,
    JSON.stringify({
      type: 'error',
      error: { type: 'invalid_request_error', message: `Your credit balance is too low, ${organisation}.` },
    }),
  ],
  ['a spent account told as 429', 429, error({ message: organisation, type: 'insufficient_quota' })],
  [
    'a spent account told as 429 by its code',
    429,
    error({ message: organisation, code: 'insufficient_quota' }),
  ],
  [
    'a limit of what the account may spend',
    400,
    JSON.stringify({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: `You have reached your specified API usage limits, ${organisation}.`,
      },
    }),
  ],
  ['a spent account in Chinese', 429, error({ message: `余额不足,请充值。${organisation}`, code: '1113' })],
  [
    'a key in a list of errors',
    400,
    JSON.stringify({ errors: [{ code: 'invalid_api_key', message: named }] }),
  ],
  ['a key in a detail', 400, JSON.stringify({ detail: { code: 'invalid_api_key', message: named } })],
  ['a key in a detail of words', 400, JSON.stringify({ detail: named })],
  ['a key in a short message', 400, JSON.stringify({ code: 1001, msg: named })],
  ['a closed account', 400, error({ message: organisation, code: 'billing_not_active' })],
];

/** Answers that name the account or its key in vain, or speak of what was asked: they stay the caller's. */
export const callersAnswers: readonly (readonly [string, number, string])[] = [
  ['moderation', 403, error({ message: 'Your input was flagged.', code: 403, metadata: { reasons: ['x'] } })],
  ['a policy', 403, error({ message: 'No.', code: 'content_policy_violation' })],
  ['a region', 403, error({ message: 'No.', code: 'unsupported_country_region_territory' })],
  ['words of the caller', 400, error({ message: "'API key not valid' is not one of the roles.", type: 'x' })],
  [
    'a name of the caller',
    400,
    error({ message: 'Unknown member invalid_api_key: insufficient_quota', type: 'x' }),
  ],
  [
    'fields of a form',
    422,
    JSON.stringify({ detail: [{ loc: ['body', 'api_key'], msg: named, type: 'x' }] }),
  ],
  ['a busy minute', 429, error({ message: 'You exceeded your current quota', status: 'RESOURCE_EXHAUSTED' })],
  ['a missing model', 404, error({ message: 'no such model', code: 'model_not_found' })],
];

/** A way to call a model. */
export interface CallFace {
  readonly name: string;
  readonly path: string;
  /** JSON, or the text of a form. */
  readonly body: object | string;
}

const messages = [{ role: 'user', content: 'hi' }];
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
const boundary = 'edge';
const field = (name: string, value: string, more = ''): string =>
  `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
const recording = `${field('model', 'm')}${field('file', 'RIFF', '; filename="a.wav"')}--${boundary}--\r\n`;

/** The text protocols, each of which goes to upstreams of every text kind. */
export const textFaces: readonly CallFace[] = [
  { name: 'chat', path: '/v1/chat/completions', body: { model: 'm', messages } },
  { name: 'responses', path: '/v1/responses', body: { model: 'm', input: 'hi' } },
  { name: 'messages', path: '/v1/messages', body: { model: 'm', max_tokens: 9, messages } },
  { name: 'generateContent', path: '/v1beta/models/m:generateContent', body: { contents } },
];

/** Everything else that a chat upstream is asked. */
export const otherFaces: readonly CallFace[] = [
  { name: 'completions', path: '/v1/completions', body: { model: 'm', prompt: 'hi' } },
  { name: 'embeddings', path: '/v1/embeddings', body: { model: 'm', input: 'hi' } },
  { name: 'rerank', path: '/v1/rerank', body: { model: 'm', query: 'a', documents: ['b'] } },
  { name: 'moderations', path: '/v1/moderations', body: { model: 'm', input: 'hi' } },
  { name: 'speech', path: '/v1/audio/speech', body: { model: 'm', input: 'hi', voice: 'alloy' } },
  { name: 'transcription', path: '/v1/audio/transcriptions', body: recording },
  { name: 'images', path: '/v1/images/generations', body: { model: 'm', prompt: 'a fox' } },
  {
    name: 'images as bytes',
    path: '/v1/images/generations',
    body: { model: 'm', prompt: 'a fox', response_format: 'b64_json' },
  },
  {
    name: 'images of messages',
    path: '/v1/images/generations',
    body: { model: 'm', input: { messages: [{ role: 'user', content: [{ text: 'a fox' }] }] } },
  },
  { name: 'video', path: '/v1/videos', body: { model: 'm', prompt: 'a fox' } },
];

/** Sends a call with every header that one of the protocols wants. */
export function callFace(port: number, face: CallFace, more: object = {}): Promise<RawAnswer> {
  const isForm = typeof face.body === 'string';
  const body = typeof face.body === 'string' ? face.body : JSON.stringify({ ...face.body, ...more });
  const type = isForm ? `multipart/form-data; boundary=${boundary}` : 'application/json';
  const path = face.path;
  return exchange(
    port,
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nanthropic-version: 2023-06-01\r\n` +
      `content-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
