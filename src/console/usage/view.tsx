import { type Signal, signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { askJson, download } from '../api.js';
import { Choice } from '../choice.js';
import { useKept } from '../session.js';
import type { SortOrder } from '../sort.js';
import { messageOf, plural } from '../words.js';
import { askedBy, UsageControls, usualChoices } from './controls.js';
import { DayChart } from './day-chart.js';
import { daysBetween, exportName, linesPath, reportPath, type UsageAsked } from './query.js';
import type { Measure, UsageReport } from './report.js';
import { UsageTable } from './table.js';

/** Interval of refreshes, since sums over many days are expensive for the gateway. */
const refreshMs = 30_000;

const measureNames: readonly (readonly [Measure, string])[] = [
  ['cost', 'Cost'],
  ['tokens', 'Tokens'],
  ['calls', 'Calls'],
];

/** A report of the ledger. */
interface Told {
  readonly asked: UsageAsked;
  readonly report: UsageReport;
  readonly perDay: UsageReport;
}

/** Usage of a range of days by day, model and key, from the ledger, with exports. */
export function UsageView() {
  const { choices, told, problem, measure, order } = useKept('usage', () => ({
    choices: usualChoices(),
    told: signal<Told | null>(null),
    problem: signal(''),
    measure: signal<Measure>('cost'),
    order: signal<SortOrder | null>(null),
  }));
  const asked = askedBy(choices);
  const wanted = typeof asked === 'string' ? null : asked;
  useEffect(() => {
    if (wanted !== null) return follow(wanted, told, problem);
  }, [JSON.stringify(wanted)]);
  return (
    <section class="usage">
      <div class="view-head">
        <h2>Usage</h2>
        <div class="row">
          <Export title="Export CSV" wanted={wanted} problem={problem} run={exports.report} />
          <Export title="Calls as CSV" wanted={wanted} problem={problem} run={exports.csv} />
          <Export title="Calls as JSON lines" wanted={wanted} problem={problem} run={exports.jsonl} />
        </div>
      </div>
      <div class="panel">
        <UsageControls choices={choices} problem={typeof asked === 'string' ? asked : ''} />
      </div>
      <p class="problem" role="alert">
        {problem}
      </p>
      {told.value !== null && <Report told={told.value} measure={measure} order={order} />}
    </section>
  );
}

interface ReportProps {
  readonly told: Told;
  readonly measure: Signal<Measure>;
  readonly order: Signal<SortOrder | null>;
}

function Report({ told: { asked, report, perDay }, measure, order }: ReportProps) {
  const days = daysBetween(asked.from, asked.to);
  const span = asked.from === asked.to ? asked.from : `${asked.from} to ${asked.to}`;
  const rows = asked.by.length === 0 ? '' : `, ${plural(report.rows.length, 'row')}`;
  return (
    <>
      {days.length > 1 && (
        <div class="panel">
          <div class="panel-head">
            <h3>By day</h3>
            <Choice label="What the chart shows" names={measureNames} chosen={measure} />
          </div>
          <DayChart rows={perDay.rows} days={days} measure={measure.value} />
        </div>
      )}
      <div class="panel">
        <p class="hint" role="status">
          {report.total.calls === 0 ? `${span}: no calls` : `${span}${rows}`}
        </p>
        {!report.complete && (
          <p class="notice">
            There are more rows than a report has: what is missing counts in the total only. Choose fewer days
            or one key.
          </p>
        )}
        <UsageTable report={report} by={asked.by} order={order} />
      </div>
    </>
  );
}

/** Queries the ledger repeatedly. @returns a function that stops it */
function follow(asked: UsageAsked, told: Signal<Told | null>, problem: Signal<string>): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const load = async (): Promise<void> => {
    try {
      const report = await askJson<UsageReport>(reportPath(asked), { signal });
      const isByDay = `${asked.by}` === 'day';
      const perDay = isByDay
        ? report
        : await askJson<UsageReport>(reportPath({ ...asked, by: ['day'] }), { signal });
      problem.value = '';
      told.value = { asked, report, perDay };
    } catch (error) {
      if (!signal.aborted) problem.value = messageOf(error);
    }
  };
  void load();
  const timer = setInterval(() => void load(), refreshMs);
  return () => {
    stop.abort();
    clearInterval(timer);
  };
}

const exports = {
  report: (of: UsageAsked) => download(reportPath(of, 'csv'), exportName('usage', of, 'csv')),
  csv: (of: UsageAsked) => download(linesPath(of, 'csv'), exportName('calls', of, 'csv')),
  jsonl: (of: UsageAsked) => download(linesPath(of, 'jsonl'), exportName('calls', of, 'jsonl')),
};

interface ExportProps {
  readonly title: string;
  /** Null if no query can be sent. */
  readonly wanted: UsageAsked | null;
  readonly problem: Signal<string>;
  readonly run: (asked: UsageAsked) => Promise<void>;
}

function Export({ title, wanted, problem, run }: ExportProps) {
  const isBusy = useSignal(false);
  const start = async (): Promise<void> => {
    if (wanted === null) return;
    isBusy.value = true;
    try {
      await run(wanted);
      problem.value = '';
    } catch (error) {
      problem.value = messageOf(error);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <button type="button" class="button" disabled={isBusy} onClick={start}>
      {title}
    </button>
  );
}
