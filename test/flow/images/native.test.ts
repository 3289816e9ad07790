import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { ask, file, formOf, mediaConfig } from '../../support/media/gateway.js';
import { inputBody, png } from '../../support/media/images.js';
import { exchange } from '../../support/raw-client.js';
import { chunk, jsonAnswer, lastChunk, type RawRequest, startRawUpstream } from '../../support/upstream.js';

const generations = '/v1/images/generations';
const edits = '/v1/images/edits';
const nowhere = 'http://127.0.0.1:1/v1';
const made = (element: object): string =>
  jsonAnswer(
    200,
    JSON.stringify({ created: 5, data: [element], usage: { input_tokens: 3, output_tokens: 4 } }),
  );
const drawn = (image: unknown): string =>
  jsonAnswer(
    200,
    JSON.stringify({ output: { choices: [{ message: { content: [{ image }] } }] }, request_id: 'r' }),
  );
const sdk = { model: 'm', prompt: 'a fox' };
const spec = inputBody('m', [{ text: 'a fox' }]);

interface Target {
  readonly baseUrl: string;
  readonly images?: 'openai' | 'openai-files' | 'dashscope';
  readonly fetchPrivate?: boolean;
}

function start(t: Test, targets: readonly Target[], config: Record<string, unknown> = {}) {
  return startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        targets.map(({ baseUrl, fetchPrivate = false }, index) => [`u${index}`, { baseUrl, fetchPrivate }]),
      ),
      models: {
        m: {
          protocols: ['images'],
          targets: targets.map(({ images = 'openai' }, priority) => ({
            upstream: `u${priority}`,
            model: 'real',
            images,
            priority,
          })),
        },
      },
      config,
    }),
  });
}

test('a body with a prompt reaches its upstream byte for byte, but for the name of the model', async (t) => {
  const answer =
    '{ "created":1, "data":[ {"b64_json":"QUJD","own":1} ],"usage":{"input_tokens":3,"output_tokens":4}, "x":0.10 }';
  const upstream = await startRawUpstream(t, () => jsonAnswer(200, answer, 'x-request-id: theirs\r\n'));
  const gateway = await start(t, [{ baseUrl: upstream.url }]);
  for (const path of [generations, edits]) {
    const images = path === edits ? ',"images":[{"image_url":"https://a.invalid/a.png"}]' : '';
    const text = `{ "prompt":"a \\u00e4 fox"  ,"model":"m","unknown":{"a":1.0},"n":2${images} }`;
    const heard = await ask(gateway, 'POST', path, {
      body: Buffer.from(text),
      headers: { 'content-type': 'application/json' },
    });
    t.equal(heard.text, answer);
    t.equal(heard.headers.get('x-upstream-request-id'), 'theirs');
    t.equal(heard.headers.get('x-gateway-path'), 'spliced');
    const { head, body } = upstream.requests.at(-1) as RawRequest;
    t.equal(body.toString(), text.replace('"m"', '"real"'));
    t.match(head, `POST ${path} HTTP/1.1`);
    t.match(head, /\r\nauthorization: Bearer upstream-key\r\n/);
    const line = await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
    t.match(line, { inputTokens: 3, outputTokens: 4, outcome: 'complete', bytesOut: answer.length });
  }
});

