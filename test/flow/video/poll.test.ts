import { setTimeout as after } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { clientFormats, compat, generic, vendork } from '../../support/media/client-formats.js';
import { ask, mediaConfig } from '../../support/media/gateway.js';
import { make, onlyClientsAsk, simulated, startVideos } from '../../support/media/videos.js';
import { simulate } from '../../support/simulator.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { jsonAnswer, type RawRequest, type RawUpstream, startRawUpstream } from '../../support/upstream.js';

const isPoll = ({ head }: RawRequest) => head.startsWith('GET ');
const compatTask = (status: string, more: object = {}) =>
  jsonAnswer(200, JSON.stringify({ id: 'theirs', object: 'video', status, progress: 0, ...more }));

/** A compat upstream whose answers to polls are given, the last one again and again. */
async function upstreamPolled(t: Test, answers: readonly (string | null)[]) {
  let asked = 0;
  const upstream: RawUpstream = await startRawUpstream(t, (request) => {
    if (!isPoll(request)) {
      request.socket.write(compatTask('queued'));
      return;
    }
    const answer = answers[Math.min(asked++, answers.length - 1)] ?? null;
    if (answer === null) request.socket.resetAndDestroy();
    else request.socket.write(answer);
  });
  return { url: upstream.url, polls: () => upstream.requests.filter(isPoll).length };
}

/** A gateway with a model for each of such upstreams, named `m0` and so on. */
function startBefore(t: Test, upstreams: readonly { readonly url: string }[]) {
  const target = (index: number) => ({ upstream: `u${index}`, model: 'real' });
  return startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(upstreams.map(({ url }, index) => [`u${index}`, { baseUrl: url }])),
      models: Object.fromEntries(
        upstreams.map((_, index) => [`m${index}`, { protocols: ['video'], targets: [target(index)] }]),
      ),
    }),
  });
}

/** A gateway with a task at such an upstream. */
async function startPolled(t: Test, answers: readonly (string | null)[]) {
  const upstream = await upstreamPolled(t, answers);
  const gateway = await startBefore(t, [upstream]);
  return { gateway, id: await make(compat, gateway, 'm0', 'a fox'), polls: upstream.polls };
}

test('the time that a poll waits for its upstream is none of the gateway itself', async (t) => {
  onlyClientsAsk(t);
  let heldMs = 0;
  const upstream = await startRawUpstream(t, async (request) => {
    const began = performance.now();
    if (isPoll(request)) await after(300);
    heldMs = performance.now() - began;
    request.socket.write(compatTask('in_progress'));
  });
  const gateway = await startBefore(t, [upstream]);
  const id = await make(compat, gateway, 'm0', 'a fox');
  const began = performance.now();
  const { heard } = await compat.show(gateway, id);
  const wholeMs = performance.now() - began;
  const steps = heard.headers.get('server-timing') ?? '';
  t.match(steps, /^auth;dur=[\d.]+, parse;dur=[\d.]+, own;dur=/);
  const [, own] = /own;dur=([\d.]+)/.exec(steps) ?? [];
  t.ok(Number(own) <= wholeMs - heldMs, `${steps}, ${wholeMs} ms with ${heldMs} ms at the upstream`);
});

test('however many clients ask over two gateways, the upstream is asked once a second', async (t) => {
  const simulator = await simulate(t, { videoPace: { queuedMs: 3_600_000, runningMs: 1 } });
  const options = { ...simulated(simulator), storePath: temporaryFolder(t) };
  const gateways = [
    await startGateway(t, { config: mediaConfig(t, options) }),
    await startGateway(t, { config: mediaConfig(t, options) }),
  ] as const;
  const before = performance.now();
  const ids = await Promise.all(
    ['compat', 'vendork', 'vendorj', 'generic'].map((model) => make(compat, gateways[0], model, 'a')),
  );
  const polls = () => simulator.state().polls;
  let asked = 0;
  // Twenty clients for each task, until the upstream has been asked again and they have asked often.
  await Promise.all(
    Array.from({ length: 20 * ids.length }, async (_, index) => {
      const clientFormat = clientFormats[index % clientFormats.length] ?? compat;
      const gateway = gateways[index % 3 === 0 ? 0 : 1];
      const id = ids[Math.floor(index / 20)] ?? '';
      while (polls() < 3 * ids.length || asked <= 160) {
        const { state } = await clientFormat.show(gateway, id);
        if (state !== 'queued') throw new Error(state);
        asked += 1;
        await after(20);
      }
    }),
  );
  const most = ids.length * (1 + Math.ceil((performance.now() - before) / 1000));
  t.ok(polls() <= most, `${polls()} polls, at most ${most}`);
});

