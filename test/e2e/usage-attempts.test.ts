import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import {
  chunk,
  completion,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';
import { chatBody, prices, startUsageGateway, type UsageLine } from '../support/usage-gateway.js';

const good = jsonAnswer(200, completion);
/** Of 3 and 4 tokens, in nano-dollars. */
const cost = 3 * 1250 + 4 * 10_000;

/** A gateway whose model has two targets, the first of which answers as given, or not at all. @param other the second's answer */
async function start(
  t: Test,
  answer: string,
  hedgeMs?: number,
  other = good,
  kind = 'chat',
  more: object = {},
) {
  const first = await startRawUpstream(t, answer);
  const second = await startRawUpstream(t, other);
  const usage = await startUsageGateway(t, {
    upstreamUrl: first.url,
    store: { kind: 'embedded', path: temporaryFolder(t) },
    config: {
      ...more,
      upstreams: {
        one: { kind, baseUrl: first.url, apiKeys: ['upstream-key'] },
        two: { kind, baseUrl: second.url, apiKeys: ['upstream-key'] },
      },
      models: {
        talk: {
          protocols: ['chat'],
          targets: [
            { upstream: 'one', model: 'a', priority: 0, cost: prices.talk },
            { upstream: 'two', model: 'b', priority: 1 },
          ],
          price: prices.talk,
          ...(hedgeMs === undefined ? {} : { hedgeMs }),
        },
      },
    },
  });
  return {
    first,
    second,
    usage,
    async lines(): Promise<readonly UsageLine[]> {
      const answered = await usage.post('/v1/chat/completions', chatBody('How are you?'));
      t.equal(answered.status, 200);
      await answered.text();
      const id = answered.headers.get('x-request-id');
      await usage.linesOf(id);
      return (await usage.lines()).filter(({ requestId }) => requestId === id);
    },
    report: () => usage.report('?by='),
  };
}

const answered = { outcome: 'complete', target: 'two/b', costNanoUsd: cost, inputTokens: 3, outputTokens: 4 };

test('of a call that failed over, both attempts are in the ledger, and the client pays for one', async (t) => {
  const stage = await start(t, jsonAnswer(500, '{}'));
  const [call, attempt, ...more] = await stage.lines();
  t.strictSame(more, []);
  t.match(call, answered);
  t.match(attempt, {
    outcome: 'attempt',
    target: 'one/a',
    costNanoUsd: 0,
    tokensKnown: 'none',
    keyId: 'load',
  });
  t.match((await stage.report()).total, { calls: 1, costNanoUsd: cost, inputTokens: 3 });
});

test('of a hedged call, the attempt that was given up is in the ledger with what it is thought to have read', async (t) => {
  const stage = await start(t, '', 10);
  const [call, attempt, ...more] = await stage.lines();
  t.strictSame(more, []);
  t.match(call, answered);
  t.match(attempt, { outcome: 'attempt', target: 'one/a', costNanoUsd: 0, tokensKnown: 'partial' });
  t.ok(Number(attempt?.inputTokens) > 0);
  t.match((await stage.report()).total, { calls: 1, costNanoUsd: cost, inputTokens: 3 });
});

test('of a hedged call one of whose attempts gets an error, that one alone is in the ledger beside the answer', async (t) => {
  const { first, second, usage } = await start(t, '', 10, '');
  const asked = usage.post('/v1/chat/completions', chatBody('How are you?'));
  const [failing, answering] = await Promise.all([first.request(0), second.request(0)]);
  failing.socket.end(jsonAnswer(500, '{}'));
  await eventually(() => first.sockets.size === 0);
  answering.socket.write(good);
  const answer = await asked;
  t.equal(answer.status, 200);
  await answer.text();
  const id = answer.headers.get('x-request-id');
  await usage.linesOf(id);
  const [call, attempt, ...more] = (await usage.lines()).filter(({ requestId }) => requestId === id);
  t.match(call, answered);
  t.match(attempt, { outcome: 'attempt', target: 'one/a', costNanoUsd: 0 });
  t.strictSame(more, []);
});

test('of a hedged call whose client leaves, the attempt that is not read on for is in the ledger, and the client pays for one', async (t) => {
  const { first, second, usage } = await start(t, '', 10, '');
  const leaving = new AbortController();
  const asked = usage
    .post('/v1/chat/completions', chatBody('How are you?'), leaving.signal)
    .catch(() => null);
  const [request] = await Promise.all([first.request(0), second.request(0)]);
  leaving.abort();
  await asked;
  await eventually(() => second.sockets.size === 0);
  request.socket.write(good);
  await eventually(async () => (await usage.lines()).length >= 2);
  const lines = await usage.lines();
  t.equal(lines.length, 2);
  t.equal(new Set(lines.map(({ requestId }) => requestId)).size, 1);
  const [call, attempt] = lines;
  t.match(call, { ...answered, outcome: 'client_gone', target: 'one/a', tokensKnown: 'exact' });
  t.match(attempt, { outcome: 'attempt', target: 'two/b', costNanoUsd: 0, tokensKnown: 'partial' });
  t.ok(Number(attempt?.inputTokens) > 0);
  t.match((await usage.report('?by=')).total, { calls: 1, costNanoUsd: cost, inputTokens: 3 });
});

const messageStart = `event: message_start\ndata: ${JSON.stringify({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'a',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 1234, output_tokens: 1, cache_read_input_tokens: 100 },
  },
})}\n\n`;
const messageRest = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Fine.' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 4 },
  },
  { type: 'message_stop' },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join('');

