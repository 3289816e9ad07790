import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { type GatewayProcesses, startGateway } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { askLimited, hammer, limitedKey as key } from './limited-client.js';

async function start(t: Test, limits: object, workers: number): Promise<GatewayProcesses> {
  const gateway = await startGateway(t, {
    workers,
    env: { LOG_LEVEL: 'warn' },
    file: {
      upstreams: { local: { kind: 'simulator' } },
      models: { m: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] } },
      groups: { default: { models: ['*'] } },
      keys: [{ id: 'team', hash: hashKey(key), groups: ['default'], limits }],
    },
  });
  return gateway;
}

test('600 requests per minute are 600 over four workers and eight clients that hammer', async (t) => {
  const gateway = await start(t, { requestsPerMinute: 600 }, 4);
  const startedAt = performance.now();
  let offered = 0;
  // Less than a minute, so that nothing comes back meanwhile.
  const isOver = () => {
    offered++;
    const elapsedMs = performance.now() - startedAt;
    return (elapsedMs > 5000 && offered > 1500) || elapsedMs > 50_000;
  };
  const answers = await hammer(gateway.baseUrl, 8, isOver);
  const accepted = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 429);
  t.comment(`${answers.length} offered, ${accepted.length} accepted`);
  t.equal(accepted.length + refused.length, answers.length);
  t.ok(refused.length > 100, 'more was offered');
  t.ok(accepted.length <= 600, `${accepted.length} accepted`);
  t.ok(accepted.length >= 590, `${accepted.length} accepted`);
  t.ok(refused.every(({ retryAfter }) => Number(retryAfter) >= 1 && Number(retryAfter) <= 61));
});

test('a limit of calls at once holds over workers, and survives the end of one', async (t) => {
  const gateway = await start(t, { concurrent: 4 }, 2);
  let open = 0;
  let most = 0;
  const slow = JSON.stringify({
    model: 'm',
    messages: [{ role: 'user', content: '[[fault:latency=40]] hi' }],
  });
  const call = async (): Promise<number> => {
    const answer = await postJson(`${gateway.baseUrl}/v1/chat/completions`, slow, {
      authorization: `Bearer ${key}`,
      connection: 'close',
    });
    if (answer.status === 200) {
      open++;
      most = Math.max(most, open);
    }
    await answer.text();
    if (answer.status === 200) open--;
    return answer.status;
  };
  const burst = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (let round = 0; round < 5; round++) {
      const statuses = await Promise.all(Array.from({ length: 16 }, () => call().catch(() => 0)));
      for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
    }
    return counts;
  };
  const before = await burst();
  t.ok((before[200] ?? 0) >= 5 && (before[429] ?? 0) > 0, JSON.stringify(before));
  const [first = 0] = gateway.workerPids();
  process.kill(first, 'SIGKILL');
  await gateway.until(() => gateway.workerPids().length === 2 && !gateway.workerPids().includes(first));
  const after = await burst();
  t.ok((after[200] ?? 0) >= 5 && (after[429] ?? 0) > 0, JSON.stringify(after));
  t.ok(most <= 4, `${most} at once`);
  // Nothing of it is lost: one after the other, all are served, once each worker has heard that calls have ended. Until
  // then, and for a second at most, it refuses by what it was told last.
  for (let i = 0; i < 20; i++) await eventually(call, { fits: (status) => status === 200 });
  t.equal(open, 0);
});

test('another limit holds after a reload', async (t) => {
  const gateway = await start(t, { requestsPerMinute: 5 }, 2);
  const agent = new Agent({ keepAlive: false });
  const statuses = async (count: number): Promise<number> => {
    let served = 0;
    for (let i = 0; i < count; i++) if ((await askLimited(gateway.baseUrl, agent)).status === 200) served++;
    return served;
  };
  t.equal(await statuses(10), 5);
  const path = gateway.configPath as string;
  writeFileSync(path, readFileSync(path, 'utf8').replace('"requestsPerMinute":5', '"requestsPerMinute":12'));
  gateway.kill('SIGHUP');
  let served = 0;
  for (let i = 0; i < 300 && served < 7; i++) {
    served += await statuses(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  t.equal(served, 7);
  t.equal(await statuses(10), 0);
});
