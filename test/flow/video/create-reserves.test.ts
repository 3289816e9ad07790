import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';

const price = {
  perSecond: 0.1,
  seconds: Object.entries({ '480p': 0.05, '1080p': 1, pro: 2 }).map(([resolution, usd]) => ({
    resolution,
    usd,
  })),
};

/** How many of three calls at once are answered with each status, in a budget of 6 dollars. */
async function three(t: Test, kinds: readonly string[], path: string, body: object): Promise<object> {
  const waiting: (() => void)[] = [];
  const upstream = await startRawUpstream(t, ({ socket }) => {
    const answer = {
      code: 0,
      id: 'theirs',
      task_id: 'theirs',
      status: 'queued',
      data: { task_id: 'theirs' },
    };
    waiting.push(() => socket.write(jsonAnswer(200, JSON.stringify(answer))));
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        kinds.map((kind) => [
          kind,
          { kind, baseUrl: kind === 'vendork' ? upstream.url.replace(/\/v1$/, '') : upstream.url },
        ]),
      ),
      models: {
        v: {
          protocols: ['video'],
          targets: kinds.map((upstream, priority) => ({ upstream, model: 'v', priority })),
          price,
        },
      },
      config: {
        groups: {
          default: { models: ['*'], budget: { usd: 6, per: 'month' } },
          strangers: { models: ['*'] },
        },
      },
    }),
  });
  const statuses: number[] = [];
  const calls = [1, 2, 3].map(async () => {
    statuses.push((await ask(gateway, 'POST', path, { body: { model: 'v', prompt: 'a', ...body } })).status);
  });
  await eventually(() => waiting.length + statuses.length >= 3);
  for (const answer of waiting) answer();
  await Promise.all(calls);
  return { served: statuses.filter((status) => status === 200).length, statuses: statuses.sort() };
}

const generic = '/v1/video/generations';
const large = { width: 1920, height: 1080, duration: 5 };

test('a video reserves of its budget what it costs at its upstream, not in the words of its client', async (t) => {
  t.match(await three(t, ['chat'], generic, { ...large, resolution: '480p' }), { statuses: [200, 429, 429] });
  const named = { resolution: '480p', duration: 3, metadata: { mode: 'pro' } };
  t.match(await three(t, ['vendork'], generic, named), { statuses: [200, 429, 429] });
  const sized = { size: '1920x1080', seconds: '5' };
  t.match(await three(t, ['vendork'], '/v1/videos', sized), { served: 3 }, 'which has no size');
});

test('and the most that it costs at any of its targets, but not at one that cannot make it', async (t) => {
  t.match(await three(t, ['generic', 'chat'], generic, { ...large, resolution: '480p' }), {
    statuses: [200, 429, 429],
  });
  const shapeless = { resolution: '480p', duration: 5, metadata: { aspect_ratio: 'auto' } };
  t.match(await three(t, ['generic', 'chat'], generic, shapeless), { served: 3 });
});
