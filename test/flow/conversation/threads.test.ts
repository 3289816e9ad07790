import { type Test, test } from 'tap';
import { keptIn } from '../../support/conversations.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import {
  type Answer,
  chatEvent,
  chunk,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

const messages = [{ role: 'user', content: 'first words' }];
const create = { model: 'm', max_tokens: 9, system: 'Be brief.', messages, thread: { type: 'create' } };

/** A gateway that keeps conversations. @param kinds of the model's upstreams, in order of priority */
async function start(
  t: Test,
  answers: readonly Answer[],
  kinds: readonly string[],
  {
    apiKeys = ['k'],
    isEqual = false,
    isKept = true,
    threads = () => true,
  }: {
    apiKeys?: readonly string[];
    isEqual?: boolean;
    isKept?: boolean;
    /** Whether an upstream, by its number, keeps them. */
    threads?: (index: number) => boolean;
  } = {},
) {
  const upstreams = await Promise.all(answers.map((answer) => startRawUpstream(t, answer)));
  const gateway = await startGateway(t, {
    config: {
      ...keptIn(temporaryFolder(t), isKept ? {} : 'off'),
      upstreams: Object.fromEntries(
        upstreams.map(({ url }, index) => [`u${index}`, { kind: kinds[index], baseUrl: url, apiKeys }]),
      ),
      models: {
        m: {
          protocols: ['messages'],
          targets: upstreams.map((_, index) => ({
            upstream: `u${index}`,
            model: 'm',
            priority: isEqual ? 0 : index,
            translation: { threads: threads(index) },
          })),
        },
      },
    },
  });
  const ask = async (body: object, path = '/v1/messages') => {
    const answer = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        'x-api-key': testKey,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    const text = await answer.text().catch(() => 'cut');
    const id = /"id":"(msg_[^"]*)"/.exec(text)?.[1] ?? '';
    return { status: answer.status, text, id, requestId: answer.headers.get('request-id') };
  };
  return { upstreams, ask };
}

const goOn = (id: string, more: object = {}) => ({
  model: 'm',
  max_tokens: 9,
  messages: [{ role: 'user', content: 'more words' }],
  thread: { type: 'continue', previous_message_id: id },
  ...more,
});

const completion = (finish_reason: string) =>
  jsonAnswer(
    200,
    JSON.stringify({
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'a reply' }, finish_reason }],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    }),
  );

const streamed = (...events: string[]): string => streamHead + events.map(chunk).join('');
const notFound = /"type":"not_found_error".*"error_code":"thread_not_found"/;

test('the error event of a kept stream names its call and not the secret id of its answer', async (t) => {
  const error = 'data: {"error":{"message":"broken","type":"server_error"}}\n\n';
  const { ask } = await start(t, [streamed(chatEvent({ content: 'half' }), error) + lastChunk], ['chat']);
  const { text, requestId } = await ask({ ...create, stream: true });
  t.equal(/"request_id":"([^"]*)"/.exec(text)?.[1], requestId);
});

test('from a refusal, and from a stream that was cut, nobody goes on', async (t) => {
  const answers: readonly Answer[] = [
    completion('content_filter'),
    streamed(chatEvent({ content: 'no' }), chatEvent({}, 'content_filter'), doneEvent) + lastChunk,
    ({ socket }) => {
      socket.write(streamed(chatEvent({ content: 'half' })));
      setImmediate(() => socket.destroy());
    },
    streamed(chatEvent({ content: 'all' }), chatEvent({}, 'stop'), doneEvent) + lastChunk,
    completion('stop'),
  ];
  const { ask, upstreams } = await start(
    t,
    [
      ({ socket }, index) => {
        const answer = answers[index] ?? '';
        return typeof answer === 'function' ? answer({ socket } as never, index) : socket.write(answer);
      },
    ],
    ['chat'],
  );
  const refused = await ask(create);
  t.match(refused.text, '"stop_reason":"refusal"');
  const refusedStream = await ask({ ...create, stream: true });
  t.match(refusedStream.text, '"stop_reason":"refusal"');
  const cut = await ask({ ...create, stream: true });
  t.match(cut.text, 'event: error');
  const whole = await ask({ ...create, stream: true });
  for (const { id } of [refused, refusedStream, cut]) {
    t.match(id, /^msg_/);
    t.match(await ask(goOn(id)), { status: 404, text: notFound });
  }
  t.equal((await ask(goOn(whole.id))).status, 200);
  t.equal(upstreams[0]?.requests.length, 5);
});

test('the end of an answer leaves when the next turn finds it', async (t) => {
  const { ask } = await start(t, [completion('stop')], ['chat']);
  let { id } = await ask(create);
  for (let turn = 0; turn < 30; turn++) {
    const next = await ask(goOn(id));
    t.equal(next.status, 200);
    id = next.id;
  }
});

test('the tokens of a thread that goes on are those of all of it', async (t) => {
  const { ask } = await start(t, [completion('stop')], ['chat']);
  const { id } = await ask({ ...create, messages: [{ role: 'user', content: 'word '.repeat(1000) }] });
  const { max_tokens: _, ...question } = goOn(id);
  const counted = await ask(question, '/v1/messages/count_tokens');
  t.equal(counted.status, 200);
  t.ok(JSON.parse(counted.text).input_tokens > 1000, counted.text);
});

