import type { Socket } from 'node:net';
import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { type RunningGateway, startGateway, testKey } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { open } from '../../support/raw-client.js';
import { postBytes } from '../../support/translated.js';
import { jsonAnswer, startRawUpstream, streamHead } from '../../support/upstream.js';

const tokens = { input: 1, output: 2, imageOutput: 50, audioOutput: 40 };
const protocols = ['chat', 'embeddings', 'rerank', 'audio', 'images'];

interface Case {
  readonly model: string;
  readonly path: string;
  readonly more: object;
  /** What has arrived of the answer; a head without content unless it is given. */
  readonly sent?: string;
  readonly record: Partial<LedgerRecord>;
}

const draw = { path: '/v1/images/generations', more: { prompt: 'a', n: 3 } };
const drawn = {
  path: '/v1beta/models/drawn:generateContent',
  more: {
    contents: [{ role: 'user', parts: [{ text: 'a fox' }] }],
    generationConfig: { responseModalities: ['IMAGE'], candidateCount: 2 },
  },
};
const speak = { path: '/v1/audio/speech', more: { input: 'abcdef', voice: 'v' } };
const chat = { path: '/v1/chat/completions', more: { messages: [{ role: 'user', content: 'a' }] } };
const perCall = { costNanoUsd: 40_000_000, paidNanoUsd: 30_000_000 };
const cases: readonly Case[] = [
  { model: 'each', ...draw, record: { units: 3, costNanoUsd: 120_000_000, paidNanoUsd: 90_000_000 } },
  {
    model: 'tokens',
    ...draw,
    record: { units: 3, outputTokens: 4500, imageOutputTokens: 4500, tokensKnown: 'partial' },
  },
  {
    model: 'tokens',
    ...draw,
    more: { ...draw.more, stream: true },
    sent: streamHead,
    record: { units: 3, imageOutputTokens: 4500 },
  },
  {
    model: 'both',
    ...draw,
    record: {
      units: 3,
      inputTokens: 9,
      outputTokens: 4500,
      tokensKnown: 'partial',
      costNanoUsd: 129_009_000,
    },
  },
  {
    model: 'convertedBoth',
    ...draw,
    record: { units: 3, outputTokens: 4500, tokensKnown: 'partial', costNanoUsd: 130_500_000 },
  },
  { model: 'sized', ...draw, more: { ...draw.more, size: '1x1' }, record: { costNanoUsd: 60_000_000 } },
  { model: 'converted', ...draw, record: { units: 3, costNanoUsd: 120_000_000 } },
  { model: 'convertedTokens', ...draw, record: { imageOutputTokens: 4500, tokensKnown: 'partial' } },
  { model: 'drawn', ...drawn, record: { units: 2, costNanoUsd: 80_000_000 } },
  { model: 'characters', ...speak, record: { characters: 6, costNanoUsd: 90_000 } },
  { model: 'tokens', ...speak, record: { outputTokens: 0, tokensKnown: 'partial' } },
  { model: 'seconds', ...speak, record: { mediaSeconds: 0, costNanoUsd: 0 } },
  { model: 'each', ...speak, record: perCall },
  { model: 'each', ...chat, record: { ...perCall, units: 1, tokensKnown: 'partial' } },
  { model: 'each', path: '/v1/embeddings', more: { input: 'a' }, record: perCall },
  {
    model: 'each',
    path: '/v1/rerank',
    more: { query: 'a', documents: Array(201).fill('b') },
    record: { inputTokens: 212, units: 3, costNanoUsd: 120_000_000, paidNanoUsd: 90_000_000 },
  },
  {
    // Two tokens of the query with each document.
    model: 'tokens',
    path: '/v1/rerank',
    more: { query: 'abcdef', documents: Array(1001).fill('b') },
    record: { inputTokens: 3014, tokensKnown: 'partial' },
  },
];