test('a task made on one gateway is read and streamed on another with the same store', async (t) => {
  const simulator = await simulate(t, { videoPace: { queuedMs: 0, runningMs: 0 } });
  const options = { ...simulated(simulator), storePath: temporaryFolder(t) };
  const [one, other] = [
    await startGateway(t, { config: mediaConfig(t, options) }),
    await startGateway(t, { config: mediaConfig(t, options) }),
  ] as const;
  for (const clientFormat of clientFormats) {
    const id = await make(clientFormat, one, clientFormat.format, '[[video:bytes=5000]] a fox');
    await eventually(() => compat.show(other, id), {
      fits: ({ state }) => state === 'completed',
      everyMs: 10,
    });
    t.equal((await clientFormat.show(one, id)).state, 'completed', 'at once, without another poll');
    const bytes = await Promise.all(
      [one, other].map((gateway) => ask(gateway, 'GET', `/v1/videos/${id}/content`)),
    );
    t.equal(bytes[0]?.bytes.length, 5000);
    t.ok(bytes[0]?.bytes.equals(bytes[1]?.bytes as Buffer));
  }
});

test('a task that has ended is not asked for again', async (t) => {
  onlyClientsAsk(t);
  const { gateway, simulator } = await startVideos(t);
  const id = await make(generic, gateway, 'generic', 'a fox');
  await eventually(() => generic.show(gateway, id), {
    fits: ({ state }) => state === 'completed',
    everyMs: 10,
  });
  const { totalRequests } = simulator.state();
  for (const clientFormat of clientFormats) await clientFormat.show(gateway, id);
  t.equal(simulator.state().totalRequests, totalRequests);
});

test('an upstream that fails when it is asked leaves the task as it is known', async (t) => {
  onlyClientsAsk(t);
  const broken = [
    compatTask('in_progress', { progress: 40 }),
    null,
    jsonAnswer(500, '{"error":{"message":"no"}}'),
    jsonAnswer(429, '{}'),
    jsonAnswer(401, '{}'),
    jsonAnswer(302, '{}', 'location: /elsewhere\r\n'),
    jsonAnswer(200, 'not JSON'),
    jsonAnswer(200, '[]'),
    jsonAnswer(200, '{}'),
    jsonAnswer(200, '{"status":7}'),
    jsonAnswer(200, '{"status":"new word"}'),
    'nonsense\r\n\r\n',
    compatTask('queued', { progress: 10 }),
    compatTask('in_progress', { progress: 'NaN' }),
    compatTask('in_progress', { progress: 1e9 }),
    compatTask('in_progress', { progress: -5 }),
    compatTask('completed', { completed_at: 'x', seconds: [], size: 9, progress: 7 }),
  ];
  // Each answer at another upstream and task, after a first one that is good: a second lies between two polls of one
  // task.
  const cases = broken.slice(1);
  const upstreams = await Promise.all(cases.map((answer) => upstreamPolled(t, [broken[0] ?? null, answer])));
  const gateway = await startBefore(t, upstreams);
  await Promise.all(
    cases.map(async (answer, index) => {
      const id = await make(compat, gateway, `m${index}`, 'a fox');
      const polls = () => upstreams[index]?.polls() ?? 0;
      t.match((await compat.show(gateway, id)).heard.json, { status: 'in_progress', progress: 40 });
      const { heard } = await eventually(() => compat.show(gateway, id), {
        fits: () => polls() >= 2,
        everyMs: 10,
      });
      t.equal(heard.status, 200, `${index}: ${heard.text}`);
      const progress = Number((await compat.show(gateway, id)).heard.json.progress);
      const status = String((await compat.show(gateway, id)).heard.json.status);
      const isDone = answer?.includes('completed') ?? false;
      t.equal(status, isDone ? 'completed' : 'in_progress', String(answer));
      t.ok(isDone ? progress === 100 : progress >= 40 && progress < 100, `${progress} ${answer}`);
      for (const clientFormat of clientFormats) {
        const shown = await clientFormat.show(gateway, id);
        t.equal(shown.state, status);
      }
    }),
  );
});

