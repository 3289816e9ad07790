import { type Test, test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { inputBody } from '../../support/media/images.js';
import { postJson } from '../../support/post-json.js';
import { errorAnswer, keyOf } from '../../support/routed.js';
import { jsonAnswer, postsTo, type RawRequest, startRawUpstream } from '../../support/upstream.js';

const created = jsonAnswer(200, '{"id":"theirs","object":"video","status":"queued","progress":0}');
const drawn = jsonAnswer(200, '{"created":5,"data":[{"url":"https://x.example/i.png"}]}');
const apiKeys = ['sk-first', 'sk-second'];

interface Plan {
  readonly protocol: 'images' | 'video';
  readonly answers: readonly ((request: RawRequest) => string)[];
  readonly routing?: object;
  /** Settings of the first upstream, and of the first target. */
  readonly first?: object;
  readonly target?: object;
  /** Settings of all upstreams but the first. */
  readonly others?: object;
}

async function start(
  t: Test,
  { protocol, answers, routing = {}, first = {}, others = {}, target = {} }: Plan,
) {
  const upstreams = await Promise.all(
    answers.map((answer) => startRawUpstream(t, (request) => void request.socket.write(answer(request)))),
  );
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        upstreams.map(({ url }, i) => [`u${i}`, { baseUrl: url, apiKeys, ...(i === 0 ? first : others) }]),
      ),
      models: {
        m: {
          protocols: [protocol],
          targets: upstreams.map((_, priority) => ({
            upstream: `u${priority}`,
            priority,
            ...(priority === 0 ? target : {}),
          })),
        },
      },
      config: { routing },
    }),
  });
  const status = async () =>
    protocol === 'video'
      ? (await compat.create(gateway, { model: 'm', prompt: 'a fox' })).status
      : (await ask(gateway, 'POST', '/v1/images/generations', { body: inputBody('m', [{ text: 'a fox' }]) }))
          .status;
  // The gateway asks by itself how tasks stand.
  const counts = () => upstreams.map((each) => postsTo(each).length);
  return { gateway, upstreams, status, counts };
}

const good = { video: created, images: drawn };

for (const protocol of ['images', 'video'] as const) {
  test(`${protocol}: an upstream that refuses is followed by the next, and left alone once it is ill`, async (t) => {
    const { status, counts } = await start(t, {
      protocol,
      answers: [() => errorAnswer(503), () => good[protocol]],
      routing: { failures: 2, openMs: 60_000 },
    });
    for (let i = 0; i < 4; i++) t.equal(await status(), 200);
    t.strictSame(counts(), [2, 4]);
  });

  test(`${protocol}: a key that is refused rests, and the other serves`, async (t) => {
    const { status, counts, upstreams } = await start(t, {
      protocol,
      answers: [
        (request) => (keyOf(request) === 'sk-first' ? errorAnswer(401) : good[protocol]),
        () => good[protocol],
      ],
      routing: { openMs: 60_000 },
    });
    for (let i = 0; i < 20; i++) t.equal(await status(), 200);
    t.strictSame(counts(), [21, 0]);
    t.equal(upstreams[0]?.requests.filter((request) => keyOf(request) === 'sk-first').length, 1);
  });

  test(`${protocol}: when no target is left, 503 says when to come again`, async (t) => {
    const { gateway, status, counts } = await start(t, {
      protocol,
      answers: [() => errorAnswer(429, 'retry-after: 60\r\n'), () => errorAnswer(429, 'retry-after: 60\r\n')],
    });
    t.equal(await status(), 429);
    t.equal(await status(), 503);
    t.strictSame(counts(), [2, 2], 'each key once');
    const { counters } = gateway.gateway.metrics();
    const [, labels] = counters.find(([name]) => name === 'gateway_upstream_attempts_total') ?? [];
    t.strictSame(labels, ['u0/m', 'status_429', 'u1/m', 'status_429']);
  });
}

