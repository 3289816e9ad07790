import { entryFields, type UsageEntry } from './entry.js';

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

/** The header row of a table of entries. */
export function csvHeader(): string {
  return csvRow(entryFields.map(([name]) => name));
}

/** An entry as a row under `csvHeader`. Groups stand in one cell, with semicolons between. */
export function csvEntry(entry: UsageEntry): string {
  return csvRow(
    entryFields.map(([name]): Cell => {
      const value = entry[name];
      if (name === 'at') return new Date(entry.at).toISOString();
      if (value === null || typeof value === 'string' || typeof value === 'number') return value;
      return value.join(';');
    }),
  );
}
