import { type Test, test } from 'tap';
import { timingLine } from '../../../src/flow/answer/lines.js';
import type { Call } from '../../../src/flow/call.js';
import { startGateway } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { ask, type Heard, mediaConfig } from '../../support/media/gateway.js';
import { inputBody, png } from '../../support/media/images.js';
import { onlyClientsAsk } from '../../support/media/videos.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';

const images = jsonAnswer(200, JSON.stringify({ data: [{ b64_json: png.toString('base64') }] }));
const task = jsonAnswer(
  200,
  JSON.stringify({ id: 'theirs', object: 'video', status: 'queued', progress: 0 }),
);
const refusal = jsonAnswer(400, JSON.stringify({ error: { message: 'No foxes.', type: 'x' } }));

async function start(t: Test, answer: string) {
  const upstream = await startRawUpstream(t, () => answer);
  return startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url } },
      models: { m: { protocols: ['images', 'video'], targets: [{ upstream: 'u', model: 'gpt-image-1' }] } },
    }),
  });
}

const stepsOf = ({ headers }: Heard): string[] =>
  (headers.get('server-timing') ?? '').split(', ').map((step) => step.replace(/;.*/, ''));
const everyStep = ['auth', 'parse', 'queue', 'upstream', 'own'];

test('converted images have the time of every step in server-timing, refused ones too', async (t) => {
  const bodies = [
    { model: 'm', prompt: 'a fox', response_format: 'url' },
    inputBody('m', [{ text: 'a fox' }]),
  ];
  for (const [answer, status] of [
    [images, 200],
    [refusal, 400],
  ] as const) {
    const gateway = await start(t, answer);
    for (const body of bodies) {
      const heard = await ask(gateway, 'POST', '/v1/images/generations', { body });
      t.equal(heard.status, status, heard.text);
      t.strictSame(stepsOf(heard), everyStep);
    }
  }
});

test('so has the creation of a video, and its poll all but that of a validation', async (t) => {
  onlyClientsAsk(t);
  const gateway = await start(t, task);
  const created = await compat.create(gateway, { model: 'm', prompt: 'a fox' });
  t.equal(created.status, 200, created.text);
  t.strictSame(stepsOf(created), everyStep);
  const { heard } = await compat.show(gateway, compat.idOf(created));
  t.strictSame(stepsOf(heard), ['auth', 'queue', 'upstream', 'own']);
  const refusing = await start(t, refusal);
  t.strictSame(stepsOf(await compat.create(refusing, { model: 'm', prompt: 'a fox' })), everyStep);
});

test('where nothing answers, the steps are those that have happened', async (t) => {
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: 'http://127.0.0.1:1/v1' } },
      models: { m: { protocols: ['images'], targets: [{ upstream: 'u', model: 'm' }] } },
    }),
  });
  const body = inputBody('m', [{ text: 'a fox' }]);
  const heard = await ask(gateway, 'POST', '/v1/images/generations', { body });
  t.equal(heard.status, 502);
  t.strictSame(stepsOf(heard), ['auth', 'parse', 'own']);
});

test('of a call without a body, the wait for a connection counts from its authentication', (t) => {
  const times = { startedAt: 1, authenticatedAt: 3, bodyAt: 3, validatedAt: 0, sentAt: 7, answeredAt: 15 };
  t.match(
    timingLine(times as unknown as Call),
    'auth;dur=2.000, queue;dur=4.000, upstream;dur=8.000, own;dur=',
  );
  t.end();
});
