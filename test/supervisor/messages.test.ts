import { fork } from 'node:child_process';
import { on } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { workerMark } from '../../src/supervisor/messages.js';

const worker = fileURLToPath(new URL('../../src/worker.js', import.meta.url));

test('a worker reports its metrics in the words of earlier versions, whose primary may still run', async (t) => {
  const child = fork(worker, [workerMark, `${process.pid}`], { execArgv: [] });
  t.teardown(() => child.kill('SIGKILL'));
  child.send({ type: 'collect', id: 7 });
  for await (const [message] of on(child, 'message')) {
    if ((message as { type: string }).type !== 'collected') continue;
    t.strictSame(message, {
      type: 'collected',
      id: 7,
      snapshot: { counters: [], gauges: [], histograms: [] },
    });
    break;
  }
});
