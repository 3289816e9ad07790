import { type Child, h } from './dom.js';
import { messageOf } from './words.js';

export interface Dialog {
  readonly element: HTMLDialogElement;
  close(): void;
}

export interface DialogOptions {
  readonly title: string;
  /** Escape does not close it: what it shows is not shown again. */
  readonly stays?: boolean;
}

let made = 0;

/** Opens a dialog over the page. It is gone when it is closed; the browser puts the focus back. */
export function openDialog({ title, stays = false }: DialogOptions, ...content: readonly Child[]): Dialog {
  const titleId = `dialog-${++made}`;
  const element = h(
    'dialog',
    {
      class: 'dialog',
      attributes: { 'aria-labelledby': titleId },
      on: {
        close: () => element.remove(),
      },
    },
    h('h2', { id: titleId }, title),
    ...content,
  );
  if (stays) element.addEventListener('cancel', (event) => event.preventDefault());
  document.body.append(element);
  element.showModal();
  return { element, close: () => element.close() };
}

export interface FormDialogOptions {
  readonly title: string;
  /** On the button that does it. */
  readonly verb: string;
  readonly danger?: boolean;
  /**
   * Does it; the dialog stays open, and busy, until it is done.
   * @returns false where the dialog is to stay, and says itself why
   * @throws what is told in the dialog
   */
  submit(): Promise<boolean>;
  /** What comes once it is done and the dialog is gone. */
  afterwards?(): void;
}

/** A dialog with a form in it, or a question. Enter sends it, Escape leaves it. */
export function openFormDialog(options: FormDialogOptions, ...content: readonly Child[]): Dialog {
  const problem = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const button = h(
    'button',
    { type: 'submit', class: options.danger === true ? 'button danger' : 'button primary' },
    options.verb,
  );
  const submit = async (): Promise<void> => {
    button.disabled = true;
    problem.textContent = '';
    try {
      if (!(await options.submit())) return;
      dialog.close();
      options.afterwards?.();
    } catch (error) {
      problem.textContent = messageOf(error);
    } finally {
      button.disabled = false;
    }
  };
  const form = h(
    'form',
    {
      noValidate: true,
      on: {
        submit: (event: SubmitEvent) => {
          event.preventDefault();
          if (!button.disabled) void submit();
        },
      },
    },
    ...content,
    problem,
    h(
      'div',
      { class: 'row dialog-actions' },
      h('button', { type: 'button', class: 'button quiet', on: { click: () => dialog.close() } }, 'Cancel'),
      button,
    ),
  );
  const dialog = openDialog({ title: options.title }, form);
  return dialog;
}
