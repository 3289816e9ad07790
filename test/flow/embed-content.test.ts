import { setTimeout as after } from 'node:timers/promises';
import { test } from 'tap';
import { atOnce } from '../../src/wire/steps.js';
import { startGateway } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { post } from '../support/translated.js';
import { jsonAnswer, type RawUpstream, startRawUpstream } from '../support/upstream.js';

const batchPath = '/v1beta/models/m:batchEmbedContents';
const onePath = '/v1/models/m:embedContent';
const content = (...texts: string[]) => ({ parts: texts.map((text) => ({ text })) });

const openai = (data: readonly object[]) =>
  jsonAnswer(
    200,
    JSON.stringify({ object: 'list', data, model: 'real', usage: { prompt_tokens: 7, total_tokens: 7 } }),
  );
const item = (index: number, embedding: unknown) => ({ object: 'embedding', index, embedding });

interface Stage {
  readonly port: number;
  readonly upstream: RawUpstream;
  /** What the last request's body was. */
  sent(): unknown;
  /** What is told of the last call. */
  last(): unknown;
}

async function stage(
  t: Parameters<typeof startRawUpstream>[0],
  kind: string,
  answer: string,
  alias = 'real',
): Promise<Stage> {
  const upstream = await startRawUpstream(t, answer);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['embeddings'],
    alias,
    upstream: { kind },
  });
  return {
    port: gateway.port,
    upstream,
    sent: () => JSON.parse(upstream.requests.at(-1)?.body.toString() ?? 'null'),
    last: () => atOnce(gateway.gateway.inspectSteps()).requests[0],
  };
}

test('contents are texts of /embeddings, and its vectors are theirs by their index', async (t) => {
  const { port, upstream, sent, last } = await stage(
    t,
    'chat',
    openai([item(1, [0.25, -2e-3]), item(0, [1])]),
  );
  const answer = await post(port, batchPath, {
    requests: [
      { model: 'models/m', content: content('a', 'b'), taskType: 'CLUSTERING', outputDimensionality: 2 },
      { model: 'm', content: content('c'), title: 'x', output_dimensionality: 2 },
    ],
  });
  t.equal(answer.status, 200, answer.body);
  t.strictSame(JSON.parse(answer.body), {
    embeddings: [{ values: [1] }, { values: [0.25, -0.002] }],
    usageMetadata: { promptTokenCount: 7, totalTokenCount: 7 },
  });
  t.match(answer.head, /\r\nx-gateway-path: translated\r\n/);
  t.match(answer.head, /\r\nx-gateway-left-out: taskType, title\r\n/);
  t.match(upstream.requests[0]?.head, /^POST \/v1\/embeddings HTTP/);
  t.strictSame(sent(), { model: 'real', input: ['a\nb', 'c'], dimensions: 2 });
  t.match(last(), { inputTokens: 7, outputTokens: 0 });
});

test('one content has one embedding, though the upstream answers in base64', async (t) => {
  const base64 = Buffer.from(new Float32Array([0.5, -1]).buffer).toString('base64');
  const { port, sent } = await stage(t, 'chat', openai([item(0, base64)]));
  const answer = await post(port, onePath, { content: content('a') });
  t.match(JSON.parse(answer.body), { embedding: { values: [0.5, -1] } });
  t.strictSame(sent(), { model: 'real', input: 'a' });
});

