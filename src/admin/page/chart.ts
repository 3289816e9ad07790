import { h, setText } from './dom.js';
import { nothing } from './format.js';
import type { ChartData } from './series.js';
import uPlot from './uplot.js';

export interface LineStyle {
  readonly label: string;
  /** Of the tokens `--series-1` to `--series-8`. */
  readonly colour: number;
}

export interface ChartOptions {
  readonly title: string;
  readonly lines: readonly LineStyle[];
  /** A value in words, for the legend and the axis. */
  readonly format: (value: number) => string;
  /** The ground below the lines is tinted: for amounts, not for percentiles. */
  readonly filled?: boolean;
}

/** A chart in a panel. It has a canvas only while it is in sight. */
export interface Chart {
  readonly element: HTMLElement;
  /** Draws; the first time, and after `rest`, it takes its canvas. */
  update(data: ChartData): void;
  /** Draws the last data again in the colours of now. */
  recolour(): void;
  /** Gives up the canvas. */
  rest(): void;
}

/** Charts with this key share their cursor. */
const cursorKey = 'console';
const axisFont = '11px system-ui, sans-serif';

/** Makes a chart over time, which fills the width of its place. */
export function createChart(options: ChartOptions): Chart {
  const place = h('div', { class: 'plot', attributes: { role: 'img' } });
  const legend = createLegend(options);
  const element = h(
    'figure',
    { class: 'panel chart' },
    h('figcaption', { class: 'panel-head' }, h('h3', {}, options.title), legend.time),
    legend.element,
    place,
  );
  let data: ChartData | null = null;
  let plot: uPlot | null = null;

  const showValues = (): void => {
    if (data === null) return;
    const index = plot?.cursor.idx ?? null;
    legend.show(data, index);
  };
  const draw = (): void => {
    if (data === null || place.clientWidth === 0) return;
    const { from, to } = data;
    if (plot === null) plot = createPlot(options, place, data, showValues);
    else {
      plot.batch(() => {
        plot?.setData(alignedOf(data as ChartData), false);
        plot?.setScale('x', { min: from, max: to });
      });
    }
    place.setAttribute('aria-label', summary(options, data));
    showValues();
  };
  const resized = new ResizeObserver(() => {
    if (plot === null) draw();
    else if (place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: place.clientHeight });
  });
  const rest = (): void => {
    resized.disconnect();
    plot?.destroy();
    plot = null;
  };
  return {
    element,
    update(next) {
      data = next;
      if (plot === null) resized.observe(place);
      draw();
    },
    recolour() {
      if (plot === null) return;
      plot.destroy();
      plot = null;
      draw();
    },
    rest,
  };
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

/** Points between two gaps, which no line would show. */
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

/** What a token is in the theme of now: a canvas knows no tokens. */
function colourOf(place: HTMLElement, token: string): string {
  place.style.color = `var(${token})`;
  const { color } = getComputedStyle(place);
  place.style.color = '';
  return color;
}

/** @param colour `rgb(…)`, as a browser computes it */
function tintOf(colour: string): string {
  return colour.replace('rgb(', 'rgba(').replace(')', ', 0.1)');
}

/** In the reader's own time. @param at Unix seconds */
function timeOfDay(at: number, withSeconds: boolean): string {
  const date = new Date(at * 1000);
  const parts = [date.getHours(), date.getMinutes(), ...(withSeconds ? [date.getSeconds()] : [])];
  return parts.map((part) => `${part}`.padStart(2, '0')).join(':');
}

function wordsOf({ format }: ChartOptions, value: number | null | undefined): string {
  return value === null || value === undefined ? nothing : format(value);
}

/** The chart for those who do not see it: what it is about, and its newest values. */
function summary(options: ChartOptions, { rows }: ChartData): string {
  const values = options.lines.map(({ label }, index) => `${label} ${wordsOf(options, rows[index]?.at(-1))}`);
  return `${options.title}, now: ${values.join(', ')}`;
}

function createLegend(options: ChartOptions): {
  readonly element: HTMLElement;
  /** When the values were, while they are not the newest. */
  readonly time: HTMLElement;
  /** @param index of the point under the cursor; null shows the newest */
  show(data: ChartData, index: number | null): void;
} {
  const time = h('span', { class: 'hint', attributes: { 'aria-hidden': 'true' } });
  const values = options.lines.map(() => h('span', { class: 'legend-value' }));
  const element = h(
    'div',
    { class: 'legend', attributes: { 'aria-hidden': 'true' } },
    ...options.lines.map(({ label, colour }, index) =>
      h('span', { class: 'legend-item', data: { series: `${colour}` } }, label, values[index] as HTMLElement),
    ),
  );
  return {
    element,
    time,
    show({ times, rows }, index) {
      const at = index === null ? undefined : times[index];
      setText(time, at === undefined ? '' : timeOfDay(at, true));
      for (const [line, value] of values.entries()) {
        const row = rows[line] ?? [];
        setText(value, wordsOf(options, index === null ? row.at(-1) : row[index]));
      }
    },
  };
}
