import type { GatewayView, LiveState } from '../live-state.js';
import { fill, h, setText } from './dom.js';
import { span, whole } from './format.js';
import { chooseTheme, savedTheme, type Theme } from './theme.js';
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
  const connection = createConnection();
  const facts = createFacts();
  const notReady = h('p', { class: 'not-ready', hidden: true, attributes: { role: 'status' } });
  const main = h('main', { id: 'main', class: 'content', tabIndex: -1 });
  const element = h(
    'div',
    { class: 'shell' },
    // Not a jump to #main: what is after # names the part.
    h('button', { type: 'button', class: 'skip', on: { click: () => main.focus() } }, 'Skip to the content'),
    h(
      'header',
      { class: 'bar' },
      h('div', { class: 'brand' }, h('h1', {}, 'Gateway'), connection.element),
      h('nav', { attributes: { 'aria-label': 'Parts' } }, ...links.values()),
      facts.element,
      h(
        'div',
        { class: 'tools' },
        createThemeChoice(),
        h('button', { type: 'button', class: 'button quiet', on: { click: onSignOut } }, 'Sign out'),
      ),
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
      fill(main, [notReady, view.element]);
      links.get(name)?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      scrollTo(0, 0);
    },
    onState({ at, gateway }) {
      facts.show(gateway, at);
      notReady.hidden = gateway.notReady === null;
      setText(notReady, gateway.notReady === null ? '' : `Not ready: ${gateway.notReady}`);
    },
    onConnection: connection.show,
  };
}

function createConnection(): {
  readonly element: HTMLElement;
  show(reason: string | null): void;
} {
  const badge = h('span', { class: 'badge', data: { tone: 'idle' } }, 'Connecting …');
  const why = h('span', { class: 'hint' });
  return {
    element: h('div', { class: 'connection', attributes: { role: 'status' } }, badge, why),
    show(reason) {
      badge.dataset.tone = reason === null ? 'good' : 'bad';
      setText(badge, reason === null ? 'Live' : 'Not live');
      setText(why, reason ?? '');
    },
  };
}

function createFacts(): {
  readonly element: HTMLElement;
  /** @param at of the state, Unix milliseconds: by the gateway's clock, as its start */
  show(gateway: GatewayView, at: number): void;
} {
  const version = h('dd');
  const uptime = h('dd');
  const workers = h('dd');
  const restarts = h('dd');
  const generation = h('dd');
  const fact = (name: string, value: HTMLElement): HTMLElement => h('div', {}, h('dt', {}, name), value);
  const ofRestarts = fact('Restarts', restarts);
  return {
    element: h(
      'dl',
      { class: 'facts' },
      fact('Version', version),
      fact('Up', uptime),
      fact('Workers', workers),
      ofRestarts,
      fact('Config', generation),
    ),
    show({ version: name, node, startedAt, workers: counts, configGeneration }, at) {
      setText(version, name);
      version.title = `Node ${node}`;
      setText(uptime, span(at - startedAt));
      setText(workers, `${counts.serving} of ${counts.wanted}`);
      workers.dataset.tone = counts.serving < counts.wanted ? 'warn' : '';
      setText(restarts, whole(counts.restarts));
      ofRestarts.hidden = counts.restarts === 0;
      setText(generation, `generation ${configGeneration}`);
    },
  };
}

function createThemeChoice(): HTMLElement {
  const choice = h(
    'select',
    { class: 'theme', attributes: { 'aria-label': 'Theme' } },
    h('option', { value: 'auto' }, 'Auto'),
    h('option', { value: 'light' }, 'Light'),
    h('option', { value: 'dark' }, 'Dark'),
  );
  choice.value = savedTheme();
  choice.addEventListener('change', () => chooseTheme(choice.value as Theme));
  return choice;
}
