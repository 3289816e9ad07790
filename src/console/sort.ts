/** A value to sort rows by; null if unknown. */
export type SortValue = number | string | null;

/** The column and direction of a sort. */
export interface SortOrder {
  readonly key: string;
  readonly descending: boolean;
}

/** Sorts rows by a value. Unknown values are last in both directions; the sort is stable. */
export function sorted<Row>(
  rows: readonly Row[],
  by: (row: Row) => SortValue,
  descending: boolean,
): readonly Row[] {
  return [...rows].sort((first, second) => {
    const a = by(first);
    const b = by(second);
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return (descending ? -1 : 1) * compare(a, b);
  });
}

/** The order after a click on a column's heading: numbers begin with the largest, text with A. */
export function nextOrder(order: SortOrder, key: string, isNumber: boolean): SortOrder {
  return { key, descending: order.key === key ? !order.descending : isNumber };
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return `${a}`.localeCompare(`${b}`, 'en', { numeric: true });
}