test('what an upstream says of its own threads passes as it came', async (t) => {
  const said =
    '{"type":"error","error":{"type":"not_found_error","message":"x","details":{"error_code":"thread_not_found"}}}';
  const { ask, upstreams } = await start(t, [jsonAnswer(404, said)], ['messages']);
  t.match(await ask(goOn('msg_native')), { status: 404, text: said });
  t.strictSame(JSON.parse(String(upstreams[0]?.requests[0]?.body)), goOn('msg_native'));
});

let replies = 0;
/** An upstream that keeps threads and gives each reply an id of its own. */
const native =
  (name: string): Answer =>
  ({ body, socket }) => {
    const message = {
      id: `msg_${name}_${replies++}`,
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'hi' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    if (JSON.parse(body.toString()).stream !== true)
      return socket.write(jsonAnswer(200, JSON.stringify(message)));
    const event = (type: string, more: object) =>
      chunk(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    return socket.write(
      streamHead +
        event('message_start', { message: { ...message, content: [], stop_reason: null } }) +
        event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
        event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hi' } }) +
        event('content_block_stop', { index: 0 }) +
        event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }) +
        event('message_stop', {}) +
        lastChunk,
    );
  };

test('a thread of an upstream goes on there, with the key that it was begun with', async (t) => {
  const { ask, upstreams } = await start(t, [native('u0'), native('u1')], ['messages', 'messages'], {
    apiKeys: ['k0', 'k1', 'k2'],
    isEqual: true,
  });
  const requests = (name: string) => upstreams[Number(name.slice(1))]?.requests ?? [];
  const seen = new Set<string>();
  for (let round = 0; round < 24; round++) {
    const stream = round % 2 === 0;
    const first = await ask({ ...create, stream });
    const [, name = ''] = /^msg_(u\d)_/.exec(first.id) ?? [];
    const key = apiKeyOf(requests(name).at(-1)?.head);
    seen.add(`${name} ${key}`);
    const next = await ask(goOn(first.id, { stream }));
    t.match(next.id, `msg_${name}_`);
    t.equal(apiKeyOf(requests(name).at(-1)?.head), key);
  }
  t.ok(seen.size > 2, 'threads were begun in several places');
});

function apiKeyOf(head = ''): string | undefined {
  return /^x-api-key: (.*)$/im.exec(head)?.[1];
}

test('a thread that was kept here goes on at any target, and from there where it is then', async (t) => {
  const { ask, upstreams } = await start(
    t,
    [
      ({ socket }, index) => socket.write(index === 0 ? completion('stop') : jsonAnswer(503, '{"error":{}}')),
      native('u1'),
    ],
    ['chat', 'messages'],
  );
  const first = await ask(create);
  const second = await ask(goOn(first.id));
  t.match(second.id, 'msg_u1_');
  const sent = () => JSON.parse(String(upstreams[1]?.requests.at(-1)?.body));
  t.strictSame(sent(), {
    ...create,
    messages: [
      ...messages,
      { role: 'assistant', content: [{ type: 'text', text: 'a reply' }] },
      { role: 'user', content: 'more words' },
    ],
  });
  await ask(goOn(second.id));
  t.strictSame(sent(), goOn(second.id));
  t.equal(upstreams[0]?.requests.length, 2, 'nobody else is asked for it');
});

const saidSo = [
  ...messages,
  { role: 'assistant', content: [{ type: 'text', text: 'hi' }] },
  { role: 'user', content: 'more words' },
];

test('the threads of a messages upstream that takes no notice of them are kept here', async (t) => {
  const { ask, upstreams } = await start(t, [native('u0')], ['messages'], { threads: () => false });
  const sent = () => JSON.parse(String(upstreams[0]?.requests.at(-1)?.body));
  const { thread: _, ...whole } = create;
  for (const stream of [true, false]) {
    const first = await ask({ ...create, stream });
    t.match(first.id, /^msg_u0_/);
    t.strictSame(sent(), { ...whole, stream });
    const second = await ask(goOn(first.id, { stream }));
    t.match(second, { status: 200, id: /^msg_u0_/ });
    t.strictSame(sent(), { ...whole, stream, messages: saidSo });
    const third = await ask(goOn(second.id));
    t.equal(third.status, 200);
    t.equal(sent().messages.length, 5);
    const counted = await ask(goOn(second.id), '/v1/messages/count_tokens');
    t.equal(counted.status, 200);
    t.equal(sent().messages.length, 5);
    t.notOk('thread' in sent());
  }
  t.match(await ask(goOn('msg_unknown')), { status: 404, text: notFound });
});

test('without a place for threads, nobody goes on at an upstream that takes no notice of them', async (t) => {
  const { ask, upstreams } = await start(t, [native('u0')], ['messages'], {
    threads: () => false,
    isKept: false,
  });
  const first = await ask(create);
  t.equal(first.status, 200);
  for (const refused of [goOn(first.id), { ...create, thread: { type: 'fork' } }])
    t.match(await ask(refused), { status: 400, text: /"error_code":"thread_unsupported_request"/ });
  t.equal(upstreams[0]?.requests.length, 1);
});

test('a thread that is not known here is asked of upstreams that keep threads alone', async (t) => {
  const { ask, upstreams } = await start(t, [native('u0'), native('u1')], ['messages', 'messages'], {
    threads: (index) => index === 1,
  });
  t.match(await ask(goOn('msg_elsewhere')), { status: 200, id: /^msg_u1_/ });
  t.equal(upstreams[0]?.requests.length, 0);
});
