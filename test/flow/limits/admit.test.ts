import { setTimeout } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { chatRequest, open, readAnswer } from '../../support/raw-client.js';
import { refusalOf } from '../../support/realtime.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  startRawUpstream,
  streamHead,
  usageEvent,
} from '../../support/upstream.js';

type Limits = Readonly<Record<string, number>>;

interface Limited {
  readonly key?: Limits;
  readonly group?: Limits;
  readonly model?: Limits;
}

const good = jsonAnswer(200, completion, 'x-ratelimit-limit-requests: 5000\r\n');
const otherKey = 'sk-other';

/** A gateway whose model is served by one upstream, with these limits. */
async function start(
  t: Test,
  limited: Limited,
  answer: (request: RawRequest) => void = answerWith(good),
  leaseDelayMs = 0,
) {
  const upstream = await startRawUpstream(t, answer);
  const limitsOf = (limits?: Limits) => (limits === undefined ? {} : { limits });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    leaseDelayMs,
    config: {
      models: {
        m: {
          protocols: ['chat', 'messages', 'generateContent', 'completions', 'audio', 'realtime'],
          targets: [{ upstream: 'u0', model: 'm' }],
          ...limitsOf(limited.model),
        },
      },
      groups: { default: { models: ['*'], ...limitsOf(limited.group) } },
      keys: [testKey, otherKey].map((key, index) => ({
        id: `k${index}`,
        hash: hashKey(key),
        groups: ['default'],
        ...limitsOf(limited.key),
      })),
    },
  });
  const ask = (body: object = {}, init: RequestInit = {}, path = '/v1/chat/completions') =>
    fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', ...init.headers },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body }),
      ...(init.signal == null ? {} : { signal: init.signal }),
    });
  const status = async (...given: Parameters<typeof ask>): Promise<number> => {
    const answered = await ask(...given);
    await answered.text();
    return answered.status;
  };
  return { gateway, upstream, ask, status };
}

function answerWith(answer: string) {
  return ({ socket }: RawRequest): void => {
    socket.write(answer);
  };
}

const statuses = async (count: number, ask: () => Promise<number>): Promise<number[]> => {
  const found: number[] = [];
  for (let i = 0; i < count; i++) found.push(await ask());
  return found;
};

test('a key has so many requests in a minute, and then hears when to come again', async (t) => {
  const { status, ask, upstream } = await start(t, { key: { requestsPerMinute: 3 } });
  t.strictSame(await statuses(5, status), [200, 200, 200, 429, 429]);
  t.equal(upstream.requests.length, 3);
  const refused = await ask();
  const seconds = Number(refused.headers.get('retry-after'));
  t.ok(seconds > 50 && seconds <= 60, `${seconds}`);
  t.match(await refused.json(), {
    error: {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: /3 requests per minute for your key/,
    },
  });
  t.equal(await status({}, { headers: { authorization: `Bearer ${otherKey}` } }), 200);
});

test('no wait is longer than SDKs heed, even right after the call that reached the limit', async (t) => {
  const { ask } = await start(t, { key: { requestsPerMinute: 1 } });
  const answers = await Promise.all(Array.from({ length: 4 }, () => ask()));
  const waits = answers
    .filter(({ status }) => status === 429)
    .map(({ headers }) => headers.get('retry-after'));
  t.strictSame(waits, ['60', '60', '60']);
});

test('each error format says it in its own words', async (t) => {
  const { status, ask } = await start(t, { model: { requestsPerMinute: 1 } });
  t.equal(await status(), 200);
  const messages = await ask(
    { max_tokens: 5 },
    { headers: { 'x-api-key': testKey, authorization: '', 'anthropic-version': '2023-06-01' } },
    '/v1/messages',
  );
  t.equal(messages.status, 429);
  t.match(await messages.json(), {
    type: 'error',
    error: { type: 'rate_limit_error', message: /for the model/ },
  });
  t.equal(messages.headers.get('anthropic-ratelimit-requests-limit'), '1');
  t.equal(messages.headers.get('anthropic-ratelimit-requests-remaining'), '0');
  t.ok(Date.parse(messages.headers.get('anthropic-ratelimit-requests-reset') ?? '') > Date.now());
  const google = await ask(
    { contents: [{ parts: [{ text: 'hi' }] }] },
    {},
    '/v1beta/models/m:generateContent',
  );
  t.equal(google.status, 429);
  t.match(await google.json(), {
    error: { status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: /^\d+s$/ }] },
  });
});

test('answers say what is left of the own limits, and nothing of those at the upstream', async (t) => {
  const { ask } = await start(t, { key: { requestsPerMinute: 100, tokensPerMinute: 50_000 } });
  const { headers } = await ask({ max_tokens: 1000 });
  t.equal(headers.get('x-ratelimit-limit-requests'), '100');
  t.equal(headers.get('x-ratelimit-remaining-requests'), '99');
  t.equal(headers.get('x-ratelimit-limit-tokens'), '50000');
  const left = Number(headers.get('x-ratelimit-remaining-tokens'));
  t.ok(left < 49_000 && left > 48_900, `${left}`);
  t.match(headers.get('x-ratelimit-reset-tokens'), /^(1m)?[\d.]+s$/);
  const unlimited = await start(t, {});
  t.equal((await unlimited.ask()).headers.get('x-ratelimit-limit-requests'), '5000');
});

