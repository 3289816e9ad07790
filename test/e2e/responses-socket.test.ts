import { once } from 'node:events';
import { ResponsesWS as ResponsesWS6 } from 'openai6/resources/responses/ws';
import { ResponsesWS as ResponsesWS7 } from 'openai7/resources/responses/ws';
import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { socketBytes } from '../attacks/held-bytes.js';
import { countersOf } from '../support/counters.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { closeOf } from '../support/realtime.js';
import { bearer, connect, create, type Event } from '../support/responses-socket.js';
import { createClient, sdks } from '../support/sdks/openai.js';
import {
  callsOf,
  functionTool,
  inputOf,
  type Responses,
  resultsOf,
  textOf,
} from '../support/sdks/openai-responses.js';
import { startRawUpstream } from '../support/upstream.js';

interface Helper {
  on(event: 'event' | 'error', listener: (event: Event) => void): void;
  send(event: object): void;
  close(): void;
}

const helpers = [
  { name: 'openai 6', Helper: ResponsesWS6 },
  { name: 'openai 7', Helper: ResponsesWS7 },
] as const;

for (const { name, Helper } of helpers) {
  for (const kind of ['simulator', 'chat', 'messages', 'generateContent'] as const) {
    test(`${name} on ${kind}: two calls with a use of a tool over one socket`, async (t) => {
      const gateway = await startGateway(t, { demo: kind });
      const sdk = sdks.find((each) => each.name === name);
      if (sdk === undefined) throw new Error(`there is no ${name}`);
      const client = createClient(sdk, gateway);
      const socket = new Helper(client as never) as unknown as Helper;
      t.teardown(() => socket.close());
      const take = () =>
        new Promise<Responses>((resolve, reject) => {
          socket.on('error', reject);
          socket.on('event', (event) => {
            if (event.type === 'response.completed') resolve(event.response as Responses);
          });
        });
      const tools = [functionTool('get_weather')];
      const first = { role: 'user' as const, content: 'What is the weather in Oslo?' };
      const asked = take();
      socket.send(create({ input: [first], tools }));
      const called = await asked;
      t.equal(callsOf(called).length, 1);
      const input = [first, ...inputOf(called.output), ...resultsOf(called, 'rain')];
      const answered = take();
      socket.send(create({ input, tools }));
      t.match(textOf(await answered), /rain/);
    });
  }
}

