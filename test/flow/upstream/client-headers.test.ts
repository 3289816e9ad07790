import { type Test, test } from 'tap';
import { startGateway, testKey } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { mediaConfig } from '../../support/media/gateway.js';
import { openClient, startRealtimeUpstream } from '../../support/realtime.js';
import { connect, create } from '../../support/responses-socket.js';
import { errorAnswer, goodAnswer, startRouted } from '../../support/routed.js';
import { post, startTranslated, wholeAnswers } from '../../support/translated.js';
import { completion, jsonAnswer, type RawRequest, startRawUpstream } from '../../support/upstream.js';

const calls: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'hi' }] }],
  ['/v1/messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }],
  ['/v1beta/models/m:generateContent', { contents: [{ parts: [{ text: 'hi' }] }] }],
];
const [[chatPath, chatBody]] = calls as readonly [(typeof calls)[number]];

/** What vendors' clients say of themselves, by the upstreams that are told of it. */
const told: Readonly<Record<string, readonly string[]>> = {
  'chat messages': [
    'x-stainless-lang: js',
    'x-stainless-retry-count: 0',
    'x-stainless-helper-method: stream',
    'x-client-request-id: r-1',
    'x-session-affinity: s-1',
    'referer: https://app.example.com/',
    'http-referer: https://app.example.com/',
    'x-title: app',
  ],
  chat: [
    'session_id: s-2',
    'session-id: s-2',
    'conversation_id: c-1',
    'thread-id: t-1',
    'originator: codex_cli_rs',
    'version: 0.99.0',
    'x-codex-turn-metadata: {"turn_id":"t-1"}',
    'x-codex-turn-state: abc',
    'x-codex-of-the-future: 1',
    'x-openai-subagent: review',
  ],
  messages: ['x-app: cli', 'x-claude-code-session-id: s-3'],
  generateContent: [
    'x-goog-api-client: gl-node/22',
    'x-server-timeout: 60',
    'x-gemini-api-privileged-user-id: u-1',
  ],
  '': [
    'openai-organization: org-x1',
    'openai-project: proj_x1',
    'anthropic-workspace-id: wrkspc_x1',
    'x-goog-user-project: p-1',
    'chatgpt-account-id: a-1',
    'x-goog-request-params: model=m',
    'x-unknown: 1',
    'cookie: a=b',
    'x-api-key-of-mine: k',
  ],
};
const allLines = [...Object.values(told).flat(), 'x-stainless-lang: py'];
const sentHead = Object.values(told)
  .flat()
  .map((line) => `${line}\r\n`)
  .join('');

/** The lines of `told` that a request has. */
function linesOf(request: RawRequest | undefined): readonly string[] {
  return (request?.head ?? '').split('\r\n').filter((line) => allLines.includes(line));
}

for (const kind of ['chat', 'messages', 'generateContent']) {
  test(`an upstream of kind ${kind} is told what its vendor's clients say of themselves, and nothing else`, async (t) => {
    const running = await startTranslated(t, { kind, answer: jsonAnswer(200, wholeAnswers[kind] ?? '') });
    const expected = Object.entries(told).flatMap(([kinds, lines]) =>
      kinds.split(' ').includes(kind) ? lines : [],
    );
    for (const [path, body] of calls) {
      await post(running.port, path, body, sentHead);
      t.same([...linesOf(running.upstream.requests.at(-1))].sort(), expected.toSorted(), path);
    }
  });
}

test('an upstream is sent what its config forwards beside, a set value in place of it, and not what is dropped', async (t) => {
  const running = await startTranslated(t, {
    kind: 'chat',
    answer: jsonAnswer(200, completion),
    upstream: {
      headers: { 'openai-project': 'ours', 'x-title': 'gateway' },
      forwardHeaders: ['OpenAI-Organization', 'openai-project', 'x-app', 'x-unknown', 'x-goog-api-client'],
      rules: { headers: { drop: ['session_id', 'x-codex-turn-state'], set: { 'x-stainless-lang': 'none' } } },
    },
  });
  await post(running.port, chatPath, chatBody, sentHead);
  const lines = linesOf(running.upstream.requests[0]);
  for (const line of ['openai-organization: org-x1', 'x-app: cli', 'x-unknown: 1', 'session-id: s-2'])
    t.ok(lines.includes(line), line);
  t.ok(lines.includes('x-goog-api-client: gl-node/22'), 'though it is for upstreams of another vendor else');
  const names = lines.map((line) => line.slice(0, line.indexOf(':')));
  t.equal(new Set(names).size, names.length, 'each once');
  for (const name of ['session_id', 'x-codex-turn-state', 'x-stainless-lang', 'x-title', 'openai-project'])
    t.notOk(names.includes(name), name);
  const head = running.upstream.requests[0]?.head;
  t.match(head, /\r\nopenai-project: ours\r\n/);
  t.match(head, /\r\nx-title: gateway\r\n/);
  t.match(head, /\r\nx-stainless-lang: none\r\n/);
});

