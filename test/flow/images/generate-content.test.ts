import { once } from 'node:events';
import { type Test, test } from 'tap';
import { costOf } from '../../support/cost.js';
import { startGateway } from '../../support/gateway.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { png } from '../../support/media/images.js';
import { open, readAnswer } from '../../support/raw-client.js';
import { postBytes } from '../../support/translated.js';
import { jsonAnswer, type RawRequest, startRawUpstream } from '../../support/upstream.js';

const base64 = png.toString('base64');
const inline = { inlineData: { mimeType: 'image/png', data: base64 } };
const whole = '/v1beta/models/m:generateContent';
const streamed = '/v1beta/models/m:streamGenerateContent?alt=sse';

/** The example of the API document. */
const example = {
  contents: [{ role: 'user', parts: [{ text: 'a fox' }] }],
  generationConfig: {
    responseModalities: ['TEXT', 'IMAGE'],
    imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
  },
};
const edit = { ...example, contents: [{ role: 'user', parts: [{ text: 'a fox' }, inline] }] };

const made = (elements: readonly object[]): string =>
  jsonAnswer(
    200,
    JSON.stringify({ created: 5, data: elements, usage: { input_tokens: 3, output_tokens: 4 } }),
  );

interface Options {
  readonly images?: 'openai' | 'openai-files' | 'dashscope';
  readonly protocols?: readonly string[];
  readonly kind?: string;
  readonly keepAliveMs?: number;
}

async function start(t: Test, answer: (request: RawRequest) => unknown, options: Options = {}) {
  const { images, protocols = ['generateContent', 'images'], kind = 'chat', keepAliveMs } = options;
  const upstream = await startRawUpstream(t, answer);
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { kind, baseUrl: upstream.url } },
      models: {
        m: {
          protocols,
          targets: [{ upstream: 'u', model: 'real', ...(images === undefined ? {} : { images }) }],
          price: { perCall: 1 },
        },
      },
      config: keepAliveMs === undefined ? {} : { timeouts: { keepAliveMs } },
    }),
  });
  return { gateway, upstream, lastBody: () => upstream.requests.at(-1)?.body.toString('latin1') ?? '' };
}

const candidate = (index = 0) => ({
  content: { role: 'model', parts: [inline] },
  finishReason: 'STOP',
  index,
});

test('the example of the API document is made by an images upstream', async (t) => {
  const { gateway, upstream, lastBody } = await start(t, () => made([{ b64_json: base64 }]));
  const heard = await ask(gateway, 'POST', whole, { body: example });
  t.equal(heard.status, 200, heard.text);
  t.match(upstream.requests[0]?.head, /^POST \/v1\/images\/generations HTTP/);
  t.strictSame(JSON.parse(lastBody()), { model: 'real', prompt: 'a fox', size: '1536x1024' });
  t.strictSame(heard.json, {
    candidates: [candidate()],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
    modelVersion: 'm',
    responseId: heard.json.responseId,
  });
  t.equal(heard.headers.get('content-type'), 'application/json');
  t.equal(heard.headers.get('x-gateway-path'), 'translated');
  t.equal(
    heard.headers.get('x-gateway-left-out'),
    'generationConfig.imageConfig.aspectRatio, generationConfig.imageConfig.imageSize',
  );
  const line = await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
  t.match(line, { protocol: 'generateContent', inputTokens: 3, outputTokens: 4, outcome: 'complete' });
});

test('contents that are one object are a list of one', async (t) => {
  const { gateway, lastBody } = await start(t, () => made([{ b64_json: base64 }]));
  const body = { ...example, contents: { role: 'user', parts: { text: 'a fox' } } };
  const heard = await ask(gateway, 'POST', whole, { body });
  t.match(heard.json, { candidates: [candidate()] }, heard.text);
  t.strictSame(JSON.parse(lastBody()), { model: 'real', prompt: 'a fox', size: '1536x1024' });
});

