import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import { type Test, test } from 'tap';
import { startAdmin } from '../../src/admin/listener.js';
import { type TaskStore, taskRoutes } from '../../src/admin/tasks.js';
import { writeTask } from '../../src/video/book.js';
import type { VideoTask } from '../../src/video/task.js';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { openStores } from '../support/tasks/store.js';
import { sampleTask } from '../video/samples.js';

const token = 'a-token-of-operators';
const tokens = { token, readToken: null, metricsToken: null };
const headers = { authorization: `Bearer ${token}` };
const hourMs = 3_600_000;

interface TaskList {
  readonly tasks: readonly Readonly<Record<string, unknown>>[];
  readonly next: string | null;
}

async function startList(t: Test, store: TaskStore) {
  const routes = taskRoutes(store);
  const listener = await startAdmin(
    { host: '127.0.0.1', port: 0 },
    () => tokens,
    routes,
    pino({ level: 'silent' }),
  );
  t.teardown(() => listener.close());
  return (query = '') => fetch(`http://127.0.0.1:${listener.port}/tasks${query}`, { headers });
}

/** Made so many hours ago, with the same time to live as all others. */
function madeBefore(hours: number, changes: Partial<VideoTask> = {}): VideoTask {
  const createdAt = Date.now() - hours * hourMs;
  return sampleTask({
    id: `video_${hours}`,
    createdAt,
    updatedAt: createdAt + 1000,
    expiresAt: createdAt + 100 * hourMs,
    ...changes,
  });
}

test('tasks are listed page by page, the newest first; what is damaged is passed over', async (t) => {
  const store = await openStores.embedded(t);
  if (store === null) throw new Error('there is always an embedded store');
  const keep = (id: string, value: string, hours: number) =>
    store.create('tasks', id, value, (100 - hours) * hourMs);
  for (const hours of [3, 1, 4, 2, 5]) {
    const task = madeBefore(hours);
    await keep(task.id, writeTask(task), hours);
  }
  await keep('broken', '{"version":1', 2.5);
  await keep('of-another-version', JSON.stringify({ ...madeBefore(9), version: 2 }), 3.5);
  await store.create('submissions', 'video_1', '{}', hourMs);

  const ask = await startList(t, store);
  const seen: unknown[] = [];
  let query = '?limit=2';
  for (;;) {
    const page = (await (await ask(query)).json()) as TaskList;
    t.ok(page.tasks.length <= 2);
    seen.push(...page.tasks.map(({ id }) => id));
    if (page.next === null) break;
    query = `?limit=2&cursor=${page.next}`;
  }
  t.strictSame(seen, ['video_1', 'video_2', 'video_3', 'video_4', 'video_5']);
});

test('a task is shown with its state and target, and nothing of its prompt or its video', async (t) => {
  const store = await openStores.embedded(t);
  if (store === null) throw new Error('there is always an embedded store');
  const tasks = [
    madeBefore(1, { state: 'submitting' }),
    madeBefore(2, {
      state: 'failed',
      progress: 40,
      error: { code: 'moderation_blocked', message: 'It is not allowed.' },
      result: { url: 'https://upstream/v.mp4', duration: 1, fps: 1, width: 1, height: 1, seed: 1 },
    }),
  ];
  for (const task of tasks)
    await store.create('tasks', task.id, writeTask(task), task.expiresAt - Date.now());
  const ask = await startList(t, store);
  const time = (ms: number | undefined) => new Date(ms ?? 0).toISOString();
  t.strictSame(await (await ask()).json(), {
    tasks: tasks.map((task, index) => ({
      id: task.id,
      model: 'film',
      key: 'key-1',
      upstream: 'studio',
      target: 'studio/film-1',
      format: 'compat',
      state: ['queued', 'failed'][index],
      progress: [0, 40][index],
      createdAt: time(task.createdAt),
      updatedAt: time(task.updatedAt),
      expiresAt: time(task.expiresAt),
      error: [null, 'It is not allowed.'][index],
    })),
    next: null,
  });
});

test('what cannot be asked for is refused with its parameter', async (t) => {
  const ask = await startList(t, { list: async () => ({ records: [], next: null }) });
  for (const [query, param] of [
    ['?limit=0', 'limit'],
    ['?limit=201', 'limit'],
    ['?limit=x', 'limit'],
    ['?limit=', 'limit'],
    ['?cursor=abc', 'cursor'],
    ['?cursor=..%2f', 'cursor'],
    [`?cursor=${Buffer.from(`tasks:${'x'.repeat(2000)}`).toString('base64url')}`, 'cursor'],
    ['?key=a', 'key'],
  ] as const) {
    const answer = await ask(query);
    t.equal(answer.status, 400, query);
    t.match(await answer.json(), { error: { code: 'invalid_value', param } }, query);
  }
  t.strictSame(await (await ask('?limit=200')).json(), { tasks: [], next: null });
});

test('a started gateway lists what its clients have made, and looking makes no store', async (t) => {
  const gateway = await startGateway(t, {
    workers: 1,
    file: {
      admin: { port: 0, token },
      usage: { ledger: false },
      upstreams: { local: { kind: 'simulator' } },
      models: { film: { protocols: ['video'], targets: [{ upstream: 'local', model: 'sim-video' }] } },
      groups: { default: { models: ['*'] } },
      keys: [
        {
          id: 'team',
          hash: demoKeyHash,
          groups: ['default'],
        },
      ],
    },
  });
  const url = await gateway.adminUrl();
  t.equal((await fetch(`${url}/tasks`)).status, 401);
  const list = async () => (await (await fetch(`${url}/tasks`, { headers })).json()) as TaskList;
  t.strictSame(await list(), { tasks: [], next: null });
  t.notOk(existsSync(join(dirname(gateway.configPath ?? ''), 'data')));

  const client = { authorization: 'Bearer sk-demo', 'content-type': 'application/json' };
  const made = await fetch(`${gateway.baseUrl}/v1/videos`, {
    method: 'POST',
    headers: client,
    body: JSON.stringify({ model: 'film', prompt: 'a secret plan' }),
  });
  const { id } = (await made.json()) as { id: string };
  t.match(await list(), {
    tasks: [{ id, model: 'film', key: 'team', target: 'local/sim-video' }],
    next: null,
  });
  t.notOk(JSON.stringify(await list()).includes('a secret plan'));
  const isCompleted = async (): Promise<boolean> => {
    if ((await list()).tasks[0]?.state === 'completed') return true;
    await fetch(`${gateway.baseUrl}/v1/videos/${id}`, { headers: client });
    return false;
  };
  await eventually(isCompleted, { everyMs: 100 });
  t.match(await list(), { tasks: [{ id, progress: 100, error: null }] });
});
