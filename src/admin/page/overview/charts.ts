import type { HistoryView } from '../../live-state.js';
import { type Chart, createChart } from '../chart.js';
import { h } from '../dom.js';
import { count, dollars, duration } from '../format.js';
import { lines, type PointValue } from '../series.js';

interface Line {
  readonly label: string;
  readonly colour: number;
  readonly pick: PointValue;
}

interface Drawing {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly filled?: boolean;
  readonly lines: readonly Line[];
}

function percentiles(title: string, of: 'firstByte' | 'duration' | 'own'): Drawing {
  return {
    title,
    format: duration,
    lines: [
      { label: 'p50', colour: 1, pick: (point) => point[of].p50 },
      { label: 'p95', colour: 5, pick: (point) => point[of].p95 },
      { label: 'p99', colour: 6, pick: (point) => point[of].p99 },
    ],
  };
}

const drawings: readonly Drawing[] = [
  {
    title: 'Requests per second',
    format: count,
    filled: true,
    lines: [
      { label: 'requests', colour: 1, pick: (point) => point.requestsPerSecond },
      { label: 'errors', colour: 2, pick: (point) => point.errorsPerSecond },
    ],
  },
  percentiles('Time to first byte', 'firstByte'),
  percentiles('Duration', 'duration'),
  percentiles('Own overhead', 'own'),
  {
    title: 'Open',
    format: count,
    filled: true,
    lines: [
      { label: 'requests', colour: 1, pick: (point) => point.openRequests },
      { label: 'WebSockets', colour: 3, pick: (point) => point.openSockets },
    ],
  },
  {
    title: 'Tokens per second',
    format: count,
    filled: true,
    lines: [
      { label: 'in', colour: 4, pick: (point) => point.inputTokensPerSecond },
      { label: 'out', colour: 7, pick: (point) => point.outputTokensPerSecond },
    ],
  },
  {
    title: 'Cost per minute',
    format: dollars,
    filled: true,
    lines: [{ label: 'USD', colour: 3, pick: ({ cost, seconds }) => (cost / seconds) * 60 }],
  },
];

/** The charts of the overview. */
export interface Charts {
  readonly element: HTMLElement;
  /** @param rangeMs how far back from the last point */
  update(points: readonly HistoryView[], rangeMs: number): void;
  recolour(): void;
  /** Gives up the canvases, until the next `update`. */
  rest(): void;
}

export function createCharts(): Charts {
  const drawn = drawings.map(({ lines: each, ...rest }): { chart: Chart; picks: readonly PointValue[] } => ({
    chart: createChart({ ...rest, lines: each }),
    picks: each.map(({ pick }) => pick),
  }));
  return {
    element: h('div', { class: 'charts' }, ...drawn.map(({ chart }) => chart.element)),
    update(points, rangeMs) {
      for (const { chart, picks } of drawn) chart.update(lines(points, picks, rangeMs));
    },
    recolour() {
      for (const { chart } of drawn) chart.recolour();
    },
    rest() {
      for (const { chart } of drawn) chart.rest();
    },
  };
}
