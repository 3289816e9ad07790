import { type Test, test } from 'tap';
import type { Budget } from '../../../src/config/types.js';
import { budgetOf } from '../../../src/flow/limits/call-limits.js';
import { hashKey } from '../../../src/keys/secret.js';
import { ownedUnits } from '../../limits/host.js';
import { costOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { postJson } from '../../support/post-json.js';
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

const good = jsonAnswer(200, completion);
/** USD for a million tokens: a token of input is a thousandth of a dollar, one of output is two. */
const price = { input: 1000, output: 2000 };
/** Of three tokens in and four out, in nano-dollars. */
const costOfGood = 11_000_000;
const dollar = 1_000_000_000;

type Answer = (request: RawRequest) => void;

/** A gateway whose key has a budget. */
async function start(t: Test, usd: number, answer: Answer = ({ socket }) => void socket.write(good)) {
  const upstream = await startRawUpstream(t, answer);
  const model = (more: object) => ({ protocols: ['chat'], targets: [{ upstream: 'u0' }], ...more });
  const running = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: {
        m: model({ price, protocols: ['chat', 'messages', 'generateContent', 'embeddings'] }),
        free: model({ price: { input: 0 } }),
        late: model({ price: { perSecond: 5 }, protocols: ['chat', 'audio'] }),
      },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], budget: { usd, per: 'month' } }],
    },
  });
  const ask = (body: object = {}, init: RequestInit = {}, path = '/v1/chat/completions') =>
    fetch(running.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', ...init.headers },
      body: JSON.stringify({
        model: 'm',
        max_tokens: 4,
        messages: [{ role: 'user', content: 'hi' }],
        ...body,
      }),
      ...(init.signal == null ? {} : { signal: init.signal }),
    });
  const status = async (...given: Parameters<typeof ask>): Promise<number> => {
    const answered = await ask(...given);
    await answered.text();
    return answered.status;
  };
  /** What is gone of the budget for good, in nano-dollars. */
  const spent = (): number => {
    const [pool] = ownedUnits(running.owner);
    return pool === undefined ? 0 : usd * dollar - pool.share;
  };
  /** Waits until so much is gone: workers tell it a little later. */
  const untilSpent = async (amount: number): Promise<void> => {
    await eventually(() => spent() === amount, { everyMs: 10 });
    t.equal(costOf(running), amount, 'as it is metered');
  };
  return { upstream, ask, status, spent, untilSpent };
}

test('calls at once take no more than there is, and cost in the end what they really used', async (t) => {
  const held: RawRequest[] = [];
  const { ask, untilSpent } = await start(t, 0.25, (request) => void held.push(request));
  let refused = 0;
  const calls = Array.from({ length: 30 }, async () => {
    const answer = await ask();
    await answer.text();
    if (answer.status === 429) refused++;
    return answer.status;
  });
  await eventually(() => refused + held.length >= 30, { everyMs: 10 });
  // Each is expected to cost four tokens of output, and some of input.
  t.ok(held.length >= 3 && held.length * 8_000_000 < 0.25 * dollar, `${held.length} were let in`);
  for (const { socket } of held) socket.write(good);
  const statuses = await Promise.all(calls);
  t.equal(statuses.filter((each) => each === 200).length, held.length);
  await untilSpent(held.length * costOfGood);
});

test('a budget that calls under way have taken is told as such, and asked for again', async (t) => {
  const held: RawRequest[] = [];
  const { ask, untilSpent } = await start(t, 0.011, (request) => void held.push(request));
  const first = ask();
  await eventually(() => held.length === 1);
  const refused = await ask();
  t.equal(refused.status, 429);
  t.equal(refused.headers.get('x-should-retry'), null);
  t.equal(refused.headers.get('retry-after'), '1');
  t.match(await refused.json(), {
    error: { code: 'insufficient_quota', message: /taken by calls under way/ },
  });
  held[0]?.socket.write(jsonAnswer(400, '{"error":{"message":"no"}}'));
  t.equal((await first).status, 400);
  const again = ask();
  await eventually(() => held.length === 2);
  held[1]?.socket.write(good);
  t.equal((await again).status, 200, 'what the first one has not used pays for another');
  await untilSpent(costOfGood);
});

test('one call after the other, a budget is used up to what one call may cost', async (t) => {
  const { status, untilSpent } = await start(t, 0.25);
  let served = 0;
  while ((await status()) === 200) served++;
  t.ok(served * costOfGood <= 0.25 * dollar, `${served} served`);
  t.ok(served * costOfGood >= 0.8 * 0.25 * dollar, `${served} served`);
  await untilSpent(served * costOfGood);
  t.equal(await status(), 429);
});

