import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import { test } from 'tap';
import { openEnvironment } from '../../src/store/environment.js';
import { startStoreProcess } from '../suites/store-processes.js';

test('a process that opens the files does not undo what another changes meanwhile', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'store-'));
  const environment = openEnvironment(open, path, { durability: 'none' });
  t.teardown(() => {
    environment.close();
    rmSync(path, { recursive: true, force: true });
  });
  const numbers = environment.database('numbers');
  const key = Buffer.from('count');
  const increment = () => {
    const next = (numbers.get(key)?.readUInt32LE() ?? 0) + 1;
    const value = Buffer.alloc(4);
    value.writeUInt32LE(next);
    void numbers.put(key, value);
    return next;
  };
  const openers = [1, 2].map(() => startStoreProcess({ does: 'open', path, times: 200 }));
  let isOpening = true;
  const exits = Promise.all(openers.map(({ exited }) => exited)).finally(() => {
    isOpening = false;
  });
  let lost = 0;
  for (let count = 1; isOpening; count++) {
    if (environment.change(increment) !== count + lost) lost -= 1;
    if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  t.same(await exits, [0, 0]);
  t.equal(lost, 0);
});
