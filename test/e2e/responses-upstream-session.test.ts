import { type Test, test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import { eventually } from '../support/eventually.js';
import { type ServedBy, startGateway, testKey } from '../support/gateway.js';
import { closeOf, startRealtimeUpstream } from '../support/realtime.js';
import { connect, create, type Event } from '../support/responses-socket.js';
import {
  callsOf,
  functionTool,
  type Responses,
  resultsOf,
  textOf,
} from '../support/sdks/openai-responses.js';

const withSockets = (config: ResolvedConfig): ResolvedConfig => ({
  ...config,
  upstreams: config.upstreams.map((upstream) => ({ ...upstream, responsesSocket: true })),
});

const withKeys = (config: ResolvedConfig): ResolvedConfig => ({
  ...config,
  upstreams: withSockets(config).upstreams.map((upstream) => ({ ...upstream, apiKeys: ['a', 'b', 'c'] })),
});

/** The upstreams that there are: with a WebSocket, by POST, and of the other protocols. */
const upstreams = [
  ['a WebSocket', 'simulator', withSockets],
  ['POST', 'simulator', undefined],
  ['chat', 'chat', undefined],
  ['messages', 'messages', undefined],
  ['generateContent', 'generateContent', undefined],
] as const;

const start = (t: Test, kind: ServedBy, adapt?: (config: ResolvedConfig) => ResolvedConfig) =>
  startGateway(t, { demo: kind, adapt: adapt });

const responseOf = (events: readonly Event[]): Responses => {
  const last = events.at(-1);
  if (last?.response === undefined) throw new Error(JSON.stringify(last));
  return last.response;
};

for (const [name, kind, adapt] of upstreams) {
  test(`${name}: a call goes on from the one before with its new items alone`, async (t) => {
    const gateway = await start(t, kind, adapt);
    const { send, answer } = await connect(t, gateway.url);
    const tools = [functionTool('get_weather')];
    send(create({ store: false, input: 'What is the weather in Oslo?', tools }));
    const called = responseOf(await answer());
    t.equal(callsOf(called).length, 1);
    const input = resultsOf(called, 'rain');
    send(create({ store: false, previous_response_id: called.id, input, tools }));
    const told = responseOf(await answer());
    t.match(textOf(told), /rain/);
    const more = [{ role: 'user', content: 'and tomorrow?' }];
    send(create({ store: false, previous_response_id: told.id, input: more }));
    t.match(textOf(responseOf(await answer())), /tomorrow/);
  });

  test(`${name}: a call that generates nothing is remembered`, async (t) => {
    const gateway = await start(t, kind, adapt);
    const { send, answer } = await connect(t, gateway.url);
    const before = gateway.simulator.state().totalRequests;
    send(create({ store: false, generate: false, input: 'a long beginning' }));
    const warm = responseOf(await answer());
    t.match(warm, { id: /^resp_./, status: 'completed', model: 'sim-text', usage: { output_tokens: 0 } });
    t.strictSame(warm.output, []);
    t.equal(gateway.simulator.state().totalRequests, before, 'no request was made for it');
    send(
      create({ store: false, previous_response_id: warm.id, input: [{ role: 'user', content: 'the end' }] }),
    );
    const told = responseOf(await answer());
    t.match(textOf(told), /the end/);
    t.ok((told.usage?.input_tokens ?? 0) > 4, 'the beginning was counted too');
  });

  test(`${name}: a response that nobody knows is told by its code`, async (t) => {
    const gateway = await start(t, kind, adapt);
    const { send, answer } = await connect(t, gateway.url);
    send(create({ store: false, previous_response_id: 'resp_none', input: 'x' }));
    const error = { code: 'previous_response_not_found', param: 'previous_response_id' };
    t.match(await answer(), [{ type: 'error', status: 400, error }]);
    send(create({ input: 'still here' }));
    t.match(textOf(responseOf(await answer())), /still here/);
  });
}

test('all calls of a client go over one WebSocket with one key, which ends with its own', async (t) => {
  const gateway = await start(t, 'simulator', withKeys);
  const { socket, send, answer } = await connect(t, gateway.url);
  for (const word of ['one', 'two', 'three', 'four', 'five', 'six']) {
    send(create({ input: word }));
    const events = await answer();
    t.match(textOf(responseOf(events)), word);
    t.strictSame(
      events.map((event) => event.sequence_number),
      events.map((_, index) => index),
    );
  }
  t.match(gateway.simulator.state(), { openSessions: 1, totalSessions: 1, totalRequests: 0 });
  const request = gateway.simulator.lastRequest();
  t.ok(request?.rawHeaders.includes('responses_websockets=2026-02-06'));
  socket.close(1000);
  await closeOf(socket);
  await eventually(() => gateway.simulator.state().openSessions === 0);
});

test('a message that is refused unread does not have the whole conversation sent again', async (t) => {
  const sent: unknown[] = [];
  const upstream = await startRealtimeUpstream(t, ({ socket }) => {
    socket.on('message', (data) => {
      sent.push(JSON.parse(data.toString()));
      const response = { id: `resp_${sent.length}`, output: [] };
      socket.send(JSON.stringify({ type: 'response.completed', response }));
    });
  });
  const { url } = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { responsesSocket: true },
    config: { models: { m: { protocols: ['responses'], targets: [{ upstream: 'u0', responses: true }] } } },
  });
  const { send, answer } = await connect(t, url, { authorization: `Bearer ${testKey}` });
  send(create({ model: 'm', store: false, input: 'one' }));
  t.match(await answer(), [{ type: 'response.completed' }]);
  send({ type: 'response.processed', response_id: 'resp_1' });
  t.match(await answer(), [{ type: 'error', status: 400 }]);
  send(create({ model: 'm', store: false, previous_response_id: 'resp_1', input: 'two' }));
  t.match(await answer(), [{ type: 'response.completed' }]);
  t.match(sent, [{ input: 'one' }, { previous_response_id: 'resp_1', input: 'two' }]);
});

