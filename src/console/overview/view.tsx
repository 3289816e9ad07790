import { signal } from '@preact/signals';
import { Choice } from '../choice.js';
import { useKept, useSession } from '../session.js';
import { Breakdown } from './breakdown.js';
import { Charts } from './charts.js';
import { Tiles } from './tiles.js';
import { Totals } from './totals.js';

const minuteMs = 60_000;

const ranges = { five: 5 * minuteMs, quarter: 15 * minuteMs, hour: 60 * minuteMs } as const;

const rangeNames: readonly (readonly [keyof typeof ranges, string])[] = [
  ['five', '5 min'],
  ['quarter', '15 min'],
  ['hour', '1 h'],
];

/** The gateway's activity now and in the last hour. */
export function OverviewView() {
  const range = useKept('overview range', () => signal<keyof typeof ranges>('five'));
  return (
    <section>
      <div class="view-head">
        <h2>Overview</h2>
        <Choice label="Range of the charts" names={rangeNames} chosen={range} />
      </div>
      <Tiles />
      <Charts points={useSession().points.value} rangeMs={ranges[range.value]} />
      <Totals />
      <Breakdown />
    </section>
  );
}
