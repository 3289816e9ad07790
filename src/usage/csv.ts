import { type LedgerRecord, recordFields } from './ledger-record.js';

/** A cell of a table. Null is an empty one. */
export type Cell = string | number | null;

/**
 * One record of RFC 4180 with its line end. A text that a spreadsheet would take for a formula gets an apostrophe in
 * front, which spreadsheets show as text: some of what is written here was chosen by clients.
 */
export function csvRow(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/** Tab and line ends count too: spreadsheets pass over them before they look for a formula. */
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

/** A record as a row under `csvHeader`. Groups stand in one cell, with semicolons between. */
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
