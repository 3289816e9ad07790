import { h } from './dom.js';

/** A few choices side by side, of which one counts. */
export interface Choice<Name extends string> {
  readonly element: HTMLElement;
  readonly chosen: Name;
}

/**
 * Makes such a switch.
 * @param label what is chosen
 * @param names of the choices and what is read on them; the first counts at the start
 */
export function createChoice<Name extends string>(
  label: string,
  names: readonly (readonly [name: Name, title: string])[],
  onChoice: (name: Name) => void,
): Choice<Name> {
  let chosen = (names[0] as readonly [Name, string])[0];
  const buttons = names.map(([name, title]) =>
    h(
      'button',
      {
        type: 'button',
        data: { choice: name },
        attributes: { 'aria-pressed': `${name === chosen}` },
        on: { click: () => choose(name) },
      },
      title,
    ),
  );
  const choose = (name: Name): void => {
    if (name === chosen) return;
    chosen = name;
    for (const button of buttons) button.setAttribute('aria-pressed', `${button.dataset.choice === name}`);
    onChoice(name);
  };
  return {
    element: h('div', { class: 'switch', attributes: { role: 'group', 'aria-label': label } }, ...buttons),
    get chosen() {
      return chosen;
    },
  };
}
