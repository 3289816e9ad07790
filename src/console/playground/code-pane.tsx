import type { Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Choice } from '../choice.js';
import { CopyButton } from '../copy.js';
import { type Asked, codeSamples, type Samples } from './code/samples.js';

export type Language = keyof Samples;

const languages: readonly (readonly [Language, string])[] = [
  ['curl', 'curl'],
  ['python', 'Python'],
  ['typescript', 'TypeScript'],
];

interface CodePaneProps {
  readonly asked: Asked;
  readonly baseUrl: string;
  readonly language: Signal<Language>;
}

/** Code for the same request. */
export function CodePane({ asked, baseUrl, language }: CodePaneProps) {
  const code = useRef<HTMLPreElement>(null);
  const text = codeSamples(asked, baseUrl)[language.value];
  return (
    <>
      <div class="row spread">
        <Choice label="Language" names={languages} chosen={language} />
        <CopyButton text={text} shownIn={code} label="Copy the code" />
      </div>
      <pre ref={code} class="code" role="group" tabIndex={0} aria-label="Code">
        {text}
      </pre>
      <p class="hint">
        The key is not in the code: it is taken from the environment variable <code>GATEWAY_KEY</code>.
      </p>
    </>
  );
}
