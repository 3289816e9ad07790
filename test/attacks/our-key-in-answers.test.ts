import { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { startTranslated } from '../support/translated.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';
import { type CallFace, callFace, otherFaces, textFaces } from './account-answers.js';

const key = 'sk-own-upstream-key-Zq81xW';
const said = { message: `Incorrect API key provided: ${key}`, code: 'invalid_api_key' };
const masked = { message: 'Incorrect API key provided: sk-own***', code: 'invalid_api_key' };
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const [chat] = textFaces as [CallFace];
const streamed: CallFace = { ...chat, body: { ...(chat.body as object), stream: true } };
const protocols = [
  'chat',
  'responses',
  'messages',
  'generateContent',
  'embeddings',
  'moderations',
  'images',
  'audio',
];
/** What the upstream's targets do must not depend on those before. */
const routing = { failures: 10_000, minimumCalls: 10_000 };

const stage = (t: Test, { kind = 'chat', own = protocols } = {}) =>
  startTranslated(t, { kind, protocols: own, answer: '', upstream: { apiKeys: [key] }, config: { routing } });

const choice = { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' };
const answers: readonly (readonly [string, object])[] = [
  ['an error beside a usage', { error: said, usage }],
  ['an error without our key beside a usage', { error: masked, choices: [choice], usage }],
  ['an error of a choice', { id: 'x', choices: [{ ...choice, error: { code: 401, message: key } }], usage }],
  ['an error of a choice without our key', { choices: [{ ...choice, error: masked }], usage }],
  ['errors beside a usage', { id: 'x', choices: [choice], errors: [masked], usage }],
  ['errors', { id: 'x', choices: [], errors: [said] }],
  ['a long error', { error: { ...said, pad: 'x'.repeat(70_000) } }],
  ['a longer error', { error: { pad: 'x'.repeat(300_000), ...said } }],
  [
    'an answer',
    { id: 'x', choices: [{ ...choice, message: { role: 'assistant', content: `it is ${key}.` } }], usage },
  ],
  ['a result', { object: 'list', data: [], results: [], note: key }],
];

test('no answer of a good status holds our key or tells of it', async (t) => {
  const gateway = await stage(t);
  const faces = [
    ...textFaces,
    ...otherFaces.filter(({ name }) => /^(?:embed|moder|images|speech)/.test(name)),
  ];
  for (const [how, body] of answers) {
    for (const isSized of [true, false]) {
      const text = JSON.stringify(body);
      gateway.upstream.answer = isSized
        ? jsonAnswer(200, text)
        : `HTTP/1.1 200 X\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunk(text)}${lastChunk}`;
      for (const face of 'choices' in body ? textFaces.slice(0, 1) : faces) {
        const heard = await callFace(gateway.port, face).catch(() => null);
        t.notMatch(`${heard?.head}${heard?.body}`, /Zq81xW|sk-own/, `${face.name}: ${how}`);
        if (text.length < 200_000) t.equal(heard?.status, 502, `${face.name}: ${how}`);
      }
    }
  }
  t.notMatch(JSON.stringify(gateway.lines), /Zq81xW/);
});

test('no translated answer holds our key', async (t) => {
  for (const kind of ['messages', 'generateContent', 'chat']) {
    const gateway = await stage(t, { kind, own: protocols.slice(0, 4) });
    const text = `it is ${key}.`;
    gateway.upstream.answer = jsonAnswer(
      200,
      JSON.stringify({
        ...{
          id: '1',
          type: 'message',
          role: 'assistant',
          content: [{ type: 'text', text }],
          stop_reason: 'end_turn',
        },
        candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
        choices: [{ ...choice, message: { role: 'assistant', content: text } }],
      }),
    );
    for (const face of textFaces) {
      const heard = await callFace(gateway.port, face);
      t.equal(heard.status, 502, `${face.name} of ${kind}`);
      t.notMatch(heard.head + heard.body, /Zq81xW/);
    }
  }
});

test('no stream holds our key, in whatever line it stands', async (t) => {
  const gateway = await stage(t);
  const good = chatEvent({ content: 'hi' });
  for (const [how, event] of [
    ['a comment', `: debug auth Bearer ${key}\n\n`],
    ['an id', `id: ${key}\n${good}`],
    ['a field of no meaning', `error: Incorrect API key provided ${key}\n\n`],
    ['a detail', chatEvent({}).replace('"delta"', `"detail":{"message":"Invalid API key ${key}"},"delta"`)],
    ['a text', chatEvent({ content: key })],
    ['a long event', `data: ${JSON.stringify({ choices: [], pad: 'x'.repeat(70_000), error: said })}\n\n`],
    ['errors without our key', `data: ${JSON.stringify({ choices: [], errors: [masked] })}\n\n`],
  ] as const) {
    for (const [where, pieces] of [
      ['first', [event + good + doneEvent]],
      ['in its middle', [good, event, doneEvent]],
      ['in one piece', [good + good + event + doneEvent]],
      ['behind its end', [good, doneEvent, event]],
    ] as const) {
      gateway.upstream.answer = streamHead + pieces.map(chunk).join('') + lastChunk;
      const heard = await callFace(gateway.port, streamed);
      t.notMatch(heard.head + heard.body, /Zq81xW|sk-own/, `${how}, ${where}`);
      const messages = { ...(textFaces[2] as CallFace) };
      const other = await callFace(gateway.port, {
        ...messages,
        body: { ...(messages.body as object), stream: true },
      });
      t.notMatch(other.head + other.body, /Zq81xW|sk-own/, `${how}, ${where}, translated`);
    }
  }
  gateway.upstream.answer =
    streamHead + chunk(good) + chunk(`: auth ${key}\n\n`) + chunk(good + doneEvent) + lastChunk;
  const heard = await callFace(gateway.port, streamed);
  t.match(heard.body, /does not accept the gateway's account/);
});

test('no header line of an answer holds our key', async (t) => {
  const gateway = await stage(t);
  const lines = `x-request-id: r-${key}\r\nx-ratelimit-limit-requests: 7\r\nx-ratelimit-account: ${key}\r\nopenai-version: ${key}\r\n`;
  gateway.upstream.answer = jsonAnswer(200, completion, lines);
  const good = await callFace(gateway.port, chat);
  t.equal(good.status, 200);
  t.notMatch(good.head, /Zq81xW/);
  t.match(good.head, /x-ratelimit-limit-requests: 7/);
  gateway.upstream.answer = jsonAnswer(200, completion, 'x-request-id: r-1\r\nopenai-version: 2\r\n');
  t.match((await callFace(gateway.port, chat)).head, /x-upstream-request-id: r-1[\s\S]*openai-version: 2/);
  const body = '{"error":{"message":"No."}}';
  for (const status of [200, 400]) {
    for (const type of [`application/json; k=${key}`, `application/${key}+json`]) {
      const text = status === 200 ? completion : body;
      gateway.upstream.answer = `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
      const heard = await callFace(gateway.port, chat);
      t.equal(heard.status, status, type);
      t.notMatch(heard.head, /Zq81xW/, `${status} ${type}`);
    }
  }
});

test('an image at a URL with our key is no image', async (t) => {
  const gateway = await stage(t);
  gateway.upstream.answer = jsonAnswer(
    200,
    JSON.stringify({ created: 1, data: [{ url: `https://example.com/i.png?key=${key}` }] }),
  );
  for (const face of otherFaces.filter(({ name }) => name.startsWith('images'))) {
    const heard = await callFace(gateway.port, face);
    t.equal(heard.status, 502, face.name);
    t.notMatch(heard.body, /Zq81xW/, face.name);
  }
});

test('an error does not hold our key in base64 or hex', async (t) => {
  const gateway = await stage(t);
  const forms = [
    Buffer.from(key).toString('base64'),
    Buffer.from(`Bearer ${key}`).toString('base64'),
    Buffer.from(`user:${key}?`).toString('base64url'),
    Buffer.from(key).toString('hex'),
    Buffer.from(key).toString('hex').toUpperCase(),
  ];
  for (const form of forms) {
    const message = `cannot find it: ${form} is odd`;
    for (const status of [200, 400, 404, 500]) {
      gateway.upstream.answer = jsonAnswer(
        status,
        JSON.stringify({ error: { message, type: 'x', code: 'x' } }),
      );
      const heard = await callFace(gateway.port, chat);
      t.notMatch(heard.body, /is odd/, `${status} ${form}`);
    }
    gateway.upstream.answer =
      streamHead + chunk(`data: ${JSON.stringify({ error: { message } })}\n\n`) + lastChunk;
    t.notMatch((await callFace(gateway.port, streamed)).body, /is odd/, form);
  }
  t.notMatch(
    JSON.stringify(gateway.lines),
    new RegExp(
      forms
        .map((form) => form.slice(4, 20))
        .join('|')
        .replace(/[+]/g, '\\+'),
    ),
  );
});

test('a key that is a word is no reason to refuse an answer with it', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.write(jsonAnswer(200, completion.replace(/"content":"[^"]*"/, '"content":"sk-no-key-required"')));
  });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { apiKeys: ['sk-no-key-required'] },
  });
  const heard = await callFace(port, { ...chat, body: { ...(chat.body as object), model: 'm' } });
  t.match(heard.body, /sk-no-key-required/);
});
