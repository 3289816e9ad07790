import type { KeyTrafficView } from '../../../live-state.js';
import { fill, h, setText } from '../../dom.js';
import { count, dollars, nothing, span, whole } from '../../format.js';
import { createMeter } from '../../meter.js';
import { utcDay, utcTime } from '../../utc.js';
import { type BudgetWindow, budgetUse, type WindowSpending } from './budget.js';
import { type KeyEntry, keyNotes, keyState } from './key.js';
import { type LimitInUse, limitLines } from './limits.js';

export interface KeyActions {
  edit(key: KeyEntry): void;
  rotate(key: KeyEntry): void;
  revoke(key: KeyEntry): void;
}

/** What a key has used, as far as it was asked. */
export interface KeyUse {
  readonly limits: ReadonlyMap<string, LimitInUse>;
  readonly spending: ReadonlyMap<BudgetWindow['per'], WindowSpending>;
}

/** One row of the table of keys. Its buttons stay what they are when its numbers change, and keep the focus. */
export interface KeyRow {
  readonly element: HTMLTableRowElement;
  readonly key: KeyEntry;
  update(key: KeyEntry): void;
  onUse(use: KeyUse): void;
  /** @param traffic null where it is not known */
  onTraffic(traffic: KeyTrafficView | null): void;
}

const nearlyUsedUp = 0.8;

/** The headings of the columns of a row. */
export const keyColumns = ['Key', 'Groups', 'Requests', 'Limits', 'Budget', 'Expires', 'Actions'] as const;

export function createKeyRow(first: KeyEntry, actions: KeyActions): KeyRow {
  let key = first;
  let use: KeyUse | null = null;
  const nameId = `key-${key.source}-${key.id}`;
  const state = h('span', { class: 'badge' });
  const label = h('span', { class: 'key-label' });
  const notes = h('span', { class: 'hint' });
  const groupList = h('span');
  const limits = h('td', { data: { label: 'Limits', cell: 'limits' } });
  const expiryDay = h('span');
  const expiryTime = h('span', { class: 'hint' });
  const expires = h('td', { data: { label: 'Expires', cell: 'expires' } }, expiryDay, expiryTime);
  const budget = h('td', { data: { label: 'Budget', cell: 'budget' } });
  const budgetMeter = createMeter('Budget used');
  const budgetNote = h('span', { class: 'hint' });
  const requests = h('span', { data: { cell: 'requests' } }, nothing);
  const failed = h('span', { class: 'hint' });
  const button = (name: string, run: (key: KeyEntry) => void, tone = 'quiet'): HTMLButtonElement =>
    h(
      'button',
      {
        type: 'button',
        class: `button ${tone}`,
        attributes: { 'aria-describedby': nameId },
        on: { click: () => run(key) },
      },
      name,
    );
  const edit = button('Edit', actions.edit);
  const rotate = button('Rotate', actions.rotate);
  const revoke = button('Revoke', actions.revoke, 'quiet danger');
  const buttons = h('div', { class: 'row key-actions' }, edit, rotate, revoke);

  const showLimits = (): void => {
    const lines = limitLines(key, use?.limits ?? new Map());
    fill(
      limits,
      lines.length === 0
        ? [h('span', { class: 'hint' }, 'none')]
        : lines.map(({ limit, unit, taken }) => {
            const meter = createMeter(`Taken of ${unit}`);
            meter.update(
              taken === null || taken === 0
                ? `${count(limit)} ${unit}`
                : `${count(taken)} of ${count(limit)} ${unit}`,
              (taken ?? 0) / limit,
            );
            return meter.element;
          }),
    );
  };
  const showBudget = (): void => {
    const of = key.budget;
    if (of === null) {
      fill(budget, [h('span', { class: 'hint' }, 'none')]);
      return;
    }
    const asked = use?.spending.get(of.per);
    const used = asked === undefined ? null : budgetUse(key, asked.spending);
    const whole = `${dollars(of.usd)} a ${of.per}`;
    const tone = used === null || used.share < nearlyUsedUp ? undefined : used.share < 1 ? 'warn' : 'bad';
    budgetMeter.update(used === null ? whole : `${dollars(used.used)} of ${whole}`, used?.share ?? 0, tone);
    budget.dataset.value = used === null ? '' : `${used.used}`;
    setText(
      budgetNote,
      asked === undefined || used === null
        ? ''
        : `${dollars(used.left)} left, anew in ${span(asked.window.endsAt - Date.now())}`,
    );
    fill(budget, [budgetMeter.element, budgetNote]);
  };
  const row: KeyRow = {
    element: h(
      'tr',
      { data: { row: `key:${key.id}` } },
      h(
        'th',
        { scope: 'row' },
        h('span', { class: 'row key-name' }, h('strong', { id: nameId }, key.id), state),
        label,
        notes,
      ),
      h('td', { data: { label: 'Groups', cell: 'groups' } }, groupList),
      h('td', { class: 'number', data: { label: 'Requests' } }, requests, failed),
      limits,
      budget,
      expires,
      h('td', { data: { label: 'Actions' } }, buttons),
    ),
    get key() {
      return key;
    },
    update(next) {
      key = next;
      const now = Date.now();
      const { name, tone, works } = keyState(key, now);
      setText(state, name);
      state.dataset.tone = tone;
      row.element.dataset.works = `${works}`;
      setText(label, key.label);
      setText(notes, keyNotes(key).join('; '));
      fill(
        groupList,
        key.groups.map((group) => h('span', { class: 'chip' }, group)),
      );
      const at = key.expiresAt === null ? null : Date.parse(key.expiresAt);
      setText(expiryDay, at === null ? 'never' : utcDay(at));
      setText(expiryTime, at === null ? '' : utcTime(at));
      expires.title = at === null || at <= now ? '' : `in ${span(at - now)}`;
      rotate.disabled = !works;
      buttons.hidden = key.readOnly || name === 'revoked' || name === 'overridden';
      showLimits();
      showBudget();
    },
    onUse(next) {
      use = next;
      showLimits();
      showBudget();
    },
    onTraffic(traffic) {
      setText(requests, traffic === null ? nothing : whole(traffic.requests));
      requests.dataset.value = traffic === null ? '' : `${traffic.requests}`;
      const parts =
        traffic === null
          ? []
          : [
              ...(traffic.errors > 0 ? [`${count(traffic.errors)} failed`] : []),
              ...(traffic.refusals > 0 ? [`${count(traffic.refusals)} refused`] : []),
            ];
      setText(failed, parts.join(', '));
    },
  };
  row.update(key);
  return row;
}
