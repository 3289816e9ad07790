import type { TargetView } from '../../live-state.js';
import { paintBadge } from '../badge.js';
import { h, setText } from '../dom.js';
import { ago, count, moment, percent, whole } from '../format.js';
import { share } from '../rates.js';
import { type Column, createTable } from '../table.js';
import { failuresOf, illFirst, targetStates } from '../target.js';
import type { View } from '../view.js';

/** The upstreams' models, with their health; the ill ones first. */
export function createTargetsView(): View {
  const table = createTable<TargetView>({
    label: 'Targets',
    columns,
    keyOf: ({ name }) => `target:${name}`,
    order: { key: 'state', descending: true },
    empty: 'No target is known yet.',
  });
  const health = h('p', { class: 'hint', attributes: { role: 'status' } });
  return {
    element: h(
      'section',
      {},
      h('div', { class: 'view-head' }, h('h2', {}, 'Targets'), health),
      h('div', { class: 'panel' }, table.element),
    ),
    onState({ targets }) {
      table.update(illFirst(targets));
      setText(health, healthOf(targets));
    },
  };
}

function healthOf(targets: readonly TargetView[]): string {
  const ill = targets.filter(({ state }) => state !== 'closed').length;
  if (targets.length === 0) return '';
  return ill === 0 ? `All ${targets.length} are well.` : `${ill} of ${targets.length} are not well.`;
}

const columns: readonly Column<TargetView>[] = [
  { key: 'name', title: 'Target', value: ({ name }) => name },
  {
    key: 'state',
    title: 'State',
    hint: 'What the worst-off worker says',
    value: ({ state }) => targetStates[state].rank,
    paint(cell, { state }) {
      const { title, tone } = targetStates[state];
      cell.dataset.state = state;
      paintBadge(cell, tone, title);
    },
  },
  {
    key: 'workers',
    title: 'Workers',
    hint: 'Workers in this state',
    isNumber: true,
    value: ({ workersInState }) => workersInState,
  },
  {
    key: 'in-flight',
    title: 'In flight',
    isNumber: true,
    value: ({ inFlight }) => inFlight,
    text: ({ inFlight }) => count(inFlight),
  },
  {
    key: 'attempts',
    title: 'Attempts',
    isNumber: true,
    value: ({ attempts }) => attempts,
    text: ({ attempts }) => whole(attempts),
  },
  {
    key: 'retries',
    title: 'Retries',
    isNumber: true,
    value: ({ retries }) => retries,
    text: ({ retries }) => whole(retries),
  },
  {
    key: 'failures',
    title: 'Failures',
    isNumber: true,
    value: failuresOf,
    text: (target) => {
      const failures = failuresOf(target);
      const part = share(failures, target.attempts);
      return part === null || failures === 0 ? whole(failures) : `${whole(failures)} (${percent(part)})`;
    },
  },
  {
    key: 'results',
    title: 'By result',
    isProse: true,
    value: ({ failures }) => Object.keys(failures).join(' ') || null,
    text: ({ failures }) =>
      Object.entries(failures)
        .sort(([, a], [, b]) => b - a)
        .map(([result, number]) => `${result} ${whole(number)}`)
        .join(' · '),
  },
  {
    key: 'last-failure',
    title: 'Last error',
    isProse: true,
    value: ({ lastFailure }) => lastFailure?.at ?? null,
    paint(cell, { lastFailure }) {
      setText(cell, lastFailure === null ? '' : `${ago(lastFailure.at)}: ${lastFailure.message}`);
      cell.title = lastFailure === null ? '' : moment(lastFailure.at);
    },
  },
];
