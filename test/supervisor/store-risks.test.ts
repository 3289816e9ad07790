import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { test } from 'tap';
import { createStore } from '../../src/store/create.js';
import { logRisks } from '../../src/supervisor/supervise.js';
import { eventually } from '../support/eventually.js';
import { startGateway, testConfig } from '../support/gateway.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('what a store may lose is told once, and a safe store is not spoken of', async (t) => {
  const lines: unknown[] = [];
  const log = pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  t.teardown(logRisks({ risks: async () => ['fsync is off'] }, log));
  await eventually(() => lines.length === 1);
  t.match(lines[0], { level: 40, risks: ['fsync is off'] });
  let asked = 0;
  const safe = async (): Promise<string[]> => {
    asked += 1;
    return [];
  };
  t.teardown(logRisks({ risks: safe }, log));
  await eventually(() => asked === 1);
  t.equal(lines.length, 1);
});

test('what becomes a risk later is told then, and once though its numbers change', async (t) => {
  const lines: { risks: string[] }[] = [];
  const log = pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  let asked = 0;
  const risks = async (): Promise<string[]> => {
    asked += 1;
    return asked === 1 ? [] : [`a standby is ${asked} s behind`];
  };
  t.teardown(logRisks({ risks }, log, 1));
  await eventually(() => asked === 5);
  t.strictSame(
    lines.map((line) => line.risks),
    [['a standby is 2 s behind']],
  );
});

test('a store that is removed or replaced while it is open is told of', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'data');
  const store = createStore({ kind: 'embedded', path, taskDays: 7 });
  t.teardown(() => store.close());
  t.strictSame(await store.risks(), [], 'nothing is there yet');
  await store.create('things', 'a', '1', 60_000);
  t.strictSame(await store.risks(), []);
  rmSync(path, { recursive: true });
  t.match(await store.risks(), [/data was removed or replaced while the gateway uses it: .* restart/]);
  mkdirSync(path);
  t.match(await store.risks(), [/removed or replaced/]);
});

test('a store in a folder that cannot be one is told of, and a folder that is still to be made is none', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const risksOf = async (path: string) => {
    const store = createStore({ kind: 'embedded', path, taskDays: 7 });
    t.teardown(() => store.close());
    return store.risks();
  };
  t.strictSame(await risksOf(join(folder, 'a', 'b')), []);
  t.match(await risksOf(file), [
    /^nothing can be kept in .*: .*file is no folder; name another store\.path$/,
  ]);
});

test('a folder that no video can be kept in is told of when a gateway starts, by its setting', async (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  const config = testConfig({ upstreams: ['http://127.0.0.1:9'], config: { videos: { folder: file } } });
  const gateway = await startGateway(t, { workers: 1, file: config });
  const { risks } = await gateway.untilLogged((entry) => 'risks' in entry);
  t.match(risks, [/^nothing can be kept in .*: .*file is no folder; name another videos\.folder$/]);
});