test('a WebSocket that has been closed is opened again, and told what was said', async (t) => {
  const gateway = await start(t, 'simulator', withSockets);
  const { send, answer } = await connect(t, gateway.url);
  send(create({ store: false, input: 'What is the weather in Oslo?', tools: [functionTool('get_weather')] }));
  const called = responseOf(await answer());
  const input = [
    ...resultsOf(called, 'rain'),
    { role: 'user', content: '[[fault:close=1000 after=99]] thanks' },
  ];
  send(create({ store: false, input, previous_response_id: called.id }));
  const told = responseOf(await answer());
  await eventually(() => gateway.simulator.state().openSessions === 0);
  send(create({ store: false, input: 'go on', previous_response_id: told.id }));
  t.match(textOf(responseOf(await answer())), /go on/);
  t.match(gateway.simulator.state(), { openSessions: 1, totalSessions: 2 });
});

test('errors and cuts of the WebSocket are told, and the next call is served', async (t) => {
  const gateway = await start(t, 'simulator', withSockets);
  const { send, answer } = await connect(t, gateway.url);
  send(create({ input: '[[fault:status=429]] x' }));
  t.match(await answer(), [{ type: 'error', status: 429, error: { code: 'rate_limit_exceeded' } }]);
  for (const fault of ['reset after=3', 'close=1011 after=3', 'truncate after=3']) {
    send(create({ input: `[[fault:${fault}]] one two three four five six` }));
    const events = await answer();
    t.match(events.at(-1), { type: /^(error|response\.failed)$/ }, fault);
    t.match(events[0], { type: 'response.created' }, fault);
    // A failure may be told by two events.
    send(create({ input: 'still here' }));
    let last = (await answer()).at(-1);
    if (last?.type === 'error') last = (await answer()).at(-1);
    t.equal(last?.type, 'response.completed', fault);
  }
  send(create({ input: '[[fault:error-event=failed after=2]] x' }));
  t.match((await answer()).at(-1), { type: 'response.failed' });
});

test('a client that leaves ends the WebSocket in the middle of an answer', async (t) => {
  const gateway = await start(t, 'simulator', withSockets);
  const { socket, send } = await connect(t, gateway.url);
  const begun = new Promise((resolve) => socket.once('message', resolve));
  send(create({ input: '[[fault:hang after=3]] one two three four five six' }));
  await begun;
  socket.terminate();
  await eventually(() => gateway.simulator.state().openSessions === 0);
  t.equal(gateway.simulator.state().totalSessions, 1);
});

test('an upstream that knows no WebSocket is asked by POST', async (t) => {
  // The gateway behind the gateway has them switched off, which it says with 426.
  const behind = await start(t, 'simulator', (config) => ({
    ...config,
    sockets: { ...config.sockets, responses: false },
  }));
  const gateway = await start(t, 'simulator', (config) => ({
    ...config,
    upstreams: config.upstreams.map((upstream) => ({
      ...upstream,
      kind: 'chat',
      baseUrl: `${behind.url}/v1`,
      apiKeys: ['sk-demo'],
      responsesSocket: true,
    })),
  }));
  const { send, answer } = await connect(t, gateway.url);
  for (const word of ['one', 'two']) {
    send(create({ input: word }));
    t.match(textOf(responseOf(await answer())), word);
  }
  send(create({ generate: false, store: false, input: 'warm' }));
  t.strictSame(responseOf(await answer()).output, []);
  t.equal(behind.simulator.state().totalRequests, 2);
});
