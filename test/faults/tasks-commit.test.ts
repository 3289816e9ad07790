import t, { type Test, test } from 'tap';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { type PostgresServer, postgresFor, skipWithoutPostgres } from '../support/postgres.js';
import { askTask, type TaskAnswer, taskClientFormats } from '../support/tasks/client.js';
import { tasksGateway, workerLogs } from '../support/tasks/gateway.js';
import { jsonAnswer, postsTo, type RawUpstream, startRawUpstream } from '../support/upstream.js';

const skip = skipWithoutPostgres();
const answer = jsonAnswer(200, '{"id":"up-77","status":"queued"}');
/** How long the gateway tries to record what an upstream has made. */
const lastWritesMs = 5000;

interface Submitted {
  readonly postgres: PostgresServer;
  readonly gateway: GatewayProcesses;
  readonly upstream: RawUpstream;
  readonly made: Promise<TaskAnswer>;
}

const create = taskClientFormats.compat.create('a fox');
const idempotencyKey = 'once';

/** Has an upstream make a task, and lets the store go before the upstream says so. */
async function submit(t: Test): Promise<Submitted> {
  const postgres = await postgresFor(t);
  const upstream = await startRawUpstream(t, () => {});
  const gateway = await startGateway(
    t,
    tasksGateway({
      upstreamUrl: upstream.url,
      store: { kind: 'postgres', url: postgres.url, timeoutMs: 500 },
    }),
  );
  t.teardown(() => gateway.end());
  const ask = () => askTask(gateway.baseUrl, create, { idempotencyKey });
  let made = ask();
  let asked = await Promise.race([upstream.request(0), made]);
  // On a busy machine the store may be too slow for its deadline before anything is submitted.
  while (!('socket' in asked)) {
    made = ask();
    asked = await Promise.race([upstream.request(0), made]);
  }
  await postgres.crash();
  asked.socket.write(answer);
  return { postgres, gateway, upstream, made };
}

test('a task whose store goes while it is submitted is recorded once the store is back', {
  skip,
}, async (t) => {
  const { postgres, gateway, upstream, made } = await submit(t);
  await postgres.restart();
  const { status, body } = await made;
  t.match([status, body], [200, { status: 'queued' }]);
  const again = await askTask(gateway.baseUrl, create, { idempotencyKey });
  t.match([again.status, again.body], [200, { id: body.id }]);
  t.equal(postsTo(upstream).length, 1);
  // Of what meets the outage of the store some warn of that; nothing is said of the task.
  const isOfStore = (line: string) => line.includes('"level":"warn"') && !/up-77|video_/.test(line);
  t.strictSame(
    workerLogs(gateway).filter((line) => !isOfStore(line)),
    [],
  );
});

test('a task that cannot be recorded is told in the log, and recorded later', { skip }, async (t) => {
  const begunAt = performance.now();
  const { postgres, gateway, upstream, made } = await submit(t);
  const { status, headers, body } = await made;
  const tookMs = performance.now() - begunAt;
  t.match([status, body], [503, { error: { code: 'store_unavailable' } }]);
  t.equal(headers.get('x-should-retry'), 'false', 'it may be made twice');
  t.ok(tookMs > lastWritesMs, `it tried for ${tookMs} ms`);
  const told = await gateway.untilLogged(({ err }) => JSON.stringify(err)?.includes('up-77') ?? false);
  t.match(told, {
    level: 'error',
    err: { message: /upstream studio has made the task up-77, .* video_[0-9a-f]{32}/ },
  });

  await postgres.restart();
  const again = async (): Promise<TaskAnswer> => {
    const retry = await askTask(gateway.baseUrl, create, { idempotencyKey });
    return retry.status === 503 || retry.status === 409 ? again() : retry;
  };
  t.match(
    await again(),
    { status: 200, body: { status: 'queued' } },
    'it is recorded as soon as the store is back, and not made a second time',
  );
  t.equal(postsTo(upstream).length, 1);
});

t.end();
