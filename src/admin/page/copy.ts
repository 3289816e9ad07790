import { h, setText } from './dom.js';

const thanksMs = 1500;

/**
 * Makes a button that copies a text as it then is. Where the page may not use the clipboard, which is so over plain
 * HTTP from another host, it selects the element that shows the text.
 */
export function createCopyButton(text: () => string, shownIn: HTMLElement, label: string): HTMLButtonElement {
  const button = h(
    'button',
    { type: 'button', class: 'button quiet copy', attributes: { 'aria-label': label } },
    'Copy',
  );
  button.addEventListener('click', () => void copy());
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      setText(button, 'Copied');
    } catch {
      getSelection()?.selectAllChildren(shownIn);
      setText(button, 'Selected');
    }
    setTimeout(() => setText(button, 'Copy'), thanksMs);
  };
  return button;
}
