import { type Test, test } from 'tap';
import { startGateway, testKey } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';
import { exchange } from '../../support/raw-client.js';
import { post, startTranslated, type TranslatedStage, wholeAnswers } from '../../support/translated.js';
import {
  chatEvent,
  completion,
  jsonAnswer,
  type RawRequest,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

/** An upstream that is called in a protocol. */
function stage(t: Test, wire: string, rules: object, more: object = {}): Promise<TranslatedStage> {
  const isResponses = wire === 'responses';
  return startTranslated(t, {
    kind: isResponses ? 'chat' : wire,
    answer: jsonAnswer(200, wholeAnswers[wire] ?? ''),
    target: { rules, ...(isResponses ? { responses: 'only' } : {}), ...more },
  });
}

const paths: Readonly<Record<string, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  generateContent: '/v1beta/models/m:generateContent',
};

const bodies: Readonly<Record<string, object>> = {
  chat: {
    model: 'm',
    temperature: 0.5,
    seed: 7,
    reasoning_effort: 'ultra',
    messages: [
      { role: 'developer', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ],
  },
  responses: {
    model: 'm',
    temperature: 0.5,
    reasoning: { effort: 'ultra' },
    input: [
      { role: 'developer', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ],
  },
  messages: {
    model: 'm',
    max_tokens: 5000,
    temperature: 0.5,
    output_config: { effort: 'ultra' },
    system: 'be brief',
    messages: [{ role: 'user', content: 'hi' }],
  },
  generateContent: {
    systemInstruction: { parts: [{ text: 'be brief' }] },
    generationConfig: { temperature: 0.5, seed: 7, thinkingConfig: { thinkingLevel: 'ULTRA' } },
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  },
};

async function sent({ port, upstream }: TranslatedStage, from: string, body = bodies[from]): Promise<object> {
  const { status, body: text } = await post(port, paths[from] ?? '', body ?? {});
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '') as object;
}

const rules = {
  drop: ['seed', 'generationConfig.seed'],
  set: { service_tier: 'flex' },
  efforts: { ultra: 'high' },
  roles: { developer: 'system' },
  sampling: false,
};

test('the final body has what the rules say, of calls of every protocol to upstreams of every kind', async (t) => {
  const wanted: Readonly<Record<string, object>> = {
    chat: { reasoning_effort: 'high', messages: [{ role: 'system' }, { role: 'user' }] },
    responses: { reasoning: { effort: 'high' } },
    messages: { output_config: { effort: 'high' } },
    generateContent: { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH' } } },
  };
  for (const [wire, shape] of Object.entries(wanted)) {
    const translation = { messages: 'adaptive', generateContent: 'levels' }[wire];
    const running = await stage(
      t,
      wire,
      rules,
      translation === undefined ? {} : { translation: { thinking: translation } },
    );
    for (const from of Object.keys(paths)) {
      const body = await sent(running, from);
      const name = `${from} on ${wire}`;
      t.match(body, { ...shape, service_tier: 'flex' }, name);
      t.notMatch(JSON.stringify(body), /temperature|seed|ultra|developer/i, name);
    }
  }
});

test('without rules an effort that only its vendor knows reaches a target that has words', async (t) => {
  const onChat = await stage(t, 'chat', { drop: ['x'] });
  t.match(await sent(onChat, 'messages'), { reasoning_effort: 'ultra' });
  const onResponses = await stage(t, 'responses', { drop: ['x'] });
  const odd = { ...bodies.chat, reasoning_effort: 'a"b\u0000' };
  t.match(await sent(onResponses, 'chat', odd), { reasoning: { effort: 'a"b\u0000' } });
  const onBudgets = await stage(t, 'messages', { drop: ['x'] });
  t.equal(
    Reflect.get(await sent(onBudgets, 'chat'), 'thinking'),
    undefined,
    'it thinks as it would by itself',
  );
});

test('a native body without what the rules are about passes byte for byte, and else only that changes', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    target: { rules: { ...rules, set: undefined, rename: { max_completion_tokens: 'max_tokens' } } },
  });
  const send = async (text: string): Promise<string[]> => {
    const { head } = await exchange(
      gateway.port,
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
        `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
    const [, path = ''] = /x-gateway-path: (\w+)/.exec(head) ?? [];
    return [path, upstream.requests.at(-1)?.body.toString() ?? ''];
  };
  const exact =
    '{ "model":"m",\n"x":1.0,"big":12345678901234567890,"messages":[{"role":"user","content":"\\u0068i"}] }';
  t.strictSame(await send(exact), ['exact', exact]);
  const changed = exact
    .replace('"x":1.0', '"x":1.0, "temperature" : 1 ,"max_completion_tokens" : 5')
    .replace('[{', '[{"role":"developer","content":"a"} ,{');
  t.strictSame(await send(changed), [
    'spliced',
    exact
      .replace('"x":1.0', '"x":1.0, "max_tokens" : 5')
      .replace('[{', '[{"role":"system","content":"a"} ,{'),
  ]);
});

test('a stream keeps its usage option, and the target its model, beside the rules', async (t) => {
  const events = `${chatEvent({ content: 'a' }, 'stop')}data: [DONE]\n\n`;
  const running = await startTranslated(t, {
    answer: `${streamHead}${Buffer.byteLength(events).toString(16)}\r\n${events}\r\n0\r\n\r\n`,
    target: { rules: { drop: ['seed'] } },
  });
  await post(running.port, paths.chat ?? '', {
    model: 'm',
    stream: true,
    seed: 1,
    messages: [{ role: 'user', content: 'hi' }],
  });
  t.equal(
    running.upstream.requests[0]?.body.toString(),
    '{"stream_options":{"include_usage":true},"model":"real","stream":true,"messages":[{"role":"user","content":"hi"}]}',
  );
});

test('each target of a call that is sent again has its own rules', async (t) => {
  const failing = await startRawUpstream(t, jsonAnswer(500, '{"error":{"message":"no"}}'));
  const working = await startRawUpstream(t, jsonAnswer(200, completion));
  const upstream = (url: string, more: object) => ({ kind: 'chat', baseUrl: url, ...more });
  const gateway = await startGateway(t, {
    config: {
      upstreams: {
        a: upstream(failing.url, { rules: { set: { user: 'a' } } }),
        b: upstream(working.url, { rules: { set: { user: 'b' }, drop: ['seed'] } }),
      },
      models: {
        m: {
          protocols: ['chat'],
          targets: [
            { upstream: 'a', priority: 0 },
            { upstream: 'b', priority: 1, rules: { clamp: { seed: { max: 5 } } } },
          ],
        },
      },
    },
  });
  await post(gateway.port, paths.chat ?? '', {
    model: 'm',
    seed: 9,
    messages: [{ role: 'user', content: 'hi' }],
  });
  t.match(JSON.parse(failing.requests.at(-1)?.body.toString() ?? ''), { user: 'a', seed: 9 });
  t.match(JSON.parse(working.requests.at(-1)?.body.toString() ?? ''), { user: 'b', seed: 5 });
});

test('a call that a rule has kept at its target is not sent to another, either', async (t) => {
  for (const [settings, status, asked] of [
    [{ drop: ['x'] }, 200, 1],
    [{ set: { store: true } }, 502, 0],
  ] as const) {
    const failing = await startRawUpstream(t, ({ socket }) => socket.destroy());
    const working = await startRawUpstream(t, jsonAnswer(200, completion));
    const gateway = await startGateway(t, {
      upstreams: [failing.url, working.url],
      target: { rules: settings },
    });
    const answer = await post(gateway.port, paths.chat ?? '', {
      model: 'm',
      messages: [{ role: 'user', content: 'hi' }],
    });
    t.equal(answer.status, status, JSON.stringify(settings));
    t.equal(working.requests.length, asked);
  }
});

test('presets make calls fit for the models that they are for', async (t) => {
  const newest = await startTranslated(t, {
    kind: 'messages',
    answer: jsonAnswer(200, wholeAnswers.messages ?? ''),
    upstream: { preset: 'claude-adaptive' },
  });
  const native = await sent(newest, 'messages', {
    ...bodies.messages,
    thinking: { type: 'enabled', budget_tokens: 2048 },
    top_k: 5,
  });
  t.match(native, { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } });
  t.notMatch(JSON.stringify(native), /temperature|top_k|budget/);
  const translated = await sent(newest, 'chat', { ...bodies.chat, reasoning_effort: 'none' });
  t.notMatch(JSON.stringify(translated), /temperature|thinking/);
  const deepseek = await startTranslated(t, {
    answer: jsonAnswer(200, completion),
    target: { preset: 'deepseek' },
  });
  t.match(await sent(deepseek, 'messages'), { max_tokens: 5000, reasoning_effort: 'max' });
  t.match(await sent(deepseek, 'chat', { ...bodies.chat, reasoning_effort: 'none' }), {
    thinking: { type: 'disabled' },
    reasoning_effort: undefined,
    messages: [{ role: 'system' }, { role: 'user' }],
  });
  // LlamaIndex leaves the signature of a call out, and with it the reasoning that it carries.
  const history = [
    { role: 'user', parts: [{ text: 'Weather?' }] },
    { role: 'model', parts: [{ functionCall: { id: 'call_1', name: 'f', args: { city: 'Rome' } } }] },
    {
      role: 'user',
      parts: [{ functionResponse: { id: 'call_1', name: 'f', response: { result: 'sunny' } } }],
    },
  ];
  t.match(await sent(deepseek, 'generateContent', { contents: history }), {
    messages: [
      { role: 'user' },
      { role: 'assistant', reasoning_content: '.', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool' },
    ],
  });
  for (const [preset, efforts] of [
    ['openai-reasoning', { none: 'low', minimal: 'minimal', xhigh: 'xhigh' }],
    ['openai-5.1', { none: 'none', minimal: 'low' }],
    ['openai-5.6', { none: 'none', minimal: 'low', max: 'max' }],
  ] as const) {
    const openai = await startTranslated(t, { answer: jsonAnswer(200, completion), target: { preset } });
    for (const [reasoning_effort, expected] of Object.entries(efforts)) {
      const body = await sent(openai, 'chat', { ...bodies.chat, reasoning_effort });
      t.match(body, { reasoning_effort: expected }, `${preset} ${reasoning_effort}`);
    }
    const thinkingBudget = { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } };
    t.match(await sent(openai, 'generateContent', { ...bodies.generateContent, ...thinkingBudget }), {
      reasoning_effort: efforts.none,
    });
  }
  const vllm = await startTranslated(t, { answer: jsonAnswer(200, completion), target: { preset: 'vllm' } });
  t.match(await sent(vllm, 'messages', { ...bodies.messages, top_k: 5 }), { top_k: 5 });
});

/** The same of a messages body as it is written. */
async function sentText({ port, upstream }: TranslatedStage, body: string): Promise<object> {
  const answer = await fetch(`http://127.0.0.1:${port}${paths.messages}`, {
    method: 'POST',
    headers: { 'x-api-key': testKey, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body,
  });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
  return JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '') as object;
}