test('a form reaches its upstream byte for byte, but for the name of the model', async (t) => {
  const upstream = await startRawUpstream(t, () => made({ url: 'https://images.invalid/a.png' }));
  const gateway = await start(t, [{ baseUrl: upstream.url }]);
  const part = (head: string, body: string) => `--b o\r\n${head}\r\n\r\n${body}\r\n`;
  const text =
    part(
      'Content-Disposition: form-data; name="image[]"; filename="ä.png"\r\nContent-Type: image/png\r\nX-Own: 1',
      'PNG\r\n--b\x00\xff',
    ) +
    part('content-disposition: form-data; name=model', 'm') +
    part('Content-Disposition: form-data; name="prompt"', 'a fox') +
    part('Content-Disposition: form-data; name="image[]"; filename="b.png"', 'PNG') +
    part('Content-Disposition: form-data; name="own"; filename="x"', 'own') +
    '--b o--\r\n \t\r\n';
  const heard = await exchange(
    gateway.port,
    Buffer.from(
      `POST ${edits} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
        `content-type: multipart/form-data; boundary="b o"\r\ncontent-length: ${Buffer.byteLength(text, 'latin1')}\r\n\r\n${text}`,
      'latin1',
    ),
  );
  t.equal(heard.status, 200, heard.body);
  const { head, body } = upstream.requests[0] as RawRequest;
  t.equal(body.toString('latin1'), text.replace('\r\n\r\nm\r\n', '\r\n\r\nreal\r\n'));
  t.match(head, /\r\ncontent-type: multipart\/form-data; boundary="b o"\r\n/);
});

test('the next target is asked where nothing listens, whatever its style', async (t) => {
  const dashscope = await startRawUpstream(t, () => drawn('https://images.invalid/a.png'));
  const openai = await startRawUpstream(t, () => made({ url: 'https://images.invalid/a.png' }));
  const orders: readonly (readonly Target[])[] = [
    [{ baseUrl: nowhere }, { baseUrl: dashscope.url, images: 'dashscope' }],
    [{ baseUrl: nowhere, images: 'dashscope' }, { baseUrl: nowhere }, { baseUrl: openai.url }],
  ];
  for (const targets of orders) {
    const gateway = await start(t, targets);
    for (const body of [sdk, spec]) {
      const heard = await ask(gateway, 'POST', generations, { body });
      t.equal(heard.status, 200, heard.text);
      t.match(heard.json, { data: [{ url: 'https://images.invalid/a.png' }] });
      const line = await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
      t.equal(line.retries, targets.length - 1);
    }
  }
  const none = await start(t, [{ baseUrl: nowhere }, { baseUrl: nowhere, images: 'dashscope' }]);
  for (const body of [sdk, spec]) t.equal((await ask(none, 'POST', generations, { body })).status, 502);
});

test('a target that cannot say the request is passed over for one that can', async (t) => {
  const dashscope = await startRawUpstream(t, () => drawn('https://images.invalid/a.png'));
  const openai = await startRawUpstream(t, () => made({ url: 'https://images.invalid/a.png' }));
  const gateway = await start(t, [{ baseUrl: dashscope.url, images: 'dashscope' }, { baseUrl: openai.url }]);
  const body = { ...sdk, background: 'transparent' };
  t.equal((await ask(gateway, 'POST', generations, { body })).status, 200);
  t.equal(dashscope.requests.length, 0);
  t.match(JSON.parse(openai.requests[0]?.body.toString() ?? ''), {
    model: 'real',
    background: 'transparent',
  });
});

test('errors of both styles become those of the chat family, with their status', async (t) => {
  const cases = [
    [400, '{"code":"InvalidParameter","message":"size","request_id":"r"}', 'size'],
    [400, '{"code":"DataInspectionFailed","message":"no foxes"}', 'no foxes'],
    [429, '{"code":"Throttling.RateQuota","message":"slow"}', 'slow'],
    [500, '<html>', /500/],
    [503, '', /503/],
  ] as const;
  const upstream = await startRawUpstream(t, (_, index) => {
    const [status, body] = cases[index % cases.length] ?? [500, ''];
    return jsonAnswer(status, body, 'retry-after: 3\r\n');
  });
  const gateway = await start(t, [{ baseUrl: upstream.url, images: 'dashscope' }]);
  for (const [status, , message] of cases) {
    const heard = await ask(gateway, 'POST', generations, { body: spec });
    t.equal(heard.status, status);
    t.match(heard.json, { error: { message, type: String } }, heard.text);
    t.equal(heard.headers.get('retry-after'), '3');
  }
  const refusing = await startRawUpstream(t, () =>
    jsonAnswer(401, '{"code":"InvalidApiKey","message":"bad key"}'),
  );
  const closed = await start(t, [{ baseUrl: refusing.url, images: 'dashscope' }]);
  const ofOurs = await ask(closed, 'POST', generations, { body: spec });
  t.equal(ofOurs.status, 502, 'what is about our own key is no business of the caller');
  t.notMatch(ofOurs.text, /bad key/);
  const native = JSON.stringify({
    error: { message: 'No.', type: 'image_generation_user_error', code: 'moderation_blocked', own: 1 },
  });
  const plain = await startRawUpstream(t, () => jsonAnswer(400, native));
  const exact = await start(t, [{ baseUrl: plain.url }]);
  for (const body of [sdk, { ...sdk, response_format: 'b64_json' }]) {
    const heard = await ask(exact, 'POST', generations, { body });
    t.equal(heard.status, 400);
    t.equal(heard.text, native, 'as it came');
  }
  const told = await ask(exact, 'POST', generations, { body: spec });
  t.match(told.json, { error: { message: 'No.', code: 'moderation_blocked' } });
  const inside = await startRawUpstream(t, () => jsonAnswer(200, '{"code":"Throttling","message":"slow"}'));
  const wrapped = await start(t, [{ baseUrl: inside.url, images: 'dashscope' }]);
  t.equal((await ask(wrapped, 'POST', generations, { body: spec })).status, 429);
});

test('an answer that is none is 502', async (t) => {
  const answers = [
    jsonAnswer(200, ''),
    jsonAnswer(200, 'OK'),
    jsonAnswer(200, '[]'),
    jsonAnswer(200, '{}'),
    jsonAnswer(200, '{"data":null,"output":null}'),
    jsonAnswer(200, '{"data":[null,5,{},{"url":5}],"output":{"choices":[null,{"message":5}]}}'),
    made({ url: '' }),
    made({ url: 'javascript:alert(1)' }),
    drawn(null),
    drawn('nowhere'),
    jsonAnswer(302, '{}', 'location: http://a.invalid/\r\n'),
    jsonAnswer(200, '{}', 'content-encoding: zstd\r\n'),
    'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0\r\n\r\n',
  ];
  for (const images of ['openai', 'dashscope'] as const) {
    const upstream = await startRawUpstream(t, (_, index) => answers[index] ?? '');
    const gateway = await start(t, [{ baseUrl: upstream.url, images }]);
    for (const answer of answers) {
      const heard = await ask(gateway, 'POST', generations, { body: spec });
      t.equal(heard.status, 502, `${images}: ${answer}`);
      t.match(heard.json, { error: { type: 'server_error' } });
    }
  }
});

test('data URLs and bytes become each other', async (t) => {
  const base64 = png.toString('base64');
  const data = `data:image/png;base64,${base64}`;
  const upstream = await startRawUpstream(t, (_, index) =>
    made(
      [{ url: data }, { b64_json: base64 }, { b64_json: data }, { url: data, b64_json: base64 }][index % 4] ??
        {},
    ),
  );
  const gateway = await start(t, [{ baseUrl: upstream.url }]);
  for (let index = 0; index < 4; index++) {
    const heard = await ask(gateway, 'POST', generations, { body: { ...sdk, response_format: 'b64_json' } });
    t.strictSame(heard.json.data, [{ b64_json: base64 }]);
  }
  for (let index = 0; index < 4; index++) {
    const heard = await ask(gateway, 'POST', generations, { body: spec });
    t.strictSame(heard.json, {
      created: 5,
      data: [{ url: data }],
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    });
  }
});

test('a stream is passed on event by event, and a target of the other style is no choice for it', async (t) => {
  const event = (type: string, more = '') =>
    `event: ${type}\ndata: {"type":"${type}","b64_json":"QUJD"${more}}\n\n`;
  const body =
    event('image_generation.partial_image', ',"partial_image_index":0') +
    event('image_generation.completed', ',"usage":{"input_tokens":3,"output_tokens":4}');
  const upstream = await startRawUpstream(
    t,
    () =>
      `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${chunk(body)}${lastChunk}`,
  );
  const other = await startRawUpstream(t, () => drawn('https://images.invalid/a.png'));
  const gateway = await start(t, [{ baseUrl: other.url, images: 'dashscope' }, { baseUrl: upstream.url }]);
  const form = formOf([
    ['model', 'm'],
    ['prompt', 'a'],
    ['image', file('a.png', 'image/png', png)],
    ['stream', 'true'],
  ]);
  for (const [path, sent] of [
    [generations, { ...sdk, stream: true, response_format: 'b64_json' }],
    [edits, form],
  ] as const) {
    const heard = await ask(gateway, 'POST', path, { body: sent });
    t.equal(heard.status, 200, heard.text);
    t.match(heard.headers.get('content-type'), /^text\/event-stream/);
    t.equal(heard.text, body);
    const line = await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
    t.match(line, { outcome: 'complete', inputTokens: 3, outputTokens: 4 });
  }
  t.equal(other.requests.length, 0);
});

test('a client that leaves while its answer is made ends the request to the upstream', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  for (const [index, images] of (['openai', 'dashscope'] as const).entries()) {
    const gateway = await start(t, [{ baseUrl: upstream.url, images }]);
    const leaving = new AbortController();
    const left = ask(gateway, 'POST', generations, { body: spec, signal: leaving.signal });
    const { socket } = await upstream.request(index);
    leaving.abort();
    await t.rejects(left);
    await eventually(() => upstream.sockets.has(socket), {
      fits: (isOpen) => !isOpen,
      everyMs: 10,
    });
    t.match(await gateway.line(({ outcome }) => outcome === 'client_gone'), { path: generations });
  }
});
