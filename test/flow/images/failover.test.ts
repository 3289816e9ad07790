import { type Test, test } from 'tap';
import { costOf } from '../../support/cost.js';
import { countersOf } from '../../support/counters.js';
import { eventually } from '../../support/eventually.js';
import { ownAddress } from '../../support/free-port.js';
import { startGateway } from '../../support/gateway.js';
import { ask, type Heard, mediaConfig } from '../../support/media/gateway.js';
import { png } from '../../support/media/images.js';
import { open, readAnswer } from '../../support/raw-client.js';
import { errorAnswer } from '../../support/routed.js';
import { postBytes } from '../../support/translated.js';
import {
  type Answer,
  chunk,
  jsonAnswer,
  lastChunk,
  type RawUpstream,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

const base64 = png.toString('base64');
const inline = { inlineData: { mimeType: 'image/png', data: base64 } };
const whole = '/v1beta/models/m:generateContent';
const streamed = '/v1beta/models/m:streamGenerateContent?alt=sse';
const arrayed = '/v1beta/models/m:streamGenerateContent';
const paths = [whole, streamed, arrayed];

const body = {
  contents: [{ role: 'user', parts: [{ text: 'a fox' }] }],
  generationConfig: {
    responseModalities: ['TEXT', 'IMAGE'],
    candidateCount: 2,
    topK: 3,
    imageConfig: { aspectRatio: '16:9' },
  },
};

/** What the native target answers: it tells itself by its words. */
const drawnText = JSON.stringify({
  candidates: [
    { content: { role: 'model', parts: [{ text: 'native' }, inline] }, finishReason: 'STOP', index: 0 },
  ],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 20, totalTokenCount: 30 },
});
/** The same as a client has asked for it. */
const drawn: Answer = ({ head }) =>
  head.includes(':streamGenerateContent')
    ? streamHead + chunk(`data: ${drawnText}\n\n`) + lastChunk
    : jsonAnswer(200, drawnText);
const made = jsonAnswer(
  200,
  JSON.stringify({
    created: 5,
    data: [{ b64_json: base64 }, { b64_json: base64 }],
    usage: { input_tokens: 3, output_tokens: 4 },
  }),
);
const silent: Answer = () => {};

type Kind = 'native' | 'images';
const kinds = ['native', 'images'] as const;
const other = (kind: Kind): Kind => (kind === 'native' ? 'images' : 'native');
const good: Readonly<Record<Kind, Answer>> = { native: drawn, images: made };
/** In nano-dollars: tokens at 1 and 2 USD for a million, and 1 USD for the call, or for each image. */
const costs: Readonly<Record<Kind, number>> = {
  native: 1_000_000_000 + 10 * 1000 + 20 * 2000,
  images: 2_000_000_000 + 3 * 1000 + 4 * 2000,
};

interface Stage {
  readonly first: Kind;
  readonly answers: Partial<Record<Kind, Answer>>;
  /** Of a model. */
  readonly model?: Record<string, unknown>;
  /** Of the config. */
  readonly config?: Record<string, unknown>;
}

/** A gateway whose model has a target of each kind. */
async function start(t: Test, { first, answers, model = {}, config = {} }: Stage) {
  const upstreams = {
    native: await startRawUpstream(t, answers.native ?? good.native, { host: ownAddress }),
    images: await startRawUpstream(t, answers.images ?? good.images, { host: ownAddress }),
  };
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: {
        native: { kind: 'generateContent', baseUrl: upstreams.native.url },
        images: { kind: 'chat', baseUrl: upstreams.images.url },
      },
      models: {
        m: {
          protocols: ['generateContent'],
          targets: [
            { upstream: 'native', model: 'real', priority: first === 'native' ? 0 : 1 },
            { upstream: 'images', model: 'real', priority: first === 'images' ? 0 : 1, images: 'openai' },
          ],
          price: { input: 1, output: 2, perCall: 1 },
          ...model,
        },
      },
      config: { routing: { retries: 0, failures: 1000, failureRate: 1 }, ...config },
    }),
  });
  const counts = () => kinds.map((kind) => upstreams[kind].requests.length);
  return { gateway, upstreams, counts };
}

