import type { KeyTrafficView } from '../../metrics/live-state.js';
import { mayWrite } from '../api.js';
import { Badge } from '../badge.js';
import { count, dollars, nothing, span, whole } from '../format.js';
import { Meter } from '../meter.js';
import { utcDay, utcTime } from '../utc.js';
import { type BudgetWindow, budgetUse, type WindowSpending } from './budget.js';
import { type KeyEntry, keyNotes, keyState } from './key.js';
import { type LimitInUse, limitLines } from './limits.js';

export interface KeyActions {
  edit(key: KeyEntry): void;
  rotate(key: KeyEntry): void;
  revoke(key: KeyEntry): void;
}

/** The usage of keys, as far as it was requested. */
export interface KeyUse {
  readonly limits: ReadonlyMap<string, LimitInUse>;
  readonly spending: ReadonlyMap<BudgetWindow['per'], WindowSpending>;
}

const nearlyUsedUp = 0.8;
const actionNames = { edit: 'Edit', rotate: 'Rotate', revoke: 'Revoke' } as const;

/** The headings of the columns of a row. */
export const keyColumns = ['Key', 'Groups', 'Requests', 'Limits', 'Budget', 'Expires', 'Actions'] as const;

interface KeyRowProps {
  readonly entry: KeyEntry;
  readonly use: KeyUse;
  /** Null if unknown. */
  readonly traffic: KeyTrafficView | null;
  readonly actions: KeyActions;
}

/** One row of the table of keys. */
export function KeyRow({ entry, use, traffic, actions }: KeyRowProps) {
  const now = Date.now();
  const nameId = `key-${entry.source}-${entry.id}`;
  const { name, tone, works } = keyState(entry, now);
  const expiresAt = entry.expiresAt === null ? null : Date.parse(entry.expiresAt);
  return (
    <tr data-row={`key:${entry.id}`} data-works={`${works}`}>
      <th scope="row">
        <span class="row key-name">
          <strong id={nameId}>{entry.id}</strong>
          <Badge tone={tone}>{name}</Badge>
        </span>
        <span class="key-label">{entry.label}</span>
        <span class="hint">{keyNotes(entry).join('; ')}</span>
      </th>
      <td data-label="Groups" data-cell="groups">
        <span>
          {entry.groups.map((group) => (
            <span key={group} class="chip">
              {group}
            </span>
          ))}
        </span>
      </td>
      <td class="number" data-label="Requests">
        <span data-cell="requests" data-value={`${traffic?.requests ?? ''}`}>
          {traffic === null ? nothing : whole(traffic.requests)}
        </span>
        <span class="hint">{failuresOf(traffic)}</span>
      </td>
      <td data-label="Limits" data-cell="limits">
        <Limits entry={entry} use={use} />
      </td>
      <Budget entry={entry} use={use} now={now} />
      <td
        data-label="Expires"
        data-cell="expires"
        title={expiresAt === null || expiresAt <= now ? '' : `in ${span(expiresAt - now)}`}
      >
        <span>{expiresAt === null ? 'never' : utcDay(expiresAt)}</span>
        <span class="hint">{expiresAt === null ? '' : utcTime(expiresAt)}</span>
      </td>
      <td data-label="Actions">
        <div
          class="row key-actions"
          hidden={!mayWrite.value || entry.readOnly || name === 'revoked' || name === 'overridden'}
        >
          {(['edit', 'rotate', 'revoke'] as const).map((each) => (
            <button
              key={each}
              type="button"
              class={each === 'revoke' ? 'button quiet danger' : 'button quiet'}
              aria-describedby={nameId}
              disabled={each === 'rotate' && !works}
              onClick={() => actions[each](entry)}
            >
              {actionNames[each]}
            </button>
          ))}
        </div>
      </td>
    </tr>
  );
}

function failuresOf(traffic: KeyTrafficView | null): string {
  if (traffic === null) return '';
  return [
    ...(traffic.errors > 0 ? [`${count(traffic.errors)} failed`] : []),
    ...(traffic.refusals > 0 ? [`${count(traffic.refusals)} refused`] : []),
  ].join(', ');
}

function Limits({ entry, use }: Pick<KeyRowProps, 'entry' | 'use'>) {
  const lines = limitLines(entry, use.limits);
  if (lines.length === 0) return <span class="hint">none</span>;
  return (
    <>
      {lines.map(({ name, limit, unit, taken }) => (
        <Meter
          key={name}
          label={`Taken of ${unit}`}
          text={
            taken === null || taken === 0
              ? `${count(limit)} ${unit}`
              : `${count(taken)} of ${count(limit)} ${unit}`
          }
          share={(taken ?? 0) / limit}
        />
      ))}
    </>
  );
}

function Budget({ entry, use, now }: Pick<KeyRowProps, 'entry' | 'use'> & { readonly now: number }) {
  const { budget } = entry;
  if (budget === null) {
    return (
      <td data-label="Budget" data-cell="budget">
        <span class="hint">none</span>
      </td>
    );
  }
  const asked = use.spending.get(budget.per);
  const used = asked === undefined ? null : budgetUse(entry, asked.spending);
  const whole = `${dollars(budget.usd)} a ${budget.per}`;
  const tone = used === null || used.share < nearlyUsedUp ? undefined : used.share < 1 ? 'warn' : 'bad';
  return (
    <td data-label="Budget" data-cell="budget" data-value={`${used?.used ?? ''}`}>
      <Meter
        label="Budget used"
        text={used === null ? whole : `${dollars(used.used)} of ${whole}`}
        share={used?.share ?? 0}
        tone={tone}
      />
      <span class="hint">
        {asked !== undefined &&
          used !== null &&
          `${dollars(used.left)} left, anew in ${span(asked.window.endsAt - now)}`}
      </span>
    </td>
  );
}
