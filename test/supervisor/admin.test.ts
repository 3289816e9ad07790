import { type Test, test } from 'tap';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startGateway } from '../support/gateway.js';
import { writeConfig } from '../support/gateway-processes.js';
import { sumOf } from '../support/metrics-text.js';
import { postJson } from '../support/post-json.js';

const token = 'the-token-of-the-operators';

const config = (models: readonly string[]) => ({
  admin: { port: 0, token },
  upstreams: { local: { kind: 'simulator' } },
  models: Object.fromEntries(
    models.map((name) => [
      name,
      { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] },
    ]),
  ),
  groups: { default: { models: ['*'] } },
  keys: [{ id: 'team', hash: demoKeyHash, groups: ['default'] }],
});

async function start(t: Test, workers: number, more: Readonly<Record<string, unknown>> = {}) {
  const gateway = await startGateway(t, { workers, file: { ...config(['m', 'n']), ...more } });
  const url = await gateway.adminUrl();
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` }, ...init });
  const call = (model: string) =>
    postJson(
      `${gateway.baseUrl}/v1/chat/completions`,
      { model, messages: [{ role: 'user', content: 'hi' }] },
      { authorization: 'Bearer sk-demo' },
    ).then(async (answer) => {
      await answer.text();
      return answer.status;
    });
  return { gateway, url: url as string, ask, call };
}

test('the metrics say what clients have counted, over all workers and over their ends', async (t) => {
  const { gateway, ask, call } = await start(t, 2);
  const counted = { m: 0, n: 0, missing: 0 };
  const load = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      if ((await call('m')) === 200) counted.m++;
      if (i % 2 === 0 && (await call('n')) === 200) counted.n++;
      if (i % 3 === 0 && (await call('missing')) === 404) counted.missing++;
    }
  };
  const compare = async (): Promise<void> => {
    const text = await (await ask('/metrics')).text();
    const requests = (labels: Record<string, string>) => sumOf(text, 'gateway_requests_total', labels);
    t.equal(requests({ model: 'm', status: '200' }), counted.m);
    t.equal(requests({ model: 'n' }), counted.n);
    t.equal(requests({ status: '404' }), counted.missing);
    t.equal(
      sumOf(text, 'gateway_key_requests_total', { key: 'team' }),
      counted.m + counted.n + counted.missing,
    );
    t.equal(sumOf(text, 'gateway_request_duration_seconds_count'), counted.m + counted.n + counted.missing);
    t.equal(sumOf(text, 'gateway_workers'), 2);
  };
  await Promise.all([load(20), load(20), load(20)]);
  t.equal(counted.m, 60);
  await compare();
  const [first = 0] = gateway.workerPids();
  process.kill(first, 'SIGTERM');
  await gateway.until(() => gateway.workerPids().length === 2 && !gateway.workerPids().includes(first));
  await load(10);
  // The one that ends may still be telling its last counts.
  const open = async () => sumOf(await (await ask('/metrics')).text(), 'gateway_open_requests');
  await eventually(open, { fits: (requests) => requests === 0, everyMs: 20 });
  await compare();
});

test('operators see the limits that are in use', async (t) => {
  const { ask, call } = await start(t, 1, {
    keys: [
      {
        id: 'team',
        hash: demoKeyHash,
        groups: ['default'],
        limits: { requestsPerMinute: 50, tokensPerMinute: 5000 },
      },
    ],
  });
  t.match(await (await ask('/limits')).json(), { limits: [], complete: true });
  t.equal(await call('m'), 200);
  const answer = await ask('/limits');
  const { limits } = (await answer.json()) as { limits: Record<string, unknown>[] };
  t.match(limits, [
    { name: 'key:team:requests', kind: 'requests', limit: 50, share: 50, used: 1 },
    { name: 'key:team:tokens', kind: 'tokens', limit: 5000, share: 5000 },
  ]);
  for (const { limit, free, atWorkers } of limits) t.equal((free as number) + (atWorkers as number), limit);
});

test('health, readiness, status, the API document and reload', async (t) => {
  const { gateway, url, ask } = await start(t, 1);
  t.equal((await fetch(`${url}/health`)).status, 200);
  t.match(await (await fetch(`${url}/ready`)).json(), { status: 'ready' });
  t.equal((await fetch(`${url}/metrics`)).status, 401);
  t.match(await (await ask('/status')).json(), {
    ready: true,
    url: gateway.baseUrl,
    workers: { wanted: 1, serving: gateway.workerPids() },
    config: { generation: 1, models: 2, keys: 1 },
  });
  const document = (await (await ask('/openapi.json')).json()) as { openapi: string; paths: object };
  t.match(document.openapi, '3.1');
  t.ok('/v1/chat/completions' in document.paths);
  const path = gateway.configPath as string;
  writeConfig(path, config(['m', 'n', 'o']));
  t.match(await (await ask('/reload', { method: 'POST' })).json(), { status: 'reloaded' });
  t.match(await (await ask('/status')).json(), { config: { generation: 2, models: 3 } });
  writeConfig(path, { ...config(['m']), groups: {} });
  const reloadMetric = async () =>
    /^gateway_config_last_reload_successful (.*)/m.exec(await (await ask('/metrics')).text())?.[1];
  t.equal(await reloadMetric(), '1');
  const refused = await ask('/reload', { method: 'POST' });
  t.equal(refused.status, 422);
  t.equal(await reloadMetric(), '0');
  const { problems } = (await refused.json()) as { problems: string[] };
  t.match(problems.join('\n'), 'keys[0].groups');
  t.match(await (await ask('/status')).json(), { config: { generation: 2, models: 3 } });
});

test('an address that is taken for operators is said, and ends the start', async (t) => {
  const { url } = await start(t, 1);
  const port = Number(new URL(url).port);
  await t.rejects(
    startGateway(t, { workers: 1, file: { ...config(['m']), admin: { port, token } } }),
    new RegExp(`127\\.0\\.0\\.1:${port} is in use by another process; name another admin\\.port`),
  );
});

test("the gateway's own address is refused for operators before a worker finds it taken", async (t) => {
  const port = await freePort();
  const file = { ...config(['m']), admin: { host: '0.0.0.0', port, token } };
  await t.rejects(
    startGateway(t, { workers: 1, file, args: ['--port', `${port}`] }),
    new RegExp(`admin\\.port is ${port}, where the gateway itself listens; name another`),
  );
});

test('with time for balancers to look, a gateway that is to end is not ready and still serves', async (t) => {
  const { gateway, url, call } = await start(t, 1, { timeouts: { unreadyMs: 600_000 } });
  gateway.kill('SIGTERM');
  await gateway.untilLogged(({ msg }) => msg === 'draining');
  t.equal((await fetch(`${url}/ready`)).status, 503);
  t.equal(await call('m'), 200);
  gateway.kill('SIGTERM');
  t.strictSame(await gateway.exited, { code: 143, signal: null });
});
