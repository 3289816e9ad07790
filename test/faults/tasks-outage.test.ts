import t, { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import type { GatewayProcesses } from '../support/gateway.js';
import { type PostgresServer, skipWithoutPostgres } from '../support/postgres.js';
import { askTask, type TaskRequest, taskClientFormats, untilEnded } from '../support/tasks/client.js';
import { startHostsStage, storeTimeoutMs } from '../support/tasks/hosts.js';
import { startChatLoad } from './tasks-chat.js';

const skip = skipWithoutPostgres();
/** What an answer may take longer than the store's time, on a busy machine. */
const slackMs = 1000;
/** Of a chat call while the store is down. */
const mostChatMs = 1000;

/** What each format says of a store that cannot be reached. */
const refusals: Readonly<Record<string, object>> = {
  compat: { error: { type: 'server_error', code: 'store_unavailable' } },
  generic: { error: { type: 'server_error', code: 'store_unavailable' } },
  vendork: { error: { code: 'store_unavailable' }, code: 5001, request_id: /^req_/, data: null },
  vendorj: { code: 50_503, request_id: /^req_/, data: {} },
};

async function checkRefusals(t: Test, { baseUrl }: GatewayProcesses, id: string): Promise<void> {
  const content: TaskRequest = { method: 'GET', path: `/v1/videos/${id}/content` };
  const requests = [
    ...Object.entries(taskClientFormats).flatMap(([format, clientFormat]): [string, TaskRequest][] => [
      [format, clientFormat.create('a fox')],
      [format, clientFormat.show(id)],
    ]),
    ['compat', content] as const,
  ];
  await Promise.all(
    requests.map(async ([format, request]) => {
      const askedAt = performance.now();
      const { status, headers, body } = await askTask(baseUrl, request);
      const tookMs = performance.now() - askedAt;
      const name = `${format} ${request.method} ${request.path}`;
      t.equal(status, 503, name);
      t.match(body, refusals[format] ?? {}, name);
      t.equal(headers.get('retry-after'), '1', name);
      t.ok(tookMs < storeTimeoutMs + slackMs, `${name} after ${tookMs} ms`);
    }),
  );
}

/** Asks for a task until the store answers again. */
function untilBack({ baseUrl }: GatewayProcesses, id: string): Promise<boolean> {
  return eventually(async () => (await askTask(baseUrl, taskClientFormats.compat.show(id))).status !== 503);
}

const outages: readonly (readonly [
  string,
  (postgres: PostgresServer) => unknown,
  (postgres: PostgresServer) => unknown,
])[] = [
  ['that is gone', (postgres) => postgres.crash(), (postgres) => postgres.restart()],
  ['that hangs', (postgres) => postgres.signal('SIGSTOP'), (postgres) => postgres.signal('SIGCONT')],
];

for (const [what, begin, end] of outages) {
  test(`a PostgreSQL ${what} is told in each format, harms nothing else, and is used again`, {
    skip,
  }, async (t) => {
    const { postgres, simulator, start } = await startHostsStage(t, {
      videoPace: { queuedMs: 0, runningMs: 0 },
    });
    const gateway = await start();
    const made = await askTask(gateway.baseUrl, taskClientFormats.compat.create('a fox'));
    const id = String(made.body.id);
    const chat = startChatLoad(gateway.port);
    await begin(postgres);
    await checkRefusals(t, gateway, id);
    await checkRefusals(t, gateway, id);
    t.equal(simulator.state().videosMade, 1, 'no upstream is asked for what cannot be recorded');
    await end(postgres);
    await untilBack(gateway, id);
    t.match(await untilEnded(gateway.baseUrl, id), { status: 200, body: { id, status: 'completed' } });
    t.equal((await askTask(gateway.baseUrl, taskClientFormats.compat.create('an owl'))).status, 200);
    const { answers, problems, longestMs } = await chat.stop();
    t.strictSame(problems, []);
    t.ok(answers > 0);
    t.ok(longestMs < mostChatMs, `a chat call took ${longestMs} ms`);
  });
}

test('a gateway starts while PostgreSQL is down, and uses it when it comes', { skip }, async (t) => {
  const { postgres, start } = await startHostsStage(t, { videoPace: { queuedMs: 0, runningMs: 0 } });
  await postgres.crash();
  const gateway = await start();
  const chat = startChatLoad(gateway.port);
  await checkRefusals(t, gateway, 'video_1');
  await postgres.restart();
  await untilBack(gateway, 'video_1');
  const made = await askTask(gateway.baseUrl, taskClientFormats.compat.create('a fox'));
  t.equal(made.status, 200);
  const ended = await untilEnded(gateway.baseUrl, String(made.body.id));
  t.match(ended.body, { status: 'completed' });
  t.strictSame((await chat.stop()).problems, []);
});

t.end();