/** What happens from here on happens two minutes later. */
function passMinutes(t: Test): void {
  const { now } = Date;
  t.intercept(Date, 'now', { value: () => now() + 120_000 });
}

test('a 404 of a task that was made just now leaves it as it is known', async (t) => {
  onlyClientsAsk(t);
  for (const answer of [
    jsonAnswer(404, '{"error":{"message":"no such video"}}'),
    jsonAnswer(200, '{"status":"not_found"}'),
  ]) {
    const { gateway, id } = await startPolled(t, [answer]);
    for (const clientFormat of clientFormats)
      t.equal((await clientFormat.show(gateway, id)).state, 'queued', clientFormat.format);
    t.match(await gateway.line(({ error }) => error === 'not_found'), { status: 200, outcome: 'complete' });
  }
});

test('a 404 of something before the upstream leaves the task as it is known', async (t) => {
  onlyClientsAsk(t);
  const page = 'HTTP/1.1 404 X\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\r\n<h1>nginx</h1>';
  const { gateway, id, polls } = await startPolled(t, [page]);
  passMinutes(t);
  for (const clientFormat of clientFormats)
    t.equal((await clientFormat.show(gateway, id)).state, 'queued', clientFormat.format);
  t.ok(polls() > 0);
});

test('an upstream that has forgotten the task ends it, with a code', async (t) => {
  onlyClientsAsk(t);
  const { gateway, id } = await startPolled(t, [jsonAnswer(404, '{"error":{"message":"no such video"}}')]);
  passMinutes(t);
  for (const clientFormat of clientFormats) {
    const { state, heard } = await clientFormat.show(gateway, id);
    t.equal(state, 'failed', clientFormat.format);
    t.match(heard.text, /no longer knows this task/);
  }
  t.match((await compat.show(gateway, id)).heard.json, { error: { code: 'task_lost' } });
  t.equal((await ask(gateway, 'GET', `/v1/videos/${id}/content`)).status, 404);
});

test('vendors that have forgotten a task, each in its own way', async (t) => {
  onlyClientsAsk(t);
  const forgotten = {
    vendorj: jsonAnswer(200, '{"code":10000,"message":"Success","data":{"status":"not_found"}}'),
    vendork: jsonAnswer(404, '{"code":1203,"message":"task not found"}'),
    generic: jsonAnswer(404, '{"error":{"code":"task_not_found","message":"no"}}'),
  };
  const made = {
    vendorj: jsonAnswer(200, '{"code":10000,"data":{"task_id":"t"}}'),
    vendork: jsonAnswer(200, '{"code":0,"data":{"task_id":"t","task_status":"submitted"}}'),
    generic: jsonAnswer(200, '{"task_id":"t","status":"queued"}'),
  };
  const { now } = Date;
  let passed = 0;
  t.intercept(Date, 'now', { value: () => now() + passed });
  for (const kind of ['vendorj', 'vendork', 'generic'] as const) {
    const upstream = await startRawUpstream(t, ({ socket }, index) =>
      socket.write(index === 0 ? made[kind] : forgotten[kind]),
    );
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { kind, baseUrl: upstream.url } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
      }),
    });
    const id = await make(vendork, gateway, 'm', 'a fox');
    passed += 120_000;
    t.match(
      (await compat.show(gateway, id)).heard.json,
      { status: 'failed', error: { code: 'task_lost' } },
      kind,
    );
  }
});

