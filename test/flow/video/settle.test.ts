import { type Test, test } from 'tap';
import { costOf, givenBackOf } from '../../support/cost.js';
import { eventually } from '../../support/eventually.js';
import { type RunningGateway, startGateway } from '../../support/gateway.js';
import { ask, type Heard, mediaConfig } from '../../support/media/gateway.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { jsonAnswer, type RawRequest, startRawUpstream } from '../../support/upstream.js';

const second = 100_000_000;
/** What a task of four seconds is charged, in nano-dollars. */
const ofFour = 1_400_000_000;
const isPoll = ({ head }: RawRequest) => head.startsWith('GET ');
const task = (status: string, more: object = {}) =>
  jsonAnswer(200, JSON.stringify({ id: 'theirs', object: 'video', status, progress: 0, ...more }));

interface Stage {
  /** What the upstream says of tasks from now on. */
  polled: string;
  polls(): number;
  readonly gateways: readonly RunningGateway[];
  create(gateway?: RunningGateway): Promise<Heard>;
  givenBack(): number;
  cost(): number;
}

/** Gateways over one store, the last of them with a newer price, and an upstream that tells how tasks stand. */
async function start(
  t: Test,
  { created = task('queued'), gateways = 1, latestPerSecond = 0.1 } = {},
): Promise<Stage> {
  const storePath = temporaryFolder(t);
  const upstream = await startRawUpstream(t, (request) => {
    request.socket.write(isPoll(request) ? stage.polled : created);
  });
  const configOf = (perSecond: number) =>
    mediaConfig(t, {
      storePath,
      upstreams: { u: { baseUrl: upstream.url } },
      models: {
        m: {
          protocols: ['video'],
          targets: [{ upstream: 'u', model: 'real' }],
          price: { perCall: 1, perSecond },
        },
      },
    });
  const all: RunningGateway[] = [];
  for (let i = 0; i < gateways; i++)
    all.push(await startGateway(t, { config: configOf(i < gateways - 1 ? 0.1 : latestPerSecond) }));
  const [first] = all as [RunningGateway];
  const sum = (of: (gateway: RunningGateway) => number) => all.reduce((total, each) => total + of(each), 0);
  const stage: Stage = {
    polled: task('queued'),
    polls: () => upstream.requests.filter(isPoll).length,
    gateways: all,
    create: (gateway = first) =>
      ask(gateway, 'POST', '/v1/videos', { body: { model: 'm', prompt: 'a', seconds: '4' } }),
    givenBack: () => sum(givenBackOf),
    cost: () => sum(costOf),
  };
  return stage;
}

test('a task ends though nobody asks how it stands, and a video that is shorter than it was to be costs less', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create()).status, 200);
  t.equal(stage.cost(), ofFour);
  stage.polled = task('completed', { seconds: '2.04' });
  await eventually(() => stage.givenBack() > 0);
  t.equal(stage.givenBack(), 2 * second);
  t.equal(stage.cost(), ofFour);
});

test('a video that is longer than it was to be costs more', async (t) => {
  const stage = await start(t);
  t.equal((await stage.create()).status, 200);
  stage.polled = task('completed', { seconds: '7' });
  await eventually(() => stage.cost() > ofFour);
  t.equal(stage.cost(), ofFour + 3 * second);
  t.equal(stage.givenBack(), 0);
});

test('a task is put right at the price at which it was made', async (t) => {
  const stage = await start(t, { gateways: 2, latestPerSecond: 1 });
  const [first, latest] = stage.gateways as [RunningGateway, RunningGateway];
  t.equal((await stage.create(first)).status, 200);
  await first.gateway.close();
  stage.polled = task('completed', { seconds: '2' });
  await eventually(() => givenBackOf(latest) > 0);
  t.equal(givenBackOf(latest), 2 * second);
});

test('a length that no video has is not believed', async (t) => {
  const stage = await start(t);
  const lengths = [5000, 1e306, '1e306', 1e15];
  for (const seconds of lengths) {
    stage.polled = task('completed', { seconds });
    const made = await stage.create();
    const show = () => ask(stage.gateways[0] as RunningGateway, 'GET', `/v1/videos/${made.json.id}`);
    await eventually(async () => (await show()).json.status === 'completed');
  }
  t.equal(stage.cost(), lengths.length * ofFour);
  t.equal(stage.givenBack(), 0);
});

