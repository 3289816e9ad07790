import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { testConfig, testKey } from '../support/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));

test('a gateway whose log is on a full disk serves, counts the lines, and ends when it is told', async (t) => {
  const folder = temporaryFolder(t);
  const [port, adminPort, token] = [await freePort(), await freePort(), 'operators-of-the-test'];
  const admin = { port: adminPort, token };
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify(testConfig({ upstreams: ['http://127.0.0.1:9/v1'], config: { admin } })),
  );
  const log = openSync('/dev/full', 'w');
  const gateway = spawn(
    process.execPath,
    [main, 'start', '--config', join(folder, 'config.json'), '--port', `${port}`, '--workers', '1'],
    { cwd: folder, stdio: ['ignore', log, 'inherit'], env: { ...process.env, LOG_LEVEL: 'info' } },
  );
  closeSync(log);
  t.teardown(() => gateway.kill('SIGKILL'));
  const status = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${testKey}` };
    const answer = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers }).catch(() => null);
    await answer?.text();
    return answer?.status ?? 0;
  };
  await eventually(async () => (await status()) === 200, { everyMs: 50 });
  await eventually(
    async () => {
      t.equal(await status(), 200);
      const metrics = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
        headers: { authorization: `Bearer ${token}` },
      });
      return Number(/^gateway_log_dropped_total (\d+)/m.exec(await metrics.text())?.[1]) > 0;
    },
    { everyMs: 50 },
  );
  gateway.kill('SIGTERM');
  t.strictSame(await once(gateway, 'exit'), [0, null]);
});