test('each message is one response, and its frames are the events of the POST', async (t) => {
  const gateway = await startGateway(t, { demo: 'chat' });
  const { send, answer } = await connect(t, gateway.url);
  const body = { model: 'sim-text', input: 'hello' };
  const posted = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { ...bearer, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const events = [...(await posted.text()).matchAll(/^data: (\{.*)$/gm)].map(([, data]) =>
    JSON.parse(data as string),
  );
  send(create(body));
  send(create({ input: 'second', stream: false }));
  const first = await answer();
  t.same(
    first.map(({ type }) => type),
    events.map(({ type }) => type),
  );
  t.same(
    first.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
  t.match((await answer()).at(-1)?.response, { output: [{ content: [{ text: /second/ }] }] });
});

test('a message that asks for nothing that can be done is told so, and the socket goes on', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const { socket, send, answer } = await connect(t, gateway.url);
  const wrong: readonly (readonly [unknown, number, object])[] = [
    ['{', 400, { code: 'invalid_json' }],
    ['[]', 400, { code: 'invalid_json' }],
    [{ model: 'sim-text', input: 'x' }, 400, { param: 'type' }],
    [{ type: 'response.cancel' }, 400, { param: 'type' }],
    [create({ input: 5 }), 400, { type: 'invalid_request_error', param: 'input' }],
    [create({ model: 'none', input: 'x' }), 404, { code: 'model_not_found' }],
  ];
  for (const [message, status, error] of wrong) {
    send(message);
    t.match(await answer(), [{ type: 'error', status, error, headers: { 'x-request-id': /^req_/ } }]);
  }
  socket.send(Buffer.from('{}'), { binary: true });
  t.match(await answer(), [{ type: 'error', status: 400, error: { message: /Binary/ } }]);
  send(create({ input: 'still here' }));
  t.equal((await answer()).at(-1)?.type, 'response.completed');
});

test('an upstream that fails is told as an error, before its stream and within it', async (t) => {
  const gateway = await startGateway(t, { demo: 'chat' });
  const { send, answer } = await connect(t, gateway.url);
  send(create({ input: '[[fault:status=503]] x' }));
  t.match(await answer(), [{ type: 'error', status: 503, error: { message: /./ } }]);
  send(create({ input: '[[fault:reset after=3]] one two three four five six' }));
  t.match((await answer()).at(-1), { type: /^(error|response\.failed)$/ });
  send(create({ input: 'still here' }));
  // A failure may be told by two events.
  let end = (await answer()).at(-1)?.type;
  if (end !== 'response.completed') end = (await answer()).at(-1)?.type;
  t.equal(end, 'response.completed');
});

test('a client that closes cancels what is being made for it', async (t) => {
  const gateway = await startGateway(t, { demo: 'chat' });
  const { socket, send } = await connect(t, gateway.url);
  const begun = once(socket, 'message');
  send(create({ input: '[[fault:hang after=3]] one two three four five six' }));
  await begun;
  socket.close(1000);
  t.equal((await closeOf(socket)).code, 1000);
  await eventually(() => gateway.simulator.state().cancelledRequests > 0);
  t.pass();
});

test('a key is asked for before the socket opens, and a switched-off socket is 426', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  await t.rejects(connect(t, gateway.url, {}), /401/);
  const off = await startGateway(t, {
    demo: 'simulator',
    adapt: (config) => ({
      ...config,
      sockets: { ...config.sockets, responses: false },
    }),
  });
  await t.rejects(connect(t, off.url), /426/);
});

test('messages wait for the one before, up to a limit', async (t) => {
  const gateway = await startGateway(t, { demo: 'simulator' });
  const { send, answer } = await connect(t, gateway.url);
  for (let index = 0; index < 10; index++) send(create({ input: `number ${index}` }));
  const ends = [];
  for (let index = 0; index < 10; index++) ends.push((await answer()).at(-1));
  const texts = ends.flatMap((end) => (end?.response === undefined ? [] : [textOf(end.response)]));
  t.same(
    texts.map((text) => text.match(/number \d/)?.[0]),
    Array.from({ length: 9 }, (_, index) => `number ${index}`),
    'one was being made, and eight waited',
  );
  t.match(
    ends.filter((end) => end?.type === 'error'),
    [{ status: 429, error: { code: 'rate_limit_exceeded' }, headers: { 'retry-after': '1' } }],
  );
  t.strictSame(countersOf(gateway, 'gateway_limit_refusals_total'), { waiting_messages: 1 });
});

test('what waits is refused for the sake of all where others hold too much, and not as the fault of its key', async (t) => {
  const mebibyte = 1024 * 1024;
  const upstream = await startRawUpstream(t, () => {});
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: { m: { protocols: ['responses'], targets: [{ upstream: 'u0' }] } },
      sockets: {
        messageBytes: 2 * mebibyte,
        waitingBytes: 16 * mebibyte,
        heldBytes: 9 * mebibyte,
        heldBytesPerKey: 8 * mebibyte,
      },
      keys: ['sk-one', 'sk-other'].map((key) => ({ id: key, hash: hashKey(key), groups: ['default'] })),
    },
  });
  const open = (key: string) => connect(t, gateway.url, { authorization: `Bearer ${key}` });
  const [one, other] = [await open('sk-one'), await open('sk-other')];
  const ask = (bytes: number) => create({ model: 'm', input: 'x'.repeat(bytes) });
  for (const { send } of [one, other]) send(ask(1));
  await upstream.request(1);
  for (let count = 0; count < 7; count++) one.send(ask(mebibyte));
  await eventually(() => socketBytes(gateway) > 7 * mebibyte);
  for (let count = 0; count < 2; count++) other.send(ask(mebibyte));
  t.match(await other.answer(), [
    { type: 'error', status: 503, error: { code: 'overloaded' }, headers: { 'retry-after': '5' } },
  ]);
});
