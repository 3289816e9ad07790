import { type Signal, useSignal } from '@preact/signals';
import { ApiError, askJson } from '../api.js';
import { FormDialog } from '../dialog.js';
import { changesSomething, fieldsOf, keyChangeBody, newKeyBody, noFields } from './form.js';
import type { KeyEntry } from './key.js';
import { KeyDialog } from './key-dialog.js';
import { type IssuedKey, NewKey } from './new-key.js';

/** The dialog that is open. `groups` are the names of the groups of the config. */
export type OpenDialog =
  | { readonly kind: 'create'; readonly groups: readonly string[] }
  | { readonly kind: 'edit'; readonly key: KeyEntry; readonly groups: readonly string[] }
  | { readonly kind: 'rotate'; readonly key: KeyEntry }
  | { readonly kind: 'revoke'; readonly key: KeyEntry }
  | { readonly kind: 'issued'; readonly issued: IssuedKey };

/** The events of the dialogs for the list. */
export interface KeyDialogEvents {
  /** A key has changed, so the list has to be reloaded. */
  onChanged(): void;
  /** The key differed from the list, so the action was not performed. */
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

/** The open dialog, which is kept while the view is not shown. */
export interface KeyDialogsState {
  /** Null if none is open. */
  readonly open: Signal<OpenDialog | null>;
  /** A new key that is still to be shown. */
  readonly issued: Signal<IssuedKey | null>;
}

interface KeyDialogsProps extends KeyDialogsState {
  readonly events: KeyDialogEvents;
}

/** The dialogs that create, change, rotate and revoke keys, one at a time. */
export function KeyDialogs({ open, issued, events }: KeyDialogsProps) {
  const dialog = open.value;
  if (dialog === null) return null;
  const close = (): void => {
    open.value = null;
  };
  // A new key is shown once the dialog that created it is closed.
  const showIssued = (): void => {
    open.value = issued.value === null ? null : { kind: 'issued', issued: issued.value };
    issued.value = null;
  };
  const onIssued = (key: IssuedKey): void => {
    issued.value = key;
  };
  switch (dialog.kind) {
    case 'create':
      return <CreateKey groups={dialog.groups} events={events} onIssued={onIssued} onClosed={showIssued} />;
    case 'edit':
      return <EditKey apiKey={dialog.key} groups={dialog.groups} events={events} onClosed={close} />;
    case 'rotate':
      return <RotateKey apiKey={dialog.key} events={events} onIssued={onIssued} onClosed={showIssued} />;
    case 'revoke':
      return <RevokeKey apiKey={dialog.key} events={events} onClosed={close} />;
    case 'issued':
      return <NewKey issued={dialog.issued} onClosed={close} />;
  }
}

interface CommonProps {
  readonly events: KeyDialogEvents;
  readonly onClosed: () => void;
}

interface IssuingProps extends CommonProps {
  readonly onIssued: (key: IssuedKey) => void;
}

interface OfKeyProps extends CommonProps {
  readonly apiKey: KeyEntry;
}

interface WithGroups {
  readonly groups: readonly string[];
}

/** Creates a key. */
function CreateKey({ groups, events, onIssued, onClosed }: IssuingProps & WithGroups) {
  return (
    <KeyDialog
      title="Create a key"
      verb="Create"
      isNew
      groups={groups}
      fields={{ ...noFields, groups: groups.length === 1 ? groups : [] }}
      submit={async (fields) => {
        const outcome = newKeyBody(fields);
        if (!outcome.ok) return outcome.problems;
        onIssued(await askJson<IssuedKey>('/keys', { method: 'POST', body: outcome.body }));
        events.onChanged();
        return null;
      }}
      onClosed={onClosed}
    />
  );
}

/** Changes a key. */
function EditKey({ apiKey, groups, events, onClosed }: OfKeyProps & WithGroups) {
  return (
    <KeyDialog
      title={`Edit ${apiKey.id}`}
      verb="Save"
      isNew={false}
      groups={groups}
      fields={fieldsOf(apiKey)}
      submit={async (fields) => {
        const outcome = keyChangeBody(apiKey, fields);
        if (!outcome.ok) return outcome.problems;
        if (!changesSomething(outcome.body)) return null;
        await orConflict(apiKey, events, async () => {
          const { body } = outcome;
          const changed = await askJson<{ inForce: boolean }>(pathOf(apiKey), { method: 'PATCH', body });
          return changed.inForce;
        });
        return null;
      }}
      onClosed={onClosed}
    />
  );
}

/** Rotates a key, with a grace period for the old secret. */
function RotateKey({ apiKey, events, onIssued, onClosed }: OfKeyProps & IssuingProps) {
  const graceMs = useSignal(0);
  const submit = async (): Promise<boolean> => {
    const { revision } = apiKey;
    const body = { graceMs: graceMs.value, ...(revision === undefined ? {} : { revision }) };
    await orConflict(apiKey, events, async () => {
      const issued = await askJson<IssuedKey>(`${pathOf(apiKey)}/rotate`, { method: 'POST', body });
      onIssued(issued);
      return issued.inForce;
    });
    return true;
  };
  return (
    <FormDialog title={`Rotate ${apiKey.id}`} verb="Rotate key" submit={submit} onClosed={onClosed}>
      <p>It gets a new key under the same id, with the same groups, limits and budget.</p>
      <label class="field">
        <span>The old key stops working</span>
        <select
          value={graceMs}
          onChange={({ currentTarget }) => {
            graceMs.value = Number(currentTarget.value);
          }}
        >
          {graces.map(([ms, words]) => (
            <option key={ms} value={ms}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </FormDialog>
  );
}

/** Revokes a key after confirmation. */
function RevokeKey({ apiKey, events, onClosed }: OfKeyProps) {
  const submit = async (): Promise<boolean> => {
    await orConflict(apiKey, events, async () => {
      const revoked = await askJson<{ inForce: boolean }>(pathOf(apiKey), { method: 'DELETE' });
      return revoked.inForce;
    });
    return true;
  };
  return (
    <FormDialog title={`Revoke ${apiKey.id}?`} verb="Revoke key" danger submit={submit} onClosed={onClosed}>
      <p>Whoever uses it is refused from then on. This cannot be undone.</p>
    </FormDialog>
  );
}

/**
 * Changes a key. If the key differs from the list, reports a conflict instead.
 * @param change resolves to whether every worker has already applied the change
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

/** The names of the groups of the config. @throws {ApiError} */
export async function groupNames(): Promise<readonly string[]> {
  const { config } = await askJson<{ config: { groups?: Readonly<Record<string, unknown>> } }>('/config');
  return Object.keys(config.groups ?? {});
}

function pathOf({ id }: KeyEntry): string {
  return `/keys/${encodeURIComponent(id)}`;
}
