import type { Page } from 'playwright-core';

/** Numbers of a table's cells by the names of their columns, by the names of the rows. */
export type TableNumbers = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** As much of an element as is looked at in the browser: the types of a page are not those of these tests. */
interface PageElement {
  readonly dataset: Readonly<Record<string, string | undefined>>;
  querySelectorAll(selector: string): Iterable<PageElement>;
}

/** Runs in the browser. */
function readRows(rows: readonly PageElement[]): [name: string, numbers: Record<string, number>][] {
  return rows.map((row) => {
    const name = row.dataset.row ?? '';
    const cells = [...row.querySelectorAll('[data-cell][data-value]')];
    return [
      name.slice(name.indexOf(':') + 1),
      Object.fromEntries(cells.map((cell) => [cell.dataset.cell, Number(cell.dataset.value)])),
    ];
  });
}

/**
 * Reads the numbers of a table of the page.
 * @param label its accessible name
 * @param columns those that are wanted
 */
export async function tableNumbers(
  page: Page,
  label: string,
  columns: readonly string[],
): Promise<TableNumbers> {
  const rows = await page.getByRole('table', { name: label }).locator('tr[data-row]').evaluateAll(readRows);
  return Object.fromEntries(
    rows.map(([name, cells]) => [
      name,
      Object.fromEntries(columns.map((column) => [column, cells[column] ?? Number.NaN])),
    ]),
  );
}

/** A number with its own name in `data-stat`; NaN while there is none. */
export async function statNumber(page: Page, name: string): Promise<number> {
  const value = await page.locator(`[data-stat="${name}"]`).getAttribute('data-value');
  return value === null || value === '' ? Number.NaN : Number(value);
}
