import { test } from 'tap';
import {
  isLedgerRecord,
  isTime,
  type LedgerRecordLike,
  recordFields,
  writeRecord,
} from '../../src/usage/ledger-record.js';
import { fc } from '../support/seed.js';
import { anyRecord, ledgerRecord, recordOfLine } from './records.js';

test('a line is what JSON has for its record, with its time for people, too', async (t) => {
  fc.assert(
    fc.property(anyRecord, (record) => {
      const line = writeRecord(record);
      const fields = Object.keys(JSON.parse(line) as object);
      t.same(
        fields,
        recordFields.map(([field]) => field),
      );
      return !/[\r\n]/.test(line) && writeRecord(recordOfLine(line)) === line;
    }),
  );
  t.same(recordOfLine(writeRecord(ledgerRecord())), ledgerRecord());
  t.match(JSON.parse(writeRecord(ledgerRecord())), {
    at: '2026-03-09T12:00:00.000Z',
    keyId: 'team-a',
    status: 200,
  });
  t.throws(() => writeRecord(ledgerRecord({ at: Number.NaN })), RangeError);
});

test('every field of a record is a column', async (t) => {
  t.same(recordFields.map(([field]) => field).sort(), Object.keys(ledgerRecord()).sort());
});

test('what has another thing in a field is no record', async (t) => {
  const good: LedgerRecordLike = ledgerRecord();
  t.ok(isLedgerRecord(good));
  const wrong = {
    at: 'noon',
    keyId: 7,
    groups: [7],
    status: '200',
    outcome: 'good',
    firstByteMs: '1',
    costNanoUsd: Number.NaN,
    requestId: null,
  };
  for (const [field, value] of Object.entries(wrong)) {
    t.notOk(isLedgerRecord({ ...good, [field]: value }), field);
    t.notOk(isLedgerRecord({ ...good, [field]: undefined }), field);
  }
});

test('a time is one that a calendar has', async (t) => {
  for (const at of [0, Date.UTC(2026, 2, 9), 8.64e15]) {
    t.ok(isTime(at));
    t.doesNotThrow(() => new Date(at).toISOString());
  }
  for (const at of [-1, 0.5, Number.NaN, 8.64e15 + 1, Number.POSITIVE_INFINITY, '1', null])
    t.notOk(isTime(at));
});
