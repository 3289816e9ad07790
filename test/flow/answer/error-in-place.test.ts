import { type Test, test } from 'tap';
import { startRouted } from '../../support/routed.js';
import { post } from '../../support/translated.js';
import { jsonAnswer } from '../../support/upstream.js';

interface Told {
  readonly path: string;
  /** What the upstream answers with under status 200 in place of an answer. */
  readonly error: string;
  /** What the client is told when nobody else can be asked. */
  readonly status: number;
}

const user = { role: 'user', content: 'hi' };

const chat = '/v1/chat/completions';
const told: Readonly<Record<string, Told>> = {
  'a failure in a chat answer': {
    path: chat,
    error: '{"error":{"message":"provider returned error","code":502},"user_id":"u"}',
    status: 502,
  },
  'a limit in a chat answer': {
    path: chat,
    error: '{\n "error": {"message": "slow down", "code": 429}\n}',
    status: 429,
  },
  'a failure beside a usage of nothing': {
    path: chat,
    error:
      '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0},"error":{"message":"x","code":502}}',
    status: 502,
  },
  'an overloaded messages upstream': {
    path: '/v1/messages',
    error: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    status: 503,
  },
};

function start(t: Test, path: string, answers: readonly string[]) {
  const kind = path === chat ? 'chat' : 'messages';
  return startRouted(t, answers, { protocols: [kind], upstream: { kind } });
}

for (const [what, { path, error, status }] of Object.entries(told)) {
  const body = { model: 'm', max_tokens: 9, messages: [user] };
  const good =
    path === chat
      ? '{"object":"chat.completion","choices":[{"index":0,"message":{"content":"second"}}]}'
      : '{"type":"message","role":"assistant","content":[{"type":"text","text":"second"}]}';

  test(`${what} under a good status goes to the next target`, async (t) => {
    const routed = await start(t, path, [jsonAnswer(200, error), jsonAnswer(200, good)]);
    const answer = await post(routed.gateway.port, path, body);
    t.match(answer, { status: 200, body: good });
    t.strictSame(routed.counts(), [1, 1]);
  });

  test(`${what} under a good status is told as what it is where there is no other target`, async (t) => {
    const routed = await start(t, path, [jsonAnswer(200, error)]);
    const answer = await post(routed.gateway.port, path, body);
    t.equal(answer.status, status);
    t.match(await routed.gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
  });
}

test('an error that says nothing, and one beside an answer, pass as they came', async (t) => {
  const choices = '"choices":[{"index":0,"message":{"content":"a"}}]';
  for (const answer of [
    `{"error":null,${choices}}`,
    `{${choices},"error":{"message":"a part of it failed"}}`,
    '{"object":"chat.completion","error":null,"choices":[]}',
  ]) {
    const routed = await start(t, chat, [jsonAnswer(200, answer)]);
    t.match(await post(routed.gateway.port, chat, { model: 'm', messages: [user] }), {
      status: 200,
      body: answer,
    });
  }
});

const beside: Readonly<Record<string, string>> = {
  [chat]:
    '{\n"choices": [\n{"index": 0, "message": {"content": "a"}}],\n"error": {"code": 0, "message": "success"},',
  '/v1/messages':
    '{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"error":{"message":"cut"},',
  '/v1/responses':
    '{"object":"response","status":"failed","error":{"code":"server_error","message":"cut"},' +
    '"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],',
};

for (const [path, begin] of Object.entries(beside))
  test(`an error beside what was written passes and is paid for: ${path}`, async (t) => {
    const names = path === chat ? ['prompt_tokens', 'completion_tokens'] : ['input_tokens', 'output_tokens'];
    const answer = `${begin}"usage":{"${names[0]}":3,"${names[1]}":4}}`;
    const protocol = path === chat ? 'chat' : path.slice('/v1/'.length);
    const upstream = { kind: protocol === 'messages' ? protocol : 'chat' };
    const target = protocol === 'responses' ? { responses: true } : {};
    const answers = [jsonAnswer(200, answer), jsonAnswer(200, '{}')];
    const routed = await startRouted(t, answers, { protocols: [protocol], upstream, target });
    const asked = protocol === 'responses' ? { input: 'hi' } : { messages: [user] };
    const body = { model: 'm', max_tokens: 9, ...asked };
    t.match(await post(routed.gateway.port, path, body), { status: 200, body: answer });
    t.strictSame(routed.counts(), [1, 0]);
    const line = await routed.gateway.line(({ msg }) => msg === 'request');
    t.match(line, { outcome: 'complete', inputTokens: 3, outputTokens: 4 });
  });

const error = '{"error":{"message":"provider returned error","code":502}}';
/** Calls that have no stream, by their paths; for each its protocol, the kind of its upstream and its body. */
const unstreamed: Readonly<Record<string, readonly [protocol: string, kind: string, body: object]>> = {
  '/v1/embeddings': ['embeddings', 'chat', { input: 'a' }],
  '/v1beta/models/m:embedContent': ['embeddings', 'generateContent', { content: { parts: [{ text: 'a' }] } }],
  '/v1/rerank': ['rerank', 'chat', { query: 'a', documents: ['b'] }],
  '/v1/moderations': ['moderations', 'chat', { input: 'a' }],
  '/v1/messages/count_tokens': ['messages', 'messages', { messages: [user] }],
  '/v1beta/models/m:countTokens': [
    'generateContent',
    'generateContent',
    { contents: [{ role: 'user', parts: [{ text: 'a' }] }] },
  ],
  '/v1/responses/compact': ['responses', 'chat', { input: 'a' }],
  '/v1/responses/input_tokens': ['responses', 'chat', { input: 'a' }],
};

for (const [path, [protocol, kind, asked]] of Object.entries(unstreamed)) {
  const start = (t: Test, answers: readonly string[]) => {
    const target = protocol === 'responses' ? { responses: true } : {};
    return startRouted(t, answers, { protocols: [protocol], upstream: { kind }, target });
  };
  const body = kind === 'generateContent' ? asked : { model: 'm', ...asked };

  test(`an error in place of an answer without a stream goes to the next target: ${path}`, async (t) => {
    const routed = await start(t, [jsonAnswer(200, error), jsonAnswer(200, '{"results":[]}')]);
    t.equal((await post(routed.gateway.port, path, body)).status, 200);
    t.strictSame(routed.counts(), [1, 1]);
  });

  test(`an error in place of an answer without a stream costs nothing: ${path}`, async (t) => {
    const routed = await start(t, [jsonAnswer(200, error)]);
    t.equal((await post(routed.gateway.port, path, body)).status, 502);
    const line = await routed.gateway.line(({ msg }) => msg === 'request');
    t.match(line, { outcome: 'upstream_error' });
    t.notOk('inputTokens' in line && line.inputTokens);
  });
}
