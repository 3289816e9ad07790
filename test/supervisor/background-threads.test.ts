import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { test } from 'tap';
import { backgroundThreads } from '../../src/supervisor/workers.js';
import { startGateway } from '../support/gateway.js';

test('workers share the cores for what V8 does beside their own thread', async (t) => {
  t.equal(backgroundThreads(1, 1), 1);
  t.equal(backgroundThreads(2, 1), 2);
  t.equal(backgroundThreads(8, 8), 1);
  t.equal(backgroundThreads(8, 16), 1);
  t.equal(backgroundThreads(16, 8), 2);
  t.equal(backgroundThreads(64, 1), 4, 'no more than V8 starts by itself');
});

test('a worker is started with its share of them, and with the options that are set for all of Node', async (t) => {
  const workers = 2;
  const options = '--max-semi-space-size=32';
  const gateway = await startGateway(t, { workers, env: { NODE_OPTIONS: options } });
  const expected = backgroundThreads(availableParallelism(), workers);
  const pids = gateway.workerPids();
  t.equal(pids.length, workers);
  for (const pid of pids) {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    t.ok(variables.includes(`NODE_OPTIONS=--v8-pool-size=${expected} ${options}`));
    t.ok(readdirSync(`/proc/${pid}/task`).length > expected);
  }
});
