import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

const thanksMs = 1500;

interface CopyButtonProps {
  readonly text: string;
  /** The element that shows the text. */
  readonly shownIn: RefObject<HTMLElement | null>;
  readonly label: string;
  /** Whether it gets the focus when it is mounted. */
  readonly isFirst?: boolean;
}

/**
 * Copies a text. If the page may not use the clipboard, as over plain HTTP from another host, the button selects the
 * element that shows the text instead.
 */
export function CopyButton({ text, shownIn, label, isFirst = false }: CopyButtonProps) {
  const words = useSignal('Copy');
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isFirst) button.current?.focus();
  }, [isFirst]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      words.value = 'Copied';
    } catch {
      if (shownIn.current !== null) getSelection()?.selectAllChildren(shownIn.current);
      words.value = 'Selected';
    }
    setTimeout(() => {
      words.value = 'Copy';
    }, thanksMs);
  };
  return (
    <button ref={button} type="button" class="button quiet copy" aria-label={label} onClick={copy}>
      {words}
    </button>
  );
}
