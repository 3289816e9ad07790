import { test } from 'tap';
import { startGateway } from '../support/gateway.js';

test('SIGUSR1, on which other servers open their log again, opens no debugger', async (t) => {
  const gateway = await startGateway(t, { workers: 1 });
  for (const [role, pid] of [
    ['primary', gateway.pid],
    ['worker', gateway.workerPids()[0] ?? 0],
  ] as const) {
    process.kill(pid, 'SIGUSR1');
    await gateway.untilLogged(
      (line) => line.role === role && /^SIGUSR1 has no effect/.test(String(line.msg)),
    );
  }
  t.notMatch(gateway.logs.join('\n'), /debugger|inspector/i);
});
