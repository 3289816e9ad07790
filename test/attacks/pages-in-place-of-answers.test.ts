import { test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { type CallFace, callFace, otherFaces, textFaces } from './account-answers.js';

const page = '<!doctype html><html><body>Bad gateway</body></html>';
const plain = (status: number, type: string, body: string, more = ''): string =>
  `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\n${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const inChunks = (body: string): string =>
  `HTTP/1.1 200 X\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

const protocols = [
  'chat',
  'responses',
  'messages',
  'generateContent',
  'completions',
  'embeddings',
  'rerank',
  'moderations',
  'audio',
  'images',
];
const models = (count: number) => ({
  m: {
    protocols,
    targets: Array.from({ length: count }, (_, priority) => ({ upstream: `u${priority}`, priority })),
  },
});
const others = otherFaces.filter(({ name }) => name !== 'video');
const [chat] = textFaces as [CallFace];

for (const kind of ['chat', 'messages', 'generateContent']) {
  test(`no page of what stands before a ${kind} upstream reaches an SDK as its error`, async (t) => {
    let answer = '';
    const upstream = await startRawUpstream(t, () => answer);
    const text = { m: { protocols: protocols.slice(0, 4), targets: [{ upstream: 'u0' }] } };
    const { port } = await startGateway(t, {
      upstreams: [upstream.url],
      upstream: { kind },
      config: { models: kind === 'chat' ? models(1) : text },
    });
    for (const status of [400, 404, 413, 429, 500, 502, 503, 520, 529]) {
      for (const [type, body] of [
        ['text/html', page],
        ['application/json', page],
        ['text/plain', 'busy'],
        ['application/json', ''],
        ['application/json', '"busy"'],
        ['application/json', '{"error":'],
        ['text/html', `${page}${' '.repeat(300_000)}`],
      ] as const) {
        answer = plain(status, type, body, 'retry-after: 7\r\n');
        for (const face of kind === 'chat' && body === page ? [...textFaces, ...others] : textFaces) {
          const heard = await callFace(port, face);
          const what = `${face.name} ${status} ${type} ${body.slice(0, 20)}`;
          t.equal(heard.status, status, what);
          t.notMatch(heard.body, /<|busy/, what);
          t.match(heard.head, /content-type: application\/json/, what);
          t.match(heard.head, /retry-after: 7/, what);
          const told = JSON.parse(heard.body) as { error?: { message?: string } };
          t.match(told.error?.message, /\w/, what);
        }
      }
    }
  });
}

test('a page of status 200 is no answer: another target is asked, else it is 502', async (t) => {
  const answers: string[] = [];
  const upstreams = await Promise.all([0, 1].map((index) => startRawUpstream(t, () => answers[index] ?? '')));
  const urls = upstreams.map(({ url }) => url);
  // The breaker of a target that fails so often would hide what each answer does.
  const routing = { failures: 10_000, minimumCalls: 10_000 };
  const { port } = await startGateway(t, { upstreams: urls, config: { models: models(2), routing } });
  for (const bad of [
    plain(200, 'text/html', page),
    plain(200, 'application/json', page),
    plain(200, 'text/event-stream', page),
    plain(200, 'text/html', `${page}${' '.repeat(300_000)}`),
    inChunks(page),
  ]) {
    answers[0] = bad;
    answers[1] = bad;
    for (const face of [...textFaces, ...others]) {
      const heard = await callFace(port, face);
      t.equal(heard.status, 502, `${face.name} ${bad.slice(0, 60)}`);
      t.notMatch(heard.body, /</);
    }
    const streamed = await callFace(port, chat, { stream: true });
    t.equal(streamed.status, 502);
    t.notMatch(streamed.body, /</);
    answers[1] = jsonAnswer(200, completion);
    t.equal((await callFace(port, chat)).body, completion, 'another target is asked');
  }
});

test('JSON under a wrong type stays as it is, errors too', async (t) => {
  let answer = '';
  const upstream = await startRawUpstream(t, () => answer);
  const { port } = await startGateway(t, { upstreams: [upstream.url], config: { models: models(1) } });
  for (const type of ['text/plain', 'text/html', 'application/octet-stream', 'text/json; charset=utf-8']) {
    answer = plain(200, type, `  ${completion}`);
    const heard = await callFace(port, chat);
    t.equal(heard.status, 200, type);
    t.equal(heard.body, `  ${completion}`);
    answer = plain(422, type, '{"error":{"message":"own"}}');
    const refused = await callFace(port, chat);
    t.equal(refused.status, 422, type);
    t.equal(refused.body, '{"error":{"message":"own"}}');
  }
});

test('on speech and transcriptions no page and no error of status 200 is an answer', async (t) => {
  let answer = '';
  const upstream = await startRawUpstream(t, () => answer);
  const routing = { failures: 10_000, minimumCalls: 10_000 };
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    config: { models: models(1), routing },
  });
  const speech = () =>
    postJson(`http://127.0.0.1:${port}/v1/audio/speech`, { model: 'm', input: 'hello', voice: 'alloy' });
  const transcription = () => {
    const body = new FormData();
    body.set('model', 'm');
    body.set('file', new Blob(['RIFF']), 'a.wav');
    const headers = { authorization: `Bearer ${testKey}` };
    return fetch(`http://127.0.0.1:${port}/v1/audio/transcriptions`, { method: 'POST', headers, body });
  };
  const bodies = [
    page,
    `\ufeff${page}`,
    `<!-- x -->${page}`,
    '{"error":{"message":"own"}}',
    '{"error":"own"}',
  ];
  for (const type of ['audio/mpeg', 'application/octet-stream', 'application/json', 'text/plain']) {
    for (const body of bodies) {
      answer = plain(200, type, body);
      for (const call of [speech, transcription]) {
        const heard = await call();
        const told = await heard.text();
        t.equal(heard.status, 502, `${call.name} ${type} ${body}`);
        t.notMatch(told, /<|own/);
      }
    }
    for (const body of ['{"text":"hi","error":null}', 'sound', '<v Ann>hi']) {
      answer = plain(200, type, body);
      for (const call of [speech, transcription])
        t.equal(await (await call()).text(), body, `${type} ${body}`);
    }
  }
});
