import { createCopyButton } from '../../copy.js';
import { openDialog } from '../../dialog.js';
import { h } from '../../dom.js';

/** A key that was made a moment ago. */
export interface IssuedKey {
  readonly id: string;
  /** The key itself. */
  readonly key: string;
  /** Every worker works by it already. */
  readonly inForce: boolean;
}

/** Shows a new key, this once. */
export function showNewKey({ id, key, inForce }: IssuedKey): void {
  const shown = h(
    'code',
    {
      class: 'secret',
      tabIndex: 0,
      attributes: { role: 'textbox', 'aria-readonly': 'true', 'aria-label': 'The new key' },
    },
    key,
  );
  const copy = createCopyButton(() => key, shown, 'Copy the new key');
  const dialog = openDialog(
    { title: `The new key of ${id}`, stays: true },
    h('p', {}, 'Copy it now: it is not shown again. The gateway keeps only its hash.'),
    h('div', { class: 'row secret-row' }, shown, copy),
    inForce
      ? null
      : h('p', { class: 'hint' }, 'Not every worker has taken it up yet; it may be refused for a moment.'),
    h(
      'div',
      { class: 'row dialog-actions' },
      h('button', { type: 'button', class: 'button primary', on: { click: () => dialog.close() } }, 'Done'),
    ),
  );
  copy.focus();
}
