import { useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { messageOf } from './words.js';

interface DialogProps {
  readonly title: string;
  /** For who closes it: the browser then puts the focus back. */
  readonly element: RefObject<HTMLDialogElement | null>;
  /** Escape does not close it: what it shows is not shown again. */
  readonly stays?: boolean;
  /** It is closed, and may go. */
  readonly onClosed: () => void;
  readonly children: ComponentChildren;
}

/** A dialog over the page, open as long as it is there. */
export function Dialog({ title, element, stays = false, onClosed, children }: DialogProps) {
  const titleId = useId();
  useLayoutEffect(() => element.current?.showModal(), [element]);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        if (stays) event.preventDefault();
      }}
      onClose={onClosed}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  );
}

interface FormDialogProps {
  readonly title: string;
  /** On the button that does it. */
  readonly verb: string;
  readonly danger?: boolean;
  /**
   * Does it; the dialog stays open, and busy, until it is done.
   * @returns false where the dialog is to stay, and says itself why
   * @throws what is told in the dialog
   */
  readonly submit: () => Promise<boolean>;
  /** It is closed, and may go. */
  readonly onClosed: () => void;
  readonly children: ComponentChildren;
}

/** A dialog with a form in it, or a question. Enter sends it, Escape leaves it. */
export function FormDialog({ title, verb, danger = false, submit, onClosed, children }: FormDialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const problem = useSignal('');
  const isBusy = useSignal(false);
  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    problem.value = '';
    try {
      if (await submit()) element.current?.close();
    } catch (error) {
      problem.value = messageOf(error);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <Dialog title={title} element={element} onClosed={onClosed}>
      <form noValidate onSubmit={send}>
        {children}
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="row dialog-actions">
          <button type="button" class="button quiet" onClick={() => element.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={danger ? 'button danger' : 'button primary'} disabled={isBusy}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