test('a budget that is used up is said in the words of each error format', async (t) => {
  const { ask, status } = await start(t, 0.011);
  t.equal(await status({ max_tokens: 1_000_000 }), 200, 'a guess beyond the budget refuses no call for ever');
  const end = budgetOf('key:k', { usd: 1, per: 'month' }, Date.now()).endsAt;
  const chat = await ask();
  t.equal(chat.status, 429);
  t.equal(chat.headers.get('x-should-retry'), 'false');
  const seconds = Number(chat.headers.get('retry-after'));
  t.ok(Math.abs(seconds - (end - Date.now()) / 1000) < 60, `${seconds}`);
  t.match(await chat.json(), {
    error: {
      type: 'insufficient_quota',
      code: 'insufficient_quota',
      message: /budget of your key, of 0\.011 USD/,
    },
  });
  const messages = await ask(
    {},
    { headers: { 'x-api-key': testKey, authorization: '', 'anthropic-version': '2023-06-01' } },
    '/v1/messages',
  );
  t.equal(messages.status, 429);
  t.match(await messages.json(), { type: 'error', error: { type: 'rate_limit_error', message: /budget/ } });
  const google = await ask(
    { contents: [{ parts: [{ text: 'hi' }] }] },
    {},
    '/v1beta/models/m:generateContent',
  );
  t.equal(google.status, 429);
  t.match(await google.json(), { error: { status: 'RESOURCE_EXHAUSTED', message: /budget/ } });
});

test('what costs nothing needs no budget, and whatever else does, also where its cost is known at the end alone', async (t) => {
  const { status, untilSpent } = await start(t, 0.011);
  t.equal(await status({ model: 'late' }), 200);
  t.equal(await status(), 200);
  await untilSpent(costOfGood);
  t.equal(await status({ model: 'free' }), 200);
  t.equal(await status({ model: 'late' }), 429);
  t.equal(await status(), 429);
});

test('what is to be spoken takes what its seconds cost', async (t) => {
  const held: RawRequest[] = [];
  const { status } = await start(t, 500, (request) => void held.push(request));
  // 600 bytes of text are forty seconds, which cost 200 USD.
  const speak = () =>
    status(
      { model: 'late', input: 'x'.repeat(600), voice: 'alloy', messages: undefined },
      {},
      '/v1/audio/speech',
    );
  const calls = [speak(), speak(), speak()];
  t.equal(await Promise.race(calls), 429, 'there is enough for two');
  await eventually(() => held.length >= 2, { everyMs: 10 });
  for (const { socket } of held)
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 3\r\n\r\nmp3');
  t.strictSame((await Promise.all(calls)).sort(), [200, 200, 429]);
  t.equal(held.length, 2);
});

test('a call that failed costs nothing', async (t) => {
  const failing = jsonAnswer(400, '{"error":{"message":"no"}}');
  const { status, untilSpent } = await start(t, 0.1, ({ socket, body }) => {
    if (body.includes('fail')) socket.write(failing);
    else if (body.includes('cut')) socket.destroy();
    else socket.write(good);
  });
  for (let i = 0; i < 20; i++) t.equal(await status({ user: 'fail' }), 400);
  for (let i = 0; i < 5; i++) t.ok((await status({ user: 'cut' })) >= 500);
  t.equal(await status(), 200);
  await untilSpent(costOfGood);
});

test('streams, embeddings and what costs more than expected are taken as they are counted', async (t) => {
  const events = [chatEvent({ content: 'a' }), chatEvent({}, 'stop'), usageEvent, doneEvent];
  const vectors = { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [1] }] };
  const usage = { prompt_tokens: 20, total_tokens: 20 };
  const much = completion.replace('"completion_tokens":4', '"completion_tokens":400');
  const { status, untilSpent } = await start(t, 0.5, ({ socket, head, body }) => {
    if (head.includes('/embeddings')) socket.write(jsonAnswer(200, JSON.stringify({ ...vectors, usage })));
    else if (body.includes('much')) socket.write(jsonAnswer(200, much));
    else socket.write(streamHead + events.map(chunk).join('') + lastChunk);
  });
  t.equal(await status({ stream: true }), 200);
  await untilSpent(costOfGood);
  t.equal(await status({ input: 'x', messages: undefined }, {}, '/v1/embeddings'), 200);
  await untilSpent(costOfGood + 20_000_000);
  t.equal(await status({ user: 'much' }), 200);
  await untilSpent(costOfGood + 20_000_000 + 803_000_000);
  t.equal(await status(), 429);
});

test('a client that leaves early is charged what was streamed', async (t) => {
  const { ask, untilSpent } = await start(t, 10, ({ socket }) => {
    socket.write(streamHead + chunk(chatEvent({ content: 'sixteen letters.' })));
  });
  const body = { stream: true, user: 'x'.repeat(100) };
  const leaving = new AbortController();
  const answer = await ask(body, { signal: leaving.signal });
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  leaving.abort();
  const sent = { model: 'm', max_tokens: 4, messages: [{ role: 'user', content: 'hi' }], ...body };
  const input = Math.ceil(JSON.stringify(sent).length / 4);
  await untilSpent(input * 1_000_000 + 4 * 2_000_000);
});