test('what /embeddings cannot say is a 400 that names it, and nothing is asked', async (t) => {
  const { port, upstream } = await stage(t, 'chat', openai([item(0, [1])]));
  const cases: readonly (readonly [path: string, body: object, said: RegExp])[] = [
    [
      onePath,
      { content: { parts: [{ inlineData: { data: '', mimeType: 'image/png' } }] } },
      /content\.parts\[0\]/,
    ],
    [onePath, { content: { parts: [] } }, /'content\.parts' must have a text/],
    [onePath, { requests: [] }, /batchEmbedContents/],
    [batchPath, { requests: [] }, /at least one/],
    [
      batchPath,
      { requests: [{ content: content('a') }, { content: {} }] },
      /requests\[1\]\.content\.parts\[0\]/,
    ],
    [
      batchPath,
      { requests: [{ content: content('a'), outputDimensionality: 1 }, { content: content('b') }] },
      /requests\[1\]\.outputDimensionality/,
    ],
    [batchPath, { requests: [{ model: 'models/other', content: content('a') }] }, /requests\[0\]\.model/],
  ];
  for (const [path, body, said] of cases) {
    const answer = await post(port, path, body);
    t.equal(answer.status, 400, answer.body);
    t.match(JSON.parse(answer.body).error, { status: 'INVALID_ARGUMENT', message: said });
  }
  const twice = `{"requests":[{"model":"m","model":"other","content":{"parts":[{"text":"a"}]}}]}`;
  const raw = await postJson(`http://127.0.0.1:${port}${batchPath}`, twice);
  t.equal(raw.status, 400, 'a model that is named twice');
  t.equal(upstream.requests.length, 0);
});

test('an answer without a vector for each text, or with something else, is none', async (t) => {
  for (const answer of [
    openai([item(0, [1])]),
    openai([item(0, [1]), item(1, ['a'])]),
    jsonAnswer(200, '{}'),
  ]) {
    const { port } = await stage(t, 'chat', answer);
    const requests = [{ content: content('a') }, { content: content('b') }];
    const { status, body } = await post(port, batchPath, { requests });
    t.equal(status, 502, body);
  }
});

test("an upstream's own error is told in the client's form", async (t) => {
  const { port } = await stage(t, 'chat', jsonAnswer(400, '{"error":{"message":"too long","type":"x"}}'));
  const { status, body } = await post(port, onePath, { content: content('a') });
  t.equal(status, 400);
  t.match(JSON.parse(body), { error: { code: 400, status: 'INVALID_ARGUMENT', message: /too long/ } });
});

const google = jsonAnswer(200, JSON.stringify({ embeddings: [{ values: [1, 2] }, { values: [3, 4] }] }));

test('a call goes to an upstream of its own form as it came, but for the names of the model', async (t) => {
  const requests = [
    { model: 'models/m', content: content('a'), taskType: 'CLUSTERING' },
    { content: content('b') },
    { model: 'm', content: content('c') },
  ];
  const same = await stage(t, 'generateContent', google, 'm');
  const exact = await post(same.port, batchPath, { requests });
  t.match(exact.head, /\r\nx-gateway-path: exact\r\n/);
  t.equal(same.upstream.requests[0]?.body.toString(), JSON.stringify({ requests }));
  t.match(same.upstream.requests[0]?.head, /^POST \/v1\/models\/m:batchEmbedContents HTTP/);
  const aliased = await stage(t, 'generateContent', google, 'real-1');
  await post(aliased.port, batchPath, { requests });
  t.match(aliased.upstream.requests[0]?.head, /^POST \/v1\/models\/real-1:batchEmbedContents HTTP/);
  const [first, second, third] = requests;
  const model = 'models/real-1';
  t.strictSame(aliased.sent(), { requests: [{ ...first, model }, second, { ...third, model }] });
  await post(aliased.port, onePath, { model: 'models/m', content: content('a') });
  t.strictSame(aliased.sent(), { model, content: content('a') });
  const tuned = await stage(t, 'generateContent', google, 'tunedModels/own');
  await post(tuned.port, batchPath, { requests: requests.slice(0, 1) });
  t.match(tuned.upstream.requests[0]?.head, /^POST \/v1\/tunedModels\/own:batchEmbedContents HTTP/);
  t.strictSame(tuned.sent(), { requests: [{ ...first, model: 'tunedModels/own' }] });
  await post(tuned.port, onePath, { model: 'models/m', content: content('a') });
  t.strictSame(tuned.sent(), { model: 'tunedModels/own', content: content('a') });
});

