import { h } from '../../dom.js';

/** A panel that is shown by its tab. */
export interface Tab {
  readonly title: string;
  readonly panel: HTMLElement;
  /** It is in sight from now on. */
  onShow?(): void;
}

export interface Tabs {
  readonly list: HTMLElement;
  readonly panels: readonly HTMLElement[];
  /** Shows what there is room for now. */
  refresh(): void;
}

/**
 * Tabs as the ARIA practices have them: one of them is in the tab order, and the arrows go through all.
 * @param hasRoom true where the first panel stays in sight, beside the one that was chosen last of the others
 */
export function createTabs(label: string, tabs: readonly Tab[], hasRoom: () => boolean): Tabs {
  let current = 0;
  let other = 1;

  const buttons = tabs.map(({ title, panel }, index) => {
    const id = `tab-${title.toLowerCase()}`;
    panel.id = `${id}-panel`;
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', id);
    panel.tabIndex = 0;
    panel.hidden = true;
    return h(
      'button',
      {
        id,
        type: 'button',
        attributes: { role: 'tab', 'aria-controls': panel.id },
        on: { click: () => choose(index), keydown: (event) => move(event, index) },
      },
      title,
    );
  });
  const choose = (chosen: number): void => {
    current = chosen;
    if (chosen !== 0) other = chosen;
    const isBeside = hasRoom();
    tabs.forEach(({ panel, onShow }, index) => {
      const isChosen = index === chosen;
      const wasHidden = panel.hidden;
      panel.hidden = !isChosen && !(isBeside && (index === 0 || index === other));
      buttons[index]?.setAttribute('aria-selected', `${isChosen}`);
      if (buttons[index] !== undefined) buttons[index].tabIndex = isChosen ? 0 : -1;
      if (wasHidden && !panel.hidden) onShow?.();
    });
  };
  const move = (event: KeyboardEvent, index: number): void => {
    const last = tabs.length - 1;
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: index === 0 ? last : index - 1,
      ArrowRight: index === last ? 0 : index + 1,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    choose(target);
    buttons[target]?.focus();
  };
  choose(0);
  return {
    list: h('div', { class: 'tabs', attributes: { role: 'tablist', 'aria-label': label } }, ...buttons),
    panels: tabs.map(({ panel }) => panel),
    refresh: () => choose(current),
  };
}
