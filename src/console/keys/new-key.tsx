import { useRef } from 'preact/hooks';
import { CopyButton } from '../copy.js';
import { Dialog } from '../dialog.js';

/** A key that was made a moment ago. */
export interface IssuedKey {
  readonly id: string;
  /** The key itself. */
  readonly key: string;
  /** Every worker works by it already. */
  readonly inForce: boolean;
}

interface NewKeyProps {
  readonly issued: IssuedKey;
  readonly onClosed: () => void;
}

/** Shows a new key, this once. */
export function NewKey({ issued: { id, key, inForce }, onClosed }: NewKeyProps) {
  const element = useRef<HTMLDialogElement>(null);
  const shown = useRef<HTMLSpanElement>(null);
  return (
    <Dialog title={`The new key of ${id}`} element={element} stays onClosed={onClosed}>
      <p>Copy it now: it is not shown again. The gateway keeps only its hash.</p>
      <div class="row secret-row">
        <span
          ref={shown}
          class="secret"
          role="textbox"
          aria-readonly="true"
          aria-label="The new key"
          tabIndex={0}
        >
          {key}
        </span>
        <CopyButton text={key} shownIn={shown} label="Copy the new key" isFirst />
      </div>
      {!inForce && <p class="hint">Not every worker has taken it up yet; it may be refused for a moment.</p>}
      <div class="row dialog-actions">
        <button type="button" class="button primary" onClick={() => element.current?.close()}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
