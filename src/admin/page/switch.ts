import { h } from './dom.js';

/** A few choices side by side, of which one counts. */
export interface Switch<Choice extends string> {
  readonly element: HTMLElement;
  readonly value: Choice;
}

/**
 * @param label names the choices for those who do not see them together
 * @param onChange hears of a choice that another one was before
 */
export function createSwitch<Choice extends string>(
  label: string,
  choices: readonly (readonly [Choice, string])[],
  first: Choice,
  onChange: (choice: Choice) => void,
): Switch<Choice> {
  let value = first;
  const buttons = choices.map(([choice, words]) =>
    h(
      'button',
      {
        type: 'button',
        attributes: { 'aria-pressed': `${choice === first}` },
        on: {
          click: () => {
            if (choice === value) return;
            value = choice;
            choices.forEach(([each], index) => {
              buttons[index]?.setAttribute('aria-pressed', `${each === choice}`);
            });
            onChange(choice);
          },
        },
      },
      words,
    ),
  );
  return {
    element: h('div', { class: 'switch', attributes: { role: 'group', 'aria-label': label } }, ...buttons),
    get value() {
      return value;
    },
  };
}
