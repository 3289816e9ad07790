import type { HistoryView } from '../../metrics/live-state.js';
import { Chart, type ChartOptions } from '../chart.js';
import { count, dollars, duration } from '../format.js';
import { lines, type PointValue } from '../series.js';

interface Drawing extends ChartOptions {
  readonly lines: readonly (ChartOptions['lines'][number] & { readonly pick: PointValue })[];
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

interface ChartsProps {
  readonly points: readonly HistoryView[];
  /** How far back from the last point. */
  readonly rangeMs: number;
}

/** The charts of the overview. */
export function Charts({ points, rangeMs }: ChartsProps) {
  return (
    <div class="charts">
      {drawings.map((drawing) => {
        const picks = drawing.lines.map(({ pick }) => pick);
        return <Chart key={drawing.title} options={drawing} data={lines(points, picks, rangeMs)} />;
      })}
    </div>
  );
}
