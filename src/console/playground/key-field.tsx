import { type Signal, signal, useSignal } from '@preact/signals';
import { askJson, mayWrite } from '../api.js';
import { moment } from '../format.js';
import { into } from '../into.js';
import { messageOf } from '../words.js';
import { Field } from './fields.js';

const storageName = 'playground-key';
const lifeMs = 60 * 60 * 1000;

/** The key for the playground's calls. */
export interface PlaygroundKey {
  readonly value: Signal<string>;
  /** The groups that a new key can have. */
  readonly groups: Signal<readonly string[]>;
}

export function createKey(): PlaygroundKey {
  return { value: signal(sessionStorage.getItem(storageName) ?? ''), groups: signal([]) };
}

/** Sets a key, and keeps it for the tab. */
export function keepKey({ value }: PlaygroundKey, key: string): void {
  value.value = key;
  sessionStorage.setItem(storageName, key);
}

interface MadeKey {
  readonly key: string;
  readonly id: string;
  readonly expiresAt: string;
}

/** The field of the key, with a button that creates one valid for an hour. */
export function KeyField({ apiKey }: { readonly apiKey: PlaygroundKey }) {
  const groups = apiKey.groups.value;
  const chosen = useSignal('');
  const said = useSignal('');
  const problem = useSignal('');
  const isBusy = useSignal(false);
  const group = groups.includes(chosen.value) ? chosen.value : (groups[0] ?? '');
  const make = async (): Promise<void> => {
    isBusy.value = true;
    problem.value = '';
    try {
      const expiresAt = new Date(Date.now() + lifeMs).toISOString();
      const body = { label: 'playground', groups: [group], expiresAt };
      const made = await askJson<MadeKey>('/keys', { method: 'POST', body });
      keepKey(apiKey, made.key);
      said.value = `The key ${made.id} works until ${moment(Date.parse(made.expiresAt))}.`;
    } catch (error) {
      problem.value = messageOf(error);
    } finally {
      isBusy.value = false;
    }
  };
  // A form, since browsers expect password fields in one.
  return (
    <form class="key" autocomplete="off" onSubmit={(event) => event.preventDefault()}>
      <Field name="API key">
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="sk-…"
          value={apiKey.value}
          onInput={({ currentTarget }) => keepKey(apiKey, currentTarget.value)}
        />
      </Field>
      {groups.length > 0 && mayWrite.value && (
        <div class="row">
          <button type="button" class="button" disabled={isBusy} onClick={make}>
            Make a key for an hour
          </button>
          <select
            aria-label="Group of the new key"
            hidden={groups.length < 2}
            value={group}
            onChange={into(chosen)}
          >
            {groups.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </div>
      )}
      <p class="hint" role="status">
        {said}
      </p>
      <p class="problem" role="alert">
        {problem}
      </p>
    </form>
  );
}
