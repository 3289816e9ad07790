import { type Test, test } from 'tap';
import { testKey } from '../../support/gateway.js';
import { startHere } from '../../support/gateway-here.js';
import { startTranslated } from '../../support/translated.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';

/*
 * What an upstream of the client's own protocol takes is for the upstream to say. Each of these bodies is outside of
 * what some vendor documents, and reaches the upstream byte for byte.
 */

const headers = {
  authorization: `Bearer ${testKey}`,
  'anthropic-version': '2023-06-01',
  'content-type': 'application/json',
};
const messages = [{ role: 'user', content: 'hi' }];
const contents = [{ parts: [{ text: 'hi' }] }];

interface Passed {
  readonly path: string;
  readonly kind?: string;
  readonly protocol: string;
  readonly base: object;
  readonly bodies: readonly object[];
}

const chat: Passed = {
  path: '/v1/chat/completions',
  protocol: 'chat',
  base: { model: 'm', messages },
  bodies: [
    {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: 'https://example.com/a.png' }] }],
    },
    { messages: [] },
    { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: {} } }] }] },
    { stop: ['a', 'b', 'c', 'd', 'e'] },
    { max_tokens: -1 },
    { max_tokens: 0, max_completion_tokens: -1 },
    { n: 0 },
    { seed: 1.5, top_logprobs: 40, temperature: 3, response_format: 'json', logit_bias: [] },
    { metadata: { count: 1, nested: { a: true } } },
    { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) },
    { tools: [{ function: { name: 'f' } }] },
    { tools: [{ name: 'f', parameters: {} }] },
    { store: 'yes', user: 7 },
  ],
};

const responses: Passed = {
  path: '/v1/responses',
  protocol: 'responses',
  base: { model: 'm', input: 'hi' },
  bodies: [
    { metadata: { count: 1 } },
    { tools: [{ name: 'f', parameters: {} }] },
    { input: {} },
    { input: [{ role: 'user', content: { type: 'input_text', text: 'hi' } }] },
    { max_output_tokens: -1, temperature: 9, top_logprobs: 99 },
    { text: 'plain', reasoning: 'low' },
  ],
};

const anthropic: Passed = {
  path: '/v1/messages',
  kind: 'messages',
  protocol: 'messages',
  base: { model: 'm', max_tokens: 5, messages },
  bodies: [
    { temperature: 1.5, top_p: 1.5 },
    { thinking: { type: 'enabled' } },
    { thinking: { type: 'enabled', budget_tokens: 1 } },
    { messages: [] },
    { messages: undefined, thread: { type: 'continue', previous_message_id: 'msg_1' } },
    { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }] },
    { max_tokens: undefined },
    { tools: [{ name: 'f' }] },
    { metadata: { user_id: 7 } },
  ],
};

const google: Passed = {
  path: '/v1beta/models/m:generateContent',
  kind: 'generateContent',
  protocol: 'generateContent',
  base: { contents },
  bodies: [
    { contents: contents[0] },
    { contents: 'hi' },
    { contents: ['hi', 'there'] },
    { contents: [] },
    { tools: { functionDeclarations: { name: 'f' } } },
    { safetySettings: { category: 'C', threshold: 'T' } },
    { generationConfig: { temperature: 3, topP: 2, candidateCount: 0, maxOutputTokens: 0 } },
    { generationConfig: { maxOutputTokens: '9' } },
  ],
};

const counting: Passed = {
  ...google,
  path: '/v1beta/models/m:countTokens',
  bodies: [{ contents: contents[0] }, { contents: 'hi' }],
};

const anthropicCounting: Passed = {
  ...anthropic,
  path: '/v1/messages/count_tokens',
  base: { model: 'm', messages },
  bodies: [{ messages: [] }, { thinking: { type: 'enabled', budget_tokens: 1 } }],
};

const completions: Passed = {
  path: '/v1/completions',
  protocol: 'completions',
  base: { model: 'm', prompt: 'Once' },
  bodies: [
    { prompt: [] },
    { prompt: null },
    { max_tokens: -1, n: 0, best_of: 99, logprobs: 9 },
    { stop: ['a', 'b', 'c', 'd', 'e'] },
  ],
};

const embeddings: Passed = {
  path: '/v1/embeddings',
  protocol: 'embeddings',
  base: { model: 'm', input: 'hi' },
  bodies: [
    { input: [{ text: 'a' }, { image: 'b' }] },
    { input: { text: 'a' } },
    { input: '' },
    { input: ['', 'a'] },
    { input: [] },
    { input: undefined, messages: [{ role: 'user', content: 'hi' }] },
    { input: Array.from({ length: 2049 }, () => 'a') },
    { encoding_format: 'int8' },
    { encoding_format: ['float', 'base64'] },
    { dimensions: 0 },
  ],
};

