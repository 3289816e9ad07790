import { test } from 'tap';
import type { LedgerRecord } from '../../../src/usage/ledger-record.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { open } from '../../support/raw-client.js';
import { postBytes } from '../../support/translated.js';
import { chunk, jsonAnswer, startRawUpstream, streamHead } from '../../support/upstream.js';

const tokens = { input: 1, output: 2, audioInput: 30, audioOutput: 40, imageOutput: 50 };
const perSecond = 0.001;

interface Case {
  readonly name: string;
  readonly model: 'tokens' | 'seconds' | 'tokensPaid' | 'secondsPaid';
  readonly path: string;
  readonly body: () => string | FormData;
  readonly answer: string;
  readonly record: Partial<LedgerRecord>;
}

/** A recording of ten seconds by its size, with the few bytes of the form around it. */
const form =
  (model: string, more: Readonly<Record<string, string>> = {}) =>
  () => {
    const parts = new FormData();
    for (const [name, value] of Object.entries({ model, ...more })) parts.append(name, value);
    parts.append('file', new Blob([Buffer.alloc(160_000, 7)]), 'a.mp3');
    return parts;
  };
const json = (value: object) => () => JSON.stringify(value);
const answerOf = (type: string, body: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const whole = (value: object): string => jsonAnswer(200, JSON.stringify(value));
const events = (...list: readonly object[]): string =>
  answerOf('text/event-stream', list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));

const transcripts = '/v1/audio/transcriptions';
/** Three tokens. */
const text = 'abcd efgh ij';
const heard = { tokensKnown: 'estimated', outputTokens: 3 } as const;
const counted = { input_tokens: 14, output_tokens: 5, total_tokens: 19 };
/** 300 bytes with its quotes: 20 seconds. */
const spoken = 'x'.repeat(298);
const made = { tokensKnown: 'estimated', outputTokens: 400, audioOutputTokens: 400 } as const;

/** The first event of a sound, and the longest time that as many bytes of it last. */
const beginning = { type: 'speech.audio.delta', audio: 'QUJD' };
const begunSeconds = `data: ${JSON.stringify(beginning)}\n\n`.length / 500;

