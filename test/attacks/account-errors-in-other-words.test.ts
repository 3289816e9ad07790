import { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { clientFormats } from '../support/media/client-formats.js';
import { ask, mediaConfig } from '../support/media/gateway.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';
import { startTranslated } from '../support/translated.js';
import {
  chatEvent,
  chunk,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';
import { callFace, leak, organisation, quotedKey, textFaces } from './account-answers.js';

const message = `Incorrect API key provided: ${quotedKey} of ${organisation}`;
const ours = /does not accept the gateway's account/;

/** What upstreams say of our account in place of an answer or an event, and none of them as the protocol has it. */
const bodies: readonly (readonly [string, string])[] = [
  ['a bare code', JSON.stringify({ code: 'InvalidApiKey', message, request_id: 'x' })],
  ['a bare number', JSON.stringify({ code: 401, message: organisation })],
  [
    'an object of error',
    JSON.stringify({ object: 'error', message, type: 'AuthenticationError', code: 401 }),
  ],
  ['a message', JSON.stringify({ message })],
  ['a detail', JSON.stringify({ detail: message })],
  ['a detail of its own', JSON.stringify({ detail: { code: 'invalid_api_key', message } })],
  ['a list', JSON.stringify({ errors: [{ code: 'invalid_api_key', message }] })],
  ['an array', JSON.stringify([{ error: { message: organisation, code: 401, status: 'UNAUTHENTICATED' } }])],
  ['an array as error', JSON.stringify({ error: [{ message, code: 401 }] })],
  ['an escaped name', `{"\\u0065rror":{"message":${JSON.stringify(message)},"code":"invalid_api_key"}}`],
  [
    'a number elsewhere',
    JSON.stringify({ id: 'c', choices: null, base_resp: { status_code: 1004, status_msg: organisation } }),
  ],
  ['a number of HTTP', JSON.stringify({ error: { http_code: 401, message: organisation } })],
  ['another of HTTP', JSON.stringify({ error: { statusCode: 401, message: organisation } })],
  [
    'a fault',
    JSON.stringify({ fault: { faultstring: organisation, detail: { errorcode: 'oauth.v2.InvalidApiKey' } } }),
  ],
  ['an error within', JSON.stringify({ error: { error: { code: 'invalid_api_key', message } } })],
  ['capitals', JSON.stringify({ Error: { Message: message, Code: 'InvalidApiKey' } })],
  ['a text', JSON.stringify(message)],
];

const goodEvent: Readonly<Record<string, string>> = {
  chat: chatEvent({ role: 'assistant', content: 'hi' }),
  messages: `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } })}\n\n`,
  generateContent: `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, index: 0 }] })}\n\n`,
};

const stage = (t: Test, kind: string) => startTranslated(t, { kind, answer: '' });

const streamFaces = textFaces.map((face) =>
  face.name === 'generateContent'
    ? { ...face, path: face.path.replace(':generateContent', ':streamGenerateContent?alt=sse') }
    : { ...face, body: { ...(face.body as object), stream: true } },
);

for (const kind of Object.keys(goodEvent)) {
  test(`whatever form a ${kind} upstream has for an error about our account, it is known`, async (t) => {
    const gateway = await stage(t, kind);
    const events = [
      ...bodies.map(([how, body]) => [how, `data: ${body}\n\n`] as const),
      ['plain text', `event: error\ndata: ${message}\n\n`],
      ['a name behind its data', `data: ${JSON.stringify({ message, code: 401 })}\nevent: error\n\n`],
      ['several lines', `data: {"detail":\r\ndata: ${JSON.stringify(message)}}\r\n\r\n`],
    ] as const;
    for (const [how, event] of events) {
      for (const face of streamFaces) {
        gateway.upstream.answer = streamHead + chunk(event) + lastChunk;
        const first = await callFace(gateway.port, face);
        t.equal(first.status, 502, `${face.name}: ${how}`);
        t.match(first.body, ours, `${face.name}: ${how}`);
        gateway.upstream.answer = streamHead + chunk(goodEvent[kind] + event + goodEvent[kind]) + lastChunk;
        const later = await callFace(gateway.port, face);
        t.notMatch(later.head + later.body, leak, `${face.name}: ${how}, later`);
      }
    }
    for (const [how, body] of bodies) {
      gateway.upstream.answer = jsonAnswer(200, body);
      for (const face of textFaces) {
        const { body: told } = await callFace(gateway.port, face);
        t.notMatch(told, leak, `${face.name}: ${how}`);
      }
    }
    t.notMatch(JSON.stringify(gateway.lines), leak);
  });
}

test('what stands beside an empty list of choices and a usage is known where it would pass untouched', async (t) => {
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const gateway = await stage(t, 'chat');
  const isChat = ({ name }: { readonly name: string }): boolean => name === 'chat';
  for (const event of [
    { choices: [], usage, base_resp: { status_code: 1004, status_msg: organisation } },
    { choices: [], usage, code: 'InvalidApiKey', message },
    { detail: message, choices: [], usage },
  ]) {
    const body = JSON.stringify(event);
    for (const face of streamFaces.filter(isChat)) {
      gateway.upstream.answer = streamHead + chunk(`data: ${body}\n\n`) + lastChunk;
      const first = await callFace(gateway.port, face);
      t.equal(first.status, 502, body);
      t.match(first.body, ours, body);
      gateway.upstream.answer = streamHead + chunk(`${goodEvent.chat}data: ${body}\n\n`) + lastChunk;
      t.notMatch((await callFace(gateway.port, face)).body, leak, body);
    }
    for (const face of textFaces.filter(isChat)) {
      gateway.upstream.answer = jsonAnswer(200, body);
      t.notMatch((await callFace(gateway.port, face)).body, leak, body);
    }
  }
});

const statuses: readonly (readonly [number, object])[] = [
  [400, { error: { message: `Wrong API key ${organisation}` } }],
  [400, { error: { message: `The API key is wrong ${organisation}` } }],
  [400, { error: { message: `invalid api token ${organisation}` } }],
  [400, { error: { message: `Authentication Fails, Your api key: ****${organisation} is invalid` } }],
  [400, { error: { message: `litellm.AuthenticationError: ${message}` } }],
  [400, { fault: { faultstring: organisation, detail: { errorcode: 'oauth.v2.InvalidApiKey' } } }],
  [400, { base_resp: { status_code: 2049, status_msg: organisation } }],
  [403, { error: { message: `Your org ${organisation} was disabled for violating our usage policy` } }],
  [429, { error: { message: `Billing hard limit has been reached ${organisation}` } }],
  [429, { error: { message: `Your account balance is negative ${organisation}` } }],
  [429, { error: { message: `Your project has exceeded its monthly spending cap. ${organisation}` } }],
  [
    429,
    { error: { message: `You exceeded your current quota, please check your plan and billing details.` } },
  ],
];

test('a refusal of our key or of our spent account is known by its words', async (t) => {
  const gateway = await stage(t, 'chat');
  for (const [status, body] of statuses) {
    gateway.upstream.answer = jsonAnswer(status, JSON.stringify(body));
    for (const face of textFaces) {
      const answer = await callFace(gateway.port, face);
      t.equal(answer.status, 502, `${face.name}: ${JSON.stringify(body)}`);
      t.match(answer.body, ours);
    }
  }
});

async function heardInSession(
  t: Test,
  act: (socket: { send(data: string | Buffer): void; close(code: number, reason?: string): void }) => void,
) {
  const upstream = await startRealtimeUpstream(t, ({ socket }) => act(socket));
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const client = await openClient(t, port);
  const { code, reason } = await client.closed;
  return { code, words: client.received.join() + reason };
}

test('a session knows them, whatever they come as', async (t) => {
  const said: readonly (readonly [string, string | Buffer])[] = [
    ...bodies.map(([how, body]) => [how, body] as const),
    ['bytes', Buffer.from(JSON.stringify({ type: 'error', error: { message, code: 'invalid_api_key' } }))],
    [
      'late',
      JSON.stringify({ pad: 'x'.repeat(300), type: 'error', error: { message, code: 'invalid_api_key' } }),
    ],
    ['plain text', message],
  ];
  for (const [how, data] of said) {
    const { code, words } = await heardInSession(t, (socket) => socket.send(data));
    t.equal(code, 1011, how);
    t.match(words, ours, how);
    t.notMatch(words, leak, how);
  }
  for (const [code, reason] of [
    [1008, 'You exceeded your current quota'],
    [4401, ''],
    [3000, 'no'],
  ] as const) {
    const heard = await heardInSession(t, (socket) => socket.close(code, reason));
    t.equal(heard.code, 1011, `${code} ${reason}`);
    t.match(heard.words, ours);
  }
});

test('what is no such error passes: sound, events that are not known, their own codes', async (t) => {
  const sent = [
    Buffer.from([0, 1, 2, 250]),
    '{"type":"session.created"}',
    '{"setupComplete":{}}',
    '{"code":0}',
  ];
  const { code, words } = await heardInSession(t, (socket) => {
    for (const each of sent) socket.send(each);
    socket.close(4001, 'over');
  });
  t.equal(code, 4001);
  t.match(words, /session\.created.*setupComplete.*"code":0.*over/);
});

test('an error in place of a task or of its content is known', async (t) => {
  for (const kind of ['chat', 'generic', 'vendork']) {
    for (const [how, body] of bodies.filter(([, text]) => !text.includes('"id"'))) {
      const upstream = await startRawUpstream(t, jsonAnswer(200, body));
      const gateway = await startGateway(t, {
        config: mediaConfig(t, {
          upstreams: { u: { kind, baseUrl: upstream.url } },
          models: { m: { protocols: ['video'], targets: [{ upstream: 'u' }] } },
        }),
      });
      const [clientFormat] = clientFormats;
      const made = await clientFormat?.create(gateway, { model: 'm', prompt: 'a' });
      t.equal(made?.status, 502, `${kind}: ${how}`);
      t.notMatch(made?.text, leak, `${kind}: ${how}`);
      await gateway.gateway.close();
      await upstream.close();
    }
  }
});

test('a text is no video, and a browser gets nothing that it would run', async (t) => {
  const page = `<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>`;
  for (const [type, body, status] of [
    ['text/plain', message, 502],
    ['video/mp4', message, 502],
    ['video/mp4', JSON.stringify({ message }), 502],
    ['image/svg+xml', page, 502],
    ['image/svg+xml', `\0${page}`, 200],
    ['text/html', '\0\0\0\x18ftypmp42', 200],
  ] as const) {
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      if (!head.includes('/content')) socket.write(jsonAnswer(200, '{"id":"theirs","status":"completed"}'));
      else
        socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        );
    });
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { baseUrl: upstream.url } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u' }] } },
      }),
    });
    const [clientFormat] = clientFormats;
    if (clientFormat === undefined) throw new Error('no client format');
    const id = clientFormat.idOf(await clientFormat.create(gateway, { model: 'm', prompt: 'a' }));
    const heard = await ask(gateway, 'GET', `/v1/videos/${id}/content`);
    t.equal(heard.status, status, `${type}: ${body}`);
    t.notMatch(heard.text, leak);
    if (status === 200) {
      t.match(heard.headers.get('content-type'), 'video/mp4');
      t.equal(heard.headers.get('x-content-type-options'), 'nosniff');
    }
    await gateway.gateway.close();
    await upstream.close();
  }
});