test('each request is sent the lines of its own client and its own id, whoever asked before it', async (t) => {
  const running = await startTranslated(t, { kind: 'chat', answer: jsonAnswer(200, completion) });
  const clients = [
    'x-stainless-lang: js',
    'x-stainless-lang: py\r\nx-title: app',
    'idempotency-key: k-1',
    '',
  ];
  const ids = new Set<string>();
  const turns = [0, 0, 0, 1, 1, 1, 0, 1, 2, 2, 2, 3, 3, 3, 0, 3, 2, 1];
  for (const [turn, client] of turns.entries()) {
    const head = clients[client] ?? '';
    const body = { ...chatBody, user: 'u'.repeat(turn * 40) };
    const answer = await post(running.port, chatPath, body, head === '' ? '' : `${head}\r\n`);
    const request = running.upstream.requests[turn];
    const own = head === '' ? [] : head.split('\r\n');
    t.same(
      linesOf(request),
      own.filter((line) => allLines.includes(line)),
      `turn ${turn}`,
    );
    t.equal(/\r\nidempotency-key: /.test(request?.head ?? ''), client === 2);
    const [, id = ''] = /\r\nx-request-id: (req_[0-9a-f]{26})\r\n/.exec(request?.head ?? '') ?? [];
    t.match(answer.head, `\r\nx-request-id: ${id}\r\n`);
    ids.add(id);
  }
  t.equal(ids.size, turns.length);
});

test('lines that tell of a client are bounded in number, and what cannot be written is left out', async (t) => {
  const running = await startTranslated(t, { answer: jsonAnswer(200, completion) });
  const many = Array.from({ length: 80 }, (_, index) => `x-codex-${index}: ${index}\r\n`).join('');
  await post(running.port, chatPath, chatBody, many);
  t.equal(running.upstream.requests[0]?.head.match(/\r\nx-codex-/g)?.length, 64);
  await post(running.port, chatPath, chatBody, 'session_id: a\u010ab\r\nversion: 1\r\n');
  t.notMatch(running.upstream.requests[1]?.head, /session_id/);
  t.match(running.upstream.requests[1]?.head, /\r\nversion: 1(?:\r\n|$)/);
});

test('our keys are not blamed for the refusal of a call that named an account', async (t) => {
  const refusal = (status: number) => (request: RawRequest) =>
    void request.socket.write(
      request.head.includes('openai-organization: org-foreign')
        ? errorAnswer(status, 'retry-after: 60\r\n')
        : goodAnswer,
    );
  for (const status of [401, 403, 429]) {
    const routed = await startRouted(t, [refusal(status), goodAnswer], {
      config: { routing: { failures: 1, openMs: 600_000, retries: 0 } },
      upstream: { apiKeys: ['sk-first', 'sk-second'], forwardHeaders: ['openai-organization'] },
    });
    const named = await routed.ask({ 'openai-organization': 'org-foreign' });
    t.equal(named.status, 200, 'another target is asked');
    t.notOk(
      routed.gateway.lines.some(({ msg }) => msg === "an upstream refused the gateway's API key or account"),
      'nor is our account said to be refused',
    );
    const before = routed.keys(0).length;
    for (let i = 0; i < 20; i++) await routed.ask();
    t.equal(new Set(routed.keys(0).slice(before)).size, 2, `after ${status} both are used`);
    t.equal(routed.counts()[1], 1);
  }
});

const said = [
  'openai-model: gpt-x-2026',
  'x-codex-turn-state: abc',
  'x-codex-primary-used-percent: 7',
  'x-models-etag: e1',
  'x-reasoning-included: true',
  'x-gemini-service-tier: standard',
  'x-client-request-id: r-1',
  'cf-ray: 9-FRA',
  'idempotent-replayed: true',
  'x-ratelimit-remaining-tokens: 5',
];
const ofAccount = [
  'openai-organization: org-ours1',
  'openai-project: proj_ours1',
  'anthropic-organization-id: 11-22',
];
const unsaid = [...ofAccount, 'x-served-by: a7', 'set-cookie: a=b', 'server: x', 'x-unknown: 1'];

function answered(status: number, body: string): string {
  return jsonAnswer(status, body, [...said, ...unsaid].map((line) => `${line}\r\n`).join(''));
}

function startAnswering(t: Test, answer: string, more: object = {}) {
  return startTranslated(t, { kind: 'chat', answer, ...more });
}

