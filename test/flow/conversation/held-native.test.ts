import { type Test, test } from 'tap';
import type { StoreWait } from '../../../src/flow/services.js';
import { holdConversations, type StoreProcess } from '../../suites/store-processes.js';
import {
  askResponse,
  keptIn,
  type ResponseStream,
  streamResponse,
  wholeOrStream,
} from '../../support/conversations.js';
import { eventually, soon } from '../../support/eventually.js';
import { testKey } from '../../support/gateway.js';
import { errorAnswer, keyOf, type Routed, startRouted } from '../../support/routed.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import {
  type Answer,
  chunk,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  streamHead,
} from '../../support/upstream.js';

interface Stage extends Routed {
  /** Keeps everybody from writing to the store, until it is killed. */
  block(): Promise<StoreProcess>;
  show(id: string): Promise<number>;
  /** Another request has been answered: by then the gateway has read what had been written to it before. */
  turn(): Promise<void>;
  stream(more?: object): Promise<ResponseStream>;
}

/** Longer than any test takes: what is known of a turn is found on a slow machine, too. */
const long: StoreWait = { endMs: 600_000, turnsMs: 600_000 };

async function stage(
  t: Test,
  answers: readonly Answer[],
  upstream: object = {},
  storeWait: StoreWait = long,
  config: object = {},
): Promise<Stage> {
  const path = temporaryFolder(t);
  const routed = await startRouted(t, answers, {
    protocols: ['responses'],
    target: { responses: true },
    upstream: { kind: 'chat', ...upstream },
    config: { ...keptIn(path), ...config },
    storeWait,
  });
  const { url } = routed.gateway;
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' };
  const get = async (what: string): Promise<number> => {
    const answer = await fetch(`${url}/v1/${what}`, { headers });
    await answer.arrayBuffer();
    return answer.status;
  };
  return {
    ...routed,
    async block() {
      // The files are made by the first record.
      await askResponse(routed.gateway, { input: 'first' });
      await eventually(async () => (await get('responses/resp_w')) === 200);
      return holdConversations(t, path);
    },
    show: (id) => get(`responses/${id}`),
    async turn() {
      await get('models');
      await get('models');
    },
    stream: (more = {}) => streamResponse(routed.gateway, { input: 'x', ...more }),
  };
}

