import { createChoice } from '../../choice.js';
import { createCopyButton } from '../../copy.js';
import { h, setText } from '../../dom.js';
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
  const language = createChoice('Language', languages, () => write());
  const write = (): void => setText(code, samples?.[language.chosen] ?? '');
  return {
    element: h(
      'div',
      { class: 'pane' },
      h(
        'div',
        { class: 'row spread' },
        language.element,
        createCopyButton(() => code.textContent ?? '', code, 'Copy the code'),
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
