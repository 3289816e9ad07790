import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { test } from 'tap';
import { createStore } from '../../src/store/create.js';
import { tellRisks } from '../../src/supervisor/supervise.js';
import { eventually } from '../support/eventually.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('what a store may lose is told once, and a safe store is not spoken of', async (t) => {
  const lines: unknown[] = [];
  const log = pino({ base: null }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  t.teardown(tellRisks({ risks: async () => ['fsync is off'] }, log));
  await eventually(() => lines.length === 1);
  t.match(lines[0], { level: 40, risks: ['fsync is off'] });
  let asked = 0;
  const safe = async (): Promise<string[]> => {
    asked += 1;
    return [];
  };
  t.teardown(tellRisks({ risks: safe }, log));
  await eventually(() => asked === 1);
  t.equal(lines.length, 1);
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
  t.match(await risksOf(file), [/^nothing can be kept in .*: .*file is no folder$/]);
});
