import { h, setText } from './dom.js';

const saidMs = 2000;

/**
 * A button that copies a text.
 * @param field selected where the browser lets no page write to the clipboard: a page over plain HTTP from another host
 */
export function copyButton(text: () => string, field?: HTMLInputElement): HTMLButtonElement {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'button copy',
      attributes: { 'aria-live': 'polite' },
      on: { click: () => void copy() },
    },
    'Copy',
  );
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setText(button, 'Copied');
    } catch {
      field?.select();
      setText(button, field === undefined ? 'Cannot copy' : 'Press Ctrl+C');
    }
    setTimeout(() => setText(button, 'Copy'), saidMs);
  };
  return button;
}
