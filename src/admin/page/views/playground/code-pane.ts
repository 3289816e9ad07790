import { copyButton } from '../../copy-button.js';
import { h, setText } from '../../dom.js';
import { createSwitch } from '../../switch.js';
import { type Asked, codeSamples, type Samples } from './code/samples.js';

/** Code that does the same request. */
export interface CodePane {
  readonly element: HTMLElement;
  show(asked: Asked, baseUrl: string): void;
}

const languages: readonly (readonly [keyof Samples, string])[] = [
  ['curl', 'curl'],
  ['python', 'Python'],
  ['typescript', 'TypeScript'],
];

export function createCodePane(): CodePane {
  let samples: Samples | null = null;
  const code = h('pre', { class: 'code', tabIndex: 0, attributes: { 'aria-label': 'Code' } });
  const language = createSwitch('Language', languages, 'curl', () => write());
  const write = (): void => setText(code, samples?.[language.value] ?? '');
  return {
    element: h(
      'div',
      { class: 'pane' },
      h(
        'div',
        { class: 'row spread' },
        language.element,
        copyButton(() => code.textContent ?? ''),
      ),
      code,
      h(
        'p',
        { class: 'hint' },
        'The key is not in the code: it is taken from the environment variable ',
        h('code', {}, 'GATEWAY_KEY'),
        '.',
      ),
    ),
    show(asked, baseUrl) {
      samples = codeSamples(asked, baseUrl);
      write();
    },
  };
}
