import { type LedgerRecord, recordFields } from './ledger-record.js';

/** A cell of a table; null is empty. */
export type Cell = string | number | null;

/**
 * One record of RFC 4180 with its line end. A text that a spreadsheet would read as a formula is prefixed with an
 * apostrophe, so that it is shown as text: some of these texts are chosen by clients.
 */
export function csvRow(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/** Includes tab and line ends, which spreadsheets skip before they look for a formula. */
const formula = /^[=+\-@\t\r\n]/;
const special = /[",\r\n]/;

function csvCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return `${cell}`;
  const text = formula.test(cell) ? `'${cell}` : cell;
  return special.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The header row of a table of records. */
export function csvHeader(): string {
  return csvRow(recordFields.map(([name]) => name));
}

/** A record as a row under `csvHeader`. Groups are in one cell, separated by semicolons. */
export function csvRecord(record: LedgerRecord): string {
  return csvRow(
    recordFields.map(([name]): Cell => {
      const value = record[name];
      if (name === 'at') return new Date(record.at).toISOString();
      if (value === null || typeof value === 'string' || typeof value === 'number') return value;
      return value.join(';');
    }),
  );
}
