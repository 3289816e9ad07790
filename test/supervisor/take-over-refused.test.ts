import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'tap';
import { claimPlace } from '../../src/supervisor/take-over.js';
import { startGateway } from '../support/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { configWith, openStream } from './reloading.js';

test('a gateway that cannot start leaves the one on its port alone', async (t) => {
  const before = await startGateway(t, { workers: 1, file: configWith({}) });
  const args = ['--port', `${before.port}`, '--take-over'];
  // No such files.
  await t.rejects(
    startGateway(t, { workers: 1, file: configWith({ listen: { tls: { cert: 'x', key: 'y' } } }), args }),
  );
  t.match(await (await openStream(before.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
  t.notOk(before.logs.some((line) => line.includes('draining')));
});

test('a port of a stranger is not taken over', async (t) => {
  const stranger = createServer().listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.teardown(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  await t.rejects(
    startGateway(t, { workers: 1, file: configWith({}), args: ['--port', `${port}`, '--take-over'] }),
    {
      message: new RegExp(`127.0.0.1:${port} is in use, and not by one gateway of this user alone`),
    },
  );
});

test('a program that has only the name of a worker is taken for none whose primary has died', async (t) => {
  const folder = join(temporaryFolder(t), 'src');
  mkdirSync(folder);
  const module = join(folder, 'worker.js');
  const text =
    "require('node:net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port); });";
  writeFileSync(module, text);
  const stranger = spawn(process.execPath, [module], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => stranger.kill('SIGKILL'));
  const [line] = await once(stranger.stdout, 'data');
  const port = Number(String(line));
  await t.rejects(claimPlace('127.0.0.1', port, false), { message: /in use by another process/ });
  await t.rejects(claimPlace('127.0.0.1', port, true), { message: /not by one gateway of this user alone/ });
});

test('a port that is free is simply taken', async (t) => {
  const gateway = await startGateway(t, { workers: 1, file: configWith({}), args: ['--take-over'] });
  t.strictSame(await gateway.stop(), { code: 0, signal: null });
});