/** How many times each kind of target was asked. */
const asked = (...of: Kind[]): number[] => kinds.map((kind) => of.filter((each) => each === kind).length);

const candidates = [0, 1].map((index) => ({
  content: { role: 'model', parts: [inline] },
  finishReason: 'STOP',
  index,
}));

/** The only event of an answer. */
function eventOf(path: string, { text }: Pick<Heard, 'text'>): Record<string, unknown> {
  if (path === whole) return JSON.parse(text);
  return path === arrayed
    ? JSON.parse(text)[0]
    : JSON.parse(text.slice(text.indexOf('data: ') + 'data: '.length));
}

/** The error that a client is told, in the form of its protocol. */
function errorOf(path: string, { text }: Pick<Heard, 'text'>): unknown {
  return path === arrayed && text.startsWith('[') ? JSON.parse(text)[0] : JSON.parse(text);
}

function checkRequest(t: Test, kind: Kind, upstream: RawUpstream): void {
  const { head, body: sent } = upstream.requests.at(-1) ?? { head: '', body: '' };
  if (kind === 'native') {
    t.match(head, /^POST \/v1\/models\/real:(?:streamG|g)enerateContent/);
    t.equal(sent.toString(), JSON.stringify(body), 'as it came');
    return;
  }
  t.match(head, /^POST \/v1\/images\/generations HTTP/);
  t.strictSame(JSON.parse(sent.toString()), { model: 'real', prompt: 'a fox', n: 2, size: '1536x1024' });
}

function checkAnswer(t: Test, kind: Kind, path: string, heard: Heard): void {
  t.equal(heard.status, 200, heard.text);
  const event = eventOf(path, heard);
  t.equal(heard.headers.get('x-gateway-path'), kind === 'native' ? 'exact' : 'translated');
  t.equal(
    heard.headers.get('x-gateway-left-out'),
    kind === 'native' ? null : 'generationConfig.topK, generationConfig.imageConfig.aspectRatio',
  );
  if (kind === 'native') t.strictSame(event, JSON.parse(drawnText));
  else
    t.match(event, {
      candidates,
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
      modelVersion: 'm',
    });
}

