/** What rows can be sorted by; null is not known. */
export type SortValue = number | string | null;

/** Which column, and which end of it is on top. */
export interface SortOrder {
  readonly key: string;
  readonly descending: boolean;
}

/** Rows in order of a value of theirs. What is not known is last either way; equals stay as they were. */
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

/** The order after a click on a column's head: numbers begin with the largest, words with A. */
export function nextOrder(order: SortOrder, key: string, isNumber: boolean): SortOrder {
  return { key, descending: order.key === key ? !order.descending : isNumber };
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return `${a}`.localeCompare(`${b}`, 'en', { numeric: true });
}
