import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { dollars, whole } from '../format.js';
import type { SortOrder } from '../sort.js';
import { SortButton, sortOf } from '../table.js';
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

interface UsageTableProps {
  readonly report: UsageReport;
  readonly by: readonly Grouping[];
  /** Null for the order of the report. */
  readonly order: Signal<SortOrder | null>;
}

/** Rows shown at a time; more are shown on request, since ten thousand take a browser long. */
const rowsAtOnce = 500;
const titles: Readonly<Record<Grouping, string>> = { day: 'Day', model: 'Model', key: 'Key' };

/** The table of a report, sortable by any column, with the total below. */
export function UsageTable({ report: { rows, total }, by, order }: UsageTableProps) {
  const labels = groupings.filter((each) => by.includes(each));
  const most = useSignal(rowsAtOnce);
  useEffect(() => {
    most.value = rowsAtOnce;
  }, [most, `${by}`]);
  const sort = order.value;
  // Not sorted by a label that the rows do not have.
  const isSorted = sort !== null && (!isLabel(sort.key) || labels.includes(sort.key));
  const sorted = isSorted ? sortRows(rows, sort) : rows;
  return (
    <div class="usage-table">
      <div class="table-wrap" role="group" aria-label="Usage" tabIndex={0}>
        <table aria-label="Usage">
          <thead>
            <tr>
              {labels.map((each) => (
                <Heading key={each} {...{ order, column: each, title: titles[each], hint: `By ${each}` }} />
              ))}
              {sumColumns.map(([column, title, hint]) => (
                <Heading key={column} {...{ order, column, title, hint }} />
              ))}
            </tr>
          </thead>
          <tbody>
            {/* Without a label the only row would be the total once more. */}
            {labels.length > 0 &&
              sorted.slice(0, most.value).map((row) => <Row key={rowName(row, by)} row={row} by={by} />)}
          </tbody>
          <tfoot>
            <tr data-row="total">
              {labels.length > 0 && (
                <th scope="row" colSpan={labels.length}>
                  Total
                </th>
              )}
              <Sums sums={total} />
            </tr>
          </tfoot>
        </table>
      </div>
      {labels.length > 0 && rows.length > most.value && (
        <button
          type="button"
          class="button"
          onClick={() => {
            most.value += rowsAtOnce;
          }}
        >
          Show more rows
        </button>
      )}
    </div>
  );
}

interface HeadingProps {
  readonly order: Signal<SortOrder | null>;
  readonly column: Grouping | SumName;
  readonly title: string;
  readonly hint: string;
}

function Heading(props: HeadingProps) {
  const isNumber = !isLabel(props.column);
  return (
    <th scope="col" class={isNumber ? 'number' : ''} aria-sort={sortOf(props.order.value, props.column)}>
      <SortButton {...props} isNumber={isNumber} />
    </th>
  );
}

function isLabel(column: string): column is Grouping {
  return groupings.some((each) => each === column);
}

function Row({ row, by }: { readonly row: UsageRow; readonly by: readonly Grouping[] }) {
  return (
    <tr data-row={rowName(row, by)}>
      {labelsOf(row, by).map(([grouping, label], index) => {
        const content = label === null ? <span class="hint">none</span> : <span title={label}>{label}</span>;
        return index === 0 ? (
          <th key={grouping} scope="row" data-cell={grouping}>
            {content}
          </th>
        ) : (
          <td key={grouping} data-cell={grouping}>
            {content}
          </td>
        );
      })}
      <Sums sums={row} />
    </tr>
  );
}

function Sums({ sums }: { readonly sums: UsageSums }) {
  return (
    <>
      {sumColumns.map(([name]) => {
        const value = sumOf(sums, name);
        return (
          <td key={name} class={value === 0 ? 'number zero' : 'number'} data-cell={name} data-value={value}>
            {name === 'costUsd' ? dollars(value) : name === 'mediaSeconds' ? seconds(value) : whole(value)}
          </td>
        );
      })}
    </>
  );
}

function seconds(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 1 });
}
