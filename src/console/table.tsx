import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { nothing } from './format.js';
import { useKept } from './session.js';
import { nextOrder, type SortOrder, type SortValue, sorted } from './sort.js';

export interface Column<Row> {
  /** Value of `data-cell`. */
  readonly key: string;
  readonly title: string;
  /** Tooltip of the heading. */
  readonly hint?: string;
  /** The value to sort by; a number is also in `data-value`. */
  value(row: Row): SortValue;
  /** Content of a cell; by default the value itself. */
  content?(row: Row): ComponentChildren;
  /** Attributes of a cell: its title and data. */
  attributes?(row: Row): Readonly<Record<string, string | undefined>>;
  /** Right-aligned, and sorted from the largest. */
  readonly isNumber?: boolean;
  /** Prose, which wraps; the column takes the remaining width. */
  readonly isProse?: boolean;
}

interface TableProps<Row> {
  /** Its accessible name. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Identifier of a row, in `data-row`. */
  keyOf(row: Row): string;
  /** Initial order. Null keeps the order of the rows, and no column sorts. */
  readonly order: SortOrder | null;
  /** Text shown without rows. */
  readonly empty: string;
}

/** A table that is sorted by a click on a column's heading. */
export function Table<Row>({ label, columns, rows, keyOf, order: first, empty }: TableProps<Row>) {
  const order = useKept(`order of ${label}`, () => signal(first));
  const by = columns.find(({ key }) => key === order.value?.key);
  const inOrder =
    order.value === null || by === undefined ? rows : sorted(rows, by.value, order.value.descending);
  return (
    <div class="table-wrap" role="group" aria-label={label} tabIndex={0}>
      {rows.length === 0 ? (
        <p class="empty">{empty}</p>
      ) : (
        <table class="dense" aria-label={label}>
          <thead>
            <tr>
              {columns.map(({ key, title, hint, isNumber = false }) => (
                <th
                  key={key}
                  scope="col"
                  class={isNumber ? 'number' : ''}
                  title={hint}
                  aria-sort={sortOf(order.value, key)}
                >
                  {order.value === null ? title : <SortButton {...{ order, column: key, isNumber, title }} />}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {inOrder.map((row) => (
              <tr key={keyOf(row)} data-row={keyOf(row)}>
                {columns.map((column, index) => (
                  <Cell key={column.key} column={column} row={row} isHead={index === 0} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The value of a column's `aria-sort`. */
export function sortOf(order: SortOrder | null, column: string): 'ascending' | 'descending' | undefined {
  if (order?.key !== column) return undefined;
  return order.descending ? 'descending' : 'ascending';
}

interface SortButtonProps {
  readonly order: { value: SortOrder | null };
  readonly column: string;
  readonly isNumber: boolean;
  readonly title: string;
  readonly hint?: string;
}

/** The heading of a column: sorts by it, or reverses the order if it is sorted by it already. */
export function SortButton({ order, column, isNumber, title, hint }: SortButtonProps) {
  const sort = (): void => {
    order.value = nextOrder(order.value ?? { key: '', descending: false }, column, isNumber);
  };
  return (
    <button type="button" class="sort" title={hint} data-column={column} onClick={sort}>
      {title}
    </button>
  );
}

interface CellProps<Row> {
  readonly column: Column<Row>;
  readonly row: Row;
  readonly isHead: boolean;
}

function Cell<Row>({ column, row, isHead }: CellProps<Row>) {
  const { key, isNumber = false, isProse = false } = column;
  const value = column.value(row);
  const shared = {
    'data-cell': key,
    'data-value': typeof value === 'number' ? `${value}` : undefined,
    ...column.attributes?.(row),
  };
  const content = column.content === undefined ? (value ?? nothing) : column.content(row);
  if (isHead) {
    return (
      <th scope="row" {...shared}>
        {content}
      </th>
    );
  }
  return (
    <td class={isNumber ? 'number' : isProse ? 'prose' : ''} {...shared}>
      {content}
    </td>
  );
}
