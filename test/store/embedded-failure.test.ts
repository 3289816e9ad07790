import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { unavailable } from '../suites/store.js';
import { startStoreProcess } from '../suites/store-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const minuteMs = 60_000;

test('nothing is made before the first call', async (t) => {
  const path = join(temporaryFolder(t), 'data');
  const store = createEmbeddedStore({ path });
  t.notOk(existsSync(path));
  await store.close();
  t.notOk(existsSync(path));
  await unavailable(t, store.get('a', 'a'));
});

test('a folder that cannot be made is told by each call, and used when it can', async (t) => {
  const folder = temporaryFolder(t);
  const blocked = join(folder, 'blocked');
  writeFileSync(blocked, 'a file stands where the folder should');
  const store = createEmbeddedStore({ path: join(blocked, 'data') });
  t.teardown(() => store.close());
  t.match((await unavailable(t, store.create('a', 'a', '1', minuteMs)))?.cause, /ENOTDIR/);
  t.match((await unavailable(t, store.get('a', 'a')))?.cause, /ENOTDIR/);
  t.match((await unavailable(t, store.claim('a', minuteMs)))?.cause, /ENOTDIR/);
  rmSync(blocked);
  t.equal(await store.create('a', 'a', '1', minuteMs), true);
});

test('files that are no database of ours are refused and left alone', async (t) => {
  for (const content of [Buffer.alloc(20_000, 7), Buffer.alloc(20, 0), Buffer.from('short')]) {
    const path = temporaryFolder(t);
    const data = join(path, 'records', 'data.mdb');
    mkdirSync(join(path, 'records'));
    writeFileSync(data, content);
    const store = createEmbeddedStore({ path });
    const error = await unavailable(t, store.create('a', 'a', '1', minuteMs));
    t.match(error?.cause, { message: `${data} is no database of this form` });
    rmSync(data);
    t.equal(await store.create('a', 'a', '1', minuteMs), true);
    await store.close();
  }
});

const noLimit =
  spawnSync('prlimit', ['--version']).error !== undefined &&
  'there is no prlimit, by which a disk seems full (Debian: apt-get install util-linux)';

test('a full disk is told, and all is well when there is room', { skip: noLimit }, async (t) => {
  const settings = { kind: 'embedded', path: join(temporaryFolder(t), 'data'), taskDays: 7 } as const;
  const filling = startStoreProcess({ settings, does: 'fill' });
  t.teardown(() => filling.kill());
  const limit = (bytes: string) => spawnSync('prlimit', ['--pid', `${filling.pid}`, `--fsize=${bytes}`]);
  limit('2097152:unlimited');
  await filling.untilTold(2);
  t.match(filling.told[0], /^store_unavailable: Error: (File too large|Input\/output error)/);
  t.equal(filling.told[1], 'it can still be read');
  limit('4096:unlimited');
  filling.proceed();
  await filling.untilTold(3);
  t.match(filling.told[2], /File too large/);
  limit('unlimited:unlimited');
  filling.proceed();
  await filling.untilTold(4);
  t.equal(filling.told[3], 'there is room again');
  t.equal(await filling.exited, 0);
  t.match(filling.errors(), /Write error: File too large.*\n$/, 'what LMDB writes ends its line');
});

test('a writer that does not end is waited for in bounds, and its death frees the others', async (t) => {
  const path = join(temporaryFolder(t), 'data');
  const store = createEmbeddedStore({ path, timeoutMs: 300 });
  t.teardown(() => store.close());
  const settings = { kind: 'embedded', path, taskDays: 7 } as const;
  const patient = createEmbeddedStore({ path });
  t.teardown(() => patient.close());
  t.equal(await patient.create('a', 'a', '1', minuteMs), true);
  const holder = startStoreProcess({ settings, does: 'hold', path });
  t.teardown(() => holder.kill());
  await holder.untilTold(1);
  await unavailable(t, store.create('a', 'b', '1', minuteMs));
  const waiting = patient.create('a', 'c', '1', minuteMs);
  holder.kill();
  t.equal(await waiting, true);
  t.equal((await patient.get('a', 'a'))?.value, '1');
});

test('a process that exits lets a change that has begun come to its end', async (t) => {
  const path = join(temporaryFolder(t), 'data');
  const settings = { kind: 'embedded', path, taskDays: 7 } as const;
  const leaving = startStoreProcess({ settings, does: 'leave' });
  t.teardown(() => leaving.kill());
  await leaving.untilTold(1);
  const holder = startStoreProcess({ settings, does: 'hold', path });
  t.teardown(() => holder.kill());
  await holder.untilTold(1);
  leaving.proceed();
  await leaving.untilTold(2);
  holder.kill();
  t.equal(await leaving.exited, 7);
  const store = createEmbeddedStore({ path });
  t.teardown(() => store.close());
  t.ok(await store.get('left', 'a'));
});

test('claims of a start of the machine that is over are removed', async (t) => {
  const path = temporaryFolder(t);
  const old = 'claims-00000000-0000-0000-0000-000000000000';
  mkdirSync(join(path, old));
  writeFileSync(join(path, old, 'data.mdb'), 'half of a page');
  const store = createEmbeddedStore({ path });
  t.equal(await store.claim('a', minuteMs), true);
  t.notOk(readdirSync(path).includes(old));
  await store.close();
});

test('calls beyond the bound are refused at once', async (t) => {
  const store = createEmbeddedStore({ path: temporaryFolder(t) });
  const calls = Array.from({ length: 4096 }, () => store.claim('a', minuteMs));
  const error = await unavailable(t, store.claim('a', minuteMs));
  t.match(error?.cause, { message: '4096 calls of the store are under way' });
  t.equal((await Promise.all(calls)).filter((won) => won).length, 1);
  t.equal(await store.claim('b', minuteMs), true);
  await store.close();
});
