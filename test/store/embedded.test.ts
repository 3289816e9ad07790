import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { testStore } from '../suites/store.js';

const folder = mkdtempSync(join(tmpdir(), 'store-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

testStore('embedded', {
  settings: { kind: 'embedded', path: join(folder, 'data'), taskDays: 7 },
  skip: false,
  processes: true,
});
