import { test } from 'tap';
import { countersOf } from '../../support/counters.js';
import { testKey } from '../../support/gateway.js';
import { startLedger } from '../../support/ledger.js';
import { postJson } from '../../support/post-json.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

const price = { input: 1, output: 10, perSearch: 0.01 };

/** Counts that no call can have, in JSON. Those of strings and below zero are no counts. */
const counts = ['1000000000000000', '9007199254740993', '1e999', '"1000"', '-7'];

const hello = [{ role: 'user', content: 'hi' }];
const paths = {
  chat: ['/v1/chat/completions', { messages: hello }],
  messages: ['/v1/messages', { max_tokens: 9, messages: hello }],
  responses: ['/v1/responses', { input: 'hi' }],
} as const;
type Kind = 'chat' | 'messages' | 'responses' | 'generateContent';

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: { readonly type: string; readonly [member: string]: unknown }): string =>
  `event: ${value.type}\n${data(value)}`;

/** A text of a few tokens, with a usage of the counts. */
function answerOf(kind: Kind, isStream: boolean, usage: object): string {
  const said = 'hello there';
  switch (kind) {
    case 'chat': {
      const chat = { id: 'c', created: 1, model: 'm' };
      const choice = { index: 0, finish_reason: 'stop' };
      return isStream
        ? data({
            ...chat,
            object: 'chat.completion.chunk',
            choices: [{ ...choice, delta: { content: said } }],
            usage,
          }).concat('data: [DONE]\n\n')
        : JSON.stringify({
            ...chat,
            object: 'chat.completion',
            choices: [{ ...choice, message: { role: 'assistant', content: said } }],
            usage,
          });
    }
    case 'messages': {
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' };
      const ended = { stop_reason: 'end_turn', stop_sequence: null };
      return isStream
        ? named({ type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } }) +
            named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
            named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: said } }) +
            named({ type: 'content_block_stop', index: 0 }) +
            named({ type: 'message_delta', delta: ended, usage }) +
            named({ type: 'message_stop' })
        : JSON.stringify({ ...message, content: [{ type: 'text', text: said }], ...ended, usage });
    }
    case 'responses': {
      const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', tools: [] };
      const content = [{ type: 'output_text', text: said, annotations: [] }];
      const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content };
      const whole = { ...response, status: 'completed', output: [item], usage };
      return isStream
        ? named({
            type: 'response.created',
            response: { ...response, status: 'in_progress', output: [], usage: null },
          }) +
            named({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: said }) +
            named({ type: 'response.completed', response: whole })
        : JSON.stringify(whole);
    }
    case 'generateContent': {
      const block = {
        candidates: [{ content: { role: 'model', parts: [{ text: said }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: usage,
      };
      return isStream ? data(block) : JSON.stringify(block);
    }
  }
}

const namesOf: Readonly<Record<Kind, readonly [input: string, output: string]>> = {
  chat: ['prompt_tokens', 'completion_tokens'],
  messages: ['input_tokens', 'output_tokens'],
  responses: ['input_tokens', 'output_tokens'],
  generateContent: ['promptTokenCount', 'candidatesTokenCount'],
};
const kinds = Object.keys(namesOf) as readonly Kind[];

test('a usage that no call can have had is not believed: what was used is estimated, logged and counted', async (t) => {
  const model = (upstream: string, ofTarget: object) => ({
    protocols: ['chat', 'responses', 'messages'],
    targets: [{ upstream, ...ofTarget }],
    price,
  });
  const { upstream, gateway, lines } = await startLedger(t, model);
  const asked: { readonly name: string; readonly id: string | null }[] = [];
  const ask = async (name: string, kind: Kind, client: keyof typeof paths, stream: boolean) => {
    const [path, body] = paths[client];
    const answered = await postJson(
      gateway.url + path,
      { model: kind, ...body, stream },
      { 'anthropic-version': '2023-06-01' },
    );
    t.equal(answered.status, 200, `${name}: ${(await answered.text()).slice(0, 200)}`);
    asked.push({ name, id: answered.headers.get('x-request-id') });
  };
  for (const kind of kinds) {
    const [input, output] = namesOf[kind];
    for (const count of counts) {
      for (const wrong of [input, output]) {
        const written = [input, output].map((name) => `"${name}":${name === wrong ? count : '9'}`);
        for (const stream of [false, true]) {
          const text = answerOf(kind, stream, { given: 0 }).replaceAll('"given":0', written.join());
          upstream.answer = stream ? streamHead + chunk(text) + lastChunk : jsonAnswer(200, text);
          for (const client of ['chat', 'messages', 'responses'] as const)
            await ask(`${kind} ${wrong} ${count} ${client} ${stream}`, kind, client, stream);
        }
      }
    }
  }
  const records = new Map((await lines(asked.length)).map((record) => [record.requestId, record]));
  for (const { name, id } of asked) {
    const { inputTokens = 0, outputTokens = 0, costNanoUsd = 0, tokensKnown } = records.get(id ?? '') ?? {};
    const seen = `${name}: ${inputTokens} ${outputTokens} ${costNanoUsd}`;
    t.ok(inputTokens > 0 && inputTokens < 1000 && outputTokens > 0 && outputTokens < 1000, seen);
    t.ok(costNanoUsd > 0 && costNanoUsd < 1_000_000, seen);
    t.equal(tokensKnown, 'estimated', name);
  }
  const logged = gateway.lines.filter(({ msg }) => String(msg).startsWith('an upstream reported more'));
  const targets = new Map<unknown, number>();
  for (const { target } of logged) targets.set(target, (targets.get(target) ?? 0) + 1);
  t.equal(targets.size, kinds.length, 'each target has lines of it');
  t.strictSame(countersOf(gateway, 'gateway_implausible_usage_total'), Object.fromEntries(targets));
});

/** USD for a million tokens, for a call and for a second. */
const prices = {
  ranks: { perCall: 0.002 },
  vectors: { input: 1 },
  sound: { perSecond: 0.001 },
  spoken: { input: 1, output: 10 },
  images: { perCall: 0.04 },
  drawn: { input: 1, output: 10 },
};
const askImages = ['/v1/images/generations', { prompt: 'a', n: 2 }] as const;
const chatOf = (usage: object): object => JSON.parse(answerOf('chat', false, usage)) as object;
const image = { b64_json: 'aGk=' };
const googleContent = { content: { parts: [{ text: 'hello' }] } };
const much = 1e12;

/** A call, its answer, and what it is charged. */
const others: readonly {
  readonly name: string;
  readonly model: string;
  readonly ask: readonly [path: string, body: object] | null;
  readonly answer: object;
  readonly record: object;
}[] = [
  {
    name: 'searches',
    model: 'chat',
    ask: paths.chat,
    answer: chatOf({ prompt_tokens: 9, completion_tokens: 9, num_sources_used: much }),
    record: { searches: 0, tokensKnown: 'estimated' },
  },
  {
    name: 'a kind of tokens',
    model: 'chat',
    ask: paths.chat,
    answer: chatOf({
      prompt_tokens: 9,
      completion_tokens: 9,
      prompt_tokens_details: { audio_tokens: much },
    }),
    record: { audioInputTokens: 0, tokensKnown: 'estimated' },
  },
  {
    name: 'more than a hundred times what the model takes',
    model: 'small',
    ask: paths.chat,
    answer: chatOf({ prompt_tokens: 2_000_001, completion_tokens: 9 }),
    record: { tokensKnown: 'estimated', outputTokens: 3 },
  },
  {
    name: 'a hundred times what the model takes',
    model: 'small',
    ask: paths.chat,
    answer: chatOf({ prompt_tokens: 2_000_000, completion_tokens: 9 }),
    record: { tokensKnown: 'exact', inputTokens: 2_000_000 },
  },
  {
    name: 'more than a million, of a model whose tokens are capped low',
    model: 'capped',
    ask: paths.chat,
    answer: chatOf({ prompt_tokens: 9, completion_tokens: 1_000_001 }),
    record: { tokensKnown: 'estimated', outputTokens: 3 },
  },
  {
    name: 'a million, of a model whose tokens are capped low',
    model: 'capped',
    ask: paths.chat,
    answer: chatOf({ prompt_tokens: 1_000_000, completion_tokens: 1_000_000 }),
    record: { tokensKnown: 'exact', inputTokens: 1_000_000, outputTokens: 1_000_000 },
  },
  {
    name: 'search units',
    model: 'ranks',
    ask: ['/v1/rerank', { query: 'a', documents: ['b', 'c'] }],
    answer: {
      id: 'r',
      results: [{ index: 0, relevance_score: 1 }],
      meta: { billed_units: { search_units: much } },
    },
    record: { units: 1, costNanoUsd: 2_000_000 },
  },
  {
    name: 'images',
    model: 'images',
    ask: askImages,
    answer: { created: 1, data: [image, image], usage: { generated_images: much, output_tokens: 4000 } },
    record: { units: 2, costNanoUsd: 80_000_000 },
  },
  {
    name: 'tokens of images',
    model: 'drawn',
    ask: askImages,
    answer: { created: 1, data: [image, image], usage: { input_tokens: 9, output_tokens: much } },
    record: { tokensKnown: 'estimated', outputTokens: 3000 },
  },
  {
    name: 'seconds',
    model: 'sound',
    ask: null,
    answer: { text: 'hello there', usage: { type: 'duration', seconds: much } },
    record: { mediaSeconds: 2.017, costNanoUsd: 2_017_000 },
  },
  {
    name: 'tokens of a transcript',
    model: 'spoken',
    ask: null,
    answer: { text: 'hello there', usage: { type: 'tokens', input_tokens: 9, output_tokens: much } },
    record: { tokensKnown: 'estimated', inputTokens: 21, outputTokens: 3 },
  },
  {
    name: 'tokens of vectors',
    model: 'vectors',
    ask: ['/v1/embeddings', { input: 'hello there' }],
    answer: { object: 'list', data: [{ embedding: [1], index: 0 }], usage: { prompt_tokens: much } },
    record: { tokensKnown: 'estimated', inputTokens: 11 },
  },
  {
    name: 'no tokens of vectors',
    model: 'vectors',
    ask: ['/v1/embeddings', { input: 'hello there' }],
    answer: {
      object: 'list',
      data: [{ embedding: [1], index: 0 }],
      usage: { prompt_tokens: 0, total_tokens: 0 },
    },
    record: { tokensKnown: 'estimated', inputTokens: 11 },
  },
  {
    name: 'no prompt of vectors, but a total',
    model: 'vectors',
    ask: ['/v1/embeddings', { input: 'hello there' }],
    answer: {
      object: 'list',
      data: [{ embedding: [1], index: 0 }],
      usage: { prompt_tokens: 0, total_tokens: 7 },
    },
    record: { tokensKnown: 'exact', inputTokens: 7 },
  },
  {
    name: 'kinds of tokens of vectors, but no tokens',
    model: 'vectors',
    ask: ['/v1/embeddings', { input: 'hello there' }],
    answer: {
      object: 'list',
      data: [{ embedding: [1], index: 0 }],
      usage: { prompt_tokens: 0, total_tokens: 0, prompt_tokens_details: { image_tokens: 5 } },
    },
    record: { tokensKnown: 'estimated', inputTokens: 11, imageInputTokens: 5 },
  },
  {
    name: "no tokens of Google's vectors",
    model: 'googleVectors',
    ask: ['/v1beta/models/googleVectors:embedContent', googleContent],
    answer: { embedding: { values: [1] }, usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 } },
    record: { tokensKnown: 'estimated', inputTokens: 16 },
  },
  {
    name: "no prompt of Google's vectors, but a total",
    model: 'googleVectors',
    ask: ['/v1beta/models/googleVectors:embedContent', googleContent],
    answer: { embedding: { values: [1] }, usageMetadata: { promptTokenCount: 0, totalTokenCount: 7 } },
    record: { tokensKnown: 'exact', inputTokens: 7 },
  },
  {
    name: "no tokens of Google's vectors, in the form of /embeddings",
    model: 'googleVectors',
    ask: ['/v1/embeddings', { input: 'hello there' }],
    answer: { embeddings: [{ values: [1] }], usageMetadata: { promptTokenCount: 0 } },
    record: { tokensKnown: 'estimated', inputTokens: 23 },
  },
];

function recording(): FormData {
  const form = new FormData();
  form.set('file', new Blob([Buffer.alloc(32_000, 7)]), 'a.mp3');
  return form;
}

test('the same holds for searches, units, seconds and kinds of tokens', async (t) => {
  const model = (upstream: string, ofTarget: object) => ({
    protocols: ['chat', 'responses', 'messages'],
    targets: [{ upstream, ...ofTarget }],
    price,
  });
  const of = (protocol: string, its: object) => ({
    protocols: [protocol],
    targets: [{ upstream: 'chat' }],
    price: its,
  });
  const { upstream, gateway, lines } = await startLedger(t, model, {
    models: {
      small: { ...model('chat', {}), inputTokens: 20_000 },
      capped: { ...model('chat', {}), inputTokens: 64, outputTokens: 16 },
      ranks: of('rerank', prices.ranks),
      vectors: of('embeddings', prices.vectors),
      googleVectors: { ...of('embeddings', prices.vectors), targets: [{ upstream: 'generateContent' }] },
      sound: of('audio', prices.sound),
      spoken: of('audio', prices.spoken),
      images: of('images', prices.images),
      drawn: of('images', prices.drawn),
    },
  });
  const ids: (string | null)[] = [];
  for (const { name, model, ask, answer } of others) {
    upstream.answer = jsonAnswer(200, JSON.stringify(answer));
    const form = recording();
    form.set('model', model);
    const [path, body] = ask ?? ['/v1/audio/transcriptions', {}];
    const answered = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${testKey}`,
        ...(ask === null ? {} : { 'content-type': 'application/json' }),
      },
      body: ask === null ? form : JSON.stringify({ model, ...body }),
    });
    t.equal(answered.status, 200, `${name}: ${(await answered.text()).slice(0, 200)}`);
    ids.push(answered.headers.get('x-request-id'));
  }
  const records = await lines(others.length);
  for (const [index, { name, record }] of others.entries())
    t.match(
      records.find(({ requestId }) => requestId === ids[index]),
      record,
      name,
    );
});