test('an attempt that breaks off once its usage was told is in the ledger with that', async (t) => {
  const whole = streamHead + chunk(messageStart + messageRest) + lastChunk;
  const { first, usage } = await start(t, '', undefined, whole, 'messages');
  const asked = usage.post('/v1/chat/completions', chatBody('How are you?', { stream: true }));
  const failing = await first.request(0);
  failing.socket.end(streamHead + chunk(messageStart));
  const answer = await asked;
  t.equal(answer.status, 200);
  await answer.text();
  const id = answer.headers.get('x-request-id');
  await usage.linesOf(id);
  const [call, attempt, ...more] = (await usage.lines()).filter(({ requestId }) => requestId === id);
  t.match(call, { outcome: 'complete', target: 'two/b', inputTokens: 1334, outputTokens: 4 });
  t.match(attempt, {
    outcome: 'attempt',
    target: 'one/a',
    tokensKnown: 'partial',
    inputTokens: 1334,
    cachedTokens: 100,
    outputTokens: 1,
    costNanoUsd: 0,
    paidNanoUsd: 1234 * 1250 + 100 * 125 + 10_000,
  });
  t.strictSame(more, []);
});

/** A response that has failed, with what it has used. */
const failedResponse = jsonAnswer(
  200,
  JSON.stringify({
    id: 'resp_1',
    object: 'response',
    status: 'failed',
    error: { code: 'server_error', message: 'no' },
    model: 'a',
    output: [
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'a' } },
    ],
    usage: { input_tokens: 5000, output_tokens: 50, total_tokens: 5050 },
  }),
);
const failedChat = jsonAnswer(
  200,
  JSON.stringify({
    error: { message: 'no', type: 'server_error', code: 'server_error' },
    usage: { prompt_tokens: 5000, completion_tokens: 50, total_tokens: 5050 },
  }),
);

test('what a whole answer that is an error says of its usage is in the ledger, also if no other attempt follows', async (t) => {
  const used = { outcome: 'attempt', target: 'one/a', inputTokens: 5000, outputTokens: 50, costNanoUsd: 0 };
  const paidNanoUsd = 5000 * 1250 + 50 * 10_000;
  const stage = await start(t, failedChat);
  const [call, attempt] = await stage.lines();
  t.match(call, answered);
  t.match(attempt, { ...used, tokensKnown: 'exact', paidNanoUsd });
  const upstream = await startRawUpstream(t, failedResponse);
  const usage = await startUsageGateway(t, {
    upstreamUrl: upstream.url,
    store: { kind: 'embedded', path: temporaryFolder(t) },
    config: {
      upstreams: { one: { kind: 'chat', baseUrl: upstream.url, apiKeys: ['upstream-key'] } },
      models: {
        talk: {
          protocols: ['responses'],
          targets: [
            { upstream: 'one', model: 'a', responses: true, cost: { ...prices.talk, perSearch: 0.01 } },
          ],
          price: prices.talk,
        },
      },
    },
  });
  const refused = await usage.post('/v1/responses', { model: 'talk', input: 'Hi', store: false });
  t.ok(refused.status >= 500);
  await refused.text();
  const id = refused.headers.get('x-request-id');
  await usage.linesOf(id);
  const lines = (await usage.lines()).filter(({ requestId }) => requestId === id);
  t.match(
    lines.find(({ outcome }) => outcome === 'attempt'),
    { ...used, searches: 1, paidNanoUsd: paidNanoUsd + 10_000_000 },
  );
  t.match(
    lines.find(({ outcome }) => outcome !== 'attempt'),
    { costNanoUsd: 0, inputTokens: 0 },
  );
});

test('an attempt whose upstream does not begin to answer in time is in the ledger with what it is thought to have read', async (t) => {
  const late = { timeouts: { firstByteMs: 500 } };
  const { usage } = await start(t, '', undefined, '', 'chat', late);
  const refused = await usage.post('/v1/chat/completions', chatBody('How are you?'));
  t.equal(refused.status, 504);
  await refused.text();
  const id = refused.headers.get('x-request-id');
  await usage.linesOf(id);
  const [call, attempt, ...more] = (await usage.lines()).filter(({ requestId }) => requestId === id);
  t.strictSame(more, []);
  t.match(call, { outcome: 'upstream_error', costNanoUsd: 0, inputTokens: 0 });
  t.match(attempt, {
    outcome: 'attempt',
    target: 'one/a',
    costNanoUsd: 0,
    tokensKnown: 'partial',
    outputTokens: 0,
  });
  t.ok(Number(attempt?.paidNanoUsd) > 0);
  t.match((await usage.report('?by=')).total, { calls: 1, costNanoUsd: 0, inputTokens: 0 });
});