test('/v1/embeddings is served by an upstream that has :batchEmbedContents', async (t) => {
  const { port, upstream, sent } = await stage(t, 'generateContent', google);
  const ask = { model: 'm', input: ['a', 'b'], dimensions: 2, user: 'u' };
  const answer = await post(port, '/v1/embeddings', ask);
  t.equal(answer.status, 200, answer.body);
  t.match(JSON.parse(answer.body), {
    object: 'list',
    model: 'm',
    data: [item(0, [1, 2]), item(1, [3, 4])],
    usage: { prompt_tokens: Number, total_tokens: Number },
  });
  t.match(answer.head, /\r\nx-gateway-left-out: user\r\n/);
  t.match(upstream.requests[0]?.head, /^POST \/v1\/models\/real:batchEmbedContents HTTP/);
  const model = 'models/real';
  t.strictSame(sent(), {
    requests: ['a', 'b'].map((text) => ({ model, content: content(text), outputDimensionality: 2 })),
  });
  const base64 = await post(port, '/v1/embeddings', { ...ask, encoding_format: 'base64' });
  const [first] = JSON.parse(base64.body).data;
  t.strictSame([...new Float32Array(new Uint8Array(Buffer.from(first.embedding, 'base64')).buffer)], [1, 2]);
  const tokens = await post(port, '/v1/embeddings', { model: 'm', input: [[1, 2]] });
  t.equal(tokens.status, 400);
  t.match(JSON.parse(tokens.body).error, { param: 'input[0]' });
});

test('a client of /v1/embeddings is told an estimate of tokens that the upstream reports as none', async (t) => {
  const embeddings = [{ values: [1] }, { values: [2] }];
  for (const [usageMetadata, tokens] of [
    [undefined, 3],
    [{ promptTokenCount: 0 }, 3],
    [{ promptTokenCount: 0, totalTokenCount: 9 }, 9],
    [{ promptTokenCount: 8, totalTokenCount: 8 }, 8],
  ] as const) {
    const { port } = await stage(
      t,
      'generateContent',
      jsonAnswer(200, JSON.stringify({ embeddings, usageMetadata })),
    );
    const answer = await post(port, '/v1/embeddings', { model: 'm', input: ['words', 'words'] });
    t.strictSame(JSON.parse(answer.body).usage, { prompt_tokens: tokens, total_tokens: tokens });
  }
});

test('a call that would grow beyond what the upstream takes is a 400 that says what to do, and nothing is asked', async (t) => {
  const { port, upstream } = await stage(t, 'generateContent', google);
  for (const [more, param, said] of [
    [{ input: Array.from({ length: 101 }, () => 'a') }, 'input', /at most 100 texts.*send/],
    [{ input: ['a', 'b'], dimensions: { long: 'x' } }, 'dimensions', /whole number/],
    [{ input: ['a', 'b'], dimensions: 1.5 }, 'dimensions', /whole number/],
    [{ input: ['a', 'b'], dimensions: -1 }, 'dimensions', /whole number/],
  ] as const) {
    const answer = await post(port, '/v1/embeddings', { model: 'm', ...more });
    t.equal(answer.status, 400, answer.body);
    t.match(JSON.parse(answer.body).error, { param, message: said });
  }
  t.equal(upstream.requests.length, 0);
});

test('what one target cannot take in one call is put to the next', async (t) => {
  const small = await startRawUpstream(t, google);
  const large = await startRawUpstream(t, openai([item(0, [1])]));
  const { port } = await startGateway(t, {
    config: {
      upstreams: {
        small: { baseUrl: small.url, kind: 'generateContent' },
        large: { baseUrl: large.url, kind: 'chat' },
      },
      models: {
        m: {
          protocols: ['embeddings'],
          targets: [
            { upstream: 'small', priority: 0 },
            { upstream: 'large', priority: 1 },
          ],
        },
      },
    },
  });
  const input = Array.from({ length: 101 }, () => 'a');
  const answer = await post(port, '/v1/embeddings', { model: 'm', input });
  t.equal(answer.status, 200, answer.body);
  t.strictSame([small.requests.length, large.requests.length], [0, 1]);
});