const cases: readonly Case[] = [
  {
    name: 'a transcript that reports nothing',
    model: 'tokens',
    path: transcripts,
    body: form('tokens'),
    answer: whole({ text }),
    record: heard,
  },
  {
    name: 'one with segments, that reports seconds',
    model: 'tokens',
    path: transcripts,
    body: form('tokens'),
    answer: whole({ text, duration: 44.5, segments: [{ id: 0, start: 0, end: 44.5, text, tokens: [1, 2] }] }),
    record: { ...heard, inputTokens: 445, audioInputTokens: 445, costNanoUsd: 445 * 30_000 + 3 * 2000 },
  },
  {
    name: 'a plain text that claims a usage',
    model: 'tokens',
    path: transcripts,
    body: form('tokens', { response_format: 'text' }),
    answer: answerOf('text/plain', '"usage":{"input_tokens":1,"output_tokens":1}'),
    record: { tokensKnown: 'estimated', outputTokens: 11 },
  },
  {
    name: 'a stream that reports nothing',
    model: 'tokens',
    path: transcripts,
    body: form('tokens', { stream: 'true' }),
    answer: events({ type: 'transcript.text.delta', delta: text }, { type: 'transcript.text.done', text }),
    record: { tokensKnown: 'estimated' },
  },
  {
    name: 'a transcript that reports tokens',
    model: 'tokens',
    path: transcripts,
    body: form('tokens'),
    answer: whole({ text, usage: counted }),
    record: { tokensKnown: 'exact', inputTokens: 14, outputTokens: 5, mediaSeconds: 0 },
  },
  ...['content-type: text/plain\r\n', 'content-type: application/octet-stream\r\n', ''].map((type): Case => {
    const answer = JSON.stringify({ text, usage: { type: 'tokens', ...counted } });
    return {
      name: `one that is called ${type.trim() || 'nothing'}`,
      model: 'tokens',
      path: transcripts,
      body: form('tokens'),
      answer: `HTTP/1.1 200 OK\r\n${type}content-length: ${answer.length + 1}\r\n\r\n${answer}\n`,
      record: { tokensKnown: 'exact', inputTokens: 14, outputTokens: 5, mediaSeconds: 0 },
    };
  }),
  {
    name: 'a sound',
    model: 'tokens',
    path: '/v1/audio/speech',
    body: json({ model: 'tokens', input: spoken, voice: 'v' }),
    answer: answerOf('audio/mpeg', '\xff\xfb mp3'),
    record: made,
  },
  {
    name: 'a sound in events that report nothing',
    model: 'tokens',
    path: '/v1/audio/speech',
    body: json({ model: 'tokens', input: spoken, voice: 'v', stream_format: 'sse' }),
    answer: events({ type: 'speech.audio.delta', audio: 'QUJD' }, { type: 'speech.audio.done' }),
    record: made,
  },
  {
    name: 'images',
    model: 'tokens',
    path: '/v1/images/generations',
    body: json({ model: 'tokens', prompt: 'a', n: 2 }),
    answer: whole({ created: 1, data: [{ b64_json: 'aGk=' }, { b64_json: 'aGk=' }] }),
    record: { tokensKnown: 'estimated', outputTokens: 3000, imageOutputTokens: 3000, units: 2 },
  },
  {
    name: 'no images',
    model: 'tokens',
    path: '/v1/images/generations',
    body: json({ model: 'tokens', prompt: 'a', n: 2 }),
    answer: whole({ created: 1, data: [] }),
    record: { outputTokens: 0, units: 0 },
  },
  {
    name: 'tokens of a transcript that is paid by the second',
    model: 'seconds',
    path: transcripts,
    body: form('seconds'),
    answer: whole({ text, usage: counted }),
    record: { tokensKnown: 'exact', inputTokens: 14, outputTokens: 5 },
  },
  {
    name: 'tokens that have a price for the operator alone',
    model: 'tokensPaid',
    path: transcripts,
    body: form('tokensPaid'),
    answer: whole({ text, usage: counted }),
    record: { paidNanoUsd: 14 * 1000 + 5 * 2000 },
  },
  {
    name: 'seconds that have a price for the operator alone',
    model: 'secondsPaid',
    path: transcripts,
    body: form('secondsPaid'),
    answer: whole({ text, usage: counted }),
    record: { mediaSeconds: 0, costNanoUsd: 14 * 1000 + 5 * 2000 },
  },
  {
    name: 'words of no speech',
    model: 'tokens',
    path: transcripts,
    body: form('tokens', { response_format: 'verbose_json' }),
    answer: whole({ text: '', language: 'english', segments: [] }),
    record: { tokensKnown: 'estimated', outputTokens: 0 },
  },
];

