import type { HistoryView } from '../metrics/live-state.js';

/** The data of a chart: times in Unix seconds, and a row of values for each line. */
export interface ChartData {
  readonly times: readonly number[];
  /** Null is a gap. */
  readonly rows: readonly (readonly (number | null)[])[];
  /** Unix seconds: the visible span, with or without values. */
  readonly from: number;
  readonly to: number;
}

/** Returns the value of a line at a point. */
export type PointValue = (point: HistoryView) => number | null;

/** Points further apart than this multiple of their own length are not joined. */
const longestJoin = 2.5;

/**
 * The last part of a history, as lines.
 * @param points points, oldest first
 * @param rangeMs length of the part, back from the last point
 */
export function lines(
  points: readonly HistoryView[],
  picks: readonly PointValue[],
  rangeMs: number,
): ChartData {
  const last = points.at(-1);
  if (last === undefined) return { times: [], rows: picks.map(() => []), from: 0, to: 1 };
  const start = last.at - rangeMs;
  const times: number[] = [];
  const rows = picks.map((): (number | null)[] => []);
  let before: HistoryView | null = null;
  for (const point of points) {
    if (point.at >= start) {
      if (before !== null && point.at - before.at > longestJoin * point.seconds * 1000) {
        times.push((before.at + point.at) / 2000);
        for (const row of rows) row.push(null);
      }
      times.push(point.at / 1000);
      for (const [index, pick] of picks.entries()) rows[index]?.push(pick(point));
    }
    before = point.at >= start ? point : null;
  }
  return { times, rows, from: start / 1000, to: last.at / 1000 };
}

/** The newest known value within the last minute. */
export function lastKnown(points: readonly HistoryView[], pick: PointValue): number | null {
  const newest = points.at(-1);
  if (newest === undefined) return null;
  for (let index = points.length - 1; index >= 0; index--) {
    const point = points[index] as HistoryView;
    if (newest.at - point.at > 60_000) return null;
    const value = pick(point);
    if (value !== null) return value;
  }
  return null;
}

/** USD of the last hour. */
export function costOfHour(points: readonly HistoryView[]): number {
  const start = (points.at(-1)?.at ?? 0) - 3_600_000;
  let sum = 0;
  for (const { at, cost } of points) if (at > start) sum += cost;
  return sum;
}
