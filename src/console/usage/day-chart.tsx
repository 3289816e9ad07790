import { useSignal } from '@preact/signals';
import { count, dollars } from '../format.js';
import { type DayValue, dayValues, type Measure, type UsageRow } from './report.js';

interface DayChartProps {
  readonly rows: readonly UsageRow[];
  /** The days of the range in order. */
  readonly days: readonly string[];
  readonly measure: Measure;
}

const tokenParts = ['in', 'out'];
const nothings: Readonly<Record<Measure, string>> = {
  cost: 'Nothing was charged in these days.',
  tokens: 'No tokens in these days.',
  calls: 'No calls in these days.',
};

/** A bar for each day. The value of the bar under the pointer is shown beside the chart. */
export function DayChart({ rows, days, measure }: DayChartProps) {
  const pointed = useSignal<string | null>(null);
  const values = dayValues(rows, days, measure);
  const most = values.reduce((most, value) => Math.max(most, whole(value)), 0);
  const summary = most === 0 ? nothings[measure] : `The highest day: ${words(highest(values), measure)}`;
  const under = values.find(({ day }) => day === pointed.value);
  return (
    <figure class="day-chart" data-empty={`${most === 0}`}>
      <figcaption class="row">
        <p class="hint day-readout">{under === undefined ? summary : words(under, measure)}</p>
        <span class="row day-legend">
          {measure === 'tokens' &&
            tokenParts.map((name, index) => (
              <span key={name} class="day-key" data-part={index}>
                {name}
              </span>
            ))}
        </span>
      </figcaption>
      <div
        class="day-bars"
        role="img"
        aria-label={`A bar for each day. ${summary}`}
        onPointerLeave={() => {
          pointed.value = null;
        }}
      >
        {values.map((value) => (
          <span
            key={value.day}
            class="day-column"
            data-day={value.day}
            data-value={whole(value)}
            onPointerEnter={() => {
              pointed.value = value.day;
            }}
          >
            {value.parts
              .map((part, index) => (
                <span
                  key={index}
                  class="day-bar"
                  data-part={index}
                  style={{ height: `${most === 0 ? 0 : (part / most) * 100}%` }}
                />
              ))
              .reverse()}
          </span>
        ))}
      </div>
      <div class="day-axis hint">
        <span>{days[0]}</span>
        <span>{days.length > 1 && days.at(-1)}</span>
      </div>
    </figure>
  );
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
