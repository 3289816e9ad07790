import { useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { messageOf } from './words.js';

interface DialogProps {
  readonly title: string;
  /** Element for the caller to close, so that the browser restores the focus. */
  readonly element: RefObject<HTMLDialogElement | null>;
  /** Whether Escape does not close it, since its content is shown only once. */
  readonly stays?: boolean;
  /** Called when it was closed and may be removed. */
  readonly onClosed: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog, open as long as it is rendered. */
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
  /** Label of the submit button. */
  readonly verb: string;
  readonly danger?: boolean;
  /**
   * Performs the action. The dialog stays open and busy until it ends.
   * @returns false if the dialog stays open and `submit` has shown the reason itself
   * @throws the error that the dialog shows
   */
  readonly submit: () => Promise<boolean>;
  /** Called when it was closed and may be removed. */
  readonly onClosed: () => void;
  readonly children: ComponentChildren;
}

/** A dialog with a form or a question. Enter submits it, Escape cancels it. */
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
