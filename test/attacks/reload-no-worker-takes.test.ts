import { pino } from 'pino';
import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { claimPort } from '../../src/supervisor/port.js';
import { WorkerPool } from '../../src/supervisor/workers.js';
import { configWith, key } from '../supervisor/reloading.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { writeConfig } from '../support/gateway-processes.js';

const unprepared = () => Promise.resolve();

const token = 'the-token-of-the-operators';

/** What a key gets to see of a gateway: its status, or -1 for a connection that was not answered. */
function statusOf(port: number): Promise<number> {
  return fetch(`http://127.0.0.1:${port}/v1/models`, {
    headers: { authorization: `Bearer ${key}`, connection: 'close' },
  }).then(
    async (answer) => {
      await answer.arrayBuffer();
      return answer.status;
    },
    () => -1,
  );
}

test('a reload whose models name no upstream is refused by name, and removes no key in part', async (t) => {
  const admin = { port: 0, token };
  const gateway = await startGateway(t, { workers: 2, file: configWith({ admin }) });
  const url = await gateway.adminUrl();
  const ask = (path: string, method = 'GET') =>
    fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
  writeConfig(gateway.configPath ?? '', configWith({ admin, upstreams: {}, keys: [] }));
  const answer = await ask('/reload', 'POST');
  t.equal(answer.status, 422);
  t.match(((await answer.json()) as { problems: string[] }).problems, [
    /models\.sim-text\.targets\[0\]\.upstream/,
  ]);
  t.match(await (await ask('/status')).json(), { config: { generation: 1, upstreams: 1, keys: 1 } });
  gateway.kill('SIGHUP');
  const refusals = () => gateway.logs.filter((line) => line.includes('reload refused')).length;
  await gateway.until(() => refusals() === 2);
  const statuses = await Promise.all(Array.from({ length: 8 }, () => statusOf(gateway.port)));
  t.same(new Set(statuses), new Set([200]));
  t.notOk(gateway.logs.some((line) => line.includes('config reloaded')));
});

test('a config that a worker cannot put in force is in force nowhere, now or in a worker that starts later', async (t) => {
  const read = (more: Record<string, unknown>) =>
    parseConfig(
      JSON.stringify(
        configWith({ upstreams: { a: { kind: 'chat', baseUrl: 'http://127.0.0.1:9' } }, ...more }),
      ),
      { directory: '.', environment: {}, created: 1 },
    );
  const models = { m: { protocols: ['chat'], targets: [{ upstream: 'a' }] } };
  const config = read({ models });
  const port = await claimPort('127.0.0.1', 0);
  let serving: readonly number[] = [];
  process.env.LOG_LEVEL = 'silent';
  const pool = new WorkerPool({
    count: 2,
    host: '127.0.0.1',
    port,
    headerBytes: config.limits.headerBytes,
    log: pino({ level: 'silent' }),
    onChange(pids) {
      serving = pids;
    },
    async onStart() {},
    onGone() {},
    onNews() {},
    onFault(fault) {
      throw fault;
    },
    onGivenUp(reason) {
      t.fail(reason);
    },
  });
  t.teardown(() => pool.drain(1000, false));
  await pool.apply({ config, simulatorUrl: null }, 2, unprepared);
  const areServing = (fits: () => boolean) => eventually(fits, { withinMs: 60_000 });
  await areServing(() => serving.length === 2);
  // Past the checks of a file: no key, one worker, and a model that nobody can build.
  const unfit = { ...read({ models, keys: [] }), upstreams: [] };
  await t.rejects(
    pool.apply({ config: unfit, simulatorUrl: null }, 1, unprepared),
    /cannot put it in force \(the model m .*\)/,
  );
  t.equal(serving.length, 2, 'as many workers as before');
  const [first = 0] = serving;
  process.kill(first, 'SIGKILL');
  await areServing(() => serving.length === 2 && !serving.includes(first));
  const statuses = await Promise.all(Array.from({ length: 8 }, () => statusOf(port)));
  t.same(new Set(statuses), new Set([200]));
  t.equal(
    await pool.apply({ config: read({ models, keys: [] }), simulatorUrl: null }, 2, unprepared),
    null,
    'and the next config is',
  );
  t.not(await statusOf(port), 200);
});