test('what was expected of tokens and not used is there for others', async (t) => {
  const { status, ask } = await start(t, { key: { tokensPerMinute: 3000 } });
  // Each is expected to use more than 2,000, and uses 7.
  t.strictSame(new Set(await statuses(20, () => status({ max_tokens: 2000 }))), new Set([200]));
  const { headers } = await ask({ max_tokens: 1 });
  const left = Number(headers.get('x-ratelimit-remaining-tokens'));
  t.ok(left <= 3000 - 140 && left > 2700, `${left}`);
  t.equal(await status({ max_tokens: 1_000_000 }), 429, 'all of the limit is not free');
  const fresh = await start(t, { key: { tokensPerMinute: 3000 } });
  t.equal(
    await fresh.status({ max_tokens: 1_000_000 }),
    200,
    'a guess beyond the limit refuses no call for ever',
  );
  t.equal(await fresh.status(), 200);
});

test('a limit of tokens that is used up refuses calls of which nothing is known beforehand, too', async (t) => {
  const much = completion.replace('"prompt_tokens":3', '"prompt_tokens":5000');
  const running = await start(t, { key: { tokensPerMinute: 3000 } });
  const form = new FormData();
  form.set('model', 'm');
  form.set('file', new Blob([new Uint8Array(100)]), 'a.wav');
  const transcribe = () =>
    fetch(`${running.gateway.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}` },
      body: form,
    });
  running.upstream.answer = jsonAnswer(200, '{"text":"hi"}');
  t.equal((await transcribe()).status, 200);
  running.upstream.answer = jsonAnswer(200, much);
  t.equal(await running.status({ max_tokens: 1 }), 200);
  const refused = await transcribe();
  t.equal(refused.status, 429);
  t.match(await refused.json(), { error: { message: /tokens per minute/ } });
  const session = await refusalOf(t, running.gateway.port);
  t.equal(session.status, 429);
  t.match(session.body, /tokens per minute/);
  t.equal(running.upstream.requests.length, 2);
});

test('a call that failed has used no tokens', async (t) => {
  const failing = jsonAnswer(400, '{"error":{"message":"no"}}');
  const { status, ask } = await start(t, { key: { tokensPerMinute: 3000 } }, answerWith(failing));
  t.strictSame(new Set(await statuses(5, () => status({ max_tokens: 2000 }))), new Set([400]));
  const left = Number((await ask({ max_tokens: 1 })).headers.get('x-ratelimit-remaining-tokens'));
  t.ok(left > 2900, `${left}`);
});

test('more tokens than were expected count, too', async (t) => {
  const much = completion.replace('"prompt_tokens":3', '"prompt_tokens":5000');
  const { status } = await start(t, { key: { tokensPerMinute: 3000 } }, answerWith(jsonAnswer(200, much)));
  t.strictSame(await statuses(2, () => status({ max_tokens: 1 })), [200, 429]);
});

test('a place among the calls at once is free before the last byte of an answer', async (t) => {
  const events = [chatEvent({ content: 'a' }), chatEvent({}, 'stop'), usageEvent, doneEvent];
  const stream = streamHead + events.map(chunk).join('') + lastChunk;
  const answer = ({ socket, body }: RawRequest): void => {
    socket.write(body.includes('"stream":true') ? stream : good);
  };
  const { gateway } = await start(t, { key: { concurrent: 1 } }, answer);
  const socket = await open(gateway.port, '');
  for (let i = 0; i < 100; i++) {
    const body = `{"model":"m","stream":${i % 2 === 0},"messages":[{"role":"user","content":"hi"}]}`;
    socket.write(chatRequest(body));
    t.equal((await readAnswer(socket)).status, 200);
  }
  socket.destroy();
});

test('calls at once beyond the limit are refused until one of the others ends or leaves', async (t) => {
  const held: RawRequest[] = [];
  const { status, upstream, ask } = await start(
    t,
    { group: { concurrent: 2 } },
    (request) => void held.push(request),
  );
  const leaving = new AbortController();
  const first = ask({}, { signal: leaving.signal }).catch(() => null);
  const second = status({}, { headers: { authorization: `Bearer ${otherKey}` } });
  await upstream.request(1);
  t.equal(await status(), 429);
  leaving.abort();
  await first;
  const third = status();
  await upstream.request(2);
  for (const request of held.slice(1)) request.socket.write(good);
  t.strictSame(await Promise.all([second, third]), [200, 200]);
});

test('a client that leaves before the decision takes nothing', async (t) => {
  const { gateway, status, upstream } = await start(
    t,
    { key: { requestsPerMinute: 1, concurrent: 1 } },
    undefined,
    1500,
  );
  const socket = await open(
    gateway.port,
    chatRequest('{"model":"m","messages":[{"role":"user","content":"hi"}]}'),
  );
  await setTimeout(50);
  socket.destroy();
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'client_gone', status: 0 });
  t.equal(await status(), 200);
  t.equal(upstream.requests.length, 1);
});
