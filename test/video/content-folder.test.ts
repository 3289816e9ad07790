import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Test, test } from 'tap';
import { createStore } from '../../src/store/create.js';
import { bootId } from '../../src/store/process-mark.js';
import { beginKept, openKept, sweepInTurn, sweepKept } from '../../src/video/content-folder.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const dayMs = 24 * 60 * 60 * 1000;
const idOf = (digit: string) => `video_${digit.repeat(32)}`;
const settingsOf = (t: Test) => ({
  folder: join(temporaryFolder(t), 'videos'),
  days: 2,
  bytes: 100,
  fileBytes: 60,
});

async function keep(
  settings: ReturnType<typeof settingsOf>,
  id: string,
  bytes: number,
  { ageMs = 0, type = 'video/mp4' } = {},
): Promise<void> {
  const part = await beginKept(settings, id);
  await part.write(Buffer.alloc(bytes, 1));
  await part.finish(type, Date.now() - ageMs);
}

test('a video is there once it is whole, in a folder that others may not read', async (t) => {
  const settings = settingsOf(t);
  const part = await beginKept(settings, idOf('a'));
  await part.write(Buffer.from('half '));
  t.equal(await openKept(settings, idOf('a')), null);
  await part.write(Buffer.from('and half'));
  await part.finish('video/webm', Date.now());
  const kept = await openKept(settings, idOf('a'));
  t.match(kept, { bytes: 13, contentType: 'video/webm' });
  t.equal((await kept?.handle.readFile())?.toString(), 'half and half');
  await kept?.handle.close();
  t.equal((await stat(settings.folder)).mode & 0o777, 0o700);
  t.strictSame(await readdir(settings.folder), [`${idOf('a')}.webm`]);
});

test('what is given up or too large leaves nothing', async (t) => {
  const settings = settingsOf(t);
  const part = await beginKept(settings, idOf('a'));
  await part.write(Buffer.alloc(60));
  await t.rejects(part.write(Buffer.alloc(1)), RangeError);
  await part.discard();
  t.strictSame(await readdir(settings.folder), []);
});

test('only ids of tasks become paths', async (t) => {
  const settings = settingsOf(t);
  await mkdir(settings.folder);
  await writeFile(join(settings.folder, 'secret.mp4'), 'x');
  for (const id of [
    'secret',
    '../x',
    `${idOf('a')}/../secret`,
    'video_',
    `${idOf('a')}\n`,
    `${idOf('a')}.mp4`,
  ]) {
    t.equal(await openKept(settings, id), null, id);
    await t.rejects(beginKept(settings, id), RangeError, id);
  }
  t.strictSame(await readdir(settings.folder), ['secret.mp4']);
});

test('a video is kept for so many days, counted from when its task was made', async (t) => {
  const settings = settingsOf(t);
  await keep(settings, idOf('a'), 10, { ageMs: 2 * dayMs });
  await keep(settings, idOf('b'), 10, { ageMs: dayMs });
  t.equal(await openKept(settings, idOf('a')), null, 'swept or not');
  await sweepKept(settings);
  t.strictSame(await readdir(settings.folder), [`${idOf('b')}.mp4`]);
});

test('the oldest give way to new ones, and whoever reads one reads it to the end', async (t) => {
  const settings = settingsOf(t);
  for (const [index, digit] of ['a', 'b', 'c'].entries())
    await keep(settings, idOf(digit), 40, { ageMs: dayMs - index * 1000 });
  const read = await openKept(settings, idOf('a'));
  await sweepKept(settings);
  t.strictSame((await readdir(settings.folder)).sort(), [`${idOf('b')}.mp4`, `${idOf('c')}.mp4`]);
  t.equal((await read?.handle.readFile())?.length, 40);
  await read?.handle.close();
});