for (const first of kinds) {
  const second = other(first);

  test(`the ${first} target is asked first where it comes first, in its own form`, async (t) => {
    const { gateway, upstreams, counts } = await start(t, { first, answers: {} });
    const heard = await ask(gateway, 'POST', whole, { body });
    checkAnswer(t, first, whole, heard);
    checkRequest(t, first, upstreams[first]);
    t.strictSame(counts(), asked(first));
    t.match(await gateway.line(({ msg }) => msg === 'request'), { target: `${first}/real`, retries: 0 });
    t.equal(costOf(gateway), costs[first]);
  });

  for (const path of paths)
    test(`a limit of the ${first} target sends ${path} to the ${second} one, which alone is charged`, async (t) => {
      const { gateway, upstreams, counts } = await start(t, {
        first,
        answers: { [first]: errorAnswer(429) },
      });
      const heard = await ask(gateway, 'POST', path, { body });
      checkAnswer(t, second, path, heard);
      checkRequest(t, first, upstreams[first]);
      checkRequest(t, second, upstreams[second]);
      t.strictSame(counts(), [1, 1]);
      const lines = await gateway.linesUntil(heard.headers.get('x-request-id') ?? '');
      t.equal(lines.length, 1);
      t.match(lines[0], {
        target: `${second}/real`,
        retries: 1,
        outcome: 'complete',
        inputTokens: second === 'native' ? 10 : 3,
        outputTokens: second === 'native' ? 20 : 4,
      });
      t.equal(costOf(gateway), costs[second]);
      t.strictSame(countersOf(gateway, 'gateway_upstream_attempts_total'), {
        [`${first}/real status_429`]: 1,
        [`${second}/real ok`]: 1,
      });
    });

  test(`unreached, the ${first} target is passed over for the ${second} one`, async (t) => {
    const { gateway, upstreams, counts } = await start(t, { first, answers: {} });
    await upstreams[first].close();
    const heard = await ask(gateway, 'POST', whole, { body });
    checkAnswer(t, second, whole, heard);
    t.strictSame(counts(), asked(second));
    t.equal(costOf(gateway), costs[second]);
  });

  test(`after what the ${first} target may have made images for, the ${second} one is not asked`, async (t) => {
    const failures: readonly (readonly [Answer, number, string])[] = [
      [errorAnswer(500), 500, 'INTERNAL'],
      [({ socket }) => void socket.resetAndDestroy(), 502, 'INTERNAL'],
      [silent, 504, 'DEADLINE_EXCEEDED'],
    ];
    for (const [failure, code, status] of failures) {
      const { gateway, counts } = await start(t, {
        first,
        answers: { [first]: failure },
        config: { timeouts: { firstByteMs: failure === silent ? 200 : 60_000 } },
      });
      const heard = await ask(gateway, 'POST', whole, { body });
      t.equal(heard.status, code);
      // What an upstream of the client's own protocol says passes as it came.
      if (first === 'native' && code === 500) t.match(heard.text, 'own_500');
      else t.match(heard.json, { error: { code, status } }, heard.text);
      t.strictSame(counts(), asked(first));
      t.equal(costOf(gateway), 0);
    }
  });

  test(`when the ${second} target fails, too, its error is told in the words of the client`, async (t) => {
    for (const path of paths) {
      const { gateway, counts } = await start(t, {
        first,
        answers: { [first]: errorAnswer(429), [second]: errorAnswer(429, 'retry-after: 7\r\n') },
      });
      const heard = await ask(gateway, 'POST', path, { body });
      t.equal(heard.status, 429);
      t.match(errorOf(path, heard), { error: { message: 'from the upstream' } });
      if (second === 'images') t.match(errorOf(path, heard), { error: { status: 'RESOURCE_EXHAUSTED' } });
      t.equal(heard.headers.get('retry-after'), '7');
      t.strictSame(counts(), [1, 1]);
      t.equal(costOf(gateway), 0);
    }
  });

  test(`after keep-alives a stream goes from the ${first} target to the ${second} one`, async (t) => {
    for (const path of [streamed, arrayed]) {
      const { gateway, counts } = await start(t, {
        first,
        answers: { [first]: holding(errorAnswer(429)) },
        config: { timeouts: { keepAliveMs: 1 } },
      });
      const { head, text } = await askAlive(gateway.port, path);
      t.match(head, /^HTTP\/1.1 200 /);
      t.match(eventOf(path, { text }), second === 'native' ? JSON.parse(drawnText) : { candidates }, text);
      t.strictSame(counts(), [1, 1]);
      t.match(await gateway.line(({ msg }) => msg === 'request'), { retries: 1, outcome: 'complete' });
      t.equal(costOf(gateway), costs[second]);
    }
  });

  test(`after keep-alives the error of the ${second} target ends the stream`, async (t) => {
    for (const path of [streamed, arrayed]) {
      const { gateway, counts } = await start(t, {
        first,
        answers: { [first]: holding(errorAnswer(429)), [second]: errorAnswer(422) },
        config: { timeouts: { keepAliveMs: 1 } },
      });
      const { text } = await askAlive(gateway.port, path);
      t.match(eventOf(path, { text }), { error: { message: 'from the upstream' } }, text);
      t.strictSame(counts(), [1, 1]);
      t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
      t.equal(costOf(gateway), 0);
    }
  });

  test(`a client that leaves ends the request to the ${second} target, the second`, async (t) => {
    const { gateway, upstreams } = await start(t, {
      first,
      answers: { [first]: errorAnswer(429), [second]: silent },
    });
    const socket = await open(gateway.port, postBytes(whole, body));
    await upstreams[second].request(0);
    socket.destroy();
    await eventually(() => upstreams[second].sockets.size === 0);
    t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'client_gone' });
  });
}

/** Answers when the client has had keep-alives for sure. */
function holding(answer: string): Answer {
  return ({ socket }) => void held.add(() => socket.write(answer));
}

