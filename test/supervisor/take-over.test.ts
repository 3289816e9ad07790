import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'tap';
import { type StartedGateway, startCli } from '../suites/start.js';
import { startSteadyLoad } from '../suites/steady-load.js';

const key = 'sk-demo';
const env = { SIMULATOR_TOKENS_PER_SECOND: '5' };
const admin = { port: 0, token: 'a-token-of-the-operators' };

function config(adminPort: number) {
  return {
    admin: { ...admin, port: adminPort },
    upstreams: { local: { kind: 'simulator' } },
    models: { 'sim-text': { protocols: ['chat'], targets: [{ upstream: 'local' }] } },
    groups: { default: { models: ['*'] } },
    keys: [
      {
        id: 'team',
        hash: 'sha256:f77894fdfa58e447c57e077eaa9708e8e009c84dc6aba2db80461275e9b85be7',
        groups: ['default'],
      },
    ],
  };
}

function startStream(gateway: StartedGateway): Promise<Response> {
  const content = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen';
  return fetch(`${gateway.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sim-text', stream: true, messages: [{ role: 'user', content }] }),
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Without the kernel's help a connection that opens in the microseconds in which a listener closes is reset, and
 * nothing in a process can prevent it.
 */
function mostResets(): number {
  return readFileSync('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').trim() === '1' ? 0 : 1;
}

test('a gateway takes the place of the one on its port, and nobody notices', async (t) => {
  const adminPort = await freePort();
  const before = await startCli({ config: config(adminPort), workers: 2, env });
  t.teardown(() => before.stop());
  const load = startSteadyLoad(before.port, key, 200);
  const stream = await startStream(before);

  const after = await startCli({
    config: config(adminPort),
    workers: 2,
    env,
    args: ['--port', `${before.port}`, '--take-over'],
  });
  t.teardown(() => after.stop());
  await before.untilLogged(({ msg }) => msg === 'replaced by another gateway, draining');
  await after.untilLogged(({ msg }) => msg === 'operators may sign in');
  t.match(await stream.text(), /data: \[DONE\]\s*$/, 'a stream of the old one is whole');
  t.strictSame(await before.exited, { code: 0, signal: null });
  await load.stop();
  t.strictSame(
    load.failures.filter((failure) => !failure.includes('ECONNRESET')),
    [],
  );
  t.ok(load.failures.length <= mostResets(), `${load.failures.length} of ${load.answers} were reset`);
  t.ok(load.answers > 100);

  const status = await fetch(`http://127.0.0.1:${adminPort}/status`, {
    headers: { authorization: `Bearer ${admin.token}` },
  });
  t.strictSame(((await status.json()) as { workers: unknown }).workers, {
    wanted: 2,
    serving: after.workerPids(),
    restarts: 0,
  });
  t.equal(await (await startStream(after)).text().then((text) => text.includes('[DONE]')), true);
});

test('a gateway that cannot start leaves the one on its port alone', async (t) => {
  const before = await startCli({ config: config(0), env });
  t.teardown(() => before.stop());
  const args = ['--port', `${before.port}`, '--take-over'];
  // No such files.
  await t.rejects(startCli({ config: { ...config(0), listen: { tls: { cert: 'x', key: 'y' } } }, args }));
  t.equal(await startStream(before).then(({ status }) => status), 200);
  t.notOk(before.logs.some((line) => line.includes('draining')));
});

test('SIGTERM after the take-over gives idle clients no more time', async (t) => {
  const before = await startCli({ config: config(0), env });
  const args = ['--port', `${before.port}`, '--take-over'];
  const after = await startCli({ config: config(0), env, args });
  t.teardown(() => after.stop());
  await before.untilLogged(({ msg }) => msg === 'replaced by another gateway, draining');
  before.kill('SIGTERM');
  t.strictSame(await before.exited, { code: 0, signal: null });
});

test('a port of a stranger is not taken over', async (t) => {
  const stranger = createServer().listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.teardown(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  await t.rejects(startCli({ config: config(0), args: ['--port', `${port}`, '--take-over'] }), {
    message: new RegExp(`127.0.0.1:${port} is in use, and not by one gateway of this user alone`),
  });
});

test('a port that is free is simply taken', async (t) => {
  const gateway = await startCli({ config: config(0), args: ['--take-over'] });
  t.strictSame(await gateway.stop(), { code: 0, signal: null });
});
