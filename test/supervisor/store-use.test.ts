import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { announceStoreUse } from '../../src/supervisor/store-use.js';
import { startGateway } from '../support/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { configWith, openStream } from './reloading.js';

test('who uses a store is found by its folder, also before that is made and through a link, until it ends its use', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'real'));
  symlinkSync(join(folder, 'real'), join(folder, 'link'));
  const first = await announceStoreUse(join(folder, 'link', 'a', 'data'), null);
  t.strictSame(first.others, []);
  const other = await announceStoreUse(join(folder, 'real', 'a', 'data2'), null);
  t.strictSame(other.others, [], 'of another store');
  mkdirSync(join(folder, 'real', 'a', 'data'), { recursive: true });
  const second = await announceStoreUse(join(folder, 'real', 'a', 'data'), null);
  t.strictSame(second.others, [process.pid]);
  first.end();
  second.end();
  const third = await announceStoreUse(join(folder, 'link', 'a', 'data'), null);
  t.strictSame(third.others, []);
  third.end();
  other.end();
});

test('a second gateway on a store says so at its start, and one that takes the place of the first does not', async (t) => {
  const path = join(temporaryFolder(t), 'data');
  const file = configWith({ store: { kind: 'embedded', path } });
  const said = ({ msg }: { msg?: unknown }): boolean =>
    String(msg).startsWith('another gateway uses this store, ');
  const before = await startGateway(t, { workers: 1, file });
  const args = ['--port', `${before.port}`, '--take-over'];
  const after = await startGateway(t, { workers: 1, file, args });
  t.strictSame(await before.exited, { code: 0, signal: null });
  const other = await startGateway(t, { workers: 1, file });
  t.match(await other.untilLogged(said), { level: 'warn', folder: path, processes: [after.pid] });
  t.match(await (await openStream(other.port, false, 'hello')).text, /data: \[DONE\]\s*$/);
  other.kill('SIGKILL');
  const again = await startGateway(t, { workers: 1, file, args: ['--port', `${other.port}`] });
  t.match(await again.untilLogged(said), { processes: [after.pid] }, 'not the one whose workers are left');
  for (const { logs } of [before, after]) t.notOk(logs.some((line) => line.includes('uses this store')));
});