const held = new Set<() => void>();

/** Asks for a stream, and lets the upstream that holds its answer give it once there was a keep-alive. */
async function askAlive(
  port: number,
  path: string,
): Promise<{ readonly head: string; readonly text: string }> {
  const socket = await open(port, postBytes(path, body));
  let alive = false;
  socket.on('data', () => {
    alive = true;
  });
  const answer = readAnswer(socket);
  await eventually(() => alive && held.size > 0);
  for (const give of held) give();
  held.clear();
  const { head, body: text } = await answer;
  socket.destroy();
  return { head, text };
}

/** No image can be made of it at an endpoint for images. */
const spoken = {
  ...body,
  contents: [
    { role: 'user', parts: [{ text: 'a fox' }, { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } }] },
  ],
};

test('what only the native target can be told goes there, and its error is not taken for a mistake of the client', async (t) => {
  for (const first of kinds) {
    const { gateway, upstreams, counts } = await start(t, { first, answers: {} });
    const heard = await ask(gateway, 'POST', whole, { body: spoken });
    t.strictSame(heard.json, JSON.parse(drawnText), heard.text);
    t.strictSame(counts(), asked('native'));
    t.equal(costOf(gateway), costs.native);
    upstreams.native.answer = errorAnswer(429, 'retry-after: 30\r\n');
    const limited = await ask(gateway, 'POST', whole, { body: spoken });
    t.equal(limited.status, 429);
    t.match(limited.json, { error: { message: 'from the upstream' } }, limited.text);
    // It is left alone now for what another one can be told, and asked for what it alone can.
    const again = await ask(gateway, 'POST', whole, { body: spoken });
    t.equal(again.status, 429, again.text);
    t.strictSame(counts(), asked('native', 'native', 'native'));
    const drawing = await ask(gateway, 'POST', whole, { body });
    t.match(drawing.json, { candidates }, drawing.text);
    t.strictSame(counts(), asked('native', 'native', 'native', 'images'));
  }
});

test('images are not asked for at two targets at once', async (t) => {
  const { imageConfig } = body.generationConfig;
  const later: Answer = ({ socket }) => void setTimeout(() => socket.write(jsonAnswer(200, drawnText)), 100);
  for (const generationConfig of [body.generationConfig, { imageConfig }]) {
    const { gateway, counts } = await start(t, {
      first: 'native',
      answers: { native: later },
      model: { hedgeMs: 1 },
    });
    const heard = await ask(gateway, 'POST', whole, { body: { ...body, generationConfig } });
    t.strictSame(heard.json, JSON.parse(drawnText), heard.text);
    t.strictSame(counts(), asked('native'));
  }
});

test('a text stays a text, and is not asked of an endpoint for images', async (t) => {
  const { contents } = body;
  for (const first of kinds) {
    const completion = {
      choices: [{ message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    };
    const { gateway, upstreams } = await start(t, {
      first,
      answers: { native: errorAnswer(429), images: jsonAnswer(200, JSON.stringify(completion)) },
    });
    const heard = await ask(gateway, 'POST', whole, { body: { contents } });
    t.match(heard.json, { candidates: [{ content: { parts: [{ text: 'hi' }] } }] }, heard.text);
    t.match(upstreams.images.requests[0]?.head, /^POST \/v1\/chat\/completions HTTP/);
  }
});

test('images that are made and cannot be fetched are not charged, in a stream that has begun either', async (t) => {
  const lost = jsonAnswer(200, JSON.stringify({ data: [{ url: 'http://127.0.0.1:1/a.png' }] }));
  const { gateway, counts } = await start(t, {
    first: 'images',
    answers: { images: holding(lost) },
    config: { timeouts: { keepAliveMs: 1 } },
  });
  const { text } = await askAlive(gateway.port, streamed);
  t.match(eventOf(streamed, { text }), { error: { code: 502 } }, text);
  t.strictSame(counts(), asked('images'));
  t.match(await gateway.line(({ msg }) => msg === 'request'), { outcome: 'upstream_error' });
  t.equal(costOf(gateway), 0);
});