test('images: an answer that is of no use is a failure, and images may have been made for it', async (t) => {
  for (const useless of ['{"created":5,"data":[]}', 'no JSON']) {
    const { gateway, status, counts } = await start(t, {
      protocol: 'images',
      answers: [() => jsonAnswer(200, useless), () => good.images],
      routing: { failures: 2, openMs: 60_000 },
    });
    for (const due of [502, 502, 200, 200]) t.equal(await status(), due);
    t.strictSame(counts(), [2, 2]);
    const { counters } = gateway.gateway.metrics();
    const [, labels, values] = counters.find(([name]) => name === 'gateway_upstream_attempts_total') ?? [];
    t.strictSame(labels, ['u0/m', 'malformed', 'u1/m', 'ok']);
    t.strictSame(values, [2, 2]);
  }
});

for (const protocol of ['images', 'video'] as const) {
  test(`${protocol}: made once, an answer that does not prove that nothing was made is the last`, async (t) => {
    for (const status of [500, 502, 504, 408, 409]) {
      const { status: created, counts } = await start(t, {
        protocol,
        answers: [() => errorAnswer(status), () => good[protocol]],
      });
      t.equal(await created(), status);
      t.strictSame(counts(), [1, 0], `${status}`);
    }
  });
}

test('a key that may not choose targets is told so, for images and for videos', async (t) => {
  const { gateway, counts } = await start(t, { protocol: 'video', answers: [() => good.video] });
  const answer = await postJson(`${gateway.url}/v1/videos`, '{"model":"m","prompt":"a fox"}', {
    'x-gateway-target': 'u0',
  });
  t.equal(answer.status, 403);
  t.strictSame(counts(), [0]);
});

test('a limit that an upstream tells in a good answer is one: another key or target is asked, and it rests', async (t) => {
  const limits = {
    images: [{ target: { images: 'dashscope' } }, '{"code":"Throttling","message":"slow"}'],
    video: [{ first: { kind: 'vendork' } }, '{"code":1303,"message":"too many","request_id":"r"}'],
  } as const;
  for (const protocol of ['images', 'video'] as const) {
    const [settings, limit] = limits[protocol];
    const keyed = await start(t, {
      protocol,
      answers: [() => jsonAnswer(200, limit), () => good[protocol]],
      ...settings,
    });
    t.equal(await keyed.status(), 200, protocol);
    const used = keyed.upstreams[0]?.requests.map(keyOf) ?? [];
    t.strictSame(used.sort(), apiKeys, 'both keys of the first');
    t.equal(await keyed.status(), 200);
    t.strictSame(keyed.counts(), [2, 2], 'it rests');
  }
});

test('a video upstream that says in a good answer that it is overloaded has failed', async (t) => {
  const { status, counts } = await start(t, {
    protocol: 'video',
    answers: [() => jsonAnswer(200, '{"code":5001,"message":"busy","request_id":"r"}'), () => created],
    first: { kind: 'vendork' },
    routing: { failures: 1, openMs: 60_000 },
  });
  for (let i = 0; i < 3; i++) t.equal(await status(), 200);
  t.strictSame(counts(), [1, 3]);
});

test('what only targets could take that are left alone now is no mistake of the client', async (t) => {
  const cases = {
    // An id of a file means something to the upstream that keeps it.
    images: ['/v1/images/edits', { images: [{ file_id: 'file-1' }] }, { target: { images: 'dashscope' } }],
    video: ['/v1/video/generations', { fps: 2.5 }, { others: { kind: 'generic' } }],
  } as const;
  for (const protocol of ['images', 'video'] as const) {
    const [path, more, settings] = cases[protocol];
    const ill = () => errorAnswer(503);
    const { gateway, counts } = await start(t, {
      protocol,
      answers: [() => good[protocol], ill, ill],
      routing: { failures: 1, openMs: 60_000 },
      ...settings,
    });
    const body = { model: 'm', prompt: 'a fox', ...more };
    t.equal((await ask(gateway, 'POST', path, { body })).status, 503, protocol);
    const asked = counts();
    const heard = await ask(gateway, 'POST', path, { body });
    t.equal(heard.status, 503, heard.text);
    t.match(heard.json, { error: { code: 'overloaded' } });
    t.ok(Number(heard.headers.get('retry-after')) > 0);
    t.strictSame(counts(), asked);
  }
});
