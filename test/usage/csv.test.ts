import { test } from 'tap';
import { type Cell, csvHeader, csvRecord, csvRow } from '../../src/usage/csv.js';
import { fc } from '../support/seed.js';
import { ledgerRecord } from './records.js';

/** Reads records as RFC 4180 has them, character by character. */
function parse(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') cell += text[at++];
      else quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === ',') {
      row.push(cell);
      cell = '';
    } else if (character === '\r' && text[at + 1] === '\n') {
      rows.push([...row, cell]);
      row = [];
      cell = '';
      at++;
    } else cell += character;
  }
  if (quoted || cell !== '' || row.length > 0) throw new Error('the last record does not end');
  return rows;
}

const texts = fc.string({
  unit: fc.constantFrom('a', 'ä', '"', ',', '\r', '\n', '=', '+', '-', '@', '\t', "'", ' '),
});
const cells: fc.Arbitrary<Cell> = fc.oneof(texts, fc.integer(), fc.constant(null));

test('any cells come back from a table as they were, but for an apostrophe before a formula', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.array(cells, { minLength: 1 })), (rows) => {
      const read = parse(rows.map((row) => csvRow(row)).join(''));
      const expected = rows.map((row) =>
        row.map((cell) =>
          typeof cell === 'string' && /^[=+\-@\t\r\n]/.test(cell) ? `'${cell}` : `${cell ?? ''}`,
        ),
      );
      return JSON.stringify(read) === JSON.stringify(expected);
    }),
  );
  t.pass();
});

test('no text begins like a formula, quoted or not', async (t) => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1']) {
    t.match(csvRow([text]), /^"?'/, JSON.stringify(text));
  }
  t.equal(csvRow(['=HYPERLINK("x","y")']), '"\'=HYPERLINK(""x"",""y"")"\r\n');
  t.equal(csvRow([-1]), '-1\r\n', 'a number is a number');
});

test('a record is a row under the header', async (t) => {
  const record = ledgerRecord({ groups: ['a', 'b'], model: '=cmd', target: null, firstByteMs: null });
  const [header = [], row = []] = parse(csvHeader() + csvRecord(record));
  t.equal(header.length, row.length);
  const cell = (name: string) => row[header.indexOf(name)];
  t.equal(cell('at'), '2026-03-09T12:00:00.000Z');
  t.equal(cell('groups'), 'a;b');
  t.equal(cell('model'), "'=cmd");
  t.equal(cell('target'), '');
  t.equal(cell('firstByteMs'), '');
  t.equal(cell('costNanoUsd'), '1500');
  t.equal(header.indexOf('searches'), header.indexOf('cacheWrittenHourTokens') + 1);
  t.same(header.slice(-4), ['paidNanoUsd', 'videoInputTokens', 'geo', 'characters'], 'newer columns go last');
});
