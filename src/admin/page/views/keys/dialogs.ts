import { ApiError, askJson } from '../../api.js';
import { openFormDialog } from '../../dialog.js';
import { h } from '../../dom.js';
import { messageOf } from '../../words.js';
import { changesSomething, fieldsOf, keyChangeBody, newKeyBody, noFields } from './form.js';
import type { KeyEntry } from './key.js';
import { openKeyDialog } from './key-dialog.js';
import { type IssuedKey, showNewKey } from './new-key.js';

/** What the dialogs tell the list of. */
export interface KeyDialogEvents {
  /** Something is not as it was: the list is to be loaded anew. */
  onChanged(): void;
  /** The key was another one than that of the list: what was asked for was not done. */
  onConflict(message: string): void;
  onProblem(message: string): void;
}

const hourMs = 3_600_000;
const graces = [
  [0, 'at once'],
  [hourMs, 'in an hour'],
  [24 * hourMs, 'in a day'],
  [7 * 24 * hourMs, 'in 7 days'],
  [30 * 24 * hourMs, 'in 30 days'],
] as const;
const notInForce = 'It is stored, but not every worker has taken it up yet.';

/** Asks for what a new key is to be, makes it, and shows it. */
export async function createKey(events: KeyDialogEvents): Promise<void> {
  const groups = await groupNames().catch((error: unknown) => events.onProblem(messageOf(error)));
  if (groups === undefined) return;
  let issued: IssuedKey | null = null;
  const [only] = groups;
  openKeyDialog({
    title: 'Create a key',
    verb: 'Create',
    isNew: true,
    groups,
    fields: { ...noFields, groups: groups.length === 1 && only !== undefined ? [only] : [] },
    async submit(fields) {
      const outcome = newKeyBody(fields);
      if (!outcome.ok) return outcome.problems;
      issued = await askJson<IssuedKey>('/keys', { method: 'POST', body: outcome.body });
      events.onChanged();
      return null;
    },
    afterwards: () => {
      if (issued !== null) showNewKey(issued);
    },
  });
}

/** Asks what of a key is to change, and changes it. */
export async function editKey(key: KeyEntry, events: KeyDialogEvents): Promise<void> {
  const groups = await groupNames().catch((error: unknown) => events.onProblem(messageOf(error)));
  if (groups === undefined) return;
  openKeyDialog({
    title: `Edit ${key.id}`,
    verb: 'Save',
    isNew: false,
    groups,
    fields: fieldsOf(key),
    async submit(fields) {
      const outcome = keyChangeBody(key, fields);
      if (!outcome.ok) return outcome.problems;
      if (!changesSomething(outcome.body)) return null;
      await orConflict(key, events, async () => {
        const { body } = outcome;
        const changed = await askJson<{ inForce: boolean }>(pathOf(key), { method: 'PATCH', body });
        return changed.inForce;
      });
      return null;
    },
  });
}

/** Asks how long the key at hand goes on working, makes a new one in its place, and shows that. */
export function rotateKey(key: KeyEntry, events: KeyDialogEvents): void {
  let issued: IssuedKey | null = null;
  const grace = h('select', {}, ...graces.map(([ms, words]) => h('option', { value: `${ms}` }, words)));
  openFormDialog(
    {
      title: `Rotate ${key.id}`,
      verb: 'Rotate key',
      async submit() {
        const { revision } = key;
        const body = { graceMs: Number(grace.value), ...(revision === undefined ? {} : { revision }) };
        await orConflict(key, events, async () => {
          issued = await askJson<IssuedKey>(`${pathOf(key)}/rotate`, { method: 'POST', body });
          return issued.inForce;
        });
        return true;
      },
      afterwards: () => {
        if (issued !== null) showNewKey(issued);
      },
    },
    h('p', {}, 'It gets a new key under the same id, with the same groups, limits and budget.'),
    h('label', { class: 'field' }, h('span', {}, 'The old key stops working'), grace),
  );
}

/** Revokes a key, when that was confirmed. */
export function revokeKey(key: KeyEntry, events: KeyDialogEvents): void {
  openFormDialog(
    {
      title: `Revoke ${key.id}?`,
      verb: 'Revoke key',
      danger: true,
      async submit() {
        await orConflict(key, events, async () => {
          const revoked = await askJson<{ inForce: boolean }>(pathOf(key), { method: 'DELETE' });
          return revoked.inForce;
        });
        return true;
      },
    },
    h('p', {}, 'Whoever uses it is refused from then on. This cannot be undone.'),
  );
}

/**
 * Changes a key; where it is not what the list shows, that is told instead.
 * @param change gives whether every worker works by it already
 */
async function orConflict(
  key: KeyEntry,
  events: KeyDialogEvents,
  change: () => Promise<boolean>,
): Promise<void> {
  let isInForce: boolean;
  try {
    isInForce = await change();
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 409 && error.status !== 404)) throw error;
    events.onConflict(`${key.id} stays as it is. ${error.message} The list is loaded anew.`);
    return;
  }
  events.onChanged();
  if (!isInForce) events.onProblem(`${key.id}: ${notInForce}`);
}

async function groupNames(): Promise<readonly string[]> {
  const { config } = await askJson<{ config: { groups?: Readonly<Record<string, unknown>> } }>('/config');
  return Object.keys(config.groups ?? {});
}

function pathOf({ id }: KeyEntry): string {
  return `/keys/${encodeURIComponent(id)}`;
}
