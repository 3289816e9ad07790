import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { startGateway } from '../support/gateway.js';
import { sumOf } from '../support/metrics-text.js';
import { startRestarted } from '../support/restarted-gateway.js';
import { configWith, openStream } from './reloading.js';

const token = 'the-token-of-the-operators';

/** Loaded by every process of the gateway: what a signal makes it do. */
const injected = `
  process.on('SIGWINCH', () => { throw new Error('injected'); });
  process.on('SIGIO', () => process.send({ type: 'lease-news', asks: 5 }));
`;
const env = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(injected)}`,
  SIMULATOR_TOKENS_PER_SECOND: '2',
};

test('a fault of the primary is counted, and it ends only where it cannot rely on what it keeps any more', async (t) => {
  const file = configWith({ admin: { port: 0, token }, timeouts: { orphanMs: 5000 } });
  const gateway = await startGateway(t, { workers: 2, file, env });
  t.teardown(() => gateway.end());
  const admin = await gateway.adminUrl();
  const [worker = 0] = gateway.workerPids();
  const workers = gateway.workerPids();
  const faults = async (): Promise<number> => {
    const answer = await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    return sumOf(await answer.text(), 'gateway_faults_total', { where: 'process' });
  };

  await t.test('what nobody caught does not end it', async (t) => {
    gateway.kill('SIGWINCH');
    await eventually(faults, { fits: (count) => count === 1, everyMs: 20 });
    t.strictSame(gateway.workerPids(), workers);
    t.equal((await fetch(`${admin}/ready`)).status, 200);
  });

  await t.test('a fault in the counting of limits ends it in order, and its workers serve on', async (t) => {
    const stream = await openStream(gateway.port, false, 'one two three four');
    process.kill(worker, 'SIGIO');
    const { state } = await gateway.untilLogged(({ level, role }) => level === 'fatal' && role === 'primary');
    t.equal(state, 'limits');
    await gateway.until(
      () => gateway.logs.filter((line) => line.includes('the primary has died')).length === 2,
    );
    t.match(await (await openStream(gateway.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
    t.match(await stream.text, /data: \[DONE\]\s*$/);
    t.strictSame(await gateway.exited, { code: 1, signal: null });
  });
});

test('a primary that ends for a fault does not wait for its workers: the next one is started while they serve', async (t) => {
  const port = await freePort();
  const gateway = startRestarted(t, ['--port', `${port}`, '--workers', '1'], env);
  const { workers } = await gateway.listening(1);
  const [worker = 0] = workers as number[];
  const stream = await openStream(port, false, 'one two three four');
  const first = gateway.pid();
  process.kill(worker, 'SIGIO');
  await gateway.listening(2);
  t.not(gateway.pid(), first);
  t.notOk(
    gateway.entries.some(({ msg }) => msg === 'no gateway has taken over: draining'),
    'it came before the workers gave up',
  );
  t.match(await stream.text, /data: \[DONE\]\s*$/);
  t.equal(await gateway.stop(), 0);
});
