import { askJson, download } from '../api.js';
import { createChoice } from '../choice.js';
import { h, setText } from '../dom.js';
import type { View } from '../view.js';
import { messageOf, plural } from '../words.js';
import { createUsageControls } from './usage/controls.js';
import { createDayChart } from './usage/day-chart.js';
import { daysBetween, exportName, linesPath, reportPath, type UsageAsked } from './usage/query.js';
import type { UsageReport } from './usage/report.js';
import { createUsageTable } from './usage/table.js';

/** Sums over many days are work for the gateway. */
const refreshMs = 30_000;

/** Usage: what the ledger says of some days, by day, model and key, and its exports. */
export function createUsageView(): View {
  let asked: UsageAsked | null = null;
  let perDay: UsageReport | null = null;
  let timer: ReturnType<typeof setInterval> | undefined;
  /** Of the last loading: the answer of an older one is not shown. */
  let loading = 0;
  /** The report that is shown, and what was asked for it. */
  let shown = '';

  const notice = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const said = h('p', { class: 'hint', attributes: { role: 'status' } });
  const incomplete = h(
    'p',
    { class: 'notice', hidden: true },
    'There are more rows than a report has: what is missing counts in the total only. Choose fewer days or one key.',
  );
  const table = createUsageTable();
  const chart = createDayChart();
  const measure = createChoice(
    'What the chart shows',
    [
      ['cost', 'Cost'],
      ['tokens', 'Tokens'],
      ['calls', 'Calls'],
    ],
    () => showChart(),
  );
  const chartPanel = h(
    'div',
    { class: 'panel' },
    h('div', { class: 'panel-head' }, h('h3', {}, 'By day'), measure.element),
    chart.element,
  );

  const showChart = (): void => {
    if (asked === null || perDay === null) return;
    const days = daysBetween(asked.from, asked.to);
    chartPanel.hidden = days.length < 2;
    chart.update(perDay.rows, days, measure.chosen);
  };
  const load = async (): Promise<void> => {
    const mine = ++loading;
    const next = controls.asked();
    if (next === null) return;
    try {
      const report = await askJson<UsageReport>(reportPath(next));
      const isByDay = next.by.length === 1 && next.by[0] === 'day';
      const days = isByDay ? report : await askJson<UsageReport>(reportPath({ ...next, by: ['day'] }));
      if (mine !== loading) return;
      setText(notice, '');
      const loaded = JSON.stringify([next, report, days]);
      // What is as it was stays as it is, with what the reader has selected of it.
      if (loaded === shown) return;
      shown = loaded;
      asked = next;
      perDay = days;
      incomplete.hidden = report.complete;
      const rows = next.by.length === 0 ? '' : `, ${plural(report.rows.length, 'row')}`;
      const span = next.from === next.to ? next.from : `${next.from} to ${next.to}`;
      setText(said, report.total.calls === 0 ? `${span}: no calls` : `${span}${rows}`);
      table.update(report, next.by);
      showChart();
    } catch (error) {
      if (mine === loading) setText(notice, messageOf(error));
    }
  };
  const controls = createUsageControls(() => void load());

  const exportButton = (title: string, run: (asked: UsageAsked) => Promise<void>): HTMLButtonElement => {
    const button = h('button', { type: 'button', class: 'button' }, title);
    button.addEventListener('click', async () => {
      const wanted = controls.asked();
      if (wanted === null) return;
      button.disabled = true;
      try {
        await run(wanted);
        setText(notice, '');
      } catch (error) {
        setText(notice, messageOf(error));
      } finally {
        button.disabled = false;
      }
    });
    return button;
  };
  const exports = h(
    'div',
    { class: 'row' },
    exportButton('Export CSV', (of) => download(reportPath(of, 'csv'), exportName('usage', of, 'csv'))),
    exportButton('Calls as CSV', (of) => download(linesPath(of, 'csv'), exportName('calls', of, 'csv'))),
    exportButton('Calls as JSON lines', (of) =>
      download(linesPath(of, 'jsonl'), exportName('calls', of, 'jsonl')),
    ),
  );

  return {
    element: h(
      'section',
      { class: 'usage' },
      h('div', { class: 'view-head' }, h('h2', {}, 'Usage'), exports),
      h('div', { class: 'panel' }, controls.element),
      notice,
      chartPanel,
      h('div', { class: 'panel' }, said, incomplete, table.element),
    ),
    show() {
      void load();
      timer = setInterval(() => void load(), refreshMs);
    },
    hide: () => clearInterval(timer),
    onState: (state) => controls.onState(state),
  };
}
