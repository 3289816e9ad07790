import type { Test } from 'tap';
import { type RunningGateway, startGateway, testKey } from '../support/gateway.js';
import { mediaConfig } from '../support/media/gateway.js';
import { jsonAnswer, type RawUpstream, startRawUpstream } from '../support/upstream.js';

/** The models below are all at this upstream, which notes what it gets and refuses it. */
export interface Hearing {
  readonly gateway: RunningGateway;
  readonly upstream: RawUpstream;
}

export const refusedThere = 'refused by the upstream itself';

/** @param upstreamMore merged over every upstream of the config */
export async function startHearing(t: Test, upstreamMore: Record<string, unknown> = {}): Promise<Hearing> {
  const answer = jsonAnswer(422, JSON.stringify({ error: { message: refusedThere }, message: refusedThere }));
  const upstream = await startRawUpstream(t, answer);
  const kinds = ['chat', 'messages', 'generateContent', 'vendork', 'vendorj', 'generic'] as const;
  const at = (kind: (typeof kinds)[number], protocols: readonly string[], more: object = {}) => ({
    protocols,
    targets: [{ upstream: kind, model: 'real', ...more }],
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        kinds.map((kind) => [kind, { kind, baseUrl: upstream.url, ...upstreamMore }]),
      ),
      models: {
        native: at(
          'chat',
          ['chat', 'completions', 'embeddings', 'rerank', 'moderations', 'audio', 'images'],
          {},
        ),
        made: at('chat', ['responses'], { responses: true }),
        claude: at('messages', ['messages', 'chat', 'responses', 'generateContent']),
        gemini: at('generateContent', ['generateContent', 'chat', 'messages', 'responses']),
        dashscope: at('chat', ['images'], { images: 'dashscope' }),
        kling: at('vendork', ['video']),
        jimeng: at('vendorj', ['video']),
        sora: at('chat', ['video']),
        generic: at('generic', ['video']),
      },
      config: { limits: { uploadBytes: 8_388_608 } },
    }),
  });
  return { gateway, upstream };
}

/** A body that its endpoint takes, and members of it that are read, each with a value that it may have. */
export interface Sample {
  readonly what: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly members: Readonly<Record<string, unknown>>;
  /** Objects of the body with such members. */
  readonly inner?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Names that the body may be spelled with as well. */
  readonly twoSpellings?: boolean;
}

const messages = [{ role: 'user', content: 'hi' }];
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
const counted = { stream: false, max_tokens: 5, service_tier: 'auto' };
const ofChat = {
  model: 'native',
  ...counted,
  max_completion_tokens: 5,
  n: 1,
  stream_options: {},
  store: true,
  response_format: { type: 'text' },
  messages,
};
const ofResponses = {
  model: 'made',
  stream: false,
  max_output_tokens: 5,
  store: false,
  background: false,
  previous_response_id: 'resp_1',
  service_tier: 'auto',
  stream_options: {},
};
const config = { generationConfig: { maxOutputTokens: 5, candidateCount: 1 } };
const ofVideo = { model: 'generic', n: 1, duration: 5, prompt: 'a cat' };