const rerank: Passed = {
  path: '/v1/rerank',
  protocol: 'rerank',
  base: { model: 'm', query: 'q', documents: ['a'] },
  bodies: [
    { query: { text: 'q' } },
    { query: ['q'] },
    { query: '' },
    { documents: [] },
    { top_n: 0 },
    { top_n: -1 },
    { max_tokens_per_doc: 0 },
  ],
};

const moderations: Passed = {
  path: '/v1/moderations',
  protocol: 'moderations',
  base: { model: 'm', input: 'hi' },
  bodies: [{ input: { type: 'text', text: 'hi' } }, { input: [] }, { input: [{ type: 'text' }] }],
};

const speech: Passed = {
  path: '/v1/audio/speech',
  protocol: 'audio',
  base: { model: 'm', input: 'hi', voice: 'v' },
  bodies: [
    { voice: undefined },
    { voice: { name: 'v' } },
    { response_format: 'ogg', speed: 5, stream_format: 'chunks' },
    { input: 'x'.repeat(4097) },
  ],
};

const passed: readonly Passed[] = [
  ...[completions, embeddings, rerank, moderations, speech],
  ...[chat, responses, anthropic, google, counting, anthropicCounting],
];

/** A gateway whose model `m` is served by an upstream of the client's protocol, which says yes to everything. */
async function start(t: Test, { kind = 'chat', protocol }: Passed) {
  const upstream = await startRawUpstream(t, () => jsonAnswer(200, '{"ok":true}'));
  const gateway = await startHere(t, {
    upstreams: [upstream.url],
    protocols: [protocol],
    alias: 'm',
    upstream: { kind },
    ...(protocol === 'responses' ? { target: { responses: true } } : {}),
  });
  return { upstream, gateway };
}

for (const each of passed) {
  test(`what is outside of the documents reaches an upstream of the protocol: ${each.path}`, async (t) => {
    const { upstream, gateway } = await start(t, each);
    for (const more of each.bodies) {
      const body = JSON.stringify({ ...each.base, ...more });
      const answer = await fetch(gateway.url + each.path, { method: 'POST', headers, body });
      t.equal(answer.status, 200, `${body.slice(0, 150)}: ${await answer.text()}`);
      t.equal(upstream.requests.at(-1)?.body.toString(), body, 'as it came');
    }
  });
}

const translatedBodies = [
  [chat, { temperature: 3 }, 'temperature'],
  [chat, { messages: [{ role: 'user', content: 7 }] }, 'messages[0].content'],
  [responses, { input: {} }, 'input'],
  [anthropic, { thinking: { type: 'enabled', budget_tokens: 1 } }, 'thinking.budget_tokens'],
  [anthropicCounting, { messages: [] }, 'messages'],
  [google, { generationConfig: { topP: 2 } }, 'generationConfig.topP'],
  [counting, { contents: 'hi' }, 'contents'],
] as const;

test('of a body that is translated the same is refused with the path of its member', async (t) => {
  const onChat = await startTranslated(t, { answer: jsonAnswer(200, '{}') });
  const onMessages = await startTranslated(t, { kind: 'messages', answer: jsonAnswer(200, '{}') });
  for (const [{ path, base, protocol }, more, member] of translatedBodies) {
    const { url } = protocol === 'chat' ? onMessages : onChat;
    const body = JSON.stringify({ ...base, ...more });
    const answer = await fetch(url + path, { method: 'POST', headers, body });
    const { error } = (await answer.json()) as { error: { message: string } };
    t.equal(answer.status, 400, member);
    t.ok(error.message.includes(`'${member}'`), error.message);
  }
  t.equal(onChat.upstream.requests.length + onMessages.upstream.requests.length, 0);
});

test('a mixed model serves what only its own protocol says by the target that speaks it', async (t) => {
  const other = await startRawUpstream(t, jsonAnswer(200, '{}'));
  const own = await startRawUpstream(t, jsonAnswer(200, '{"ok":true}'));
  const gateway = await startHere(t, {
    config: {
      upstreams: {
        other: { kind: 'messages', baseUrl: other.url, apiKeys: ['k'] },
        own: { kind: 'chat', baseUrl: own.url, apiKeys: ['k'] },
      },
      models: {
        m: {
          protocols: ['chat'],
          targets: [
            { upstream: 'other', model: 'm', priority: 0 },
            { upstream: 'own', model: 'm', priority: 1 },
          ],
        },
      },
    },
  });
  const body = JSON.stringify({ model: 'm', messages, temperature: 3 });
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body });
  t.equal(await answer.text(), '{"ok":true}');
  t.equal(other.requests.length, 0);
});
