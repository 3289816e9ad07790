import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import t, { test } from 'tap';
import { openBase } from '../../src/store/embedded-base.js';
import { nameKey } from '../../src/store/record-format.js';
import { getRecord, sweepRecords, upsertRecord } from '../../src/store/records.js';
import { testLedger } from '../suites/ledger.js';

const folder = mkdtempSync(join(tmpdir(), 'ledger-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

testLedger('embedded', {
  settings: { kind: 'embedded', path: join(folder, 'data'), taskDays: 7 },
  skip: false,
  processes: true,
});

test('a record that is written again and again has one place in the index of expiry', async (t) => {
  const base = openBase(open, join(folder, 'records'));
  t.teardown(() => base.close());
  const { sums, change } = base.ledgers();
  const write = (expiresAt: number): string | null => {
    let before: string | null = '';
    change(() =>
      upsertRecord(sums, { collection: 'c', id: 'a', expiresAt }, (value) => {
        before = value;
        return `${value ?? ''}+`;
      }),
    );
    return before;
  };
  const now = Date.now();
  t.equal(write(now - 1), null);
  t.equal(getRecord(sums, 'c', 'a'), null);
  t.equal(write(now + 60_000), null, 'one that has expired begins anew');
  t.equal(write(now + 90_000), '+');
  t.equal(write(now + 30_000), '++', 'it keeps the longer time');
  t.equal(getRecord(sums, 'c', 'a')?.value, '+++');
  const keys = [...sums.expiry.getKeys()];
  t.equal(keys.length, 1);
  t.ok(keys[0]?.includes(nameKey('a')));
  t.equal(
    change(() => sweepRecords(sums, 10)),
    0,
  );
});