test('what has passed of a sound, a transcript or images is charged if their upstream breaks off', async (t) => {
  const upstream = await startRawUpstream(t, '');
  const { store, lines } = openLedger(t);
  const protocols = ['audio', 'images'];
  const targets = [{ upstream: 'u0', model: 'm' }];
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      store,
      usage: { ledger: true },
      models: {
        tokens: { protocols, targets, price: tokens },
        seconds: { protocols, targets, price: { perSecond } },
        each: { protocols, targets, price: { perCall: 0.04 } },
      },
    },
  });
  const streamed = (...list: readonly object[]): string =>
    streamHead +
    list
      .map((event) =>
        chunk(`data: ${JSON.stringify(event)}

`),
      )
      .join('');
  /** Larger than what is held back of a whole answer. */
  const sound = `HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 900000\r\n\r\n${'m'.repeat(400_000)}`;
  const delta = streamed({ type: 'transcript.text.delta', delta: text });
  const begun = streamed(beginning);
  const image = { type: 'image_generation.completed', b64_json: 'aGk=' };
  const partial = { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'aGk=' };
  const speak = (model: string) => ['/v1/audio/speech', json({ model, input: spoken, voice: 'v' })] as const;
  const draw = json({ model: 'each', prompt: 'a', n: 2, stream: true });
  const images = '/v1/images/generations';
  const broken = [
    { ask: speak('seconds'), sent: sound, record: { mediaSeconds: 20, costNanoUsd: 20_000_000, units: 0 } },
    { ask: speak('tokens'), sent: sound, record: { ...made, tokensKnown: 'partial' } },
    { ask: speak('seconds'), sent: begun, record: { mediaSeconds: begunSeconds, units: 0 } },
    { ask: speak('tokens'), sent: begun, record: { outputTokens: 3, audioOutputTokens: 3 } },
    { ask: [transcripts, form('seconds', { stream: 'true' })] as const, sent: delta, record: { units: 0 } },
    {
      ask: [images, draw] as const,
      sent: streamed(image, partial),
      record: { units: 1, costNanoUsd: 40_000_000 },
    },
    { ask: [images, draw] as const, sent: streamed(partial), record: { units: 0, costNanoUsd: 0 } },
  ];
  for (const [index, { ask, sent, record }] of broken.entries()) {
    const [path, body] = ask;
    upstream.answer = ({ socket }) => socket.end(sent);
    const content = body();
    const isJson = typeof content === 'string';
    await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${testKey}`,
        ...(isJson ? { 'content-type': 'application/json' } : {}),
      },
      body: content,
    })
      .then((answered) => answered.arrayBuffer())
      .catch(() => {});
    const records = await lines(index + 1);
    const line = records.find(({ at }) => at === Math.max(...records.map((each) => each.at)));
    t.match(line, { outcome: 'upstream_error', ...record }, `${path} ${index}`);
    if (path === transcripts) t.ok((line?.costNanoUsd ?? 0) >= 10_000_000, 'its recording is charged');
  }
});

test('a client that leaves a sound or images pays for what has passed', async (t) => {
  const upstream = await startRawUpstream(t, '');
  const { store, lines } = openLedger(t);
  const model = (price: object) => ({
    protocols: ['audio', 'images'],
    targets: [{ upstream: 'u', model: 'm' }],
    price,
  });
  const gateway = await startGateway(t, {
    config: {
      store,
      usage: { ledger: true },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['k'], onLeave: 'cancel' } },
      models: { tokens: model(tokens), seconds: model({ perSecond }) },
    },
  });
  const image = { type: 'image_generation.completed', b64_json: 'aGk=' };
  const speech = (named: string) =>
    ['/v1/audio/speech', { model: named, input: spoken, voice: 'v' }] as const;
  const draw = ['/v1/images/generations', { model: 'tokens', prompt: 'a', n: 4, stream: true }] as const;
  const left = [
    { ask: speech('seconds'), sent: [beginning], record: { mediaSeconds: begunSeconds } },
    { ask: speech('tokens'), sent: [beginning], record: { outputTokens: 3, audioOutputTokens: 3 } },
    { ask: speech('seconds'), sent: [], record: { mediaSeconds: 0, costNanoUsd: 0 } },
    { ask: speech('tokens'), sent: [], record: { tokensKnown: 'partial', outputTokens: 0 } },
    { ask: draw, sent: [image, image, image], record: { outputTokens: 6000, imageOutputTokens: 6000 } },
  ];
  for (const [index, { ask, sent, record }] of left.entries()) {
    const [path, body] = ask;
    const events = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    upstream.answer = ({ socket }) => void socket.write(streamHead + (events === '' ? '' : chunk(events)));
    const client = await open(gateway.port, postBytes(path, body));
    await upstream.request(index);
    if (events !== '') {
      let received = '';
      for await (const piece of client) {
        received += piece;
        if (received.includes(events)) break;
      }
    }
    client.destroy();
    const records = await lines(index + 1);
    const line = records.find(({ at }) => at === Math.max(...records.map((each) => each.at)));
    t.match(line, { outcome: 'client_gone', ...record }, `${path} ${index}`);
  }
});

test('a recording is charged if its client leaves once all of it was sent, and not before', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { store, lines } = openLedger(t);
  const model = (price: object) => ({
    protocols: ['audio'],
    targets: [{ upstream: 'u0', model: 'm' }],
    price,
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      store,
      usage: { ledger: true },
      models: { tokens: model(tokens), seconds: model({ perSecond }) },
    },
  });
  const leave = async (index: number, sent: RequestInit, isSent: () => Promise<unknown>) => {
    const controller = new AbortController();
    const { signal } = controller;
    const { headers } = sent;
    const init = {
      ...sent,
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${testKey}` },
      signal,
    };
    const answered = fetch(gateway.url + transcripts, init).catch(() => {});
    await isSent();
    controller.abort();
    await answered;
    return (await lines(index + 1)).reduce((last, each) => (each.at > last.at ? each : last));
  };
  const byToken = await leave(0, { body: form('tokens')() }, () => upstream.request(0));
  t.match(byToken, { outcome: 'client_gone', outputTokens: 0 });
  t.ok(
    byToken.audioInputTokens >= 100 && byToken.audioInputTokens < 105,
    `${byToken.audioInputTokens} tokens`,
  );
  const bySecond = await leave(1, { body: form('seconds')() }, () => upstream.request(1));
  t.match(bySecond, { outcome: 'client_gone', inputTokens: 0 });
  t.ok(bySecond.costNanoUsd >= 10_000_000 && bySecond.costNanoUsd < 11_000_000, `${bySecond.costNanoUsd}`);

  const large = form('seconds')();
  large.append('rest', new Blob([Buffer.alloc(2_000_000, 7)]), 'b.mp3');
  const whole = new Response(large);
  const type = whole.headers.get('content-type') ?? '';
  const bytes = new Uint8Array(await whole.arrayBuffer());
  const begun = new ReadableStream({
    start: (controller) => controller.enqueue(bytes.subarray(0, bytes.length - 100)),
  });
  const inPart = { body: begun, duplex: 'half', headers: { 'content-type': type } } as RequestInit;
  const unheard = await leave(2, inPart, async () => (await upstream.arrival(2)).until(1_000_000));
  t.match(unheard, { outcome: 'client_gone', costNanoUsd: 0 });
});

