import type { LiveState, RecentRequestView } from '../../live-state.js';
import { paintBadge } from '../badge.js';
import { createCopyButton } from '../copy.js';
import { fill, h, setText } from '../dom.js';
import { filterRequests, toneOf } from '../filter.js';
import { duration, moment, nothing, whole } from '../format.js';
import { type Column, createTable } from '../table.js';
import type { View } from '../view.js';

/** The last requests of all workers, newest first. Never a body: the gateway keeps none. */
export function createRequestsView(): View {
  let newest: readonly RecentRequestView[] = [];
  let shown: readonly RecentRequestView[] = [];
  let isPaused = false;

  const table = createTable<RecentRequestView>({
    label: 'Recent requests',
    columns,
    keyOf: ({ id }) => `request:${id}`,
    order: null,
    empty: 'No request to show.',
  });
  const words = h('input', {
    type: 'search',
    class: 'filter',
    placeholder: 'id, model, key or path',
    attributes: { 'aria-label': 'Filter' },
  });
  const errorsOnly = h('input', { type: 'checkbox' });
  const pause = h(
    'button',
    { type: 'button', class: 'button', attributes: { 'aria-pressed': 'false' } },
    'Pause',
  );
  const summary = h('p', { class: 'hint', attributes: { role: 'status' } });

  const draw = (): void => {
    if (!isPaused) shown = newest;
    const rows = filterRequests(shown, { text: words.value, errorsOnly: errorsOnly.checked });
    table.update(rows);
    setText(summary, summaryOf(rows.length, shown.length, isPaused));
  };
  words.addEventListener('input', draw);
  errorsOnly.addEventListener('change', draw);
  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    pause.setAttribute('aria-pressed', `${isPaused}`);
    draw();
  });
  return {
    element: h(
      'section',
      {},
      h('div', { class: 'view-head' }, h('h2', {}, 'Requests'), summary),
      h(
        'div',
        { class: 'panel' },
        h('div', { class: 'row' }, words, h('label', { class: 'check' }, errorsOnly, 'Only errors'), pause),
        table.element,
      ),
    ),
    onState({ requests }: LiveState) {
      newest = requests;
      if (!isPaused) draw();
    },
  };
}

function summaryOf(rows: number, all: number, isPaused: boolean): string {
  if (all === 0) return '';
  const counted = rows === all ? `The last ${all}` : `${rows} of the last ${all}`;
  return isPaused ? `${counted}, paused` : counted;
}

/** @param ms null where it is not known */
function time(ms: number | null): string {
  return duration(ms === null ? null : ms / 1000);
}

function wordColumn(key: 'model' | 'key' | 'target', title: string): Column<RecentRequestView> {
  return {
    key,
    title,
    value: (row) => row[key],
    paint(cell, row) {
      setText(cell, row[key] ?? nothing);
      cell.title = row[key] ?? '';
    },
  };
}

const columns: readonly Column<RecentRequestView>[] = [
  { key: 'at', title: 'Time', value: ({ at }) => at, text: ({ at }) => moment(at) },
  {
    key: 'status',
    title: 'Status',
    value: ({ status }) => status,
    paint(cell, request) {
      const { status, outcome, error } = request;
      const said = error ?? (outcome === 'complete' ? '' : outcome);
      paintBadge(cell, toneOf(request), `${status} ${said.replaceAll('_', ' ')}`.trim());
    },
  },
  wordColumn('model', 'Model'),
  wordColumn('key', 'Key'),
  {
    key: 'first-byte',
    title: 'First byte',
    isNumber: true,
    value: ({ firstByteMs }) => firstByteMs,
    text: ({ firstByteMs }) => time(firstByteMs),
  },
  {
    key: 'duration',
    title: 'Duration',
    isNumber: true,
    value: ({ durationMs }) => durationMs,
    text: ({ durationMs }) => time(durationMs),
  },
  {
    key: 'own',
    title: 'Own',
    hint: 'The gateway’s own share',
    isNumber: true,
    value: ({ ownMs }) => ownMs,
    text: ({ ownMs }) => time(ownMs),
  },
  {
    key: 'tokens-input',
    title: 'Tokens in',
    isNumber: true,
    value: ({ inputTokens }) => inputTokens,
    text: ({ inputTokens }) => (inputTokens === 0 ? nothing : whole(inputTokens)),
  },
  {
    key: 'tokens-output',
    title: 'out',
    isNumber: true,
    value: ({ outputTokens }) => outputTokens,
    text: ({ outputTokens }) => (outputTokens === 0 ? nothing : whole(outputTokens)),
  },
  {
    key: 'retries',
    title: 'Retries',
    isNumber: true,
    value: ({ retries }) => retries,
    text: ({ retries }) => (retries === 0 ? nothing : `${retries}`),
  },
  {
    key: 'path',
    title: 'Path',
    value: ({ method, path }) => `${method} ${path}`,
    paint(cell, { method, path, protocol }) {
      setText(cell, method === 'POST' ? path : `${method} ${path}`);
      cell.title = protocol === null ? `${method} ${path}` : `${method} ${path}, ${protocol}`;
    },
  },
  wordColumn('target', 'Target'),
  {
    key: 'id',
    title: 'Id',
    value: ({ id }) => id,
    paint(cell, { id }) {
      if (cell.firstChild !== null) return;
      const shown = h('code', { title: id }, id);
      fill(cell, [shown, createCopyButton(() => id, shown, `Copy the id ${id}`)]);
    },
  },
];
