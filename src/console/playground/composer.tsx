import type { Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { mayWrite } from '../api.js';
import { into } from '../into.js';
import type { Kind } from './choice.js';

interface ComposerProps {
  readonly kind: Kind;
  readonly prompt: Signal<string>;
  readonly textarea: RefObject<HTMLTextAreaElement | null>;
  /** Whether a call is running, which can be stopped; no other can be sent meanwhile. */
  readonly isRunning: boolean;
  readonly onSend: () => void;
  readonly onStop: () => void;
  readonly onClear: () => void;
}

const placeholders: Readonly<Record<Kind, string>> = {
  chat: 'Say something',
  image: 'What the image shows',
  speech: 'What is spoken',
  video: 'What the video shows',
};

/** The input of a prompt, with its buttons. */
export function Composer(props: ComposerProps) {
  const { kind, prompt, textarea, isRunning, onSend, onStop, onClear } = props;
  return (
    <div class="composer">
      <textarea
        ref={textarea}
        rows={3}
        aria-label="Prompt"
        aria-keyshortcuts="Control+Enter Meta+Enter"
        placeholder={placeholders[kind]}
        value={prompt}
        onInput={into(prompt)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          if (!isRunning && mayWrite.value) onSend();
        }}
      />
      <div class="row">
        <button type="button" class="button primary" disabled={isRunning || !mayWrite.value} onClick={onSend}>
          Send
        </button>
        <button type="button" class="button" disabled={!isRunning} onClick={onStop}>
          Stop
        </button>
        <span class="hint">
          <kbd>Ctrl</kbd> <kbd>Enter</kbd>
        </span>
        <button type="button" class="button quiet" onClick={onClear}>
          Clear
        </button>
      </div>
    </div>
  );
}
