import { test } from 'tap';
import { heartbeatMs, watchHeartbeats } from '../../src/supervisor/heartbeat.js';
import { startCli } from '../suites/start.js';

const body = JSON.stringify({ model: 'sim-text', messages: [{ role: 'user', content: 'hi' }] });

/** On a connection of its own, since the system spreads connections over the workers. */
async function call(baseUrl: string): Promise<number> {
  const answer = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json', connection: 'close' },
    body,
  });
  await answer.arrayBuffer();
  return answer.status;
}

test('a worker that hangs is killed and replaced, and every connection is served again', async (t) => {
  const gateway = await startCli({ workers: 2 });
  t.teardown(() => gateway.stop());
  const [stuck, other] = gateway.workerPids() as [number, number];
  // A process that the system has stopped answers as much as one in an endless loop.
  process.kill(stuck, 'SIGSTOP');
  const said = await gateway.untilLogged(
    (entry) => entry.msg === 'a worker hangs, it is killed and replaced',
  );
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
  const watch = watchHeartbeats<string>((process) => silent.push(process));
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