test('a period has a budget until the next one begins', async (t) => {
  const budget: Budget = { usd: 1.5, per: 'day' };
  const last = Date.parse('2026-11-30T23:59:59.999Z');
  const first = budgetOf('key:k', budget, last);
  t.match(first, {
    pool: { name: 'key:k:budget:2026-11-30', kind: 'budget', limit: 1.5e9 },
    endsAt: last + 1,
  });
  t.equal(budgetOf('key:k', budget, last), first, 'made once');
  t.equal(budgetOf('key:k', budget, last + 1).pool.name, 'key:k:budget:2026-12-01');
  t.equal(budgetOf('key:k', budget, last).pool.name, 'key:k:budget:2026-11-30', 'a clock that is set back');
});

/** A gateway with these parts in its config, and how a call for a model of it ends. */
async function startWith(
  t: Test,
  parts: { readonly models: object; readonly groups?: object; readonly more?: object },
) {
  const upstream = await startRawUpstream(t, good);
  const running = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      groups: { default: { models: ['*'] }, ...parts.groups },
      keys: [
        { id: 'k', hash: hashKey(testKey), groups: Object.keys({ default: 0, ...parts.groups }) },
        { id: 'rich', hash: hashKey('sk-rich'), groups: ['default'], budget: { usd: 1, per: 'day' } },
      ],
      models: parts.models,
      ...parts.more,
    },
  });
  const ask = (model: string, path = '/v1/chat/completions', key = testKey) =>
    postJson(
      running.url + path,
      { model, max_tokens: 4, messages: [{ role: 'user', content: 'hi' }] },
      { authorization: `Bearer ${key}`, 'anthropic-version': '2023-06-01' },
    );
  return { upstream, running, ask };
}

const offered = { protocols: ['chat', 'messages'], targets: [{ upstream: 'u0' }] };

test('a group and a model have budgets, too, and whoever has none left is named', async (t) => {
  const budget = { usd: 0.011, per: 'day' };
  const { running, ask } = await startWith(t, {
    groups: { poor: { models: ['a', 'b'], budget } },
    models: { a: { ...offered, price }, b: { ...offered, price }, scarce: { ...offered, price, budget } },
  });
  const told = async (model: string, key?: string) => {
    const answer = await ask(model, undefined, key);
    const text = await answer.text();
    return answer.status === 200 ? 200 : text;
  };
  t.equal(await told('a', testKey), 200);
  await eventually(() => costOf(running) === costOfGood, { everyMs: 10 });
  t.match(await told('b', testKey), /The budget of your key's group, of 0\.011 USD, is used up/);
  t.equal(await told('a', 'sk-rich'), 200, 'of another group');
  t.match(await told('scarce', 'sk-rich'), 200);
  t.match(await told('scarce', 'sk-rich'), /The budget of the model, of 0\.011 USD, is used up/);
});

test('a call with a budget is not sent to a model without a price, unless that is to be for nothing', async (t) => {
  const models = { unpriced: offered, limited: { ...offered, budget: { usd: 1, per: 'day' } } };
  const { upstream, ask } = await startWith(t, { models });
  const refused = await ask('unpriced', undefined, 'sk-rich');
  t.equal(refused.status, 403);
  t.match(await refused.json(), {
    error: { code: 'insufficient_permissions', param: 'model', message: /'unpriced' has no price/ },
  });
  const messages = await ask('unpriced', '/v1/messages', 'sk-rich');
  t.equal(messages.status, 403);
  t.match(await messages.json(), {
    type: 'error',
    error: { type: 'permission_error', message: /has no price/ },
  });
  t.equal((await ask('limited')).status, 403, "of the model's own budget");
  t.equal(upstream.requests.length, 0);
  t.equal((await ask('unpriced')).status, 200, 'without a budget');
  const free = await startWith(t, { models, more: { unpriced: 'free' } });
  t.equal((await free.ask('unpriced', undefined, 'sk-rich')).status, 200);
});

test("a key is charged by the least factor of its groups, and its group's budget, too", async (t) => {
  const groups = { dear: { models: [], priceFactor: 3 }, cheap: { models: [], priceFactor: 0.5 } };
  const { running, ask } = await startWith(t, { groups, models: { a: { ...offered, price } } });
  t.equal((await ask('a')).status, 200);
  await eventually(() => costOf(running) === costOfGood / 2, { everyMs: 10 });
  t.equal((await ask('a', undefined, 'sk-rich')).status, 200);
  await eventually(() => costOf(running) === costOfGood / 2 + costOfGood, { everyMs: 10 });
});
