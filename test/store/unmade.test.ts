import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { createStore, withoutMaking } from '../../src/store/create.js';

test('who only reads makes no files, and reads them as soon as somebody else has made them', async (t) => {
  const path = join(t.testdir(), 'data');
  const settings = { kind: 'embedded', path, taskDays: 7 } as const;
  const [reader, other] = [withoutMaking(createStore(settings), settings), createStore(settings)];
  t.teardown(() => Promise.all([reader.close(), other.close()]));
  t.equal(await reader.get('things', 'a'), null);
  t.strictSame(await reader.list('things', 10, null), { records: [], next: null });
  t.strictSame(await reader.readLines('usage', { from: 0, until: 1 }, 10, null), { lines: [], next: null });
  t.strictSame(await reader.readSums('usage', { from: '', until: null }, 10, null), { sums: [], next: null });
  t.notOk(existsSync(path));
  await other.create('things', 'a', 'value', 60_000);
  t.match(await reader.get('things', 'a'), { value: 'value' });
  t.equal((await reader.list('things', 10, null)).records.length, 1);
});

test('who writes makes them', async (t) => {
  const path = join(t.testdir(), 'data');
  const settings = { kind: 'embedded', path, taskDays: 7 } as const;
  const store = withoutMaking(createStore(settings), settings);
  t.teardown(() => store.close());
  t.ok(await store.create('things', 'a', 'value', 60_000));
  t.match(await store.get('things', 'a'), { value: 'value' });
});
