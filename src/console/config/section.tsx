import { type Signal, useSignal } from '@preact/signals';
import { cutAt, linesWith, type Piece, piecesOf, type Section } from './text.js';

/** Lines rendered at a time, since a config of thousands of models takes a browser long. */
const linesAtOnce = 2000;

/** The number of a section's lines, plus its name, that contain a text. */
export function foundIn(section: Section, wanted: string): number {
  return wanted === '' ? 0 : linesWith(section, wanted).length + (isNamed(section, wanted) ? 1 : 0);
}

interface SectionProps {
  readonly section: Section;
  /** Search text: only lines with it are shown, and a section with matches is open; empty shows all. */
  readonly wanted: string;
  /** The sections that are open without a search. */
  readonly open: Signal<ReadonlySet<string>>;
}

/** A collapsible section of the config. Its lines are rendered only while it is open. */
export function ConfigSection({ section, wanted, open }: SectionProps) {
  const { name, summary } = section;
  /** The search text for which the reader closed the section. */
  const folded = useSignal<string | null>(null);
  const isFound = wanted !== '' && foundIn(section, wanted) > 0;
  const isOpen = wanted === '' ? open.value.has(name) : isFound && folded.value !== wanted;
  const toggle = ({ currentTarget }: { readonly currentTarget: HTMLDetailsElement }): void => {
    if (currentTarget.open === isOpen) return;
    if (wanted !== '') folded.value = currentTarget.open ? null : wanted;
    else if (currentTarget.open) open.value = new Set([...open.value, name]);
    else open.value = new Set([...open.value].filter((each) => each !== name));
  };
  return (
    <details
      class="config-section"
      open={isOpen}
      hidden={wanted !== '' && !isFound}
      data-section={name}
      onToggle={toggle}
    >
      <summary>
        <code>{name}</code>
        <span class="hint">{summary}</span>
      </summary>
      {isOpen && <Lines key={wanted} section={section} wanted={wanted} />}
    </details>
  );
}

function Lines({ section, wanted }: { readonly section: Section; readonly wanted: string }) {
  const most = useSignal(linesAtOnce);
  const numbers =
    wanted === '' || isNamed(section, wanted)
      ? section.lines.map((_, index) => index)
      : around(linesWith(section, wanted), section.lines);
  const left = numbers.length - most.value;
  return (
    <>
      <pre class="code" role="group" tabIndex={0} aria-label={section.name}>
        {numbers
          .slice(0, most.value)
          .map((number, index) => [
            number > (numbers[index - 1] ?? -1) + 1 && <span class="json-gap">{'⋯\n'}</span>,
            ...piecesOf(section.lines[number] as string).map((each) => (
              <Marked piece={each} wanted={wanted} />
            )),
            '\n',
          ])}
      </pre>
      {left > 0 && (
        <button
          type="button"
          class="button"
          onClick={() => {
            most.value += linesAtOnce;
          }}
        >
          {`Show ${Math.min(linesAtOnce, left)} more lines`}
        </button>
      )}
    </>
  );
}

function isNamed({ name }: Section, wanted: string): boolean {
  return name.toLowerCase().includes(wanted.toLowerCase());
}

/** The lines found, with the lines that enclose them: the nearest previous ones with less indentation. */
function around(found: readonly number[], lines: readonly string[]): readonly number[] {
  const all = new Set<number>();
  for (const number of found) {
    let indent = indentOf(lines[number] as string);
    all.add(number);
    for (let before = number - 1; before >= 0 && indent > 0; before--) {
      const each = indentOf(lines[before] as string);
      if (each >= indent) continue;
      indent = each;
      if (all.has(before)) break;
      all.add(before);
    }
  }
  return [...all].sort((a, b) => a - b);
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function Marked({ piece: { kind, text }, wanted }: { readonly piece: Piece; readonly wanted: string }) {
  const parts = cutAt(text, wanted).map((part, index) => (index % 2 === 1 ? <mark>{part}</mark> : part));
  return <span class={kind === 'plain' ? undefined : `json-${kind}`}>{parts}</span>;
}
