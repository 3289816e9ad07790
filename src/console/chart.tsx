import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { nothing } from './format.js';
import type { ChartData } from './series.js';
import { colours } from './theme.js';

interface LineStyle {
  readonly label: string;
  /** Number of the CSS variable, `--series-1` to `--series-8`. */
  readonly colour: number;
}

export interface ChartOptions {
  readonly title: string;
  readonly lines: readonly LineStyle[];
  /** Formats a value for the legend and the axis. */
  readonly format: (value: number) => string;
  /** Whether the area below the lines is tinted: for amounts, not for percentiles. */
  readonly filled?: boolean;
}

interface ChartProps {
  /** Must not change while the chart is mounted. */
  readonly options: ChartOptions;
  readonly data: ChartData;
}

/** Charts with this key share their cursor. */
const cursorKey = 'console';
const axisFont = '11px system-ui, sans-serif';

/** A chart over time in a panel, as wide as its container. Nothing is drawn while the page is hidden. */
export function Chart({ options, data }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(data);
  /** The point under the cursor. */
  const cursor = useSignal<number | null>(null);
  newest.current = data;

  useEffect(() => {
    const element = place.current as HTMLDivElement;
    const draw = (): void => {
      if (document.hidden || element.clientWidth === 0) return;
      if (plot.current === null) {
        plot.current = createPlot(options, element, newest.current, () => {
          cursor.value = plot.current?.cursor.idx ?? null;
        });
      } else update(plot.current, newest.current);
    };
    const resized = new ResizeObserver(() => {
      if (plot.current === null) draw();
      else if (element.clientWidth > 0)
        plot.current.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    const rest = (): void => {
      plot.current?.destroy();
      plot.current = null;
    };
    const unsubscribe = colours.subscribe(() => {
      rest();
      draw();
    });
    resized.observe(element);
    document.addEventListener('visibilitychange', draw);
    return () => {
      resized.disconnect();
      document.removeEventListener('visibilitychange', draw);
      unsubscribe();
      rest();
    };
  }, [options, cursor]);
  useLayoutEffect(() => {
    if (plot.current !== null && !document.hidden) update(plot.current, data);
  }, [data]);

  return (
    <figure class="panel chart">
      <figcaption class="panel-head">
        <h3>{options.title}</h3>
        <CursorTime data={data} cursor={cursor} />
      </figcaption>
      <Legend options={options} data={data} cursor={cursor} />
      <div ref={place} class="plot" role="img" aria-label={summary(options, data)} />
    </figure>
  );
}

function update(plot: uPlot, data: ChartData): void {
  plot.batch(() => {
    plot.setData(alignedOf(data), false);
    plot.setScale('x', { min: data.from, max: data.to });
  });
}

interface CursorProps {
  readonly data: ChartData;
  /** Index of the point under the cursor; null shows the newest. */
  readonly cursor: Signal<number | null>;
}

/** The time of the legend's values, unless they are the newest. */
function CursorTime({ data, cursor }: CursorProps) {
  const at = cursor.value === null ? undefined : data.times[cursor.value];
  return (
    <span class="hint" aria-hidden="true">
      {at === undefined ? '' : timeOfDay(at, true)}
    </span>
  );
}

function Legend({ options, data, cursor }: CursorProps & { readonly options: ChartOptions }) {
  return (
    <div class="legend" aria-hidden="true">
      {options.lines.map(({ label, colour }, index) => (
        <span key={label} class="legend-item" data-series={colour}>
          {label}
          <span class="legend-value">{wordsOf(options, data.rows[index]?.at(cursor.value ?? -1))}</span>
        </span>
      ))}
    </div>
  );
}

function alignedOf({ times, rows }: ChartData): uPlot.AlignedData {
  return [times as number[], ...(rows as (number | null)[][])];
}

function createPlot(
  { lines, format, filled = false }: ChartOptions,
  place: HTMLElement,
  data: ChartData,
  onCursor: () => void,
): uPlot {
  const muted = colourOf(place, '--muted');
  const axis: uPlot.Axis = {
    stroke: muted,
    font: axisFont,
    grid: { stroke: colourOf(place, '--border'), width: 1 },
    ticks: { show: false },
  };
  const series = lines.map(({ label, colour }): uPlot.Series => {
    const stroke = colourOf(place, `--series-${colour}`);
    return {
      label,
      stroke,
      width: 1.25,
      fill: filled ? tintOf(stroke) : undefined,
      points: { show: true, size: 4, filter: lonePoints },
    };
  });
  return new uPlot(
    {
      width: place.clientWidth,
      height: place.clientHeight,
      padding: [6, 18, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { size: 7 },
        sync: { key: cursorKey, scales: ['x', null] },
      },
      scales: {
        x: { time: true, min: data.from, max: data.to },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.05 : 1] },
      },
      axes: [
        {
          ...axis,
          size: 26,
          gap: 6,
          space: ({ width }) => (width < 500 ? 50 : 80),
          values: (_plot, seconds, _axis, _space, step) => seconds.map((at) => timeOfDay(at, step < 60)),
        },
        {
          ...axis,
          size: 58,
          gap: 6,
          space: 34,
          values: (_plot, values) => values.map((value) => (value === 0 ? '0' : format(value))),
        },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [onCursor] },
    },
    alignedOf(data),
    place,
  );
}

/** Points between two gaps, which a line would not show. */
function lonePoints(plot: uPlot, index: number): number[] {
  const row = plot.data[index] ?? [];
  const lone: number[] = [];
  for (let at = 0; at < row.length; at++) {
    if (isGap(row[at]) || !isGap(row[at - 1]) || !isGap(row[at + 1])) continue;
    lone.push(at);
  }
  return lone;
}

function isGap(value: number | null | undefined): boolean {
  return value === null || value === undefined;
}

/** The value of a CSS variable in the current theme, since a canvas does not resolve variables. */
function colourOf(place: HTMLElement, token: string): string {
  place.style.color = `var(${token})`;
  const { color } = getComputedStyle(place);
  place.style.color = '';
  return color;
}

/** @param colour `rgb(…)`, as computed by the browser */
function tintOf(colour: string): string {
  return colour.replace('rgb(', 'rgba(').replace(')', ', 0.1)');
}

/** The time of day in the reader's time zone. @param at Unix seconds */
function timeOfDay(at: number, withSeconds: boolean): string {
  const date = new Date(at * 1000);
  const parts = [date.getHours(), date.getMinutes(), ...(withSeconds ? [date.getSeconds()] : [])];
  return parts.map((part) => `${part}`.padStart(2, '0')).join(':');
}

function wordsOf({ format }: ChartOptions, value: number | null | undefined): string {
  return value === null || value === undefined ? nothing : format(value);
}

/** The accessible description of a chart: its title and newest values. */
function summary(options: ChartOptions, { rows }: ChartData): string {
  const values = options.lines.map(({ label }, index) => `${label} ${wordsOf(options, rows[index]?.at(-1))}`);
  return `${options.title}, now: ${values.join(', ')}`;
}
