import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { createEmbeddedStore } from '../../src/store/embedded.js';
import { testStore } from '../suites/store.js';

const folder = mkdtempSync(join(tmpdir(), 'store-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

testStore('embedded', {
  settings: { kind: 'embedded', path: join(folder, 'data'), taskDays: 7 },
  skip: false,
  processes: true,
});

t.test(
  'an answer that waits when a blocked event loop goes on is read before its time is over',
  async (t) => {
    const store = createEmbeddedStore({ path: join(folder, 'blocked'), timeoutMs: 200 });
    t.teardown(() => store.close());
    // The first call waits for the thread to start.
    while ((await store.get('c', 'x').catch((fault: unknown) => fault)) instanceof Error);
    const found = store.get('c', 'x');
    await new Promise((resolve) => setImmediate(resolve));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
    t.equal(await found, null);
  },
);
