import { type Test, test } from 'tap';
import { textProtocols } from '../../src/conversation/request.js';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import type { RawAnswer } from '../support/raw-client.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { chatEvent, completion, jsonAnswer, type RawRequest, startRawUpstream } from '../support/upstream.js';
import {
  accountAnswers,
  type CallFace,
  callersAnswers,
  callFace,
  leak,
  leakyLines,
  organisation,
  otherFaces,
  ownKey,
  quotedKey,
  textFaces,
} from './account-answers.js';

const kinds = ['chat', 'messages', 'generateContent'] as const;
const everything = [
  'chat',
  'completions',
  'embeddings',
  'rerank',
  'moderations',
  'audio',
  'images',
  'video',
  'responses',
  'messages',
  'generateContent',
];

interface Stage {
  readonly gateway: RunningGateway;
  /** What the upstreams answer from now on, in order of priority. */
  readonly answers: string[];
  readonly requests: (readonly RawRequest[])[];
}

/** A gateway whose model `m` has upstreams of a kind that answer what they are told. */
async function stage(
  t: Test,
  kind: string,
  count = 1,
  apiKeys: readonly string[] = [ownKey],
): Promise<Stage> {
  const answers: string[] = [];
  const upstreams = await Promise.all(
    Array.from({ length: count }, (_, index) => startRawUpstream(t, () => answers[index] ?? '')),
  );
  const gateway = await startGateway(t, {
    upstreams: upstreams.map(({ url }) => url),
    upstream: { kind, apiKeys, headers: { 'x-own': 'a-header-secret' } },
    config: {
      store: { kind: 'embedded', path: temporaryFolder(t) },
      models: {
        m: {
          protocols: kind === 'chat' ? everything : textProtocols,
          targets: upstreams.map((_, priority) => ({ upstream: `u${priority}`, model: 'm', priority })),
        },
      },
      routing: { openMs: 60_000, maxOpenMs: 60_000 },
    },
  });
  return { gateway, answers, requests: upstreams.map(({ requests }) => requests) };
}

function facesOf(kind: string): readonly CallFace[] {
  return kind === 'chat' ? [...textFaces, ...otherFaces] : textFaces;
}

function isOurWords(t: Test, answer: RawAnswer, what: string): void {
  t.equal(answer.status, 502, `${what}: ${answer.body.slice(0, 200)}`);
  t.match(answer.body, /does not accept the gateway's account/, what);
  t.notMatch(answer.body, leak, what);
  t.notMatch(answer.head, leak, what);
  t.notMatch(answer.head, /www-authenticate|openai-organi|openai-project|set-cookie|x-ratelimit/i, what);
  t.match(answer.head, /content-type: application\/json/, what);
}

for (const kind of kinds) {
  test(`a tenant who provokes what a ${kind} upstream says of our account learns nothing of it`, async (t) => {
    const { gateway, answers } = await stage(t, kind);
    for (const [what, status, body] of accountAnswers) {
      answers[0] = jsonAnswer(status, body, leakyLines);
      for (const face of facesOf(kind))
        isOurWords(t, await callFace(gateway.port, face), `${face.name}: ${what}`);
    }
    const refusals = gateway.lines.filter(
      ({ msg }) => msg === "an upstream refused the gateway's API key or account",
    );
    t.ok(refusals.length >= accountAnswers.length * facesOf(kind).length, 'each is in the log');
    t.ok(
      refusals.some(({ answer }) => /Incorrect API key provided/.test(String(answer))),
      'with its words',
    );
    t.notMatch(JSON.stringify(gateway.lines), leak, 'and without secrets');
    t.notMatch(JSON.stringify(gateway.lines), /a-header-secret/);
  });

  test(`what a ${kind} upstream says of the call itself stays the caller's`, async (t) => {
    const { gateway, answers } = await stage(t, kind);
    for (const [what, status, body] of callersAnswers) {
      answers[0] = jsonAnswer(status, body);
      for (const face of facesOf(kind)) {
        const answer = await callFace(gateway.port, face);
        t.equal(answer.status, status, `${face.name}: ${what}`);
        t.match(JSON.parse(answer.body), Object, 'and it is JSON');
      }
    }
    const refusals = gateway.lines.filter(
      ({ msg }) => msg === "an upstream refused the gateway's API key or account",
    );
    t.strictSame(refusals, []);
  });
}

test('another target is asked first, whatever status it comes with', async (t) => {
  const { gateway, answers, requests } = await stage(t, 'chat', 2);
  answers[1] = jsonAnswer(200, completion);
  const [face] = textFaces;
  if (face === undefined) throw new Error('no face');
  for (const [what, status, body] of accountAnswers) {
    answers[0] = jsonAnswer(status, body, leakyLines);
    const answer = await callFace(gateway.port, face);
    t.equal(answer.status, 200, what);
  }
  t.ok((requests[0]?.length ?? 0) > 0);
});

test('another key is asked first, and the refused one is left alone', async (t) => {
  for (const [what, status, body] of accountAnswers.filter(([, status]) => status < 500)) {
    const used: (string | undefined)[] = [];
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      const key = /^authorization: Bearer (.*)$/im.exec(head)?.[1];
      used.push(key);
      socket.write(key === ownKey ? jsonAnswer(status, body) : jsonAnswer(200, completion));
    });
    const { port, gateway } = await startGateway(t, {
      upstreams: [upstream.url],
      upstream: { apiKeys: [ownKey, 'sk-other-key'] },
      config: { routing: { openMs: 60_000, maxOpenMs: 60_000, affinity: false } },
    });
    const [face] = textFaces;
    if (face === undefined) throw new Error('no face');
    for (let i = 0; i < 12; i++) t.equal((await callFace(port, face)).status, 200, what);
    t.ok(used.filter((key) => key === ownKey).length <= 1, `${what}: ${used.join(' ')}`);
    await gateway.close();
    await upstream.close();
  }
});