const response = (id: string, more: object = {}) => ({ id, object: 'response', output: [], ...more });
const event = (type: string, more: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const created = event('response.created', { response: response('resp_s') });
const completed = event('response.completed', { response: response('resp_s', { status: 'completed' }) });
const doneMark = 'data: [DONE]\n\n';
const streamOf = (text: string): string => streamHead + chunk(text) + lastChunk;
const whole = jsonAnswer(200, JSON.stringify(response('resp_w', { status: 'completed' })));
const wholeOr = (stream: string): Answer => wholeOrStream(whole, stream);

test('nothing waits for the note of what the one target of a model has made', async (t) => {
  const all = created + completed + doneMark;
  const gateway = await stage(t, [wholeOr(streamOf(all))]);
  const holder = await gateway.block();
  t.equal(await (await gateway.stream()).rest(), all);
  const asked = askResponse(gateway.gateway, { input: 'x' });
  t.equal((await soon(asked, 'an answer, while the store can be written by nobody')).status, 200);
  const made = () =>
    gateway.gateway.lines.filter(({ msg, method }) => msg === 'request' && method === 'POST');
  await eventually(() => made().length === 3);
  t.same(
    made().map(({ outcome }) => outcome),
    ['complete', 'complete', 'complete'],
  );
  const shown = gateway.show('resp_s');
  holder.kill();
  t.equal(await shown, 200, 'whoever asks for it meanwhile waits for the note');
});

test('an event of more than a mebibyte passes, whoever may be asked next', async (t) => {
  const large = event('response.output_item.done', { item: { result: 'x'.repeat(3 * 1024 * 1024) } });
  const all = created + large + completed;
  for (const upstream of [{}, { apiKeys: ['k1', 'k2'] }]) {
    const gateway = await stage(t, [wholeOr(streamOf(all))], upstream);
    t.equal(await (await gateway.stream()).rest(), all);
    t.equal(await gateway.show('resp_s'), 200);
  }
});

test('a response in the background can be asked for while its stream is under way', async (t) => {
  for (const upstream of [{}, { apiKeys: ['k1', 'k2'] }]) {
    const begun = (request: RawRequest): string =>
      request.head.startsWith('GET') ? jsonAnswer(200, '{"id":"resp_s"}') : streamHead + chunk(created);
    const gateway = await stage(t, [begun], upstream);
    await (await gateway.stream({ background: true })).until('resp_s');
    t.ok(await eventually(async () => (await gateway.show('resp_s')) === 200));
  }
});

test('what comes behind the end of a stream while that waits leaves with it', async (t) => {
  const sockets: RawRequest['socket'][] = [];
  const answer = ({ body, socket }: RawRequest): string | undefined => {
    if (!body.includes('"stream":true')) return whole;
    socket.write(streamHead + chunk(created));
    sockets.push(socket);
    return undefined;
  };
  const gateway = await stage(t, [answer], { apiKeys: ['k1', 'k2'] });
  const holder = await gateway.block();
  const stream = await gateway.stream();
  await stream.until('response.created');
  for (const text of [completed, doneMark]) {
    sockets[0]?.write(chunk(text));
    await gateway.turn();
  }
  holder.kill();
  t.equal(await stream.rest(), created + completed + doneMark);
});

test('no sign of life is sent within the last event of a stream while its end waits', async (t) => {
  const large = event('response.completed', {
    response: response('resp_s', { status: 'completed', user: 'x'.repeat(3 * 1024 * 1024) }),
  });
  const answer = ({ body, socket }: RawRequest): string | undefined => {
    if (!body.includes('"stream":true')) return whole;
    socket.write(streamHead + chunk(created));
    if (body.includes('large')) socket.write(chunk(large) + lastChunk);
    return undefined;
  };
  const gateway = await stage(t, [answer], { apiKeys: ['k1', 'k2'] }, long, {
    timeouts: { keepAliveMs: 20 },
  });
  const holder = await gateway.block();
  const ending = await gateway.stream({ input: 'large' });
  await ending.until('x'.repeat(2 * 1024 * 1024));
  const silent = await gateway.stream();
  await silent.until(/(?:: .*\n\n){2}/);
  holder.kill();
  t.ok((await ending.rest()) === created + large);
  await silent.cancel();
});

test('what was made with one key is never asked with another', async (t) => {
  let count = 0;
  const answer = (): string => {
    count += 1;
    return count === 1 ? whole : errorAnswer(429);
  };
  const gateway = await stage(t, [answer], { apiKeys: ['k1', 'k2', 'k3'] });
  const { requests } = gateway.upstreams[0] ?? { requests: [] };
  await askResponse(gateway.gateway, { input: 'x' });
  const next = await askResponse(gateway.gateway, { input: 'x', previous_response_id: 'resp_w' });
  t.equal(next.status, 429);
  t.same(new Set(requests.map(keyOf)).size, 1);
});

test('a store that does not answer keeps nobody from an upstream that may know the turn itself', async (t) => {
  const gateway = await stage(t, [whole, whole], {}, { endMs: 100, turnsMs: 100 });
  const holder = await gateway.block();
  // The thread of the store is busy with this one.
  const first = askResponse(gateway.gateway, { input: 'x' });
  await eventually(() => (gateway.counts()[0] ?? 0) + (gateway.counts()[1] ?? 0) >= 3);
  await gateway.turn();
  const next = await askResponse(gateway.gateway, { input: 'x', previous_response_id: 'resp_w' });
  t.equal(next.status, 200);
  holder.kill();
  t.equal((await first).status, 200);
});

test('items that hold their content wait for no store', async (t) => {
  const gateway = await stage(t, [whole, whole]);
  const holder = await gateway.block();
  // The thread of the store is busy with this one.
  const first = askResponse(gateway.gateway, { input: 'x' });
  await eventually(() => (gateway.counts()[0] ?? 0) + (gateway.counts()[1] ?? 0) >= 3);
  await gateway.turn();
  const content = [{ type: 'reasoning_text', text: 'hm' }];
  const input = [
    { type: 'reasoning', id: 'rs_1', summary: [], content },
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'gAAA' },
    { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AAAA' },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}' },
  ];
  const asked = askResponse(gateway.gateway, { input, store: false });
  t.equal((await soon(asked, 'an answer, while the store does not answer')).status, 200);
  holder.kill();
  t.equal((await first).status, 200);
});

test('an id that nobody has begun to look up reaches no upstream', async (t) => {
  const gateway = await stage(t, [whole, whole], {}, { endMs: 100, turnsMs: 100 });
  const holder = await gateway.block();
  const sent = (): number => gateway.counts().reduce((sum, count) => sum + count, 0);
  const made = sent();
  const first = askResponse(gateway.gateway, { input: 'x' });
  await eventually(() => sent() > made);
  let before = sent();
  const ask = () => {
    before = sent();
    return askResponse(gateway.gateway, { input: 'x', previous_response_id: 'resp_w' });
  };
  // Each of them begins a search and reaches the upstream, until as many are under way as may be. The store's thread
  // ends those that it hears of before it writes what the first call has made, and none after that.
  const refused = await eventually(ask, { fits: ({ status }) => status !== 200 });
  t.match(refused, { status: 503, body: { error: { code: 'store_unavailable' } } });
  t.equal(sent(), before);
  t.ok(before - made > 4, 'those that have begun reach it');
  holder.kill();
  t.equal((await first).status, 200);
});