test('a task is asked for with the key that made it, and with another one when that is gone', async (t) => {
  onlyClientsAsk(t);
  const upstream = await startRawUpstream(t, () => compatTask('queued'));
  const storePath = temporaryFolder(t);
  const options = (apiKeys: readonly string[]) => ({
    upstreams: { u: { baseUrl: upstream.url, apiKeys } },
    models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
    storePath,
  });
  const keyOf = (request: RawRequest | undefined) =>
    /authorization: Bearer (.*)/.exec(request?.head ?? '')?.[1]?.trim();
  const two = await startGateway(t, { config: mediaConfig(t, options(['key-a', 'key-b'])) });
  for (let round = 0; round < 8; round++) {
    const id = await make(compat, two, 'm', 'a fox');
    const maker = keyOf(upstream.requests.at(-1));
    await compat.show(two, id);
    t.equal(keyOf(upstream.requests.at(-1)), maker);
  }
  const id = await make(compat, two, 'm', 'a fox');
  const later = await startGateway(t, { config: mediaConfig(t, options(['key-c'])) });
  await compat.show(later, id);
  t.match(upstream.requests.at(-1)?.head, /^GET .*\/theirs /);
  t.equal(keyOf(upstream.requests.at(-1)), 'key-c');
});

test('a task that another key does not see is not lost', async (t) => {
  onlyClientsAsk(t);
  const upstream = await startRawUpstream(t, (request) => {
    const isSeen = !isPoll(request) || /Bearer key-a/.test(request.head);
    request.socket.write(isSeen ? compatTask('queued') : jsonAnswer(404, '{"error":{"message":"no"}}'));
  });
  const storePath = temporaryFolder(t);
  const start = (apiKey: string) =>
    startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { baseUrl: upstream.url, apiKeys: [apiKey] } },
        models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
        storePath,
      }),
    });
  const [before, after] = [await start('key-a'), await start('key-b')];
  const id = await make(compat, before, 'm', 'a fox');
  passMinutes(t);
  t.equal((await compat.show(after, id)).state, 'queued');
  t.match(await after.line(({ error }) => error === 'not_found'), { status: 200 });
});

test('a task whose upstream or model the config has no more can still be read', async (t) => {
  onlyClientsAsk(t);
  const { simulator } = await startVideos(t);
  const storePath = temporaryFolder(t);
  const all = { ...simulated(simulator), storePath };
  const before = await startGateway(t, { config: mediaConfig(t, all) });
  const id = await make(compat, before, 'generic', '[[video:bytes=100]] a fox');
  const { generic: upstream, ...upstreams } = all.upstreams;
  const { generic: model, ...models } = all.models;
  t.ok(upstream && model);
  const after = await startGateway(t, { config: mediaConfig(t, { upstreams, models, storePath }) });
  for (const clientFormat of clientFormats) t.equal((await clientFormat.show(after, id)).state, 'queued');
  await eventually(() => compat.show(before, id), {
    fits: ({ state }) => state === 'completed',
    everyMs: 10,
  });
  for (const clientFormat of clientFormats) t.equal((await clientFormat.show(after, id)).state, 'completed');
  const content = await ask(after, 'GET', `/v1/videos/${id}/content`);
  t.equal(content.status, 404);
  t.match(content.json, { error: { code: 'not_found', message: /no longer configured/ } });
});

test('a client that leaves while the upstream is asked ends that, and the next one gets further', async (t) => {
  onlyClientsAsk(t);
  const held: RawRequest[] = [];
  const upstream = await startRawUpstream(t, (request) => {
    if (!isPoll(request)) request.socket.write(compatTask('queued'));
    else if (held.push(request) > 1) request.socket.write(compatTask('in_progress', { progress: 50 }));
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url } },
      models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }] } },
    }),
  });
  const id = await make(compat, gateway, 'm', 'a fox');
  const leaving = new AbortController();
  const left = compat.show(gateway, id, { signal: leaving.signal });
  await eventually(() => held.length, { fits: (count) => count === 1, everyMs: 10 });
  leaving.abort();
  await t.rejects(left);
  await eventually(() => upstream.sockets.has(held[0]?.socket as never), {
    fits: (open) => !open,
    everyMs: 10,
  });
  const { heard } = await eventually(() => compat.show(gateway, id), {
    fits: ({ state }) => state === 'in_progress',
    everyMs: 10,
  });
  t.match(heard.json, { progress: 50 });
  t.match(await gateway.line(({ outcome }) => outcome === 'client_gone'), { method: 'GET' });
});
