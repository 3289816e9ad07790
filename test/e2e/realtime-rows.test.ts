import { once } from 'node:events';
import t, { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { exchange, open } from '../support/raw-client.js';
import { refusalOf, type SessionOptions } from '../support/realtime.js';
import { type EventClient, openEvents, respond, says, updates, writes } from '../support/realtime-events.js';
import { createClient, raised, type Sdk, sdks } from '../support/sdks/openai.js';

const gateway = await startGateway(t, { demo: 'simulator' });
const port = Number(new URL(gateway.url).port);
const query = 'model=sim-realtime';
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const betaHeader = { 'openai-beta': 'realtime=v1' };

function session(t: Test, isBeta = false, more: SessionOptions = {}): Promise<EventClient> {
  return openEvents(t, port, {
    query,
    headers: { ...bearer('sk-demo'), ...(isBeta ? betaHeader : {}) },
    ...more,
  });
}

const upgrade =
  'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

function ask(lines: string, target = `/v1/realtime?${query}`): string {
  return `GET ${target} HTTP/1.1\r\nhost: x\r\n${lines}\r\n`;
}

test('before the upgrade every refusal is JSON with its status', async (t) => {
  const key = 'authorization: Bearer sk-demo\r\n';
  const without = (name: string) => upgrade.replace(new RegExp(`${name}: [^\r]*\r\n`), '');
  const cases: readonly (readonly [request: string, status: number, error: object])[] = [
    [ask(key), 400, { type: 'invalid_request_error' }],
    [ask(key + without('upgrade')), 400, { type: 'invalid_request_error' }],
    [ask(key + without('sec-websocket-key')), 400, { type: 'invalid_request_error' }],
    [ask(key + without('sec-websocket-version')), 400, { type: 'invalid_request_error' }],
    [ask(key + upgrade.replace('13', '8')), 400, { type: 'invalid_request_error' }],
    [ask(key + upgrade.replace('connection: upgrade', 'connection: close')), 400, {}],
    [ask(key + upgrade.replace(': websocket', ': h2c')), 400, {}],
    [ask(upgrade), 401, { code: 'invalid_api_key' }],
    [ask(`${upgrade}authorization: Bearer sk-wrong\r\n`), 401, { code: 'invalid_api_key' }],
    [ask(`${upgrade}sec-websocket-protocol: realtime\r\n`), 401, { code: 'invalid_api_key' }],
    [ask(key + upgrade, '/v1/realtime?model=none'), 404, { code: 'model_not_found', param: 'model' }],
    [ask(key + upgrade, '/v1/realtime?model=sim-text'), 404, { code: 'model_not_found' }],
    [ask(`${upgrade}authorization: Bearer sk-demo-trial\r\n`), 404, { code: 'model_not_found' }],
  ];
  for (const [request, status, error] of cases) {
    const answer = await exchange(port, request);
    t.equal(answer.status, status, `${request}\n${answer.body}`);
    t.match(answer.head, /content-type: application\/json/i);
    t.match(JSON.parse(answer.body).error, { message: String, ...error });
  }
});

test('the head of the 101 agrees on `realtime` alone, and holds no key', async (t) => {
  for (const [offered, agreed] of [
    ['realtime, openai-insecure-api-key.sk-demo, openai-beta.realtime-v1', 'realtime'],
    ['openai-insecure-api-key.sk-demo, realtime', 'realtime'],
    ['openai-insecure-api-key.sk-demo', null],
  ] as const) {
    const socket = await open(port, ask(`${upgrade}sec-websocket-protocol: ${offered}\r\n`));
    let received = '';
    while (!received.includes('\r\n\r\n'))
      received += ((await once(socket, 'data')) as [Buffer])[0].toString('latin1');
    socket.destroy();
    const head = received.slice(0, received.indexOf('\r\n\r\n'));
    t.match(head, /^HTTP\/1\.1 101 /);
    t.match(head, /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
    t.match(head, /x-request-id: \S+/i);
    t.notMatch(head, /sk-demo|insecure|beta/i);
    const line = /^sec-websocket-protocol: (.*)$/im.exec(head)?.[1] ?? null;
    t.equal(line, agreed, offered);
    t.notMatch(head, /sec-websocket-extensions/i, 'nothing is compressed');
  }
});

test('a session that names no model gets the default one', async (t) => {
  for (const named of ['', 'model=']) {
    const client = await session(t, false, { query: named });
    t.match(await client.log.next('session.created'), { session: { model: 'sim-realtime' } });
  }
});

test('`session.created` comes first, in the shape of its form', async (t) => {
  const ga = await session(t);
  await ga.log.next('conversation.created');
  t.equal(ga.log.events[0]?.type, 'session.created');
  t.match(ga.log.events[0]?.session, {
    type: 'realtime',
    object: 'realtime.session',
    id: /^sess_/,
    model: 'sim-realtime',
    output_modalities: ['audio'],
    audio: {
      input: { format: { type: 'audio/pcm', rate: 24_000 }, transcription: null, turn_detection: null },
      output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: String, speed: 1 },
    },
    tools: [],
    tool_choice: 'auto',
    max_output_tokens: 'inf',
    expires_at: Number,
  });
  t.match(ga.log.events[1]?.conversation, { id: /^conv_/, object: 'realtime.conversation' });
  const beta = await session(t, true);
  await beta.log.next('conversation.created');
  t.equal(beta.log.events[0]?.type, 'session.created');
  const created = beta.log.events[0]?.session;
  t.match(created, {
    object: 'realtime.session',
    modalities: ['text', 'audio'],
    voice: String,
    input_audio_format: 'pcm16',
    output_audio_format: 'pcm16',
    input_audio_transcription: null,
    temperature: 0.8,
    max_response_output_tokens: 'inf',
  });
  t.notOk('type' in created);
});

for (const isBeta of [false, true]) {
  const form = isBeta ? 'beta' : 'GA';
  const item = isBeta ? ['conversation.item.created'] : ['conversation.item.added', 'conversation.item.done'];

  test(`${form}: every event of every kind has its name and an id of its own`, async (t) => {
    const client = await session(t, isBeta);
    const { log } = client;
    const transcription = { model: 'whisper-1' };
    const audio = Buffer.alloc(48_000).toString('base64');
    client.send(
      updates(
        isBeta,
        isBeta ? { input_audio_transcription: transcription } : { audio: { input: { transcription } } },
      ),
      { type: 'input_audio_buffer.append', audio },
      { type: 'input_audio_buffer.clear' },
      { type: 'input_audio_buffer.append', audio },
      { type: 'input_audio_buffer.commit' },
      respond,
    );
    await log.next('rate_limits.updated');
    const heard = log.all('input_audio_buffer.committed')[0]?.item_id;
    const said = log.all('response.output_item.done')[0]?.item;
    client.send(
      { type: 'conversation.item.retrieve', item_id: heard },
      { type: 'conversation.item.truncate', item_id: said.id, content_index: 0, audio_end_ms: 1 },
      { type: 'conversation.item.delete', item_id: said.id },
    );
    t.match(await log.next('conversation.item.retrieved'), { item: { id: heard, object: 'realtime.item' } });
    t.match(await log.next('conversation.item.truncated'), { item_id: said.id, audio_end_ms: 1 });
    t.match(await log.next('conversation.item.deleted'), { item_id: said.id });

    const output = isBeta ? 'response' : 'response.output';
    const separator = isBeta ? '.' : '_';
    const spoken = `${output}${separator}audio`;
    const transcribed = 'conversation.item.input_audio_transcription';
    t.strictSame(
      new Set(log.events.map(({ type }) => type)),
      new Set([
        'session.created',
        'conversation.created',
        'session.updated',
        'input_audio_buffer.cleared',
        'input_audio_buffer.committed',
        ...item,
        `${transcribed}.delta`,
        `${transcribed}.completed`,
        'response.created',
        'response.output_item.added',
        'response.content_part.added',
        `${spoken}.delta`,
        `${spoken}_transcript.delta`,
        `${spoken}.done`,
        `${spoken}_transcript.done`,
        'response.content_part.done',
        'response.output_item.done',
        'response.done',
        'rate_limits.updated',
        'conversation.item.retrieved',
        'conversation.item.truncated',
        'conversation.item.deleted',
      ]),
    );
    const ids = log.events.map(({ event_id }) => event_id);
    t.ok(ids.every((id) => typeof id === 'string' && id !== ''));
    t.equal(new Set(ids).size, ids.length);
    t.match(log.all(`${transcribed}.completed`)[0], { item_id: heard, content_index: 0, transcript: String });
    t.match(log.all('response.content_part.added')[0]?.part, { type: 'audio' });
    t.match(said, {
      type: 'message',
      role: 'assistant',
      content: [{ type: isBeta ? 'audio' : 'output_audio' }],
    });
    t.match(log.all('rate_limits.updated')[0]?.rate_limits, [
      { name: 'requests', limit: Number, remaining: Number, reset_seconds: Number },
      { name: 'tokens' },
    ]);
  });

  test(`${form}: the response object, and one that is cancelled or fails`, async (t) => {
    const client = await session(t, isBeta);
    const { log } = client;
    client.send(writes(isBeta), says('Hello'), {
      type: 'response.create',
      response: { metadata: { a: 'b' } },
    });
    const shape = {
      id: /^resp_/,
      object: 'realtime.response',
      conversation_id: /^conv_/,
      [isBeta ? 'modalities' : 'output_modalities']: ['text'],
      max_output_tokens: 'inf',
      metadata: { a: 'b' },
    };
    t.match((await log.next('response.created')).response, { ...shape, status: 'in_progress', usage: null });
    t.match((await log.next('response.done')).response, {
      ...shape,
      status: 'completed',
      usage: {
        total_tokens: Number,
        input_tokens: Number,
        output_tokens: Number,
        input_token_details: { text_tokens: Number, audio_tokens: 0, image_tokens: 0, cached_tokens: 0 },
        output_token_details: { text_tokens: Number, audio_tokens: 0 },
      },
    });
    client.send(says('[[fault:silent=30 after=5]] wait'), respond);
    const { response } = await log.next('response.created');
    client.send({ type: 'response.cancel', response_id: response.id });
    t.match((await log.next('response.done')).response, { id: response.id, status: 'cancelled' });
    client.send(says('[[fault:error-event=failed after=2]] x'), respond);
    t.match((await log.next('response.done')).response, {
      status: 'failed',
      status_details: { type: 'failed', error: { type: 'server_error' } },
    });
  });

  test(`${form}: error events keep the socket open, and say which event they are about`, async (t) => {
    const client = await session(t, isBeta);
    const { log } = client;
    const wrong: readonly (readonly [event: object, param: string])[] = [
      [{ type: 'nothing' }, 'type'],
      [{ type: 'session.update' }, 'session'],
      [
        { type: 'session.update', session: isBeta ? { type: 'realtime' } : { output_modalities: ['text'] } },
        'session.type',
      ],
      [{ type: 'conversation.item.delete', item_id: 'x' }, 'item_id'],
    ];
    for (const [event, param] of wrong) {
      client.send({ ...event, event_id: 'mine' });
      const { event_id, error } = await log.next('error');
      t.type(event_id, 'string');
      t.match(error, { type: 'invalid_request_error', message: String, param, event_id: 'mine' });
    }
    client.socket.send('{"type":');
    t.match((await log.next('error')).error, { type: 'invalid_request_error', event_id: null });
    client.send(writes(isBeta), says('[[fault:error-event after=1]] x'), respond);
    t.match((await log.next('error')).error, { type: 'server_error' });
    client.send(says('Hello'), respond);
    t.match(await log.next('response.done'), { response: { status: 'completed' } });
  });
}

test("the upstream's close code and reason are the client's", async (t) => {
  for (const [asked, code, reason] of [
    ['close', 1000, ''],
    ['close=1008 reason=policy', 1008, 'policy'],
    ['close=1011 reason=internal', 1011, 'internal'],
    ['close=1013 reason=later', 1013, 'later'],
    ['close=4000 reason=own', 4000, 'own'],
  ] as const) {
    const client = await session(t);
    client.send(says(`[[fault:${asked}]] x`), respond);
    t.strictSame(await client.closed, { code, reason });
  }
  for (const lost of ['reset', 'truncate']) {
    const client = await session(t);
    client.send(says(`[[fault:${lost} after=2]] x`), respond);
    t.match(await client.closed, { code: 1011 });
    t.match(client.log.events.at(-1), { type: 'error', event_id: String, error: { type: 'server_error' } });
  }
});

test('a message that the upstream sends beyond the limit closes with 1009', async (t) => {
  const client = await session(t);
  client.send(writes(false), says('[[fault:big=20000000]] x'), respond);
  t.match(await client.closed, { code: 1009 });
});

test('the SDK has its own error for each refusal', async (t) => {
  const sdk = sdks.at(-1) as Sdk;
  const { BadRequestError, AuthenticationError, NotFoundError, APIError } = sdk.module;
  const plain = (apiKey: string) => raised(sdk, createClient(sdk, gateway, { apiKey }).get('/realtime'));
  t.ok((await plain('sk-demo')) instanceof BadRequestError);
  t.ok((await plain('sk-wrong')) instanceof AuthenticationError);
  for (const [apiKey, model, status] of [
    ['sk-wrong', 'sim-realtime', 401],
    ['sk-demo', 'none', 404],
    ['sk-demo-trial', 'sim-realtime', 404],
  ] as const) {
    const refused = await refusalOf(t, port, { query: `model=${model}`, headers: bearer(apiKey) });
    const error = APIError.generate(
      refused.status,
      JSON.parse(refused.body),
      undefined,
      new Headers(refused.headers as Record<string, string>),
    );
    t.equal(error.status, status);
    t.ok(error instanceof (status === 401 ? AuthenticationError : NotFoundError));
    t.type(error.code, 'string');
    t.ok(error.requestID);
  }
});

t.end();
