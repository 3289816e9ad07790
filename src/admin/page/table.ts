import { h, setText } from './dom.js';
import { nothing } from './format.js';
import { placeAll } from './place.js';
import { nextOrder, type SortOrder, type SortValue, sorted } from './sort.js';

export interface Column<Row> {
  /** In `data-cell`. */
  readonly key: string;
  readonly title: string;
  /** More words about it, under the pointer. */
  readonly hint?: string;
  /** What it sorts by; where it is a number it is in `data-value` too. */
  value(row: Row): SortValue;
  /** What is read; the value itself where this is missing. */
  text?(row: Row): string;
  /** Draws the cell in the place of `text`. */
  paint?(cell: HTMLElement, row: Row): void;
  /** Right-aligned, and sorted from the largest. */
  readonly isNumber?: boolean;
  /** Sentences: they break, and the column takes the width that is left. */
  readonly isProse?: boolean;
}

export interface TableOptions<Row> {
  /** Its accessible name. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** What a row is known by, in `data-row`. */
  keyOf(row: Row): string;
  /** Null: as the rows come, and no column sorts. */
  readonly order: SortOrder | null;
  /** What is said when there is no row. */
  readonly empty: string;
}

/** A table that stays in place while its numbers change: a row keeps its elements as long as it is there. */
export interface Table<Row> {
  readonly element: HTMLElement;
  update(rows: readonly Row[]): void;
}

interface DrawnRow {
  readonly element: HTMLTableRowElement;
  readonly cells: readonly HTMLElement[];
}

/** Makes a table whose columns sort by a click on their heads. */
export function createTable<Row>(options: TableOptions<Row>): Table<Row> {
  const { label, columns, keyOf, empty } = options;
  let order = options.order;
  let rows: readonly Row[] = [];
  let drawn = new Map<string, DrawnRow>();

  const heads = columns.map((column) => headOf(column, order !== null, () => sortBy(column)));
  const body = h('tbody');
  const nobody = h('p', { class: 'empty' }, empty);
  const table = h(
    'table',
    { class: 'dense', attributes: { 'aria-label': label } },
    h('thead', {}, h('tr', {}, ...heads)),
    body,
  );
  const element = h('div', { class: 'table-wrap', tabIndex: 0 }, table, nobody);
  element.setAttribute('role', 'group');
  element.setAttribute('aria-label', label);

  const draw = (): void => {
    const column = columns.find(({ key }) => key === order?.key);
    const inOrder =
      order === null || column === undefined ? rows : sorted(rows, column.value, order.descending);
    const next = new Map<string, DrawnRow>();
    for (const row of inOrder) {
      const key = keyOf(row);
      const line = drawn.get(key) ?? createRow(key, columns);
      next.set(key, line);
      for (const [index, each] of columns.entries()) writeCell(line.cells[index] as HTMLElement, each, row);
    }
    drawn = next;
    placeAll(
      body,
      [...next.values()].map((line) => line.element),
    );
    table.hidden = rows.length === 0;
    nobody.hidden = rows.length > 0;
  };
  const sortBy = ({ key, isNumber = false }: Column<Row>): void => {
    if (order === null) return;
    order = nextOrder(order, key, isNumber);
    markHeads();
    draw();
  };
  const markHeads = (): void => {
    for (const [index, { key }] of columns.entries()) {
      const head = heads[index] as HTMLElement;
      if (key === order?.key) head.setAttribute('aria-sort', order.descending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
  };

  markHeads();
  draw();
  return {
    element,
    update(next) {
      rows = next;
      draw();
    },
  };
}

function headOf<Row>(column: Column<Row>, sorts: boolean, onClick: () => void): HTMLElement {
  const { title, hint = '', isNumber = false } = column;
  return h(
    'th',
    { scope: 'col', class: isNumber ? 'number' : '', title: hint },
    sorts ? h('button', { type: 'button', class: 'sort', on: { click: onClick } }, title) : title,
  );
}

function createRow<Row>(rowKey: string, columns: readonly Column<Row>[]): DrawnRow {
  const cells = columns.map(({ key, isNumber = false, isProse = false }, index) =>
    index === 0
      ? h('th', { scope: 'row', data: { cell: key } })
      : h('td', { class: isNumber ? 'number' : isProse ? 'prose' : '', data: { cell: key } }),
  );
  return { element: h('tr', { data: { row: rowKey } }, ...cells), cells };
}

function writeCell<Row>(cell: HTMLElement, column: Column<Row>, row: Row): void {
  const value = column.value(row);
  if (typeof value === 'number') cell.dataset.value = `${value}`;
  else delete cell.dataset.value;
  if (column.paint !== undefined) column.paint(cell, row);
  else setText(cell, column.text?.(row) ?? (value === null ? nothing : `${value}`));
}
