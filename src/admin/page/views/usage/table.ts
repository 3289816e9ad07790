import { fill, h } from '../../dom.js';
import { dollars, whole } from '../../format.js';
import { nextOrder, type SortOrder } from '../../sort.js';
import { type Grouping, groupings } from './query.js';
import {
  labelsOf,
  rowName,
  type SumName,
  sortRows,
  sumColumns,
  sumOf,
  type UsageReport,
  type UsageRow,
  type UsageSums,
} from './report.js';

export interface UsageTable {
  readonly element: HTMLElement;
  update(report: UsageReport, by: readonly Grouping[]): void;
}

/** More rows are shown when they are asked for: a browser takes its time for ten thousand. */
const rowsAtOnce = 500;
const unsorted: SortOrder = { key: '', descending: false };
const titles: Readonly<Record<Grouping, string>> = { day: 'Day', model: 'Model', key: 'Key' };

/** The table of a report: sorted by any of its columns, with the total below. */
export function createUsageTable(): UsageTable {
  let report: UsageReport | null = null;
  let by: readonly Grouping[] = [];
  let order: SortOrder | null = null;
  let most = rowsAtOnce;
  let shownColumns = '';
  const head = h('tr');
  const body = h('tbody');
  const foot = h('tfoot');
  const more = h(
    'button',
    {
      type: 'button',
      class: 'button',
      on: {
        click: () => {
          most += rowsAtOnce;
          show();
        },
      },
    },
    'Show more rows',
  );

  const heading = (column: Grouping | SumName, title: string, meaning: string): HTMLElement => {
    const isSorted = order?.key === column;
    const direction = order?.descending === true ? 'descending' : 'ascending';
    const isNumber = !isLabel(column);
    return h(
      'th',
      {
        scope: 'col',
        class: isNumber ? 'number' : '',
        attributes: isSorted ? { 'aria-sort': direction } : {},
      },
      h(
        'button',
        {
          type: 'button',
          class: 'sort',
          title: meaning,
          data: { column },
          on: {
            click: () => {
              order = nextOrder(order ?? unsorted, column, isNumber);
              show();
              head.querySelector<HTMLElement>(`[data-column="${column}"]`)?.focus();
            },
          },
        },
        title,
      ),
    );
  };
  const show = (): void => {
    if (report === null) return;
    const { rows, total } = report;
    const labels = groupings.filter((each) => by.includes(each));
    const columns = JSON.stringify([labels, order]);
    // The headings keep the focus when only the numbers are other ones.
    if (columns !== shownColumns) {
      fill(head, [
        ...labels.map((each) => heading(each, titles[each], `By ${each}`)),
        ...sumColumns.map(([name, title, meaning]) => heading(name, title, meaning)),
      ]);
    }
    shownColumns = columns;
    const sorted = order === null ? rows : sortRows(rows, order);
    // Without a label the only row would be the total once more.
    fill(body, labels.length === 0 ? [] : sorted.slice(0, most).map((row) => rowOf(row, by)));
    const totalRow = h('tr', { data: { row: 'total' } });
    const totalHead = h('th', { scope: 'row', colSpan: Math.max(1, labels.length) }, 'Total');
    fill(totalRow, [...(labels.length === 0 ? [] : [totalHead]), ...cellsOf(total)]);
    fill(foot, [totalRow]);
    more.hidden = labels.length === 0 || rows.length <= most;
  };

  return {
    element: h(
      'div',
      { class: 'usage-table' },
      h(
        'div',
        { class: 'table-wrap', tabIndex: 0, attributes: { role: 'group', 'aria-label': 'Usage' } },
        h('table', { attributes: { 'aria-label': 'Usage' } }, h('thead', {}, head), body, foot),
      ),
      more,
    ),
    update(next, nextBy) {
      if (order !== null && isLabel(order.key) && !nextBy.includes(order.key)) order = null;
      if (`${by}` !== `${nextBy}`) most = rowsAtOnce;
      report = next;
      by = nextBy;
      show();
    },
  };
}

function isLabel(column: string): column is Grouping {
  return groupings.some((each) => each === column);
}

function rowOf(row: UsageRow, by: readonly Grouping[]): HTMLTableRowElement {
  return h(
    'tr',
    { data: { row: rowName(row, by) } },
    ...labelsOf(row, by).map(([grouping, label], index) =>
      h(
        index === 0 ? 'th' : 'td',
        { data: { cell: grouping }, attributes: index === 0 ? { scope: 'row' } : {} },
        label === null ? h('span', { class: 'hint' }, 'none') : h('span', { title: label }, label),
      ),
    ),
    ...cellsOf(row),
  );
}

function cellsOf(sums: UsageSums): readonly HTMLElement[] {
  return sumColumns.map(([name]) => {
    const value = sumOf(sums, name);
    const text =
      name === 'costUsd' ? dollars(value) : name === 'mediaSeconds' ? seconds(value) : whole(value);
    return h(
      'td',
      { class: value === 0 ? 'number zero' : 'number', data: { cell: name, value: `${value}` } },
      text,
    );
  });
}

function seconds(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 1 });
}
