import { h } from '../../dom.js';
import type { Kind } from './choice.js';

/** Where a prompt is written and sent. */
export interface Composer {
  readonly element: HTMLElement;
  prompt: string;
  focus(): void;
  showKind(kind: Kind): void;
  /** While a call runs it can be stopped, and none can be sent. */
  showRunning(isRunning: boolean): void;
}

export interface ComposerEvents {
  onSend(): void;
  onStop(): void;
  onClear(): void;
  onInput(): void;
}

const placeholders: Readonly<Record<Kind, string>> = {
  chat: 'Say something',
  image: 'What the image shows',
  speech: 'What is spoken',
  video: 'What the video shows',
};

export function createComposer(events: ComposerEvents): Composer {
  const text = h('textarea', {
    rows: 3,
    attributes: { 'aria-label': 'Prompt', 'aria-keyshortcuts': 'Control+Enter Meta+Enter' },
    on: {
      input: () => events.onInput(),
      keydown: (event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (!send.disabled) events.onSend();
      },
    },
  });
  const button = (title: string, style: string, onClick: () => void): HTMLButtonElement =>
    h('button', { type: 'button', class: `button ${style}`, on: { click: onClick } }, title);
  const send = button('Send', 'primary', events.onSend);
  const stop = button('Stop', '', events.onStop);
  const clear = button('Clear', 'quiet', events.onClear);
  stop.disabled = true;
  return {
    element: h(
      'div',
      { class: 'composer' },
      text,
      h(
        'div',
        { class: 'row' },
        send,
        stop,
        h('span', { class: 'hint' }, h('kbd', {}, 'Ctrl'), ' ', h('kbd', {}, 'Enter')),
        clear,
      ),
    ),
    get prompt() {
      return text.value;
    },
    set prompt(value) {
      text.value = value;
    },
    focus: () => text.focus(),
    showKind(kind) {
      text.placeholder = placeholders[kind];
    },
    showRunning(isRunning) {
      send.disabled = isRunning;
      stop.disabled = !isRunning;
    },
  };
}
