import { test } from 'tap';
import { freePort } from '../support/free-port.js';
import { startGateway } from '../support/gateway.js';
import { configWith, key, openStream } from './reloading.js';
import { mostResets, startSteadyLoad } from './steady-load.js';

const env = { SIMULATOR_TOKENS_PER_SECOND: '5' };
const admin = { port: 0, token: 'a-token-of-the-operators' };

const config = (adminPort: number) => configWith({ admin: { ...admin, port: adminPort } });

test('a gateway takes the place of the one on its port, and nobody notices', async (t) => {
  const adminPort = await freePort();
  const before = await startGateway(t, { workers: 2, file: config(adminPort), env });
  const load = startSteadyLoad(before.port, key, 200);
  const stream = await openStream(before.port, false);

  const after = await startGateway(t, {
    workers: 2,
    file: config(adminPort),
    env,
    args: ['--port', `${before.port}`, '--take-over'],
  });
  await before.untilLogged(({ msg }) => msg === 'replaced by another gateway, draining');
  await after.adminUrl();
  t.match(await stream.text, /data: \[DONE\]\s*$/, 'a stream of the old one is whole');
  t.strictSame(await before.exited, { code: 0, signal: null });
  await load.stop();
  t.strictSame(load.failures, []);
  t.ok(load.resets <= mostResets(2), `${load.resets} of ${load.answers} were reset`);
  t.ok(load.answers > 100);

  const status = await fetch(`http://127.0.0.1:${adminPort}/status`, {
    headers: { authorization: `Bearer ${admin.token}` },
  });
  t.strictSame(((await status.json()) as { workers: unknown }).workers, {
    wanted: 2,
    serving: after.workerPids(),
    restarts: 0,
  });
  t.match(await (await openStream(after.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
});

test('SIGTERM after the take-over gives idle clients no more time', async (t) => {
  const before = await startGateway(t, { workers: 1, file: config(0), env });
  const args = ['--port', `${before.port}`, '--take-over'];
  await startGateway(t, { workers: 1, file: config(0), env, args });
  await before.untilLogged(({ msg }) => msg === 'replaced by another gateway, draining');
  before.kill('SIGTERM');
  t.strictSame(await before.exited, { code: 0, signal: null });
});

test('a take-over ends the time in which a gateway that was told to stop serves on for balancers', async (t) => {
  const adminPort = await freePort();
  const file = config(adminPort);
  const before = await startGateway(t, {
    workers: 1,
    file: { ...file, timeouts: { unreadyMs: 3_600_000 } },
    env,
  });
  before.kill('SIGTERM');
  await before.untilLogged(({ msg }) => msg === 'draining');
  const stream = await openStream(before.port, false);
  const args = ['--port', `${before.port}`, '--take-over'];
  const after = await startGateway(t, { workers: 1, file, env, args });
  await after.adminUrl();
  t.match(await stream.text, /data: \[DONE\]\s*$/);
  t.strictSame(await before.exited, { code: 0, signal: null });
});