test('a sweep takes what a killed process has left, and nothing that is not the gateway’s', async (t) => {
  const settings = settingsOf(t);
  await keep(settings, idOf('a'), 10);
  const left = join(settings.folder, `.${idOf('b')}.${'0'.repeat(16)}.part`);
  const fresh = join(settings.folder, `.${idOf('c')}.${'0'.repeat(16)}.part`);
  const foreign = join(settings.folder, 'notes.mp4');
  const long = new Date(Date.now() - 30 * dayMs);
  for (const path of [left, fresh, foreign]) await writeFile(path, 'x');
  for (const path of [left, foreign]) await utimes(path, long, long);
  await sweepKept(settings);
  t.strictSame(
    (await readdir(settings.folder)).map((name) => join(settings.folder, name)).sort(),
    [fresh, foreign, join(settings.folder, `${idOf('a')}.mp4`)].sort(),
  );
  t.equal((await readFile(foreign)).toString(), 'x');
});

test('a video of a task of some hours ago is kept though others sweep meanwhile', async (t) => {
  const settings = { ...settingsOf(t), bytes: 2 ** 30, fileBytes: 2 ** 30 };
  const part = await beginKept(settings, idOf('a'));
  // It takes a while until these are durable.
  for (let piece = 0; piece < 16; piece++) await part.write(Buffer.alloc(2 ** 20, piece));
  let isOver = false;
  const sweep = async (): Promise<void> => {
    while (!isOver) await sweepKept(settings);
  };
  const sweeping = sweep();
  const createdAt = Date.now() - dayMs / 4;
  await part.finish('video/mp4', createdAt).finally(() => {
    isOver = true;
  });
  await sweeping;
  t.strictSame(await readdir(settings.folder), [`${idOf('a')}.mp4`]);
  const { mtimeMs } = await stat(join(settings.folder, `${idOf('a')}.mp4`));
  t.ok(Math.abs(mtimeMs - createdAt) < 1, 'its days count from when its task was made');
});

test('what has the name of a video and is no file is neither opened, nor waited for, nor in a sweep’s way', async (t) => {
  const settings = settingsOf(t);
  await keep(settings, idOf('d'), 10, { ageMs: 2 * dayMs });
  const pathOf = (digit: string): string => join(settings.folder, `${idOf(digit)}.mp4`);
  await mkdir(pathOf('a'));
  await writeFile(join(settings.folder, 'notes'), 'x'.repeat(200));
  await symlink('notes', pathOf('b'));
  execFileSync('mkfifo', [pathOf('c')]);
  const long = new Date(Date.now() - 30 * dayMs);
  for (const digit of ['a', 'c']) await utimes(pathOf(digit), long, long);
  for (const digit of ['a', 'b', 'c']) t.equal(await openKept(settings, idOf(digit)), null, digit);
  await sweepKept(settings);
  const left = ['a', 'b', 'c'].map((digit) => `${idOf(digit)}.mp4`);
  t.strictSame((await readdir(settings.folder)).sort(), ['notes', ...left]);
});

test('without a folder there is nothing to sweep', async (t) => {
  const settings = settingsOf(t);
  await sweepKept(settings);
  t.equal(await openKept(settings, idOf('a')), null);
});

test('of the processes of a host one sweeps a folder, and nobody where there is none', async (t) => {
  const store = createStore({ kind: 'embedded', path: temporaryFolder(t), taskDays: 1 });
  t.teardown(() => store.close());
  const claims: string[] = [];
  const claiming = {
    claim: (name: string, ms: number) => {
      claims.push(name);
      return store.claim(name, ms);
    },
  };
  const [settings, other] = [settingsOf(t), settingsOf(t)];
  await sweepInTurn(claiming, settings);
  t.strictSame(claims, [], 'a store that nobody has used is not made');
  await keep(settings, idOf('a'), 10, { ageMs: 3 * dayMs });
  await keep(other, idOf('a'), 10, { ageMs: 3 * dayMs });
  await sweepInTurn(claiming, settings);
  t.strictSame(await readdir(settings.folder), []);
  t.match(claims[0], bootId(), 'another machine of the same name has a turn of its own');
  await keep(settings, idOf('b'), 10, { ageMs: 3 * dayMs });
  await sweepInTurn(claiming, settings);
  t.strictSame(await readdir(settings.folder), [`${idOf('b')}.mp4`], 'somebody has done it a moment ago');
  await sweepInTurn(claiming, other);
  t.strictSame(await readdir(other.folder), [], 'each folder has a turn of its own');
});
