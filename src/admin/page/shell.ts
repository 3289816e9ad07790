import type { LiveState } from '../live-state.js';
import { fill, h, setText } from './dom.js';
import type { View, ViewEntry } from './view.js';

/** What is around every part of the page. */
export interface Shell {
  readonly element: HTMLElement;
  show(entry: ViewEntry, view: View): void;
  onState(state: LiveState): void;
  /** @param reason null while the page is live, or why it is not */
  onConnection(reason: string | null): void;
}

/** @param onSignOut the operator leaves */
export function createShell(entries: readonly ViewEntry[], onSignOut: () => void): Shell {
  const links = new Map(
    entries.map(({ name, title }) => [name, h('a', { href: `#${name}` }, title)] as const),
  );
  const connection = h('p', { attributes: { role: 'status' } }, 'Connecting …');
  const main = h('main', { id: 'main', tabIndex: -1 });
  const element = h(
    'div',
    { class: 'shell' },
    h(
      'header',
      { class: 'bar' },
      h('h1', {}, 'Gateway'),
      h('nav', { attributes: { 'aria-label': 'Parts' } }, ...links.values()),
      connection,
      h('button', { type: 'button', class: 'button', on: { click: onSignOut } }, 'Sign out'),
    ),
    main,
  );
  return {
    element,
    show({ name, title }, view) {
      for (const [each, link] of links) {
        if (each === name) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
      }
      document.title = `${title} · Gateway`;
      fill(main, [view.element]);
    },
    onState() {},
    onConnection: (reason) => setText(connection, reason ?? 'Live'),
  };
}
