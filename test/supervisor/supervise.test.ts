import { request } from 'node:http';
import { test } from 'tap';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { childrenOf, untilGone, writeConfig } from '../support/gateway-processes.js';
import { postJson } from '../support/post-json.js';

const key = 'sk-demo';

function configWith(models: readonly string[]) {
  const model = { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] };
  return {
    upstreams: { local: { kind: 'simulator' } },
    models: Object.fromEntries(models.map((name) => [name, model])),
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'team', hash: demoKeyHash, groups: ['default'] }],
  };
}

function ask(gateway: GatewayProcesses, content: string, stream = false): Promise<Response> {
  return postJson(
    `${gateway.baseUrl}/v1/chat/completions`,
    { model: 'sim-text', stream, messages: [{ role: 'user', content }] },
    { authorization: `Bearer ${key}` },
  );
}

async function modelNames(gateway: GatewayProcesses): Promise<string[]> {
  const answer = await fetch(`${gateway.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  return data.map((model) => model.id);
}

// Starting a gateway takes most of the time of these tests: those that leave it whole share one, and one that ends it
// comes last.

test('a gateway with one worker', async (t) => {
  const gateway = await startGateway(t, { workers: 1, env: { SIMULATOR_TOKENS_PER_SECOND: '15' } });

  await t.test('a worker that is asked to end by the system has a successor, and then ends', async (t) => {
    const [first = 0] = gateway.workerPids();
    process.kill(first, 'SIGTERM');
    await gateway.until(() => gateway.workerPids().length === 1 && !gateway.workerPids().includes(first));
    t.equal((await ask(gateway, 'hello')).status, 200);
    await untilGone([first]);
  });

  await t.test('a simulator that is killed comes back on the same port', async (t) => {
    t.equal((await ask(gateway, 'before')).status, 200);
    const simulator = childrenOf(gateway.pid).find((pid) => !gateway.workerPids().includes(pid)) ?? 0;
    process.kill(simulator, 'SIGKILL');
    await gateway.untilLogged((entry) => entry.simulator === simulator);
    t.ok(await eventually(async () => (await ask(gateway, 'after')).status === 200));
  });

  await t.test('a second gateway on the same port is refused instead of sharing it', async (t) => {
    await t.rejects(startGateway(t, { workers: 1, args: ['--port', `${gateway.port}`] }), {
      message: new RegExp(
        `ended with 1:\n127.0.0.1:${gateway.port} is in use by another process; .*; it is held by gateway \\d+`,
      ),
    });
  });

  await t.test('SIGTERM lets a running stream end, refuses new connections, and exits with 0', async (t) => {
    const workers = gateway.workerPids();
    const answer = await ask(gateway, 'one two three four five six seven eight nine ten', true);
    gateway.kill('SIGTERM');
    await gateway.untilLogged((entry) => entry.msg === 'draining');
    t.match(await answer.text(), /data: \[DONE\]\s*$/);
    t.strictSame(await gateway.exited, { code: 0, signal: null });
    await untilGone(workers);
    await t.rejects(fetch(gateway.baseUrl));
  });
});

test('a gateway with two workers that are not to be without a primary', async (t) => {
  const file = { ...configWith(['sim-text']), timeouts: { orphanMs: 0 } };
  const gateway = await startGateway(t, { workers: 2, file });

  await t.test('a worker that is killed is replaced, and the gateway serves through it', async (t) => {
    const [victim = 0, survivor = 0] = gateway.workerPids();
    process.kill(victim, 'SIGKILL');
    await gateway.until(() => !gateway.workerPids().includes(victim));
    t.strictSame(gateway.workerPids(), [survivor]);
    t.equal((await ask(gateway, 'still here')).status, 200);
    await gateway.until(() => gateway.workerPids().length === 2);
    t.ok(gateway.workerPids().includes(survivor));
    t.notOk(gateway.workerPids().includes(victim));
  });

  await t.test('a primary that is killed leaves no process behind', async (t) => {
    const children = childrenOf(gateway.pid);
    t.equal(children.length, 3);
    gateway.kill('SIGKILL');
    // Its output closes only when the last process that holds it, and that is every child, has ended.
    t.strictSame(await gateway.exited, { code: null, signal: 'SIGKILL' });
    await untilGone(children);
  });
});

test('a gateway with two workers, a config and a limit for heads', async (t) => {
  const gateway = await startGateway(t, {
    workers: 2,
    file: { ...configWith(['sim-text']), limits: { headerBytes: 65_536 } },
    env: { SIMULATOR_TOKENS_PER_SECOND: '1' },
  });

  await t.test('heads of up to limits.headerBytes are accepted by the workers', async (t) => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, 'x-long': 'x'.repeat(40_000) };
      request(`${gateway.baseUrl}/v1/models`, { headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
        .once('error', reject)
        .end();
    });
    t.equal(status, 200);
  });

  await t.test(
    'SIGHUP with a bad file keeps the running config and says why; with a good one it takes over',
    async (t) => {
      const path = gateway.configPath ?? '';

      writeConfig(path, { ...configWith(['sim-text', 'other']), nonsense: 1 });
      gateway.kill('SIGHUP');
      const refused = await gateway.untilLogged(
        (entry) => entry.msg === 'reload refused: the running config stays in effect',
      );
      t.strictSame([refused.file, refused.reasons], [path, ['nonsense: unknown property']]);
      t.strictSame(await modelNames(gateway), ['sim-text']);

      const admin = { port: 0, token: 'a-token-of-the-operators' };
      writeConfig(path, { ...configWith(['sim-text', 'other']), limits: { headerBytes: 65_536 }, admin });
      gateway.kill('SIGHUP');
      const reloaded = await gateway.untilLogged((entry) => entry.msg === 'config reloaded');
      t.equal(reloaded.workers, 2);
      const warned = await gateway.untilLogged(
        (entry) => entry.msg === 'changed settings that take effect only after a restart',
      );
      t.strictSame(warned.settings, ['admin']);
      for (let round = 0; round < 8; round += 1)
        t.strictSame(await modelNames(gateway), ['other', 'sim-text']);

      const [victim = 0] = gateway.workerPids();
      process.kill(victim, 'SIGKILL');
      await gateway.until(() => gateway.workerPids().length === 2 && !gateway.workerPids().includes(victim));
      for (let round = 0; round < 8; round += 1)
        t.strictSame(await modelNames(gateway), ['other', 'sim-text']);
    },
  );

  await t.test('a second signal breaks off what is under way, and records it', async (t) => {
    const answer = await ask(gateway, 'one two three four five six seven eight nine ten', true);
    gateway.kill('SIGTERM');
    await gateway.untilLogged((entry) => entry.msg === 'draining');
    gateway.kill('SIGTERM');
    await t.rejects(answer.text());
    const { model } = await gateway.untilLogged((entry) => entry.outcome === 'client_gone');
    t.equal(model, 'sim-text');
    t.strictSame(await gateway.exited, { code: 143, signal: null });
  });
});

test('a second signal does not wait until balancers have noticed, and a third kills the workers', async (t) => {
  const file = { ...configWith(['sim-text']), timeouts: { unreadyMs: 3_600_000 } };
  const gateway = await startGateway(t, { workers: 1, file, env: { SIMULATOR_TOKENS_PER_SECOND: '1' } });
  const [worker = 0] = gateway.workerPids();
  const answer = await ask(gateway, 'one two three four five six seven eight nine ten', true);
  gateway.kill('SIGTERM');
  await gateway.untilLogged((entry) => entry.msg === 'draining');
  // It cannot follow the order to end.
  process.kill(worker, 'SIGSTOP');
  gateway.kill('SIGTERM');
  await gateway.untilLogged((entry) => entry.msg === 'second signal: ending all requests');
  gateway.kill('SIGTERM');
  await gateway.untilLogged((entry) => entry.msg === 'third signal: killing the workers');
  await t.rejects(answer.text());
  t.strictSame(await gateway.exited, { code: 143, signal: null });
  await untilGone([worker]);
});

test('a second press of Ctrl-C that arrives as two signals is no third one', async (t) => {
  const gateway = await startGateway(t, { workers: 1, env: { SIMULATOR_TOKENS_PER_SECOND: '1' } });
  const answer = await ask(gateway, 'one two three four five six seven eight nine ten', true);
  gateway.kill('SIGINT');
  const { time: first } = await gateway.untilLogged((entry) => entry.msg === 'draining');
  await eventually(() => Date.now() - Date.parse(String(first)) > 600);
  gateway.kill('SIGINT');
  await gateway.untilLogged((entry) => entry.msg === 'second signal: ending all requests');
  gateway.kill('SIGINT');
  await t.rejects(answer.text());
  await gateway.untilLogged((entry) => entry.outcome === 'client_gone');
  t.strictSame(await gateway.exited, { code: 130, signal: null });
});

test('a gateway without a simulator, and with a short drain', async (t) => {
  const timeouts = { drainMs: 50 };
  const upstreams = { local: { kind: 'chat', baseUrl: 'http://127.0.0.1:9/v1' } };
  const gateway = await startGateway(t, {
    workers: 1,
    file: { ...configWith(['sim-text']), upstreams, timeouts },
    env: { SIMULATOR_TOKENS_PER_SECOND: '10' },
  });

  await t.test('a reload that brings the first simulator starts it', async (t) => {
    t.strictSame(childrenOf(gateway.pid), gateway.workerPids());
    writeConfig(gateway.configPath ?? '', { ...configWith(['sim-text']), timeouts });
    gateway.kill('SIGHUP');
    await gateway.untilLogged((entry) => entry.msg === 'config reloaded');
    t.equal((await ask(gateway, 'hello')).status, 200);
  });

  await t.test('requests that outlive the drain limit are cut, and the exit code is still 0', async (t) => {
    const answer = await ask(gateway, 'word '.repeat(600), true);
    gateway.kill('SIGINT');
    await t.rejects(answer.text());
    t.strictSame(await gateway.exited, { code: 0, signal: null });
  });
});