export const samples: readonly Sample[] = [
  {
    what: 'chat',
    path: '/v1/chat/completions',
    body: { model: 'native', messages },
    members: ofChat,
    inner: { stream_options: { include_usage: true } },
  },
  {
    what: 'chat at a messages upstream',
    path: '/v1/chat/completions',
    body: { model: 'claude', messages },
    members: { ...ofChat, model: 'claude' },
  },
  {
    what: 'responses',
    path: '/v1/responses',
    body: { model: 'made', input: 'hi' },
    members: ofResponses,
  },
  {
    what: 'responses at a generateContent upstream',
    path: '/v1/responses',
    body: { model: 'gemini', input: 'hi' },
    members: { model: 'gemini', stream: false, max_output_tokens: 5, store: false },
  },
  {
    what: 'a compaction',
    path: '/v1/responses/compact',
    body: { model: 'made', input: 'hi' },
    members: ofResponses,
  },
  {
    what: 'a count of input tokens',
    path: '/v1/responses/input_tokens',
    body: { model: 'made', input: 'hi' },
    members: ofResponses,
  },
  {
    what: 'messages',
    path: '/v1/messages',
    body: { model: 'claude', max_tokens: 5, messages },
    members: { model: 'claude', ...counted, messages, thread: { type: 'create' } },
    inner: { thread: { type: 'continue', previous_message_id: 'msg_1' } },
  },
  {
    what: 'messages at a generateContent upstream',
    path: '/v1/messages',
    body: { model: 'gemini', max_tokens: 5, messages },
    members: { model: 'gemini', stream: false, max_tokens: 5 },
  },
  {
    what: 'a count of tokens',
    path: '/v1/messages/count_tokens',
    body: { model: 'claude', messages },
    members: { model: 'claude', thread: { type: 'create' } },
  },
  ...(['generateContent', 'streamGenerateContent'] as const).map(
    (method): Sample => ({
      what: method,
      path: `/v1beta/models/gemini:${method}`,
      body: { contents },
      members: { model: 'gemini', generationConfig: { maxOutputTokens: 5 } },
      inner: config,
      twoSpellings: true,
    }),
  ),
  {
    what: 'generateContent at a messages upstream',
    path: '/v1beta/models/claude:generateContent',
    body: { contents },
    members: { generationConfig: {} },
    inner: config,
    twoSpellings: true,
  },
  {
    what: "the google SDK's count of tokens",
    path: '/v1beta/models/gemini:countTokens',
    body: { contents },
    members: { model: 'gemini', generationConfig: {} },
    inner: config,
    twoSpellings: true,
  },
  {
    what: 'completions',
    path: '/v1/completions',
    body: { model: 'native', prompt: 'hi' },
    members: { model: 'native', stream: false, max_tokens: 5, n: 1, best_of: 1, stream_options: {} },
    inner: { stream_options: { include_usage: true } },
  },
  {
    what: 'embeddings',
    path: '/v1/embeddings',
    body: { model: 'native', input: 'hi' },
    members: { model: 'native', input: 'hi' },
  },
  {
    what: 'embeddings with the model in the path',
    path: '/v1/engines/native/embeddings',
    body: { input: 'hi' },
    members: { model: 'native' },
  },
  {
    what: 'rerank',
    path: '/v1/rerank',
    body: { model: 'native', query: 'q', documents: ['d'] },
    members: { model: 'native', top_n: 1 },
  },
  {
    what: 'moderations',
    path: '/v1/moderations',
    body: { model: 'native', input: 'hi' },
    members: { model: 'native' },
  },
  {
    what: 'speech',
    path: '/v1/audio/speech',
    body: { model: 'native', input: 'hi', voice: 'alloy' },
    members: { model: 'native', input: 'hi', stream_format: 'audio' },
  },
  {
    what: 'images',
    path: '/v1/images/generations',
    body: { model: 'native', prompt: 'a cat' },
    members: { model: 'native', n: 1, size: '1024x1024', stream: false, response_format: 'url' },
  },
  {
    what: 'images in messages',
    path: '/v1/images/generations',
    body: { model: 'dashscope', input: { messages: [{ role: 'user', content: [{ text: 'a cat' }] }] } },
    members: { model: 'dashscope', n: 1, size: '1024x1024', parameters: {} },
    inner: { parameters: { n: 1, size: '1024x1024' } },
  },
  {
    what: 'edits of images',
    path: '/v1/images/edits',
    body: { model: 'native', prompt: 'a cat', images: [{ image_url: 'https://example.com/a.png' }] },
    members: { model: 'native', n: 1, size: '1024x1024' },
  },
  {
    what: 'videos',
    path: '/v1/videos',
    body: { model: 'sora', prompt: 'a cat' },
    members: { model: 'sora', seconds: '4', size: '1280x720' },
  },
  {
    what: 'generic videos',
    path: '/v1/video/generations',
    body: { model: 'generic', prompt: 'a cat' },
    members: ofVideo,
    inner: { metadata: { mode: 'std', negative_prompt: 'dogs' } },
  },
  {
    what: 'vendork videos',
    path: '/vendork/v1/videos/text2video',
    body: { model_name: 'kling', prompt: 'a cat' },
    members: { model_name: 'kling', duration: '5', n: 1 },
    inner: { metadata: { mode: 'std' } },
  },
  {
    what: 'vendorj videos',
    path: '/vendorj/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31',
    body: { req_key: 'jimeng', prompt: 'a cat' },
    members: { req_key: 'jimeng', frames: 121, seed: 1 },
  },
];

/** Names that some parsers take for this one, none of which is it. */
export function alikeOf(name: string, twoSpellings = false): string[] {
  const capital = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const all = [
    capital,
    name.toUpperCase(),
    name.slice(0, -1) + name.slice(-1).toUpperCase(),
    name.replace('s', '\u017f'),
    name.replace('S', '\u017f'),
    name.replace('k', '\u212a'),
    name.replaceAll('_', '-'),
    `${name}\u0000`,
    `\ufeff${name}`,
    `${name} `,
    ...(twoSpellings ? [] : [camel, snake]),
  ];
  return [...new Set(all)].filter((each) => each !== name && each !== '');
}

/** A name in JSON with every character as an escape. */
export function escaped(name: string): string {
  return `"${Array.from(name, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`;
}

/** JSON text of an object from its members' texts. */
export function objectOf(members: readonly (readonly [string, unknown])[]): string {
  return `{${members.map(([name, value]) => `${name}:${JSON.stringify(value)}`).join(',')}}`;
}

/** The members of an object, their names as JSON. */
export function membersOf(object: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(object).map(([name, value]) => [JSON.stringify(name), value]);
}

export const headers = {
  authorization: `Bearer ${testKey}`,
  'content-type': 'application/json',
  'anthropic-version': '2023-06-01',
};