test('what the vendors tell their own clients in heads of answers comes back, translated or not', async (t) => {
  const running = await startAnswering(t, answered(200, completion));
  for (const [path, body] of calls) {
    const { head } = await post(running.port, path, body);
    for (const line of said) t.ok(head.includes(`\r\n${line}`), `${path} ${line}`);
    for (const line of unsaid) t.notOk(head.includes(`\r\n${line}`), `${path} ${line}`);
  }
});

test('an answer names no account of ours, and the allowance of one stays here where the gateway has limits', async (t) => {
  const running = await startAnswering(t, answered(400, '{"error":{"message":"no","type":"x"}}'));
  const { head, status } = await post(running.port, chatPath, chatBody);
  t.equal(status, 400);
  t.notMatch(head, /openai-organization|openai-project|anthropic-organization-id/);
  t.match(head, /\r\ncf-ray: 9-FRA/);
  const limited = await startGateway(t, {
    upstreams: [(await startRawUpstream(t, answered(200, completion))).url],
    config: { groups: { default: { models: ['*'], limits: { requestsPerMinute: 100 } } } },
  });
  const kept = (await post(limited.port, chatPath, chatBody)).head;
  t.notMatch(kept, /x-codex-primary|remaining-tokens: 5/);
  t.match(kept, /\r\nx-codex-turn-state: abc/);
});

test('an answer has the headers that the config hands on, and pages are told of them', async (t) => {
  const running = await startAnswering(t, answered(200, completion), {
    upstream: { returnHeaders: ['X-Served-By', 'openai-project'] },
    config: { listen: { host: '127.0.0.1', port: 0, cors: { origins: ['*'] } } },
  });
  const { head } = await post(running.port, chatPath, chatBody, 'origin: https://a.example\r\n');
  t.match(head, /\r\nx-served-by: a7/);
  t.match(head, /\r\nopenai-project: proj_ours1/);
  t.notMatch(head, /x-unknown|set-cookie/);
  const exposed = /access-control-expose-headers: (.*)/.exec(head)?.[1]?.split(', ') ?? [];
  for (const name of ['x-served-by', 'cf-ray', 'openai-model', 'x-codex-turn-state', 'x-request-id'])
    t.ok(exposed.includes(name), name);
});

const socketHeaders = { session_id: 's-2', 'x-stainless-lang': 'js', 'x-app': 'cli', 'x-tenant': 'a' };

test('a WebSocket at an upstream is asked for with what the client says of itself', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    upstream: { forwardHeaders: ['x-tenant'] },
  });
  await openClient(t, port, { headers: { authorization: `Bearer ${testKey}`, ...socketHeaders } });
  const { headers } = (await upstream.arrival(0)).request;
  t.match(headers, { session_id: 's-2', 'x-stainless-lang': 'js', 'x-tenant': 'a' });
  t.equal(headers['x-app'], undefined);
});

test('calls over a WebSocket have what its upgrade said of the client', async (t) => {
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [] };
  const upstream = await startRawUpstream(t, jsonAnswer(200, JSON.stringify(response)));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['responses'],
    target: { responses: 'only' },
    upstream: { forwardHeaders: ['x-tenant'] },
  });
  const { send, answer } = await connect(t, gateway.url, {
    authorization: `Bearer ${testKey}`,
    ...socketHeaders,
  });
  send(create({ model: 'm', input: 'hi' }));
  await answer();
  const head = upstream.requests[0]?.head;
  for (const line of ['session_id: s-2', 'x-stainless-lang: js', 'x-tenant: a'])
    t.match(head, new RegExp(`\\r\\n${line}\\r\\n`));
  t.notMatch(head, /x-app/);
});

test("a video is submitted with what its client says of itself, and asked about with nothing of anybody's", async (t) => {
  const task = JSON.stringify({ id: 'theirs', object: 'video', status: 'queued', progress: 0 });
  const upstream = await startRawUpstream(t, jsonAnswer(200, task));
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url, forwardHeaders: ['x-tenant'] } },
      models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
    }),
  });
  const headers = { ...socketHeaders };
  const made = await compat.create(gateway, { model: 'm', prompt: 'a fox' }, { headers });
  t.equal(made.status, 200, made.text);
  await compat.show(gateway, compat.idOf(made));
  const [submitted, asked] = upstream.requests;
  t.match(submitted?.head, /\r\nsession_id: s-2(?:\r\n|$)/);
  t.match(submitted?.head, /\r\nx-tenant: a(?:\r\n|$)/);
  t.match(asked?.head, /^GET /);
  t.notMatch(asked?.head, /session_id|x-stainless|x-tenant|x-app/);
});