test('a caller who has our key named in his own mistake brings no key into disrepute', async (t) => {
  const mine = callersAnswers.filter(([, status]) => status === 400);
  for (const [what, status, body] of mine) {
    const used = new Set<string | undefined>();
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      used.add(/^authorization: Bearer (.*)$/im.exec(head)?.[1]);
      socket.write(jsonAnswer(status, body));
    });
    const { port } = await startGateway(t, {
      upstreams: [upstream.url],
      upstream: { apiKeys: [ownKey, 'sk-other-key'] },
      config: { routing: { openMs: 60_000, maxOpenMs: 60_000, affinity: false } },
    });
    const [face] = textFaces;
    if (face === undefined) throw new Error('no face');
    for (let i = 0; i < 20; i++) t.equal((await callFace(port, face)).status, status, what);
    t.equal(used.size, 2, 'both are used on');
  }
});

const failure = {
  message: `Incorrect API key provided: ${quotedKey} of ${organisation}`,
  type: 'authentication_error',
};
const sse = (text: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${leakyLines}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;

/** Beginnings of good streams, and the error events of each protocol. */
const streams = {
  chat: {
    good: chatEvent({ role: 'assistant', content: 'good' }),
    bad: `data: ${JSON.stringify({ error: { ...failure, code: 'invalid_api_key' } })}\n\n`,
  },
  messages: {
    good:
      `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: { id: 'a', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 1 } } })}\n\n` +
      `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n` +
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"good"}}\n\n`,
    bad: `event: error\ndata: ${JSON.stringify({ type: 'error', error: failure })}\n\n`,
  },
  generateContent: {
    good: `data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'good' }] } }] })}\n\n`,
    bad: `data: ${JSON.stringify({ error: { code: 403, message: failure.message, status: 'PERMISSION_DENIED' } })}\n\n`,
  },
};

const streamFaces: readonly CallFace[] = [
  ...textFaces.slice(0, 3).map((face) => ({ ...face, body: { ...(face.body as object), stream: true } })),
  {
    name: 'generateContent as events',
    path: '/v1beta/models/m:streamGenerateContent?alt=sse',
    body: (textFaces[3] as CallFace).body,
  },
  {
    name: 'generateContent as an array',
    path: '/v1beta/models/m:streamGenerateContent',
    body: (textFaces[3] as CallFace).body,
  },
];

for (const kind of kinds) {
  const { good, bad } = streams[kind];
  test(`an error event of a ${kind} upstream about our account reaches no stream`, async (t) => {
    const { gateway, answers } = await stage(t, kind);
    for (const face of streamFaces) {
      answers[0] = sse(bad);
      isOurWords(t, await callFace(gateway.port, face), `${face.name}: first event`);
      for (const text of [good + bad, `: ping\n\n${good}${bad}${good}`]) {
        answers[0] = sse(text);
        const answer = await callFace(gateway.port, face);
        t.equal(answer.status, 200, face.name);
        t.match(answer.body, /good/, 'what came before has passed');
        t.match(answer.body, /does not accept the gateway's account/, answer.body);
        t.notMatch(answer.body + answer.head, leak, face.name);
      }
    }
    t.notMatch(JSON.stringify(gateway.lines), leak);
    t.ok(
      gateway.lines.filter(({ msg }) => msg === "an upstream refused the gateway's API key or account")
        .length >=
        3 * streamFaces.length,
    );
  });
}

test('an error in a whole answer of status 200 about our account is no answer', async (t) => {
  const { gateway, answers } = await stage(t, 'chat', 2);
  answers[0] = jsonAnswer(
    200,
    JSON.stringify({ error: { ...failure, code: 'invalid_api_key' } }),
    leakyLines,
  );
  answers[1] = answers[0];
  for (const face of textFaces) isOurWords(t, await callFace(gateway.port, face), face.name);
  answers[1] = jsonAnswer(200, completion);
  t.equal((await callFace(gateway.port, textFaces[0] as CallFace)).status, 200);
});

test('an error about our account is found wherever a good answer has it', async (t) => {
  const { gateway, answers } = await stage(t, 'chat');
  const error = { ...failure, code: 'invalid_api_key' };
  const choice = { index: 0, finish_reason: 'error', error };
  const [face] = textFaces as [CallFace];
  for (const body of [
    { id: 'x'.repeat(1000), object: 'response', tools: [{ error: null }], error },
    { object: 'chat.completion', choices: [{ ...choice, message: { role: 'assistant', content: '' } }] },
    { code: 'InvalidApiKey', message: failure.message, request_id: 'x' },
  ]) {
    answers[0] = jsonAnswer(200, JSON.stringify(body), leakyLines);
    isOurWords(t, await callFace(gateway.port, face), JSON.stringify(body).slice(-100));
  }
  const { good } = streams.chat;
  for (const event of [
    `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ ...choice, delta: {} }] })}\n\n`,
    `event: error\ndata: ${JSON.stringify(failure)}\n\n`,
    `event:error\ndata:${JSON.stringify({ code: 'InvalidApiKey', message: failure.message })}\n\n`,
  ]) {
    answers[0] = sse(`${good}${event}`);
    const answer = await callFace(gateway.port, {
      ...face,
      body: { ...(face.body as object), stream: true },
    });
    t.match(answer.body, /good/);
    t.match(answer.body, /does not accept the gateway's account/, event);
    t.notMatch(answer.body, leak);
  }
});

test('an event that repeats a word of errors without end is parsed once', { timeout: 60_000 }, async (t) => {
  const { gateway, answers } = await stage(t, 'chat');
  const tools = [{ type: 'function', name: 'f', parameters: { enum: new Array(80_000).fill('error') } }];
  const chunk = {
    object: 'chat.completion.chunk',
    tools,
    choices: [{ index: 0, delta: { content: 'good' } }],
  };
  answers[0] = sse(`data: ${JSON.stringify(chunk)}\n\n${streams.chat.bad}`);
  const [face] = textFaces as [CallFace];
  const answer = await callFace(gateway.port, { ...face, body: { ...(face.body as object), stream: true } });
  t.match(answer.body, /good/);
  t.match(answer.body, /does not accept the gateway's account/, 'and the next event is seen');
  t.notMatch(answer.body, leak);
});

test('an upstream that echoes our request in its error gives no key away', async (t) => {
  const upstream = await startRawUpstream(t, ({ head, socket }) =>
    socket.write(jsonAnswer(404, JSON.stringify({ error: { message: `no route for ${head}` } }))),
  );
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { apiKeys: [ownKey] },
  });
  const answer = await callFace(port, textFaces[0] as CallFace);
  t.equal(answer.status, 404);
  t.notMatch(answer.body, leak);
  t.match(JSON.parse(answer.body), { error: { message: String } });
});
