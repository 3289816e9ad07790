import { type SortOrder, type SortValue, sorted } from '../sort.js';
import { type Grouping, groupings } from './query.js';

/** Sums of calls, as the ledger reports them. */
export interface UsageSums {
  readonly calls: number;
  readonly refused: number;
  readonly upstreamErrors: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly reasoningTokens: number;
  readonly mediaSeconds: number;
  readonly characters: number;
  readonly costUsd: number;
}

/** A row has a label for each requested grouping; null means calls without one. */
export interface UsageRow extends UsageSums {
  readonly day?: string;
  readonly key?: string | null;
  readonly model?: string | null;
}

/** The answer of `GET /usage`. */
export interface UsageReport {
  readonly rows: readonly UsageRow[];
  readonly total: UsageSums;
  /** False when there were more groups than rows. */
  readonly complete: boolean;
}

/** A column of numbers. `errors` are those of upstreams. */
export type SumName = Exclude<keyof UsageSums, 'upstreamErrors'> | 'errors';

/** The columns of numbers, with their headings and what they count. */
export const sumColumns: readonly (readonly [name: SumName, title: string, meaning: string])[] = [
  ['calls', 'Calls', 'All calls, refused ones too'],
  ['errors', 'Errors', 'Calls that failed at their upstream'],
  ['refused', 'Refused', 'Calls that the gateway refused'],
  ['inputTokens', 'Tokens in', 'Tokens of input, cached ones among them'],
  ['outputTokens', 'Tokens out', 'Tokens of output, those of reasoning among them'],
  ['cachedTokens', 'Cached', 'Tokens of input that the upstream had cached'],
  ['reasoningTokens', 'Reasoning', 'Tokens of output that went into reasoning'],
  ['mediaSeconds', 'Media s', 'Seconds of audio or video'],
  ['characters', 'Characters', 'Characters of text that was spoken'],
  ['costUsd', 'Cost', 'In US dollars, by the prices of the config'],
];

/** The number of a column. */
export function sumOf(sums: UsageSums, name: SumName): number {
  return name === 'errors' ? sums.upstreamErrors : sums[name];
}

/** The identifier of a row: `day:2026-11-22 model:sim-text`. */
export function rowName(row: UsageRow, by: readonly Grouping[]): string {
  return labelsOf(row, by)
    .map(([grouping, label]) => `${grouping}:${label ?? ''}`)
    .join(' ');
}

/** The labels of a row in the order of the columns. */
export function labelsOf(
  row: UsageRow,
  by: readonly Grouping[],
): readonly (readonly [Grouping, string | null])[] {
  return groupings.filter((each) => by.includes(each)).map((each) => [each, row[each] ?? null]);
}

/** Sorts rows; the sort is stable. */
export function sortRows(rows: readonly UsageRow[], { key, descending }: SortOrder): readonly UsageRow[] {
  const grouping = groupings.find((each) => each === key);
  const column = sumColumns.find(([name]) => name === key);
  const valueIn = (row: UsageRow): SortValue => {
    if (grouping !== undefined) return row[grouping] ?? null;
    return column === undefined ? null : sumOf(row, column[0]);
  };
  return sorted(rows, valueIn, descending);
}

/** The measures that the chart can show. */
const measures = ['cost', 'tokens', 'calls'] as const;
export type Measure = (typeof measures)[number];

export interface DayValue {
  readonly day: string;
  /** Parts that add up: tokens in and out. */
  readonly parts: readonly number[];
}

/** The measure of every day, summed over its rows. @param days the days of the range, including those without calls */
export function dayValues(
  rows: readonly UsageRow[],
  days: readonly string[],
  measure: Measure,
): readonly DayValue[] {
  const byDay = new Map(days.map((day) => [day, measure === 'tokens' ? [0, 0] : [0]]));
  for (const row of rows) {
    const parts = byDay.get(row.day ?? '');
    if (parts === undefined) continue;
    partsOf(row, measure).forEach((value, index) => {
      parts[index] = (parts[index] ?? 0) + value;
    });
  }
  return [...byDay].map(([day, parts]) => ({ day, parts }));
}

function partsOf(row: UsageRow, measure: Measure): readonly number[] {
  if (measure === 'tokens') return [row.inputTokens, row.outputTokens];
  return [measure === 'cost' ? row.costUsd : row.calls];
}
