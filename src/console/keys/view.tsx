import { type Signal, signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { LiveState } from '../../metrics/live-state.js';
import { mayWrite } from '../api.js';
import { into } from '../into.js';
import { useKept, useSession } from '../session.js';
import { messageOf, plural } from '../words.js';
import {
  groupNames,
  type KeyDialogEvents,
  KeyDialogs,
  type KeyDialogsState,
  type OpenDialog,
} from './dialogs.js';
import { type KeyEntry, workingFirst } from './key.js';
import { createKeyList, type KeyList, nameOf } from './list.js';
import { type KeyActions, KeyRow, keyColumns } from './row.js';

const refreshMs = 10_000;
/** Most keys in the live state. */
const maxLive = 200;

/** The keys with their limits and usage, and the dialogs that create, change, rotate and revoke them. */
export function KeysView() {
  const { list, filter } = useKept('keys', () => ({ list: createKeyList(), filter: signal('') }));
  const notice = useSignal('');
  const dialogs = useKept<KeyDialogsState>('key dialogs', () => ({
    open: signal(null),
    issued: signal(null),
  }));
  const { open } = dialogs;
  useEffect(() => {
    list.forgetUse();
    void list.reload();
    const timer = setInterval(list.refresh, refreshMs);
    return () => clearInterval(timer);
  }, [list]);

  const { events, create, ...actions } = actionsOf(list, open, notice);
  const wanted = filter.value.trim().toLowerCase();
  const shown = workingFirst(list.keys.value, Date.now()).filter((key) => isFound(key, wanted));
  return (
    <section class="keys">
      <div class="view-head">
        <h2>Keys</h2>
        <button type="button" class="button primary" hidden={!mayWrite.value} onClick={create}>
          Create key
        </button>
      </div>
      <p class="problem" role="alert">
        {notice}
      </p>
      <p class="problem" role="alert">
        {list.problem}
      </p>
      <p class="problem">{damagedIn(list.damaged.value)}</p>
      <div class="panel">
        <div class="row list-head">
          <label class="field">
            <span>Find</span>
            <input type="search" placeholder="Id, label or group" value={filter} onInput={into(filter)} />
          </label>
          <p class="hint" role="status">
            {list.isRead.value && summaryOf(list, wanted === '' ? null : shown.length)}
          </p>
        </div>
        <KeyTable keys={shown} list={list} actions={actions} />
        {list.isRead.value && list.keys.value.length === 0 && <p class="empty">No keys yet.</p>}
        {list.next.value !== null && (
          <button type="button" class="button" onClick={list.more}>
            Load more
          </button>
        )}
      </div>
      <KeyDialogs {...dialogs} events={events} />
    </section>
  );
}

/** The actions on keys, and the events of their dialogs. */
function actionsOf(
  list: KeyList,
  open: Signal<OpenDialog | null>,
  notice: Signal<string>,
): KeyActions & { readonly events: KeyDialogEvents; create(): void } {
  const events: KeyDialogEvents = {
    onChanged: () => {
      notice.value = '';
      void list.reload();
    },
    onConflict: (message) =>
      void list.reload().then(() => {
        notice.value = message;
      }),
    onProblem: (message) => {
      notice.value = message;
    },
  };
  const withGroups = async (dialogOf: (groups: readonly string[]) => OpenDialog): Promise<void> => {
    try {
      open.value = dialogOf(await groupNames());
    } catch (error) {
      notice.value = messageOf(error);
    }
  };
  return {
    events,
    create: () => void withGroups((groups) => ({ kind: 'create', groups })),
    edit: (key) => void withGroups((groups) => ({ kind: 'edit', key, groups })),
    rotate: (key) => {
      open.value = { kind: 'rotate', key };
    },
    revoke: (key) => {
      open.value = { kind: 'revoke', key };
    },
  };
}

interface KeyTableProps {
  readonly keys: readonly KeyEntry[];
  readonly list: KeyList;
  readonly actions: KeyActions;
}

function KeyTable({ keys, list, actions }: KeyTableProps) {
  const traffic = trafficOf(useSession().state.value);
  return (
    <div class="table-wrap" role="group" aria-label="Keys" tabIndex={0}>
      <table class="cards" aria-label="Keys">
        <thead>
          <tr>
            {keyColumns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <KeyRow
              key={nameOf(key)}
              entry={key}
              use={list.use.value}
              traffic={traffic(key.id)}
              actions={actions}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Returns a lookup of a key's traffic since the start; null if unknown. */
function trafficOf(state: LiveState | null): (id: string) => LiveState['keys'][number] | null {
  const known = new Map(state?.keys.map((each) => [each.name, each]));
  const isWhole = state !== null && state.keys.length < maxLive;
  return (id) => known.get(id) ?? (isWhole ? { name: id, requests: 0, errors: 0, refusals: 0 } : null);
}

function isFound({ id, label, groups }: KeyEntry, wanted: string): boolean {
  return [id, label, ...groups].some((text) => text.toLowerCase().includes(wanted));
}

/** @param found null where nothing is looked for */
function summaryOf({ keys, next }: KeyList, found: number | null): string {
  const all = plural(keys.value.length, 'key');
  const counted = found === null ? all : `${found} of ${all}`;
  return `${counted}${next.value === null ? '' : ', and more that are not loaded'}`;
}

function damagedIn(ids: readonly string[]): string {
  if (ids.length === 0) return '';
  return `Records that cannot be read: ${ids.join(', ')}. Revoke these keys and make others.`;
}