test('a task that has failed when it is made costs nothing', async (t) => {
  const stage = await start(t, { created: task('failed', { error: { code: 'c', message: 'no' } }) });
  t.equal((await stage.create()).status, 200);
  await eventually(() => stage.givenBack() > 0);
  t.equal(stage.givenBack(), stage.cost());
});

test('however many gateways and clients see a task end, what it was charged is given back once', async (t) => {
  const stage = await start(t, { gateways: 3 });
  const [first, ...others] = stage.gateways as [RunningGateway, ...RunningGateway[]];
  const began = performance.now();
  const made = await stage.create();
  await eventually(() => stage.polls() > 0);
  stage.polled = task('failed', { error: { code: 'c', message: 'no' } });
  const isEnded = async (gateway: RunningGateway) =>
    (await ask(gateway, 'GET', `/v1/videos/${made.json.id}`)).json.status === 'failed';
  await Promise.all([first, ...others].map((gateway) => eventually(() => isEnded(gateway))));
  await eventually(() => stage.givenBack() > 0);
  const polls = stage.polls();
  t.ok(polls <= 1 + Math.ceil((performance.now() - began) / 1000), `${polls} polls`);
  // Whoever looks at it next finds that it has ended.
  await Promise.all([first, ...others].map((gateway) => eventually(() => isEnded(gateway))));
  t.equal(stage.givenBack(), ofFour);
});

test('a task is brought to its end by others when the gateway that has made it is gone', async (t) => {
  const stage = await start(t, { gateways: 2 });
  const [first, second] = stage.gateways as [RunningGateway, RunningGateway];
  t.equal((await stage.create(first)).status, 200);
  await first.gateway.close();
  stage.polled = task('failed', { error: { code: 'c', message: 'no' } });
  await eventually(() => givenBackOf(second) > 0);
  t.equal(givenBackOf(second), ofFour);
});

/** A gateway with models of two upstreams: of `good`, each task has failed when it is asked about. */
async function startTwo(t: Test, other: string) {
  const good = await startRawUpstream(t, (request) => {
    request.socket.write(
      isPoll(request) ? task('failed', { error: { code: 'c', message: 'no' } }) : task('queued'),
    );
  });
  const modelOf = (upstream: string) => ({
    protocols: ['video'],
    targets: [{ upstream, model: 'real' }],
    price: { perCall: 1, perSecond: 0.1 },
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      storePath: temporaryFolder(t),
      upstreams: { other: { baseUrl: other }, good: { baseUrl: good.url } },
      models: { other: modelOf('other'), good: modelOf('good') },
    }),
  });
  const create = (model: string) =>
    ask(gateway, 'POST', '/v1/videos', { body: { model, prompt: 'a', seconds: '4' } });
  return { gateway, create };
}

test('an upstream that does not say how its tasks stand is asked about few at once, and holds up no other', async (t) => {
  let open = 0;
  let mostOpen = 0;
  let created = 0;
  const silent = await startRawUpstream(t, (request) => {
    const { socket } = request;
    if (isPoll(request)) {
      mostOpen = Math.max(mostOpen, ++open);
      socket.once('close', () => open--);
    } else socket.write(task('queued', { id: `theirs-${++created}` }));
  });
  const { gateway, create } = await startTwo(t, silent.url);
  const made = await Promise.all(Array.from({ length: 24 }, () => create('other')));
  t.ok(made.every(({ status }) => status === 200));
  await eventually(() => open >= 4);
  t.equal((await create('good')).status, 200);
  await eventually(() => givenBackOf(gateway) > 0);
  t.equal(givenBackOf(gateway), ofFour);
  t.equal(mostOpen, 4);
});

test('an upstream that says when it wants to be asked again is not asked about its other tasks before', async (t) => {
  let polls = 0;
  const body = JSON.stringify({ error: { message: 'slow down', type: 'rate_limit_error' } });
  const limited = await startRawUpstream(t, (request) => {
    if (isPoll(request)) polls++;
    request.socket.write(isPoll(request) ? jsonAnswer(429, body, 'retry-after: 3600\r\n') : task('queued'));
  });
  const { gateway, create } = await startTwo(t, limited.url);
  await create('other');
  await eventually(() => polls > 0);
  t.equal((await create('other')).status, 200);
  // Two rounds: the first has come by the other task when the second has begun.
  await create('good');
  await eventually(() => givenBackOf(gateway) === ofFour);
  await create('good');
  await eventually(() => givenBackOf(gateway) === 2 * ofFour);
  t.equal(polls, 1);
});
