import type { LiveState } from '../../live-state.js';
import { askJson } from '../api.js';
import { h, setText } from '../dom.js';
import { placeAll } from '../place.js';
import type { View } from '../view.js';
import { messageOf, plural } from '../words.js';
import {
  type BudgetWindow,
  type Spending,
  spendingPath,
  type WindowSpending,
  windowsOf,
} from './keys/budget.js';
import { createKey, editKey, type KeyDialogEvents, revokeKey, rotateKey } from './keys/dialogs.js';
import { type KeyPage, workingFirst } from './keys/key.js';
import type { LimitInUse } from './keys/limits.js';
import { createKeyRow, type KeyRow, type KeyUse, keyColumns } from './keys/row.js';

const pageLength = 100;
/** As many as the gateway tells at once. */
const longestPage = 1000;
const refreshMs = 10_000;
/** Sums over a month of many keys are work for the gateway. */
const spendingMs = 60_000;
/** As many keys as the live state tells of at most. */
const mostLive = 200;

/** Keys: what they may and what they have used, and the dialogs that make, change, rotate and revoke them. */
export function createKeysView(): View {
  let rows = new Map<string, KeyRow>();
  let next: string | null = null;
  let state: LiveState | null = null;
  let use: KeyUse | null = null;
  let timer: ReturnType<typeof setInterval> | undefined;
  /** Of the last loading: an older one that ends later shows nothing. */
  let loading = 0;
  let isBusy = false;

  const notice = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const trouble = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const damaged = h('p', { class: 'problem' });
  const body = h('tbody');
  const empty = h('p', { class: 'empty', hidden: true }, 'No keys yet.');
  const said = h('p', { class: 'hint', attributes: { role: 'status' } });
  const filter = h('input', {
    type: 'search',
    placeholder: 'Id, label or group',
    on: { input: () => showFiltered() },
  });
  const more = h(
    'button',
    { type: 'button', class: 'button', hidden: true, on: { click: () => void load(true) } },
    'Load more',
  );
  const create = h(
    'button',
    { type: 'button', class: 'button primary', on: { click: () => void createKey(events) } },
    'Create key',
  );

  const events: KeyDialogEvents = {
    onChanged: () => {
      setText(notice, '');
      void reload();
    },
    onConflict: (message) => void reload().then(() => setText(notice, message)),
    onProblem: (message) => setText(notice, message),
  };

  const showFiltered = (): void => {
    const wanted = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const { element, key } of rows.values()) {
      const isShown = [key.id, key.label, ...key.groups].some((text) => text.toLowerCase().includes(wanted));
      element.hidden = !isShown;
      if (isShown) shown++;
    }
    const ofAll = wanted === '' ? plural(rows.size, 'key') : `${shown} of ${plural(rows.size, 'key')}`;
    setText(said, `${ofAll}${next === null ? '' : ', and more that are not loaded'}`);
    empty.hidden = rows.size > 0;
    more.hidden = next === null;
  };

  const showTraffic = (): void => {
    if (state === null) return;
    const traffic = new Map(state.keys.map((each) => [each.name, each]));
    const isWhole = state.keys.length < mostLive;
    for (const [id, row] of rows) {
      const none = isWhole ? { name: id, requests: 0, errors: 0, refusals: 0 } : null;
      row.onTraffic(traffic.get(id) ?? none);
    }
  };

  /** Takes up keys that were read; rows that there are already stay, with what they show. */
  const takeUp = (pages: readonly KeyPage[], isNext: boolean): void => {
    const before = rows;
    if (!isNext) rows = new Map();
    for (const key of pages.flatMap(({ keys }) => keys)) {
      // A key that is overridden stands beside the one that counts.
      const name = key.overridden === true ? `${key.id}/overridden` : key.id;
      const row = before.get(name) ?? createKeyRow(key, actions);
      row.update(key);
      if (use !== null) row.onUse(use);
      rows.set(name, row);
    }
    const unreadable = pages.flatMap(({ damaged: ids }) => ids);
    setText(
      damaged,
      unreadable.length === 0
        ? ''
        : `Records that cannot be read: ${unreadable.join(', ')}. Revoke these keys and make others.`,
    );
    next = pages.at(-1)?.next ?? null;
    placeAll(
      body,
      workingFirst(rows.values(), Date.now()).map(({ element }) => element),
    );
    showFiltered();
    showTraffic();
  };

  /** Reads a list from its beginning, as far as it is shown, or goes on with it. */
  const load = async (isNext: boolean): Promise<void> => {
    const mine = ++loading;
    isBusy = true;
    try {
      const wanted = isNext ? pageLength : Math.max(pageLength, rows.size);
      const pages: KeyPage[] = [];
      let cursor = isNext ? next : null;
      let read = 0;
      do {
        const page: KeyPage = await askJson<KeyPage>(keysPath(Math.min(wanted - read, longestPage), cursor));
        if (mine !== loading) return;
        pages.push(page);
        read += page.keys.length;
        cursor = page.next;
      } while (cursor !== null && read < wanted);
      takeUp(pages, isNext);
      await loadUse();
      setText(trouble, '');
    } catch (error) {
      if (mine === loading) setText(trouble, messageOf(error));
    } finally {
      if (mine === loading) isBusy = false;
    }
  };
  const reload = (): Promise<void> => load(false);

  const loadUse = async (): Promise<void> => {
    const windows = windowsOf(
      [...rows.values()].map(({ key }) => key),
      Date.now(),
    );
    const [{ limits }, ...spendings] = await Promise.all([
      askJson<{ limits: readonly LimitInUse[] }>('/limits'),
      ...windows.map(spendingIn),
    ] as const);
    use = {
      limits: new Map(limits.map((each) => [each.name, each])),
      spending: new Map(spendings.map((each) => [each.window.per, each])),
    };
    for (const row of rows.values()) row.onUse(use);
  };
  /** What was spent in a window, as it was told a while ago where that is not long. */
  const spendingIn = async (window: BudgetWindow): Promise<WindowSpending> => {
    const known = use?.spending.get(window.per);
    const isRecent = known?.window.from === window.from && Date.now() - known.askedAt < spendingMs;
    if (known !== undefined && isRecent) return known;
    const askedAt = Date.now();
    return { window, askedAt, spending: await askJson<Spending>(spendingPath(window)) };
  };

  const actions = {
    edit: (key: KeyRow['key']) => void editKey(key, events),
    rotate: (key: KeyRow['key']) => rotateKey(key, events),
    revoke: (key: KeyRow['key']) => revokeKey(key, events),
  };

  const element = h(
    'section',
    { class: 'keys' },
    h('div', { class: 'view-head' }, h('h2', {}, 'Keys'), create),
    notice,
    trouble,
    damaged,
    h(
      'div',
      { class: 'panel' },
      h(
        'div',
        { class: 'row list-head' },
        h('label', { class: 'field' }, h('span', {}, 'Find'), filter),
        said,
      ),
      h(
        'div',
        { class: 'table-wrap', tabIndex: 0, attributes: { role: 'group', 'aria-label': 'Keys' } },
        h(
          'table',
          { class: 'cards', attributes: { 'aria-label': 'Keys' } },
          h('thead', {}, h('tr', {}, ...keyColumns.map((name) => h('th', { scope: 'col' }, name)))),
          body,
        ),
      ),
      empty,
      more,
    ),
  );
  return {
    element,
    show() {
      use = null;
      void reload();
      timer = setInterval(() => {
        if (!isBusy) void reload();
      }, refreshMs);
    },
    hide: () => clearInterval(timer),
    onState(nextState) {
      state = nextState;
      showTraffic();
    },
  };
}

function keysPath(limit: number, cursor: string | null): string {
  return `/keys?${new URLSearchParams({ limit: `${limit}`, ...(cursor === null ? {} : { cursor }) })}`;
}
