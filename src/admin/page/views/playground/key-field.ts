import { askJson } from '../../api.js';
import { fill, h, setText } from '../../dom.js';
import { moment } from '../../format.js';
import { messageOf } from '../../words.js';
import { field, optionsOf } from './fields.js';

/** The key that the playground calls with. */
export interface KeyField {
  readonly element: HTMLElement;
  readonly value: string;
  focus(): void;
  /** Fills an empty field. */
  offer(key: string | null): void;
  /** Shows the groups that a new key can have. */
  showGroups(groups: readonly string[]): void;
}

const storageName = 'playground-key';
const lifeMs = 60 * 60 * 1000;

interface MadeKey {
  readonly key: string;
  readonly id: string;
  readonly expiresAt: string;
}

export function createKeyField(): KeyField {
  const input = h('input', {
    type: 'password',
    autocomplete: 'off',
    spellcheck: false,
    placeholder: 'sk-…',
    value: sessionStorage.getItem(storageName) ?? '',
    on: { input: () => keep() },
  });
  const group = h('select', { attributes: { 'aria-label': 'Group of the new key' } });
  const make = h(
    'button',
    { type: 'button', class: 'button', on: { click: () => void makeKey() } },
    'Make a key for an hour',
  );
  const said = h('p', { class: 'hint', attributes: { role: 'status' } });
  const problem = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const keep = (): void => sessionStorage.setItem(storageName, input.value);

  const makeKey = async (): Promise<void> => {
    make.disabled = true;
    setText(problem, '');
    try {
      const expiresAt = new Date(Date.now() + lifeMs).toISOString();
      const body = { label: 'playground', groups: [group.value], expiresAt };
      const made = await askJson<MadeKey>('/keys', { method: 'POST', body });
      input.value = made.key;
      keep();
      setText(said, `The key ${made.id} works until ${moment(Date.parse(made.expiresAt))}.`);
    } catch (error) {
      setText(problem, messageOf(error));
    } finally {
      make.disabled = false;
    }
  };
  const choice = h('div', { class: 'row', hidden: true }, make, group);

  return {
    // A form, since browsers expect a password in one.
    element: h(
      'form',
      { class: 'key', autocomplete: 'off', on: { submit: (event: SubmitEvent) => event.preventDefault() } },
      field('API key', input),
      choice,
      said,
      problem,
    ),
    get value() {
      return input.value.trim();
    },
    focus: () => input.focus(),
    offer(key) {
      if (key === null || input.value !== '') return;
      input.value = key;
      keep();
    },
    showGroups(groups) {
      fill(group, optionsOf(groups.map((name) => [name, name])));
      group.hidden = groups.length < 2;
      choice.hidden = groups.length === 0;
    },
  };
}
