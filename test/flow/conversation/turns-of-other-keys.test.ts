import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import type { JsonObject } from '../../../src/wire/json.js';
import { askResponse, keptIn } from '../../support/conversations.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway, testKey } from '../../support/gateway.js';
import { sharedSecret } from '../../support/gateway-config.js';
import { postJson } from '../../support/post-json.js';
import { postgresFor, skipWithoutPostgres } from '../../support/postgres.js';
import { connect } from '../../support/responses-socket.js';
import { type Routed, startRouted } from '../../support/routed.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { startTranslated } from '../../support/translated.js';
import {
  chunk,
  completion,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

const otherKey = 'sk-other';
const keys = [
  { id: 'test', hash: hashKey(testKey), groups: ['default'] },
  { id: 'other', hash: hashKey(otherKey), groups: ['default'] },
];

let made = 0;

/** An upstream that keeps its turns, and knows all of them: each answer has an id of its own. */
function native({ body, head }: RawRequest): string {
  made += 1;
  const asked = JSON.parse(body.toString() || '{}') as JsonObject;
  if (head.includes('/messages')) {
    // A container in which code ran: the one that was asked for, or a new one.
    const container =
      asked.tools === undefined ? {} : { container: { id: asked.container ?? `container_${made}` } };
    const message = {
      id: `msg_${made}`,
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: 'end_turn',
    };
    if (asked.stream !== true) return jsonAnswer(200, JSON.stringify({ ...message, ...container }));
    const delta = { type: 'message_delta', delta: { ...container, stop_reason: 'end_turn' } };
    const begun = JSON.stringify({ type: 'message_start', message: { ...message, stop_reason: null } });
    const events = [
      `event: message_start\ndata: ${begun}\n\n`,
      `event: message_delta\ndata: ${JSON.stringify(delta)}\n\n`,
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ];
    return streamHead + events.map(chunk).join('') + lastChunk;
  }
  const output = [{ type: 'message', id: `item_${made}`, role: 'assistant', content: [] }];
  const response = { id: `resp_${made}`, object: 'response', status: 'completed', output };
  if (asked.stream !== true) return jsonAnswer(200, JSON.stringify(response));
  const events = ['response.created', 'response.completed'].map(
    (type) => `event: ${type}\ndata: ${JSON.stringify({ type, response })}\n\n`,
  );
  return streamHead + events.map(chunk).join('') + lastChunk;
}

/** @param targets of the model, all of which keep their turns */
function stage(
  t: Test,
  {
    targets = 1,
    kind = 'chat',
    threads = true,
    config,
  }: { targets?: number; kind?: string; threads?: boolean; config: object },
): Promise<Routed> {
  return startRouted(t, Array(targets).fill(native), {
    protocols: [kind === 'chat' ? 'responses' : 'messages'],
    target: kind === 'chat' ? { responses: true } : { translation: { threads } },
    upstream: { kind },
    config: { ...config, keys },
  });
}

/** Nothing waits for the note of a single target: it is there once the response can be asked for. */
async function noted({ url }: RunningGateway, id: unknown): Promise<void> {
  const headers = { authorization: `Bearer ${testKey}` };
  await eventually(async () => (await fetch(`${url}/v1/responses/${id}`, { headers })).status === 200);
}

const notFound = { status: 400, body: { error: { code: 'previous_response_not_found' } } };

async function tellResponsesApart(t: Test, targets: number, config: object): Promise<void> {
  const at = await stage(t, { targets, config });
  const { gateway } = at;
  const first = await askResponse(gateway, { input: 'mine' });
  const { id } = first.body;
  await noted(gateway, id);
  const before = at.total();
  const other = { key: otherKey };
  const stolen = { input: 'yours', previous_response_id: id };
  t.match(await askResponse(gateway, stolen, other), notFound);
  t.match(await askResponse(gateway, { ...stolen, stream: true }, other), notFound);
  t.match(await askResponse(gateway, { ...stolen, input: null }, other), notFound);
  t.match(await askResponse(gateway, stolen, { ...other, path: '/v1/responses/compact' }), notFound);
  const counted = { ...other, path: '/v1/responses/input_tokens' };
  t.match(await askResponse(gateway, stolen, counted), notFound);
  if (targets > 1) {
    const item = { type: 'item_reference', id: `item_${String(id).slice(5)}` };
    t.match(await askResponse(gateway, { input: [item] }, other), {
      status: 404,
      body: { error: { message: /^Item with id/, param: 'input' } },
    });
    t.match(await askResponse(gateway, { input: [{ id: item.id, status: null }] }, other), { status: 404 });
    const answer = await postJson(
      `${gateway.url}/v1/responses`,
      `{"model":"m","input":[{"id":"${item.id}","type":"item\\u005freference"}]}`,
      { authorization: `Bearer ${otherKey}` },
    );
    t.equal(answer.status, 404);
    t.equal((await askResponse(gateway, { input: [item] })).status, 200, 'its own key refers to it');
    for (const type of ['reasoning', 'image_generation_call', 'file_search_call']) {
      const completed = { input: [{ type, id: item.id, summary: [] }] };
      for (const path of ['/v1/responses', '/v1/responses/compact', '/v1/responses/input_tokens'])
        t.match(
          await askResponse(gateway, completed, { ...other, path }),
          { status: 404 },
          `${path} ${type}`,
        );
      t.equal((await askResponse(gateway, completed)).status, 200, `its own key has ${type} completed`);
    }
  }
  const refused = at.total();
  t.equal(refused, targets > 1 ? before + 4 : before, 'no upstream was asked');
  t.equal((await askResponse(gateway, stolen)).status, 200, 'its own key goes on from it');
  t.equal((await askResponse(gateway, { ...stolen, previous_response_id: 'resp_out' }, other)).status, 200);
  t.equal(at.total(), refused + 2, "one that nobody has made here is the upstream's to judge");

  const socket = await connect(t, gateway.url, {
    authorization: `Bearer ${otherKey}`,
    'openai-beta': 'responses_websockets=2026-02-06',
  });
  socket.send({ type: 'response.create', model: 'm', ...stolen });
  t.match((await socket.answer()).at(-1), { type: 'error', error: { code: 'previous_response_not_found' } });
  t.equal(at.total(), refused + 2);
}

for (const targets of [1, 2])
  test(`a response of ${targets} target(s) is not found by another key`, async (t) => {
    await tellResponsesApart(t, targets, keptIn(temporaryFolder(t)));
  });

test('a response is not found by another key in PostgreSQL', { skip: skipWithoutPostgres() }, async (t) => {
  const { url } = await postgresFor(t);
  const config = { store: { kind: 'postgres', url }, secret: sharedSecret, conversations: {} };
  await tellResponsesApart(t, 1, config);
});

test('an id that no upstream can have assigned reaches none, since an upstream might trim it', async (t) => {
  const at = await stage(t, { config: keptIn(temporaryFolder(t)) });
  const trimmed = { ...notFound, body: { error: { param: 'previous_response_id' } } };
  for (const id of ['resp_out ', '\tresp_out', 'resp_out\u0000', 'resp_out\u200b'])
    for (const path of ['/v1/responses', '/v1/responses/compact', '/v1/responses/input_tokens'])
      t.match(await askResponse(at.gateway, { input: 'x', previous_response_id: id }, { path }), trimmed, id);
  const conversation = await askResponse(at.gateway, { input: 'x', conversation: { id: 'conv_1 ' } });
  t.match(conversation, { status: 404, body: { error: { param: 'conversation' } } });
  const item = { type: 'item_reference', id: 'msg_1\n' };
  t.match(await askResponse(at.gateway, { input: [item] }), {
    status: 404,
    body: { error: { param: 'input' } },
  });
  t.equal(at.total(), 0);
  const encoded = { input: 'x', previous_response_id: 'resp_bGl0ZQ+/==' };
  t.equal((await askResponse(at.gateway, encoded)).status, 200, "an upstream's own id in base64");
});

test('the id of an item is not judged where no upstream gets it, or finds what is not recorded', async (t) => {
  const config = { ...keptIn(temporaryFolder(t)), keys };
  const chat = await startTranslated(t, { answer: jsonAnswer(200, completion), config });
  const sole = await stage(t, { config: keptIn(temporaryFolder(t)) });
  const reasoning = { type: 'reasoning', summary: [] };
  const many = Array.from({ length: 5000 }, (_, index) => ({ ...reasoning, id: `rs_${index}` }));
  for (const gateway of [chat, sole.gateway])
    for (const items of [
      [{ ...reasoning, id: 'rs_\u00e9' }],
      [{ type: 'web_search_call', id: 'ws 1', status: 'completed' }],
      [{ ...reasoning, id: 'rs_1', _id: 'rs_1' }],
      many,
    ]) {
      const answer = await askResponse(gateway, { input: [...items, { role: 'user', content: 'x' }] });
      t.equal(answer.status, 200);
    }
});

test('a key goes on from its own turn whose note is not there, and from what is not kept', async (t) => {
  const at = await stage(t, { config: keptIn(temporaryFolder(t)) });
  for (let turn = 0; turn < 20; turn += 1) {
    const { body } = await askResponse(at.gateway, { input: 'x' });
    const next = await askResponse(at.gateway, { input: 'y', previous_response_id: body.id });
    t.equal(next.status, 200);
  }
  const unstored = await askResponse(at.gateway, { input: 'x', store: false });
  const other = { key: otherKey };
  const next = await askResponse(at.gateway, { input: 'y', previous_response_id: unstored.body.id }, other);
  t.equal(next.status, 200, 'the upstream is to say that it does not know it');
});

test('where nothing is kept, upstreams judge all ids', async (t) => {
  const at = await stage(t, { config: keptIn(temporaryFolder(t), 'off') });
  const { body } = await askResponse(at.gateway, { input: 'x' });
  const next = { input: 'y', previous_response_id: body.id };
  t.equal((await askResponse(at.gateway, next, { key: otherKey })).status, 200);
});

for (const targets of [1, 2])
  test(`a conversation that ${targets} target(s) keep is not found by another key`, async (t) => {
    const at = await stage(t, { targets, config: keptIn(temporaryFolder(t)) });
    const { gateway } = at;
    const mine = { input: 'mine', conversation: { id: 'conv_1' } };
    const first = await askResponse(gateway, mine);
    t.equal(first.status, 200, 'who brings the id of one that is not known here has it from elsewhere');
    await noted(gateway, first.body.id);
    const before = at.total();
    const other = { key: otherKey };
    const conversationNotFound = {
      status: 404,
      body: {
        error: {
          message: "Conversation with id 'conv_1' not found.",
          type: 'invalid_request_error',
          param: 'conversation',
          code: null,
        },
      },
    };
    for (const conversation of ['conv_1', { id: 'conv_1' }])
      t.match(await askResponse(gateway, { input: 'yours', conversation }, other), conversationNotFound);
    t.match(await askResponse(gateway, { ...mine, stream: true }, other), conversationNotFound);
    const counted = { ...other, path: '/v1/responses/input_tokens' };
    t.match(await askResponse(gateway, mine, counted), conversationNotFound);
    const doubled = '{"model":"m","input":"x","conversation":{"id":"conv_2","id":"conv_1"}}';
    const twice = await postJson(`${gateway.url}/v1/responses`, doubled, {
      authorization: `Bearer ${otherKey}`,
    });
    t.equal(twice.status, 400, 'no upstream is to choose between two ids');
    t.equal(at.total(), before, 'no upstream was asked');
    for (let turn = 0; turn < 4; turn += 1) t.equal((await askResponse(gateway, mine)).status, 200);
    const holders = at.upstreams.filter(({ requests }) =>
      requests.some(({ body }) => body.includes('"conv_1"')),
    );
    t.equal(holders.length, 1, 'its own key goes on where it is kept');
    const unknown = await askResponse(gateway, { input: 'x', conversation: 'conv_out' }, other);
    t.equal(unknown.status, 200, "one that nobody has used here is the upstream's to judge");
  });

for (const [targets, threads] of [
  [1, true],
  [2, true],
  [1, false],
  [2, false],
] as const)
  for (const stream of [false, true])
    test(`a container at ${targets} target(s) is not found by another key, stream: ${stream}, threads: ${threads}`, async (t) => {
      const at = await stage(t, { targets, kind: 'messages', threads, config: keptIn(temporaryFolder(t)) });
      const ask = async (key: string, container: unknown, path = '/v1/messages') => {
        const answer = await fetch(at.gateway.url + path, {
          method: 'POST',
          headers: {
            'x-api-key': key,
            'anthropic-version': '2023-06-01',
            'content-type': 'application/json',
          },
          body: JSON.stringify({
            model: 'm',
            max_tokens: 9,
            messages: [{ role: 'user', content: 'x' }],
            tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
            container,
            stream: stream && path === '/v1/messages',
          }),
        });
        return { status: answer.status, text: await answer.text() };
      };
      const first = await ask(testKey, undefined);
      t.equal(first.status, 200);
      const id = /"id":"(container_\d+)"/.exec(first.text)?.[1];
      t.not(id, undefined);
      // Nothing waits for the note.
      const stolen = await eventually(async () => {
        const answer = await ask(otherKey, id, '/v1/messages/count_tokens');
        return answer.status === 200 ? undefined : answer;
      });
      const before = at.total();
      for (const { status, text } of [stolen, await ask(otherKey, id), await ask(otherKey, { id })]) {
        t.equal(status, 404);
        t.match(JSON.parse(text), {
          error: { type: 'not_found_error', message: `Container with id '${id}' not found.` },
        });
      }
      t.equal(at.total(), before, 'no upstream was asked');
      for (let turn = 0; turn < 4; turn += 1) t.equal((await ask(testKey, id)).status, 200);
      const holders = at.upstreams.filter(({ requests }) =>
        requests.some(({ body, head }) => !head.includes('count_tokens') && body.includes(`"${id}"`)),
      );
      t.equal(holders.length, 1, 'its own key goes on where it is');
      t.equal((await ask(otherKey, 'container_out')).status, 200);
      t.equal((await ask(otherKey, { skills: [] })).status, 200);
    });

for (const targets of [1, 2])
  for (const stream of [false, true])
    test(`a thread of ${targets} target(s) is not found by another key, stream: ${stream}`, async (t) => {
      const at = await stage(t, { targets, kind: 'messages', config: keptIn(temporaryFolder(t)) });
      const ask = async (key: string, thread: object) => {
        const answer = await fetch(`${at.gateway.url}/v1/messages`, {
          method: 'POST',
          headers: {
            'x-api-key': key,
            'anthropic-version': '2023-06-01',
            'content-type': 'application/json',
          },
          body: JSON.stringify({
            model: 'm',
            max_tokens: 9,
            messages: [{ role: 'user', content: 'x' }],
            thread,
            stream,
          }),
        });
        return { status: answer.status, text: await answer.text() };
      };
      const first = await ask(testKey, { type: 'create' });
      t.equal(first.status, 200);
      const id = /"id":"(msg_\d+)"/.exec(first.text)?.[1];
      const next = { type: 'continue', previous_message_id: id };
      // Nothing waits for the note of a single target.
      const stolen = await eventually(async () => {
        const answer = await ask(otherKey, next);
        return answer.status === 200 ? undefined : answer;
      });
      t.equal(stolen.status, 404);
      t.match(stolen.text, /"error_code":"thread_not_found"/);
      const before = at.total();
      t.equal((await ask(otherKey, next)).status, 404);
      t.equal(at.total(), before, 'no upstream was asked');
      t.equal((await ask(testKey, next)).status, 200);
      const unknown = { type: 'continue', previous_message_id: 'msg_out' };
      t.equal((await ask(otherKey, unknown)).status, 200);
    });

test('what a model has written into an answer that breaks off is no container of its key', async (t) => {
  const written = `"input":{"text":"${'a'.repeat(400_000)}","container":{"id":"container_1"}`;
  const begun = `{"id":"msg_1","type":"message","content":[{"type":"tool_use",${written}`;
  const upstream = await startRawUpstream(t, ({ body, socket }) => {
    const asked = JSON.parse(body.toString()) as JsonObject;
    const answer = JSON.stringify({ id: 'msg_2', content: [], container: { id: 'container_1' } });
    if (asked.system === undefined) return jsonAnswer(200, answer);
    socket.write(jsonAnswer(200, begun + answer).slice(0, -answer.length));
    setTimeout(() => socket.destroy(), 200);
    return '';
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['messages'],
    upstream: { kind: 'messages' },
    config: { ...keptIn(temporaryFolder(t)), keys },
  });
  const ask = async (key: string, members: object, path = '/v1/messages'): Promise<number> => {
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'm',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'x' }],
        ...members,
      }),
    });
    await answer.text().catch(() => '');
    return answer.status;
  };
  t.equal(await ask(testKey, {}), 200);
  const stolen = { container: 'container_1' };
  // Nothing waits for the note.
  await eventually(async () => (await ask(otherKey, stolen, '/v1/messages/count_tokens')) === 404);
  t.equal(await ask(otherKey, { system: 'cut' }), 200);
  await gateway.line(({ msg, error }) => msg === 'request' && error === 'upstream_error');
  for (let turn = 0; turn < 10; turn += 1) t.equal(await ask(otherKey, stolen), 404);
});
