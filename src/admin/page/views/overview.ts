import type { HistoryView } from '../../live-state.js';
import { createChoice } from '../choice.js';
import { h } from '../dom.js';
import { createBreakdown } from '../overview/breakdown.js';
import { createCharts } from '../overview/charts.js';
import { createTiles } from '../overview/tiles.js';
import { createTotals } from '../overview/totals.js';
import { addState, type StateWindow } from '../rates.js';
import { themeChanged } from '../theme.js';
import type { View } from '../view.js';

const minuteMs = 60_000;

const ranges = { five: 5 * minuteMs, quarter: 15 * minuteMs, hour: 60 * minuteMs } as const;

/** What the gateway does now, and did in the last hour. */
export function createOverviewView(): View {
  const tiles = createTiles();
  const charts = createCharts();
  const totals = createTotals();
  const breakdown = createBreakdown();
  let window: StateWindow = [];
  let points: readonly HistoryView[] = [];

  const draw = (): void => {
    if (!document.hidden) charts.update(points, ranges[range.chosen]);
  };
  const recolour = (): void => charts.recolour();
  const range = createChoice<keyof typeof ranges>(
    'Range of the charts',
    [
      ['five', '5 min'],
      ['quarter', '15 min'],
      ['hour', '1 h'],
    ],
    draw,
  );
  return {
    element: h(
      'section',
      {},
      h('div', { class: 'view-head' }, h('h2', {}, 'Overview'), range.element),
      tiles.element,
      charts.element,
      totals.element,
      breakdown.element,
    ),
    show() {
      themeChanged.addEventListener('theme', recolour);
      document.addEventListener('visibilitychange', draw);
    },
    hide() {
      themeChanged.removeEventListener('theme', recolour);
      document.removeEventListener('visibilitychange', draw);
      charts.rest();
    },
    onState(state) {
      window = addState(window, state);
      tiles.update(state, window, points);
      totals.update(state.totals);
      breakdown.update(window);
    },
    onHistory(next) {
      points = next;
      draw();
    },
  };
}