/** Has an upstream write something, and returns when the gateway has got it: what comes later has been answered. */
async function arrived(gateway: RunningGateway, socket: Socket, bytes: string): Promise<void> {
  await new Promise((next) => socket.write(bytes, next));
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${testKey}` } });
}

test('a call whose client leaves before any answer is charged what its upstream has begun', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { store, lines } = openLedger(t);
  const model = (price: object, ofTarget: object = {}) => ({
    protocols,
    targets: [{ upstream: 'u', model: 'm', ...ofTarget }],
    price,
  });
  const converted = (price: object, protocol = 'images') => ({
    protocols: [protocol],
    targets: [{ upstream: 'u', model: 'm', images: 'dashscope' }],
    price,
  });
  const gateway = await startGateway(t, {
    config: {
      store,
      usage: { ledger: true },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'], onLeave: 'cancel' } },
      models: {
        tokens: model(tokens),
        each: model({ perCall: 0.04 }, { cost: { perCall: 0.03 } }),
        sized: model({ perCall: 1, images: [{ size: '1x1', usd: 0.02 }] }),
        characters: model({ characters: 15 }),
        seconds: model({ perSecond: 1 }),
        converted: converted({ perCall: 0.04 }),
        convertedTokens: converted(tokens),
        both: model({ perCall: 0.04, input: 1, output: 2 }),
        convertedBoth: converted({ perCall: 0.04, input: 1, output: 2 }),
        drawn: converted({ perCall: 0.04 }, 'generateContent'),
      },
    },
  });
  for (const [index, { model: named, path, more, sent = '', record }] of cases.entries()) {
    const client = await open(gateway.port, postBytes(path, { model: named, ...more }));
    const { socket } = await upstream.request(index);
    if (sent !== '') await arrived(gateway, socket, sent);
    client.destroy();
    const records = await lines(index + 1);
    const line = records.find(({ at }) => at === Math.max(...records.map((each) => each.at)));
    t.match(line, { outcome: 'client_gone', ...record }, `${named} ${path}`);
    if (named === 'tokens') t.ok((line?.inputTokens ?? 0) > 0, 'its input is charged');
  }
});

test('a call that is left while its answer is an error, or a redirect of converted images, costs nothing', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const refusal = jsonAnswer(400, '{"error":{"message":"no"}}').slice(0, -5);
  const { store, lines } = openLedger(t);
  const target = { upstream: 'u', model: 'm' };
  const gateway = await startGateway(t, {
    config: {
      store,
      usage: { ledger: true },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'] } },
      models: {
        plain: { protocols: ['images'], targets: [target], price: { perCall: 1 } },
        converted: {
          protocols: ['images'],
          targets: [{ ...target, images: 'dashscope' }],
          price: { perCall: 1 },
        },
      },
    },
  });
  const redirect = refusal.replace('400', '302');
  const cases = [
    ['plain', refusal],
    ['converted', refusal],
    ['converted', redirect],
  ] as const;
  for (const [index, [model, answer]] of cases.entries()) {
    const client = await open(gateway.port, postBytes(draw.path, { model, ...draw.more }));
    const { socket } = await upstream.request(index);
    await arrived(gateway, socket, answer);
    client.destroy();
    const records = await lines(index + 1);
    t.match(records.at(-1), { outcome: 'client_gone', units: 0, costNanoUsd: 0 }, model);
  }
});

test('a call whose upstream has got a part of its request costs nothing when its client leaves', async (t) => {
  const upstream = await startRawUpstream(t, () => {}, { onHead: ({ socket }) => socket.pause() });
  const { store, lines } = openLedger(t);
  const model = (price: object, ofTarget: object = {}) => ({
    protocols,
    targets: [{ upstream: 'u', model: 'm', ...ofTarget }],
    price,
  });
  const gateway = await startGateway(t, {
    config: {
      store,
      usage: { ledger: true },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'], onLeave: 'cancel' } },
      models: {
        each: model({ perCall: 0.04 }),
        tokens: model(tokens),
        converted: model({ perCall: 0.04 }, { images: 'dashscope' }),
      },
    },
  });
  // More than the system holds for a connection.
  const long = 'a'.repeat(14 * 1024 * 1024);
  const images = [{ image_url: `data:image/png;base64,${long}` }];
  const edit = (named: string) => ({ model: named, prompt: 'a', images });
  const form = (named: string) => {
    const file = 'content-disposition: form-data; name="image"; filename="a.png"\r\n\r\n';
    const field = (name: string, value: string) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const body = `${field('model', named)}${field('prompt', 'a')}--b\r\n${file}${long}\r\n--b--\r\n`;
    const head = `POST /v1/images/edits HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n`;
    return `${head}content-type: multipart/form-data; boundary=b\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  };
  const asks: readonly (readonly [string, string | Buffer])[] = [
    ['each', postBytes('/v1/images/edits', edit('each'))],
    ['tokens', postBytes(chat.path, { model: 'tokens', messages: [{ role: 'user', content: long }] })],
    ['converted', postBytes('/v1/images/edits', edit('converted'))],
    ['each', form('each')],
  ];
  for (const [index, [named, bytes]] of asks.entries()) {
    const client = await open(gateway.port, bytes);
    await upstream.arrival(index);
    client.destroy();
    const records = await lines(index + 1);
    const line = records.find(({ at }) => at === Math.max(...records.map((each) => each.at)));
    const free = { outcome: 'client_gone', inputTokens: 0, units: 0, costNanoUsd: 0 };
    t.match(line, free, `${named} ${index}`);
  }
});

test('a call whose client has left costs the same if its upstream is silent until its deadline', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { store, lines } = openLedger(t);
  const gateway = await startGateway(t, {
    config: {
      store,
      usage: { ledger: true },
      timeouts: { firstByteMs: 500 },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'] } },
      models: {
        each: { protocols, targets: [{ upstream: 'u', model: 'm' }], price: { input: 1, perCall: 0.04 } },
      },
    },
  });
  const client = await open(gateway.port, postBytes(chat.path, { model: 'each', ...chat.more }));
  await upstream.request(0);
  client.destroy();
  const [line] = await lines(1);
  t.match(line, { outcome: 'client_gone', units: 1, tokensKnown: 'partial' });
  t.ok((line?.costNanoUsd ?? 0) > 40_000_000);
});
