import { type Test, test } from 'tap';
import { defaults } from '../../src/config/resolve.js';
import { keptIn } from '../support/conversations.js';
import { type DemoGateway, type ServedBy, startGateway, testConfig, testKey } from '../support/gateway.js';
import { connect, create } from '../support/responses-socket.js';
import { createClient, raised, sdks } from '../support/sdks/openai.js';
import {
  callsOf,
  functionTool,
  type InputItem,
  type Responses,
  resultsOf,
  textOf,
} from '../support/sdks/openai-responses.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';

const kinds = ['chat', 'messages', 'generateContent'] as const satisfies readonly ServedBy[];

/** The demo, whose calls of responses are translated and kept in a folder of the test. */
function keeping(t: Test, demo: ServedBy, upstream: object = {}): Promise<DemoGateway> {
  const path = temporaryFolder(t);
  return startGateway(t, {
    demo,
    adapt: (config) => ({
      ...config,
      store: { kind: 'embedded', path, taskDays: 7 },
      conversations: defaults.conversations,
      upstreams: config.upstreams.map((each) => ({ ...each, ...upstream })),
    }),
  });
}

/** What stands for an item that is kept. */
const referenceTo = ({ id }: { readonly id?: string | null | undefined }): InputItem =>
  ({ type: 'item_reference', id }) as InputItem;

for (const sdk of sdks) {
  for (const kind of kinds) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: a use of a tool goes on by the id of the response alone`, async (t) => {
      const client = createClient(sdk, await keeping(t, kind));
      const tools = [functionTool('get_weather')];
      const called = await client.responses.create({
        model: 'sim-text',
        input: 'What is the weather in Oslo?',
        tools,
        reasoning: { effort: 'medium', summary: 'auto' },
      });
      t.equal(callsOf(called).length, 1);
      const second = await client.responses.create({
        model: 'sim-text',
        previous_response_id: called.id,
        input: resultsOf(called, 'rain in Oslo'),
        tools,
      });
      t.match(textOf(second), /rain in Oslo/, 'a result without its call would be refused');
      t.match(second, { previous_response_id: called.id, store: true });
      const stream = await client.responses.create({
        model: 'sim-text',
        previous_response_id: second.id,
        input: 'And in Rome?',
        stream: true,
      });
      let last: Responses | null = null;
      for await (const event of stream) if (event.type === 'response.completed') last = event.response;
      const third = await client.responses.create({
        model: 'sim-text',
        previous_response_id: last?.id ?? '',
        input: 'thank you',
      });
      t.match(textOf(third), /thank you/);
    });

    test(`${served}: a use of a tool goes on by references to its items`, async (t) => {
      const client = createClient(sdk, await keeping(t, kind));
      const tools = [functionTool('get_weather')];
      const first = { role: 'user' as const, content: 'What is the weather in Oslo?' };
      const called = await client.responses.create({ model: 'sim-text', input: [first], tools });
      const second = await client.responses.create({
        model: 'sim-text',
        input: [first, ...called.output.map(referenceTo), ...resultsOf(called, 'rain in Oslo')],
        tools,
      });
      t.match(textOf(second), /rain in Oslo/);
      const third = await client.responses.create({
        model: 'sim-text',
        input: [
          first,
          ...called.output.map(referenceTo),
          ...resultsOf(called, 'rain in Oslo'),
          ...second.output.map(referenceTo),
          { role: 'user', content: 'thank you' },
        ],
      });
      t.match(textOf(third), /thank you/);
    });

    test(`${served}: what cannot be found is the vendor's own error`, async (t) => {
      const gateway = await keeping(t, kind);
      const client = createClient(sdk, gateway);
      const ask = (more: object) =>
        raised(sdk, client.responses.create({ model: 'sim-text', input: 'a', ...more }));
      const previous = await ask({ previous_response_id: 'resp_1' });
      t.ok(previous instanceof sdk.module.BadRequestError);
      t.match(previous, { code: 'previous_response_not_found', param: 'previous_response_id' });
      const item = await ask({ input: [{ type: 'item_reference', id: 'msg_1' }] });
      t.ok(item instanceof sdk.module.NotFoundError);
      t.match(item, { code: null, param: 'input', type: 'invalid_request_error' });
      t.equal(gateway.simulator.state().totalRequests, 0);
    });
  }
}

test('a socket goes on from a response that was made by a request, and remembers the rest itself', async (t) => {
  const [sdk] = sdks;
  if (sdk === undefined) throw new Error('there is no SDK');
  const gateway = await keeping(t, 'messages');
  const client = createClient(sdk, gateway);
  const tools = [functionTool('get_weather')];
  const called = await client.responses.create({ model: 'sim-text', input: 'weather in Oslo?', tools });
  const { send, answer } = await connect(t, gateway.url);
  send(create({ previous_response_id: called.id, input: resultsOf(called, 'rain in Oslo'), tools }));
  const second = (await answer()).at(-1);
  t.equal(second?.type, 'response.completed');
  t.match(textOf(second?.response as Responses), /rain in Oslo/);
  send(create({ previous_response_id: second?.response?.id, input: 'thank you', tools }));
  const third = (await answer()).at(-1);
  t.match(textOf(third?.response as Responses), /thank you/);
  send(create({ previous_response_id: 'resp_none', input: 'x' }));
  t.match(await answer(), [{ type: 'error', status: 400, error: { code: 'previous_response_not_found' } }]);
});

test('a socket on an upstream that keeps its turns and has several keys goes on as ever', async (t) => {
  const gateway = await keeping(t, 'simulator', { apiKeys: ['key-1', 'key-2'], responsesSocket: true });
  const { send, answer } = await connect(t, gateway.url);
  const tools = [functionTool('get_weather')];
  send(create({ input: 'weather in Oslo?', tools }));
  const called = (await answer()).at(-1)?.response as Responses;
  t.equal(callsOf(called).length, 1);
  send(create({ previous_response_id: called.id, input: resultsOf(called, 'rain in Oslo'), tools }));
  const second = (await answer()).at(-1);
  t.match(textOf(second?.response as Responses), /rain in Oslo/);
  send(create({ input: 'hello', store: false }));
  t.equal((await answer()).at(-1)?.type, 'response.completed');
});

test('whatever worker is asked finds what another has kept, at once', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const file = testConfig({
    upstreams: [upstream.url],
    protocols: ['responses'],
    config: keptIn(temporaryFolder(t)),
  });
  const gateway = await startGateway(t, { workers: 2, file });
  const ask = async (body: object): Promise<{ status: number; id: string; pid: string | null }> => {
    const answer = await fetch(`${gateway.baseUrl}/v1/responses`, {
      method: 'POST',
      // Each comes to any of the workers.
      headers: {
        authorization: `Bearer ${testKey}`,
        'content-type': 'application/json',
        connection: 'close',
      },
      body: JSON.stringify({ model: 'm', ...body }),
    });
    const { id } = (await answer.json()) as { id: string };
    return { status: answer.status, id, pid: answer.headers.get('x-request-id')?.slice(0, 22) ?? null };
  };
  const workers = new Set<string | null>();
  let isCrossed = false;
  for (let round = 0; round < 200 && !(isCrossed && workers.size === 2 && round >= 10); round += 1) {
    const first = await ask({ input: 'one' });
    const second = await ask({ input: 'two', previous_response_id: first.id });
    t.equal(second.status, 200);
    workers.add(first.pid);
    isCrossed ||= first.pid !== second.pid;
  }
  t.ok(isCrossed, 'a turn and the one after it were served by two workers');
  t.equal(workers.size, 2);
});
