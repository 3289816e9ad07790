import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { storedBytes } from '../../src/store/folder.js';
import { temporaryFolder } from '../support/temporary-folder.js';

test('the size of a store is what its files take of the disk', async (t) => {
  const path = temporaryFolder(t);
  const settings = { kind: 'embedded' as const, path, taskDays: 30 };
  const before = (await storedBytes(settings)) ?? -1;
  mkdirSync(join(path, 'ledgers'));
  writeFileSync(join(path, 'ledgers', 'data.mdb'), Buffer.alloc(1_000_000, 1));
  const after = (await storedBytes(settings)) ?? -1;
  t.ok(before >= 0 && after - before >= 1_000_000 && after - before < 1_100_000, `${before} ${after}`);
});

test('a store that was not made has no size', async (t) => {
  t.equal(
    await storedBytes({ kind: 'embedded', path: join(temporaryFolder(t), 'none'), taskDays: 30 }),
    null,
  );
});
