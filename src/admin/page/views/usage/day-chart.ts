import { fill, h, setText } from '../../dom.js';
import { count, dollars } from '../../format.js';
import { type DayValue, dayValues, type Measure, type UsageRow } from './report.js';

export interface DayChart {
  readonly element: HTMLElement;
  /** @param days those of the range, the first one first */
  update(rows: readonly UsageRow[], days: readonly string[], measure: Measure): void;
}

const tokenParts = ['in', 'out'];
const nothings: Readonly<Record<Measure, string>> = {
  cost: 'Nothing was charged in these days.',
  tokens: 'No tokens in these days.',
  calls: 'No calls in these days.',
};

/** A bar for each day. What a bar stands for is read beside the chart when the pointer is on it. */
export function createDayChart(): DayChart {
  const bars = h('div', { class: 'day-bars', attributes: { role: 'img' } });
  const readout = h('p', { class: 'hint day-readout' });
  const first = h('span');
  const last = h('span');
  const legend = h('span', { class: 'row day-legend' });
  const element = h(
    'figure',
    { class: 'day-chart' },
    h('figcaption', { class: 'row' }, readout, legend),
    bars,
    h('div', { class: 'day-axis hint' }, first, last),
  );
  return {
    element,
    update(rows, days, measure) {
      const values = dayValues(rows, days, measure);
      const most = values.reduce((most, value) => Math.max(most, whole(value)), 0);
      const summary = most === 0 ? nothings[measure] : `The highest day: ${words(highest(values), measure)}`;
      const rest = (): void => setText(readout, summary);
      rest();
      element.dataset.empty = `${most === 0}`;
      bars.setAttribute('aria-label', `A bar for each day. ${summary}`);
      bars.onpointerleave = rest;
      setText(first, days[0] ?? '');
      setText(last, days.length > 1 ? (days.at(-1) ?? '') : '');
      fill(
        legend,
        measure === 'tokens'
          ? tokenParts.map((name, index) => h('span', { class: 'day-key', data: { part: `${index}` } }, name))
          : [],
      );
      fill(
        bars,
        values.map((value) => {
          const column = h('span', {
            class: 'day-column',
            data: { day: value.day, value: `${whole(value)}` },
            on: { pointerenter: () => setText(readout, words(value, measure)) },
          });
          value.parts.forEach((part, index) => {
            const bar = h('span', { class: 'day-bar', data: { part: `${index}` } });
            bar.style.height = `${most === 0 ? 0 : (part / most) * 100}%`;
            column.prepend(bar);
          });
          return column;
        }),
      );
    },
  };
}

function whole({ parts }: DayValue): number {
  return parts.reduce((sum, part) => sum + part, 0);
}

function highest(values: readonly DayValue[]): DayValue {
  return values.reduce((best, value) => (whole(value) > whole(best) ? value : best));
}

function words(value: DayValue, measure: Measure): string {
  if (measure === 'cost') return `${value.day}: ${dollars(whole(value))}`;
  if (measure === 'calls') return `${value.day}: ${count(whole(value))} calls`;
  const [input = 0, output = 0] = value.parts;
  return `${value.day}: ${count(input)} tokens in, ${count(output)} out`;
}