test('memory for a body in another form is found before it is made', async (t) => {
  const upstream = await startRawUpstream(t, google);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['embeddings'],
    upstream: { kind: 'generateContent' },
    config: { limits: { bodyBytes: 100_000, bufferedBytes: 100_000 } },
  });
  // What is written is short: it is the work that needs the room.
  const ask = (user: string) => post(port, '/v1/embeddings', { model: 'm', input: ['a', 'b'], user });
  const answer = await ask('x'.repeat(60_000));
  t.equal(answer.status, 503, answer.body);
  t.match(JSON.parse(answer.body).error, { code: 'overloaded' });
  t.equal(upstream.requests.length, 0);
  t.equal((await ask('x'.repeat(30_000))).status, 200);
});

test('no second target is asked in another form while there is no memory to write it', async (t) => {
  const first = await startRawUpstream(t, () => {});
  const second = await startRawUpstream(t, google);
  const { port } = await startGateway(t, {
    config: {
      limits: { bodyBytes: 100_000, bufferedBytes: 100_000 },
      upstreams: {
        first: { baseUrl: first.url, kind: 'chat' },
        second: { baseUrl: second.url, kind: 'generateContent' },
      },
      models: {
        m: {
          protocols: ['embeddings'],
          hedgeMs: 20,
          targets: [
            { upstream: 'first', priority: 0 },
            { upstream: 'second', priority: 1 },
          ],
        },
      },
    },
  });
  const ask = (user: string) => post(port, '/v1/embeddings', { model: 'm', input: ['a', 'b'], user });
  const asked = ask('x'.repeat(60_000));
  const request = await first.request(0);
  await after(60);
  t.equal(second.requests.length, 0);
  request?.socket.write(openai([item(0, [1])]));
  t.equal((await asked).status, 200);
  t.equal((await ask('x'.repeat(30_000))).status, 200, 'where there is room it answers');
});

test("Cohere's embeddings are of upstreams of both kinds, and what these are not told is named", async (t) => {
  const body = {
    model: 'm',
    input_type: 'search_query',
    truncate: 'END',
    texts: ['a', 'b'],
    output_dimension: 2,
  };
  const chat = await stage(t, 'chat', openai([item(1, [0.25, -2e-3]), item(0, [1])]));
  const ofChat = await post(chat.port, '/v2/embed', body);
  t.equal(ofChat.status, 200, ofChat.body);
  t.match(JSON.parse(ofChat.body), {
    response_type: 'embeddings_by_type',
    embeddings: { float: [[1], [0.25, -0.002]] },
    texts: ['a', 'b'],
    meta: { api_version: { version: '2' }, billed_units: { input_tokens: 7 } },
  });
  t.match(ofChat.head, /\r\nx-gateway-left-out: input_type, truncate\r\n/);
  t.strictSame(chat.sent(), { model: 'real', input: ['a', 'b'], dimensions: 2 });
  t.match(chat.last(), { inputTokens: 7, outputTokens: 0 });

  const answer = '{"embeddings":[{"values":[1]},{"values":[0.5]}]}';
  const google = await stage(t, 'generateContent', jsonAnswer(200, answer));
  const ofGoogle = await post(google.port, '/v1/embed', body);
  t.match(JSON.parse(ofGoogle.body), { response_type: 'embeddings_floats', embeddings: [[1], [0.5]] });
  t.match(google.upstream.requests[0]?.head, /:batchEmbedContents HTTP/);

  for (const [wrong, param] of [
    [{ texts: [1] }, 'texts[0]'],
    [{ texts: null }, 'texts'],
    [{ embedding_types: ['int8'] }, 'embedding_types'],
    [{ images: ['data:image/png;base64,AA=='] }, 'images'],
  ] as const) {
    const refused = await post(chat.port, '/v2/embed', { ...body, ...wrong });
    t.match([refused.status, JSON.parse(refused.body).error.param], [400, param]);
  }
  t.equal(chat.upstream.requests.length, 1);
});

test('a conversation that vLLM would embed is refused by its name where the upstream has another form', async (t) => {
  const { port, upstream } = await stage(t, 'generateContent', '');
  const answer = await post(port, '/v1/embeddings', {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
  });
  t.equal(answer.status, 400);
  t.match(JSON.parse(answer.body), { error: { param: 'messages', code: 'unsupported_parameter' } });
  t.equal(upstream.requests.length, 0);
});