/** What a call is told to have lost. */
async function lost(
  { port }: TranslatedStage,
  from: string,
  body = bodies[from],
): Promise<readonly (string | null)[]> {
  const answer = await postJson(`http://127.0.0.1:${port}${paths[from]}`, body, {
    ...(from === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
  return [answer.headers.get('x-gateway-path'), answer.headers.get('x-gateway-left-out')];
}

test('what rules take out of a call is told in the words of its client', async (t) => {
  const onChat = await stage(t, 'chat', {
    drop: ['seed', 'metadata', 'max_completion_tokens', 'frequency_penalty'],
    sampling: false,
  });
  t.strictSame(await lost(onChat, 'messages'), ['translated', 'max_tokens, temperature']);
  t.strictSame(await lost(onChat, 'generateContent'), [
    'translated',
    'generationConfig.temperature, generationConfig.seed',
  ]);
  t.strictSame(await lost(onChat, 'responses', { ...bodies.responses, metadata: { a: 'b' } }), [
    'translated',
    'temperature, metadata',
  ]);
  t.strictSame(await lost(onChat, 'chat', { ...bodies.chat, frequency_penalty: 1 }), [
    'spliced',
    'temperature, seed, frequency_penalty',
  ]);
  t.strictSame(await lost(onChat, 'chat', { model: 'm', messages: [{ role: 'user', content: 'hi' }] }), [
    'spliced',
    null,
  ]);
  const onMessages = await stage(t, 'messages', { drop: ['max_tokens', 'output_config.effort'] });
  t.strictSame(
    await lost(onMessages, 'chat', { model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    ['translated', null],
    'what the translation has written by itself is not lost',
  );
  const clamped = await stage(t, 'chat', {
    clamp: { temperature: { max: 0.1 } },
    rename: { seed: 'random' },
  });
  t.strictSame(await lost(clamped, 'chat'), ['spliced', null], 'what is changed is not lost');
  const onGoogle = await stage(t, 'generateContent', { drop: ['generationConfig.topK'] });
  const config = { topK: 5 };
  t.strictSame(
    await lost(onGoogle, 'generateContent', { ...bodies.generateContent, generationConfig: config }),
    ['spliced', 'generationConfig.topK'],
  );
  t.strictSame(await lost(onGoogle, 'messages', { ...bodies.messages, top_k: 5 }), ['translated', 'top_k']);
});

test('a model that adapts its thinking is never told to turn it off', async (t) => {
  const off = { ...bodies.messages, thinking: { type: 'disabled' } };
  const stageOf = (more: object): Promise<TranslatedStage> =>
    startTranslated(t, {
      kind: 'messages',
      answer: jsonAnswer(200, wholeAnswers.messages ?? ''),
      target: { translation: { thinking: 'adaptive' }, ...more },
    });
  for (const more of [{}, { rules: { drop: ['top_k'] } }]) {
    const running = await stageOf(more);
    t.equal(Reflect.get(await sent(running, 'messages', off), 'thinking'), undefined);
    t.strictSame(await lost(running, 'messages', off), ['spliced', 'thinking']);
    // Some writers of JSON escape more than they have to.
    for (const word of ['dis\\u0061bled', '\\u0064isabled', 'disable\\u0064'])
      t.equal(
        Reflect.get(await sentText(running, JSON.stringify(off).replace('disabled', word)), 'thinking'),
        undefined,
        word,
      );
    const enabled = { type: 'enabled', budget_tokens: 1024, display: 'disabled' };
    const body = { ...bodies.messages, model: 'real', thinking: enabled };
    t.match(await sent(running, 'messages', { ...body, model: 'm' }), { thinking: enabled });
  }
  const kept = await stageOf({ rules: { keep: ['thinking'] } });
  t.match(await sent(kept, 'messages', off), { thinking: { type: 'disabled' } });
});

test('bodies of embeddings, rerank and images are changed as well, and counts get no new members', async (t) => {
  const answer = (request: RawRequest): string =>
    jsonAnswer(
      200,
      request.head.includes('images')
        ? '{"created":1,"data":[{"url":"https://example.com/a.png"}]}'
        : request.head.includes('count_tokens')
          ? '{"input_tokens":3}'
          : '{"object":"list","data":[],"results":[],"usage":{"prompt_tokens":1,"total_tokens":1}}',
    );
  const more = { drop: ['user'], set: { extra: true } };
  const upstream = await startRawUpstream(t, answer);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['embeddings', 'rerank', 'images'],
    target: { rules: more },
  });
  for (const [path, body] of [
    ['/v1/embeddings', { model: 'm', input: 'a', user: 'u' }],
    ['/v1/rerank', { model: 'm', query: 'a', documents: ['b'], user: 'u' }],
    ['/v1/images/generations', { model: 'm', prompt: 'a', n: 1, user: 'u' }],
  ] as const) {
    await post(gateway.port, path, body);
    const { user: _, ...others } = body;
    t.strictSame(
      JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '{}'),
      { extra: true, ...others },
      path,
    );
  }
  const drawn = JSON.stringify({
    output: { choices: [{ message: { content: [{ image: 'https://a.b' }] } }] },
  });
  const dashscope = await startRawUpstream(t, jsonAnswer(200, drawn));
  const other = await startGateway(t, {
    upstreams: [dashscope.url],
    protocols: ['images'],
    target: { images: 'dashscope', rules: { set: { 'parameters.watermark': false } } },
  });
  await post(other.port, '/v1/images/generations', { model: 'm', prompt: 'a' });
  t.match(JSON.parse(dashscope.requests[0]?.body.toString() ?? ''), {
    model: 'm',
    input: { messages: [{ content: [{ text: 'a' }] }] },
    parameters: { watermark: false },
  });
  const counting = await startTranslated(t, { kind: 'messages', answer, target: { rules: more } });
  const { status } = await post(counting.port, '/v1/messages/count_tokens', {
    model: 'm',
    user: 'u',
    messages: [{ role: 'user', content: 'hi' }],
  });
  t.equal(status, 200);
  t.equal(
    counting.upstream.requests.at(-1)?.body.toString(),
    '{"model":"real","messages":[{"role":"user","content":"hi"}]}',
  );
});

/** The values of a header that an upstream was sent, one for each line. */
function valuesOf(request: RawRequest | undefined, name: string): string[] {
  const lines = (request?.head ?? '').split('\r\n');
  return lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
}

const clientHead =
  'user-agent: theirs\r\naccept: text/plain\r\nanthropic-beta: a-1, b-1\r\nopenai-beta: o-1\r\n' +
  'idempotency-key: k\r\nx-app: cli\r\nx-other: y\r\nsession_id: s\r\n';

test("a header that the config sets takes the place of the client's", async (t) => {
  const headers = { 'User-Agent': 'ours', 'anthropic-beta': 'cfg', 'idempotency-key': 'mine', 'x-org': '1' };
  const running = await startTranslated(t, {
    kind: 'messages',
    answer: jsonAnswer(200, wholeAnswers.messages ?? ''),
    upstream: { headers },
  });
  for (const from of ['messages', 'chat']) {
    await post(running.port, paths[from] ?? '', bodies[from] ?? {}, clientHead);
    const request = running.upstream.requests.at(-1);
    t.strictSame(valuesOf(request, 'user-agent'), ['ours']);
    t.strictSame(valuesOf(request, 'anthropic-beta'), ['cfg']);
    t.strictSame(valuesOf(request, 'idempotency-key'), ['mine']);
    t.strictSame(valuesOf(request, 'accept'), ['text/plain']);
    t.strictSame(valuesOf(request, 'x-org'), ['1']);
    t.strictSame(valuesOf(request, 'x-other'), []);
  }
});

test('rules let headers pass, leave them out and edit the betas, for their target alone', async (t) => {
  const ruled = await startRawUpstream(t, jsonAnswer(200, wholeAnswers.messages ?? ''));
  const other = await startRawUpstream(t, jsonAnswer(200, wholeAnswers.messages ?? ''));
  const gateway = await startGateway(t, {
    config: {
      upstreams: {
        a: { kind: 'messages', baseUrl: ruled.url, headers: { 'x-org': '1', accept: '*/*' } },
        b: { kind: 'messages', baseUrl: other.url },
      },
      models: {
        m: {
          protocols: ['messages'],
          targets: [
            {
              upstream: 'a',
              rules: {
                headers: {
                  pass: ['X-Other', 'session_id', 'accept'],
                  set: { 'x-title': 'gateway' },
                  drop: ['user-agent', 'x-org', 'idempotency-key'],
                },
                betas: { add: ['c-1', 'b-1'], drop: ['a-1'] },
              },
            },
          ],
        },
        n: { protocols: ['messages'], targets: [{ upstream: 'b' }] },
      },
    },
  });
  await post(gateway.port, '/v1/messages', bodies.messages ?? {}, clientHead);
  await post(gateway.port, '/v1/messages', { ...bodies.messages, model: 'n' }, clientHead);
  const expected: Readonly<Record<string, [string[], string[]]>> = {
    'user-agent': [[], ['theirs']],
    accept: [['text/plain'], ['text/plain']],
    'anthropic-beta': [['b-1,c-1'], ['a-1, b-1']],
    'anthropic-version': [['2023-06-01'], ['2023-06-01']],
    'openai-beta': [[], []],
    'x-app': [['cli'], ['cli']],
    session_id: [['s'], []],
    'x-other': [['y'], []],
    'x-title': [['gateway'], []],
    'x-org': [[], []],
  };
  for (const [name, [first, second]] of Object.entries(expected)) {
    t.strictSame(valuesOf(ruled.requests[0], name), first, name);
    t.strictSame(valuesOf(other.requests[0], name), second, name);
  }
  t.strictSame(valuesOf(ruled.requests[0], 'idempotency-key'), []);
  t.equal(valuesOf(other.requests[0], 'idempotency-key').length, 1);
  await post(gateway.port, '/v1/messages', bodies.messages ?? {}, 'x-app: a\u010ab\r\n');
  t.strictSame(valuesOf(ruled.requests[1], 'x-app'), [], 'what cannot be written is not passed');
  t.strictSame(valuesOf(ruled.requests[1], 'anthropic-beta'), ['c-1,b-1'], 'betas are added to none, too');
});
