import { spawn } from 'node:child_process';
import { test } from 'tap';
import { heartbeatMs, kernelMs, watchHeartbeats } from '../../src/supervisor/heartbeat.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';

const body = JSON.stringify({ model: 'sim-text', messages: [{ role: 'user', content: 'hi' }] });

/** On a connection of its own, since the system spreads connections over the workers. */
async function call(baseUrl: string): Promise<number> {
  const answer = await postJson(`${baseUrl}/v1/chat/completions`, body, {
    authorization: 'Bearer sk-demo',
    connection: 'close',
  });
  await answer.arrayBuffer();
  return answer.status;
}

test('a worker that hangs is killed and replaced, and every connection is served again', async (t) => {
  const gateway = await startGateway(t, { workers: 2 });
  const [stuck, other] = gateway.workerPids() as [number, number];
  // A process that the system has stopped answers as much as one in an endless loop.
  process.kill(stuck, 'SIGSTOP');
  const said = await gateway.untilLogged((entry) => entry.msg === 'worker hangs: killing and replacing it');
  t.equal(said.worker, stuck);
  await gateway.until(() => gateway.workerPids().length === 2 && !gateway.workerPids().includes(stuck));
  t.ok(gateway.workerPids().includes(other), 'the other one goes on');
  const statuses = await Promise.all(Array.from({ length: 20 }, () => call(gateway.baseUrl)));
  t.same(
    statuses.filter((status) => status !== 200),
    [],
  );
});

test('only silence of its own ends a process: neither one late look nor a late first sign', (t) => {
  const silent: string[] = [];
  const watch = watchHeartbeats<string>(
    (process) => silent.push(process),
    () => null,
  );
  const looks = (count: number): void => {
    for (let i = 0; i < count; i++) watch.look();
  };
  looks(100);
  watch.beat('a');
  watch.beat('b');
  looks(10);
  t.same(silent, []);
  watch.beat('b');
  looks(1);
  t.same(silent, ['a']);
  looks(9);
  t.same(silent, ['a'], 'it is told once');
  watch.forget('b');
  looks(100);
  t.same(silent, ['a'], 'one that has ended is silent');
  t.ok(heartbeatMs <= 1000);
  t.end();
});

test('a process for which the system works is given three times as long as one that only computes', (t) => {
  const silent: string[] = [];
  const kernel = new Map([
    ['receives', 0],
    ['computes', 0],
  ]);
  const watch = watchHeartbeats<string>(
    (process) => silent.push(process),
    (process) => kernel.get(process) ?? null,
  );
  watch.beat('receives');
  watch.beat('computes');
  const look = (): void => {
    kernel.set('receives', (kernel.get('receives') ?? 0) + 200);
    kernel.set('computes', (kernel.get('computes') ?? 0) + 10);
    watch.look();
  };
  const looks = (count: number): void => {
    for (let i = 0; i < count; i++) look();
  };
  looks(9);
  t.same(silent, []);
  looks(6);
  t.same(silent, ['computes']);
  watch.beat('receives');
  looks(15);
  t.same(silent, ['computes'], 'each heartbeat begins anew');
  looks(20);
  t.same(silent, ['computes', 'receives'], 'and none is busy for ever');
  t.end();
});

test('an endless loop is told from work of the system', async (t) => {
  const run = (code: string) => {
    const child = spawn(process.execPath, ['-e', code], { stdio: 'ignore' });
    t.teardown(() => child.kill('SIGKILL'));
    return child.pid;
  };
  const loop = run('for (;;) ;');
  const reader = run(`const fs = require('fs'); const file = fs.openSync('/dev/zero');
    const bytes = Buffer.alloc(1 << 20); for (;;) fs.readSync(file, bytes);`);
  if (kernelMs(loop) === null) return t.pass('this system does not say');
  const start = kernelMs(reader) ?? 0;
  await eventually(() => (kernelMs(reader) ?? 0) - start >= 300, { everyMs: 50 });
  const before = kernelMs(loop) ?? 0;
  const since = kernelMs(reader) ?? 0;
  await eventually(() => (kernelMs(reader) ?? 0) - since >= 300, { everyMs: 50 });
  t.ok((kernelMs(loop) ?? 0) - before < 150);
  t.equal(kernelMs(0x7fffffff), null, 'nor of a process that is gone');
});
