import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { testConfig } from '../support/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));

test('a reload that is asked for while the config is read for the first time ends nothing, and is done then', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'config.json');
  execFileSync('mkfifo', [path]);
  const gateway = spawn(
    process.execPath,
    [main, 'start', '--config', path, '--port', `${await freePort()}`, '--workers', '1'],
    { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, LOG_LEVEL: 'info' } },
  );
  const exited = once(gateway, 'exit');
  // Not by a kill, which its workers would outlive, and hold its output open.
  t.teardown(() => {
    gateway.kill('SIGTERM');
    return exited;
  });
  let log = '';
  gateway.stdout.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const text = JSON.stringify(testConfig({ upstreams: ['http://127.0.0.1:9/v1'] }));
  // Who opens a pipe to write waits for its reader.
  const pipe = await open(path, 'w');
  gateway.kill('SIGHUP');
  await eventually(() => !isPending(gateway.pid ?? 0));
  // The reload reads a file in its place.
  rmSync(path);
  writeFileSync(path, text);
  await pipe.writeFile(text);
  await pipe.close();
  await eventually(() => log.includes('"config reloaded"') && log.includes('"listening"'));
  t.equal(gateway.exitCode ?? gateway.signalCode, null);
});

/** Whether a signal has yet to reach a process. */
function isPending(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return /^(?:ShdPnd|SigPnd):\s*0*[1-9a-f]/m.test(status);
}
