import { pino } from 'pino';
import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { claimPlace, endPredecessor } from '../../src/supervisor/take-over.js';
import { demoKeyHash } from '../support/demo-key.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startGateway } from '../support/gateway.js';
import { untilGone, writeConfig } from '../support/gateway-processes.js';
import { postJson } from '../support/post-json.js';
import { startRestarted } from '../support/restarted-gateway.js';
import { simulate } from '../support/simulator.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { configWith, key, openStream } from './reloading.js';
import { mostResets, startKeptLoad, startSteadyLoad } from './steady-load.js';

const token = 'a-token-of-the-operators';
const hello = { model: 'sim-text', messages: [{ role: 'user', content: 'hello' }] };

test('a primary that is killed under load, again and again, costs no request, no line of the ledger and leaves nobody behind', async (t) => {
  const folder = temporaryFolder(t);
  const simulator = await simulate(t);
  const [port, adminPort] = [await freePort(), await freePort()];
  const path = `${folder}/config.json`;
  writeConfig(
    path,
    configWith({
      upstreams: { local: { kind: 'chat', baseUrl: simulator.url, apiKeys: ['k'] } },
      store: { kind: 'embedded', path: `${folder}/data` },
      admin: { port: adminPort, token },
    }),
  );
  const gateway = startRestarted(t, ['--config', path, '--port', `${port}`, '--workers', '2']);
  await gateway.listening(1);
  const kept = startKeptLoad(port, key, { clients: 8, body: hello });
  const opened = startSteadyLoad(port, key, 50);
  for (const round of [2, 3]) {
    await eventually(() => kept.answers > round * 100 && opened.answers > round * 50);
    process.kill(gateway.pid(), 'SIGKILL');
    const [before, since] = [kept.answers, opened.answers];
    await gateway.listening(round);
    t.ok(kept.answers > before && opened.answers > since, 'calls are answered while there is no primary');
  }
  const current = (await gateway.listening(3)).workers as number[];
  await untilGone(gateway.workers().filter((pid) => !current.includes(pid)));
  await Promise.all([kept.stop(), opened.stop()]);
  t.strictSame(kept.failures, []);
  t.strictSame(opened.failures, []);
  t.ok(opened.resets <= mostResets(4), `${opened.resets} of ${opened.answers} were reset`);
  t.comment(`${kept.answers} calls on kept connections, ${opened.answers} on new ones`);

  const headers = { authorization: `Bearer ${token}` };
  const lines = async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${adminPort}/usage/lines`, { headers })).text();
    return text.split('\n').filter((line) => line.includes('"chat"')).length;
  };
  await eventually(lines, { fits: (count) => count >= kept.answers, everyMs: 100 });
  t.equal(await lines(), kept.answers, 'each call is in the ledger, once');
  t.equal(await gateway.stop(), 0);
});

test('workers without a primary', async (t) => {
  const keys = [
    { id: 'team', hash: demoKeyHash, groups: ['default'] },
    // So little that a worker has none of it before it asks.
    { id: 'limited', hash: hashKey('sk-limited'), groups: ['default'], limits: { requestsPerMinute: 2 } },
  ];
  const gateway = await startGateway(t, {
    workers: 2,
    file: configWith({ keys, outage: { rates: 'closed' }, timeouts: { orphanMs: 10_000 } }),
    env: { SIMULATOR_TOKENS_PER_SECOND: '1' },
  });
  t.teardown(() => gateway.end());
  const stream = await openStream(gateway.port, false, 'one two three four');
  const workers = gateway.workerPids();
  gateway.kill('SIGKILL');
  await gateway.until(
    () => gateway.logs.filter((line) => line.includes('the primary has died')).length === 2,
  );

  await t.test('decide by outage.rates on what only the primary could grant', async (t) => {
    const ask = async (as: string): Promise<number> => {
      const { status } = await postJson(`${gateway.baseUrl}/v1/chat/completions`, hello, {
        authorization: `Bearer ${as}`,
      });
      return status;
    };
    t.equal(await ask('sk-limited'), 503);
    t.equal(await ask(key), 200);
  });

  await t.test('end after orphanMs, when they have answered', async (t) => {
    t.match(await stream.text, /data: \[DONE\]\s*$/, 'a stream is whole');
    await untilGone(workers);
    await t.rejects(fetch(gateway.baseUrl));
    await gateway.exited;
  });
});

test('of two gateways that start, one takes the place of the workers without a primary, and those that hang are killed', async (t) => {
  const gateway = await startGateway(t, { workers: 2, file: configWith({}) });
  t.teardown(() => gateway.end());
  const workers = gateway.workerPids();
  const { port } = gateway;
  await t.rejects(claimPlace('127.0.0.1', port, false), { message: /in use by another process/ });
  gateway.kill('SIGKILL');
  await gateway.until(() => gateway.logs.some((line) => line.includes('the primary has died')));

  const [stuck = 0, other = 0] = workers;
  process.kill(stuck, 'SIGSTOP');
  const { predecessor } = await claimPlace('127.0.0.1', port, false);
  t.equal(predecessor?.pid, null);
  t.strictSame(new Set(predecessor?.orphans), new Set(workers));
  await t.rejects(claimPlace('127.0.0.1', port, false), {
    message: /is taking .* over at this moment: \d+$/,
  });
  t.strictSame(new Set(predecessor?.dismiss()), new Set(workers));
  await untilGone([other]);
  t.strictSame(predecessor?.killDeaf(), [stuck]);
  await untilGone([stuck]);
  const claim = () => claimPlace('127.0.0.1', port, false).catch(() => null);
  t.strictSame(await eventually(claim, { everyMs: 10 }), { port, predecessor: null });
});

test('a primary that hangs is killed by the gateway that takes over, and its workers stop listening', async (t) => {
  const gateway = await startGateway(t, {
    workers: 2,
    file: configWith({ timeouts: { orphanMs: 600_000 } }),
  });
  t.teardown(() => gateway.end());
  const workers = gateway.workerPids();
  const { port } = gateway;
  process.kill(gateway.pid, 'SIGSTOP');
  const { predecessor } = await claimPlace('127.0.0.1', port, true);
  if (predecessor === null) throw new Error('nothing listens');
  t.equal(predecessor.pid, gateway.pid);
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  await endPredecessor(predecessor, { log, isWanted: () => true, unreadyMs: 0, deafMs: 1000 });
  t.match(lines, [
    { msg: 'replacing the gateway on this port', told: [gateway.pid] },
    { msg: 'processes of the replaced gateway hang: killing them', processes: [gateway.pid] },
  ]);
  t.match(await gateway.exited, { signal: 'SIGKILL' });
  await untilGone(workers);
  const claim = () => claimPlace('127.0.0.1', port, false).catch(() => null);
  t.strictSame(await eventually(claim, { everyMs: 10 }), { port, predecessor: null });
});

test('workers whose primary dies after it was told to leave stop listening', async (t) => {
  const gateway = await startGateway(t, {
    workers: 2,
    file: configWith({ timeouts: { orphanMs: 600_000 } }),
  });
  t.teardown(() => gateway.end());
  const { predecessor } = await claimPlace('127.0.0.1', gateway.port, true);
  if (predecessor === null) throw new Error('nothing listens');
  const workers = gateway.workerPids();
  process.kill(gateway.pid, 'SIGSTOP');
  const dismiss = () => {
    const told = predecessor.dismiss();
    gateway.kill('SIGKILL');
    return told;
  };
  const log = pino({ level: 'silent' });
  await endPredecessor(
    { ...predecessor, dismiss },
    { log, isWanted: () => true, unreadyMs: 0, deafMs: 1000 },
  );
  await untilGone(workers);
  t.match(await gateway.exited, { signal: 'SIGKILL' });
});

test('a gateway of an earlier version is not killed while it listens on purpose', async (t) => {
  // The wait alone does not keep the process.
  const alive = setInterval(() => {}, 1000);
  t.teardown(() => clearInterval(alive));
  let listening = [1];
  // Told to stop before the take-over, it serves on for balancers.
  setTimeout(() => {
    listening = [];
  }, 50);
  const killed: number[] = [];
  const killDeaf = () => {
    killed.push(...listening);
    return listening;
  };
  const log = pino({ level: 'silent' });
  const predecessor = { pid: 1, dismiss: () => listening, killDeaf };
  await endPredecessor(predecessor, { log, isWanted: () => listening.length > 0, unreadyMs: 500, deafMs: 0 });
  t.strictSame(killed, []);
});