test('a stream of it is one event, or an array of one', async (t) => {
  const { gateway } = await start(t, () => made([{ b64_json: base64 }]));
  const heard = await ask(gateway, 'POST', streamed, { body: example });
  t.equal(heard.status, 200, heard.text);
  t.match(heard.headers.get('content-type'), /^text\/event-stream/);
  t.match(heard.text, /^data: \{.*\}\n\n$/);
  t.match(JSON.parse(heard.text.slice('data: '.length)), { candidates: [candidate()] });
  const array = await ask(gateway, 'POST', '/v1beta/models/m:streamGenerateContent', { body: example });
  t.match(JSON.parse(array.text), [{ candidates: [candidate()] }]);
});

test('a model that is not offered for images makes them where its target names their style', async (t) => {
  const { gateway, upstream } = await start(t, () => made([{ b64_json: base64 }]), {
    images: 'openai',
    protocols: ['generateContent'],
  });
  const heard = await ask(gateway, 'POST', whole, { body: example });
  t.match(heard.json, { candidates: [candidate()] }, heard.text);
  t.match(upstream.requests[0]?.head, /^POST \/v1\/images\/generations HTTP/);
});

test('a stream shows keep-alives while images are made', async (t) => {
  const { gateway, upstream } = await start(t, () => {}, { keepAliveMs: 1 });
  const socket = await open(gateway.port, postBytes(streamed, example));
  const answer = readAnswer(socket);
  const { socket: asked } = await upstream.request(0);
  const [first] = await once(socket, 'data');
  t.match(String(first), /^HTTP\/1.1 200 .*: keep-alive\n/s);
  asked.write(made([{ b64_json: base64 }]));
  const { body } = await answer;
  socket.destroy();
  t.match(JSON.parse(body.slice(body.indexOf('data: ') + 'data: '.length)), { candidates: [candidate()] });
});

test('images in the contents make it an edit', async (t) => {
  const openai = await start(t, () => made([{ b64_json: base64 }]));
  const heard = await ask(openai.gateway, 'POST', whole, { body: edit });
  t.match(heard.json, { candidates: [candidate()] }, heard.text);
  t.match(openai.upstream.requests[0]?.head, /^POST \/v1\/images\/edits HTTP/);
  t.match(openai.lastBody(), 'name="image"; filename="image-1.png"');
  t.ok(openai.lastBody().includes(png.toString('latin1')));
});

