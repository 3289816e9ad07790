import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { copyFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { type Test, test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { isMessage } from '../../src/supervisor/messages.js';
import { claimPort } from '../../src/supervisor/port.js';
import { WorkerPool } from '../../src/supervisor/workers.js';
import { eventually } from '../support/eventually.js';
import { testConfig } from '../support/gateway.js';
import { configWith, key } from './reloading.js';

const unprepared = () => Promise.resolve();

/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');

test('a worker that does not start with new settings leaves the one before it in its place', async (t) => {
  const tls = { cert: `${t.testdir()}/cert.pem`, key: `${fixtures}/localhost.key` };
  const read = (certificate: string) => {
    copyFileSync(`${fixtures}/${certificate}`, tls.cert);
    const config = testConfig({ upstreams: ['http://127.0.0.1:9/v1'], config: { listen: { tls } } });
    return parseConfig(JSON.stringify(config), { directory: '.', environment: {}, created: 1 });
  };
  let serving: readonly number[] = [];
  let look = (): void => {};
  const config = read('localhost.pem');
  process.env.LOG_LEVEL = 'silent';
  const pool = new WorkerPool({
    count: 1,
    host: '127.0.0.1',
    port: await claimPort('127.0.0.1', 0),
    headerBytes: config.limits.headerBytes,
    log: pino({ level: 'silent' }),
    onChange(pids) {
      serving = pids;
      look();
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
  t.equal(await pool.apply({ config, simulatorUrl: null }, 1, unprepared), null);
  await new Promise<void>((done) => {
    look = () => {
      if (serving.length === 1) done();
    };
    look();
  });
  const [first] = serving;

  const renewed = read('expired.pem');
  rmSync(tls.cert);
  t.match(
    await pool.apply({ config: renewed, simulatorUrl: null }, 1, unprepared),
    /^a worker with the new settings does not start \(.+\), those before it serve on$/,
  );
  t.strictSame(serving, [first]);

  t.equal(
    await pool.apply({ config: read('expired.pem'), simulatorUrl: null }, 1, unprepared),
    null,
    'the same settings are tried again',
  );
  t.equal(serving.length, 1);
  t.not(serving[0], first);
});

/** Workers that serve on a port, with what begins and ends of them. */
async function startPool(t: Test, count: number) {
  process.env.LOG_LEVEL = 'silent';
  const port = await claimPort('127.0.0.1', 0);
  const forked = new Set<number | undefined>();
  let serving: readonly number[] = [];
  const pool = new WorkerPool({
    count,
    host: '127.0.0.1',
    port,
    headerBytes: 16_384,
    log: pino({ level: 'silent' }),
    onChange(pids) {
      serving = pids;
    },
    onStart: async (child) => void forked.add(child.pid),
    onGone() {},
    onNews() {},
    onFault(_where, fault) {
      throw fault;
    },
    onGivenUp(reason) {
      t.fail(reason);
    },
  });
  t.teardown(() => pool.kill());
  return {
    pool,
    forked,
    serving: () => serving,
    isServed: () => eventually(() => serving.length === count, { withinMs: 60_000 }),
    async models() {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/models`, {
        headers: { authorization: `Bearer ${key}`, connection: 'close' },
      });
      const { data } = (await answer.json()) as { data: { id: string }[] };
      return data.map(({ id }) => id).sort();
    },
  };
}

/** Many models, so that a config takes many parts, and one of this name. */
function withModel(name: string, settings: object = {}) {
  const model = { protocols: ['chat'], targets: [{ upstream: 'a' }], ...settings };
  const many = Array.from({ length: 300 }, (_, index) => [`m${1000 + index}`, model] as const);
  const upstreams = { a: { kind: 'chat', baseUrl: 'http://127.0.0.1:9' } };
  const file = configWith({ upstreams, models: Object.fromEntries([...many, [name, model]]) });
  return parseConfig(JSON.stringify(file), { environment: {}, directory: '.', created: 1 });
}

test('configs that follow each other while workers start are in force in their order', async (t) => {
  const { pool, serving, isServed, models } = await startPool(t, 1);
  await Promise.all(
    ['first', 'second', 'third'].map((name) =>
      pool.apply({ config: withModel(name), simulatorUrl: null }, 1, unprepared),
    ),
  );
  await isServed();
  t.equal(await pool.apply({ config: withModel('third'), simulatorUrl: null }, 1, unprepared), null);
  t.match((await models())[0], 'm1000');
  t.strictSame((await models()).slice(300), ['third']);

  const [before = 0] = serving();
  process.kill(before, 'SIGKILL');
  await pool.apply({ config: withModel('fourth'), simulatorUrl: null }, 1, unprepared);
  await eventually(() => serving().length === 1 && serving()[0] !== before, { withinMs: 60_000 });
  await pool.apply({ config: withModel('fifth'), simulatorUrl: null }, 1, unprepared);
  t.strictSame((await models()).slice(0, 1), ['fifth']);
  t.equal((await models()).length, 301);
  await pool.drain(1000, false);
});

test('a worker that does not get the processor is not sent a whole config, which it would read in one turn', async (t) => {
  const children: ChildProcess[] = [];
  const onProcess = (message: unknown): void => {
    children.push((message as { readonly process: ChildProcess }).process);
  };
  subscribe('child_process', onProcess);
  const { pool, serving, isServed, models } = await startPool(t, 1);
  unsubscribe('child_process', onProcess);
  await pool.apply({ config: withModel('first'), simulatorUrl: null }, 1, unprepared);
  await isServed();
  const [worker = 0] = serving();
  const child = children.find(({ pid }) => pid === worker);
  if (child === undefined) throw new Error('the worker was not seen');
  let parts = 0;
  const send = child.send.bind(child) as (...sent: unknown[]) => boolean;
  Object.assign(child, {
    send(...sent: unknown[]) {
      if (isMessage(sent[0]) && sent[0].type === 'config-part') parts++;
      return send(...sent);
    },
  });
  process.kill(worker, 'SIGSTOP');
  const price = { input: 1, output: 2 };
  const applied = pool.apply({ config: withModel('second', { price }), simulatorUrl: null }, 1, unprepared);
  await eventually(() => parts > 0);
  for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve));
  const before = parts;
  process.kill(worker, 'SIGCONT');
  t.equal(await applied, null);
  t.ok(before <= 4, `${before} parts`);
  t.ok(parts > 8, `${parts} in total`);
  t.strictSame((await models()).slice(300), ['second']);
  await pool.drain(1000, false);
});

test('no worker begins while the others drain, whatever config is on its way', async (t) => {
  const { pool, forked, isServed } = await startPool(t, 1);
  await pool.apply({ config: withModel('first'), simulatorUrl: null }, 1, unprepared);
  await isServed();
  const applied = pool.apply({ config: withModel('second'), simulatorUrl: null }, 3, unprepared);
  await pool.drain(1000, false);
  t.equal(await applied, null);
  t.equal(forked.size, 1);
});

/** Resolves when the next process that is made has told its primary that it takes orders, and that was heard. */
function nextReady(): Promise<void> {
  return new Promise((resolve) => {
    const onProcess = (message: unknown): void => {
      unsubscribe('child_process', onProcess);
      const { process: child } = message as { readonly process: ChildProcess };
      child.on('message', (report) => {
        if (isMessage(report) && report.type === 'ready') setImmediate(resolve);
      });
    };
    subscribe('child_process', onProcess);
  });
}

test('a worker that becomes ready during a reload that fails starts with the config before', async (t) => {
  const { pool, forked, serving, isServed, models } = await startPool(t, 1);
  await pool.apply({ config: withModel('first'), simulatorUrl: null }, 1, unprepared);
  await isServed();
  const [before = 0] = serving();
  const ready = nextReady();
  await t.rejects(
    pool.apply({ config: withModel('second'), simulatorUrl: null }, 1, async () => {
      process.kill(before, 'SIGKILL');
      await ready;
      t.equal(forked.size, 1, 'it waits for limits of which nobody can say yet whether they hold');
      throw new Error('limits cannot be put in force');
    }),
    { message: 'limits cannot be put in force' },
  );
  await isServed();
  t.strictSame((await models()).slice(0, 1), ['first']);
  await pool.drain(1000, false);
});