test('sounds, transcripts and images whose tokens alone have a price are estimated if their upstream counts none', async (t) => {
  const upstream = await startRawUpstream(t, '');
  const { store, lines } = openLedger(t);
  const protocols = ['audio', 'images'];
  const target = { upstream: 'u0', model: 'm' };
  const targets = [target];
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      store,
      usage: { ledger: true },
      models: {
        tokens: { protocols, targets, price: tokens },
        seconds: { protocols, targets, price: { perSecond } },
        tokensPaid: {
          protocols,
          targets: [{ ...target, cost: { input: 1, output: 2, perSecond } }],
          price: { perSecond },
        },
        secondsPaid: {
          protocols,
          targets: [{ ...target, cost: { perSecond } }],
          price: { input: 1, output: 2 },
        },
      },
    },
  });
  let asked = 0;
  for (const { name, model, path, body, answer, record } of cases) {
    upstream.answer = answer;
    const sent = body();
    const answered = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${testKey}`,
        ...(typeof sent === 'string' ? { 'content-type': 'application/json' } : {}),
      },
      body: sent,
    });
    await answered.arrayBuffer();
    t.equal(answered.status, 200, name);
    const records = await lines(++asked);
    const line = records.find(({ requestId }) => requestId === answered.headers.get('x-request-id'));
    t.match(line, record, name);
    if (model === 'secondsPaid')
      t.ok((line?.paidNanoUsd ?? 0) >= 10_000_000, `${name}: ${line?.paidNanoUsd} for the operator`);
    if (path !== transcripts || line === undefined) continue;
    // Ten seconds of a recording, in tokens or by the second.
    if (record.tokensKnown === 'estimated' && record.inputTokens === undefined)
      t.ok(line.inputTokens >= 100 && line.inputTokens < 105, `${name}: ${line.inputTokens} tokens`);
    if (!name.startsWith('tokens')) continue;
    t.ok(line.mediaSeconds >= 10 && line.mediaSeconds < 11, `${name}: ${line.mediaSeconds} s`);
    t.ok(line.costNanoUsd >= 10_000_000, `${name}: ${line.costNanoUsd}`);
  }
});