test('another style of images is asked in its words, and what it names by URL is fetched', async (t) => {
  const store = await startRawUpstream(t, () =>
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${png.length}\r\n\r\n`),
      png,
    ]),
  );
  const answer = { output: { choices: [{ message: { content: [{ image: `${store.url}/a.png` }] } }] } };
  const upstream = await startRawUpstream(t, () => jsonAnswer(200, JSON.stringify(answer)));
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url, fetchPrivate: true } },
      models: {
        m: {
          // Such a target is told by its style where the model is not offered for images by itself.
          protocols: ['generateContent'],
          targets: [{ upstream: 'u', model: 'real', images: 'dashscope' }],
        },
      },
    }),
  });
  const heard = await ask(gateway, 'POST', whole, { body: edit });
  t.match(heard.json, { candidates: [candidate()] }, heard.text);
  t.equal(heard.headers.get('x-gateway-left-out'), null);
  t.strictSame(JSON.parse(upstream.requests[0]?.body.toString() ?? ''), {
    model: 'real',
    input: {
      messages: [
        { role: 'user', content: [{ image: `data:image/png;base64,${base64}` }, { text: 'a fox' }] },
      ],
    },
    parameters: { size: '2736*1536' },
  });
});

test('each image is paid for and a candidate', async (t) => {
  const { gateway, lastBody } = await start(t, () => made([{ b64_json: base64 }, { b64_json: base64 }]));
  const body = { ...example, generationConfig: { responseModalities: ['IMAGE'], candidateCount: 2 } };
  const heard = await ask(gateway, 'POST', whole, { body });
  t.match(heard.json, { candidates: [candidate(0), candidate(1)] }, heard.text);
  t.match(JSON.parse(lastBody()), { n: 2 });
  await gateway.line(({ id }) => id === heard.headers.get('x-request-id'));
  t.equal(costOf(gateway), 2_000_000_000);
});

test('errors are those of the client, and nothing is asked twice', async (t) => {
  const error = {
    error: { message: 'No foxes.', type: 'invalid_request_error', code: 'moderation_blocked' },
  };
  const { gateway, upstream } = await start(t, () => jsonAnswer(400, JSON.stringify(error)));
  for (const path of [whole, streamed]) {
    const heard = await ask(gateway, 'POST', path, { body: example });
    t.equal(heard.status, 400);
    t.match(
      heard.json,
      { error: { code: 400, message: 'No foxes.', status: 'INVALID_ARGUMENT' } },
      heard.text,
    );
  }
  t.equal(upstream.requests.length, 2);
  const wrong = await ask(gateway, 'POST', whole, { body: { ...example, contents: [{ parts: [inline] }] } });
  t.match(wrong.json, { error: { code: 400, message: /'contents' has no text/ } });
  t.equal(upstream.requests.length, 2);
  const broken = await start(t, () => jsonAnswer(200, '{"data":[]}'));
  const heard = await ask(broken.gateway, 'POST', whole, { body: example });
  t.match(heard.json, { error: { code: 502 } }, heard.text);
  t.equal(broken.upstream.requests.length, 1);
});

test('a text, and a model that makes no images, are served as before', async (t) => {
  const completion = { choices: [{ message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }] };
  const drawing = await start(t, () => jsonAnswer(200, JSON.stringify(completion)));
  const { contents } = example;
  const spoken = await ask(drawing.gateway, 'POST', whole, { body: { contents } });
  t.match(spoken.json, { candidates: [{ content: { parts: [{ text: 'hi' }] } }] }, spoken.text);
  t.match(drawing.upstream.requests[0]?.head, /^POST \/v1\/chat\/completions HTTP/);
  const talking = await start(t, () => '', { protocols: ['generateContent', 'chat'] });
  const refused = await ask(talking.gateway, 'POST', whole, { body: example });
  t.equal(refused.status, 400);
  t.match(refused.text, /responseModalities/);
  const native = await start(t, () => jsonAnswer(200, '{"candidates":[]}'), {
    kind: 'generateContent',
    protocols: ['generateContent'],
  });
  const passed = await ask(native.gateway, 'POST', whole, { body: example });
  t.equal(passed.text, '{"candidates":[]}');
  t.equal(native.lastBody(), JSON.stringify(example));
});

test('no name of a member ends the header that tells what was left out', async (t) => {
  const { gateway } = await start(t, () => made([{ b64_json: base64 }]));
  const generationConfig = {
    responseModalities: ['IMAGE'],
    'x\r\nset-cookie: a=b\r\nx': 1,
    'set-cookie: a=b': 1,
    fooBar: 1,
  };
  const body = { ...example, generationConfig, 'y\r\nset-cookie: a=b\r\ny': 1 };
  for (const path of [whole, streamed]) {
    const heard = await ask(gateway, 'POST', path, { body });
    t.equal(heard.status, 200, heard.text);
    t.equal(heard.headers.get('set-cookie'), null);
    t.equal(heard.headers.get('x-gateway-left-out'), 'generationConfig.fooBar');
  }
});

test('a chat of many images goes on from the last of them', async (t) => {
  const { gateway, lastBody } = await start(t, () => made([{ b64_json: base64 }]));
  const marked = (mark: string) => ({
    inlineData: { mimeType: 'image/png', data: Buffer.concat([png, Buffer.from(mark)]).toString('base64') },
  });
  const turns = Array.from({ length: 17 }, (_, index) => [
    { role: 'user', parts: [{ text: 'a fox' }] },
    { role: 'model', parts: [marked(index === 0 ? 'first' : index === 16 ? 'last' : 'other')] },
  ]);
  const contents = [...turns.flat(), { role: 'user', parts: [{ text: 'in red' }] }];
  const heard = await ask(gateway, 'POST', whole, {
    body: { contents, generationConfig: { responseModalities: ['IMAGE'] } },
  });
  t.equal(heard.status, 200, heard.text);
  t.equal(heard.headers.get('x-gateway-left-out'), 'inlineData');
  t.equal(lastBody().split('filename="image-').length - 1, 16);
  t.notOk(lastBody().includes('first'));
  t.ok(lastBody().includes('last'));
});
