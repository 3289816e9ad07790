import { fill, h } from '../../dom.js';
import { cutAt, linesWith, type Piece, piecesOf, type Section } from './text.js';

export interface SectionView {
  readonly element: HTMLDetailsElement;
  /** Opens it where the text is in it, and hides it where it is not; all is shown for an empty text. */
  search(wanted: string): number;
}

/** Lines that are made at once: a browser takes its time for a config of thousands of models. */
const linesAtOnce = 2000;

/** A section of the config that folds. Its lines are made when it is first open. */
export function createSectionView(section: Section, isOpen: boolean): SectionView {
  const code = h('pre', { class: 'code', tabIndex: 0, attributes: { 'aria-label': section.name } });
  const more = h('button', {
    type: 'button',
    class: 'button',
    hidden: true,
    on: { click: () => showMore() },
  });
  let wanted = '';
  let most = linesAtOnce;
  let shown: string | null = null;
  let wasOpen = isOpen;

  const show = (): void => {
    const state = `${most} ${wanted}`;
    if (state === shown || !element.open) return;
    shown = state;
    const found = linesWith(section, wanted);
    const isNamed = section.name.toLowerCase().includes(wanted.toLowerCase());
    const numbers =
      wanted === '' || isNamed ? section.lines.map((_, index) => index) : around(found, section.lines);
    fill(
      code,
      numbers.slice(0, most).flatMap((number, index) => lineOf(number, numbers[index - 1] ?? -1)),
    );
    more.hidden = numbers.length <= most;
    more.textContent = `Show ${Math.min(linesAtOnce, numbers.length - most)} more lines`;
  };
  const lineOf = (number: number, before: number): readonly (Node | string)[] => [
    ...(number > before + 1 ? [h('span', { class: 'json-gap' }, '⋯\n')] : []),
    ...piecesOf(section.lines[number] as string).flatMap((each) => nodesOf(each, wanted)),
    '\n',
  ];
  const showMore = (): void => {
    most += linesAtOnce;
    show();
  };
  const element = h(
    'details',
    { class: 'config-section', open: isOpen, data: { section: section.name }, on: { toggle: () => show() } },
    h('summary', {}, h('code', {}, section.name), h('span', { class: 'hint' }, section.summary)),
    code,
    more,
  );
  show();
  return {
    element,
    search(next) {
      if (wanted === '' && next !== '') wasOpen = element.open;
      const wasSearched = wanted !== '';
      wanted = next;
      most = linesAtOnce;
      const isNamed = section.name.toLowerCase().includes(next.toLowerCase());
      const found = next === '' ? 0 : linesWith(section, next).length + (isNamed ? 1 : 0);
      element.hidden = next !== '' && found === 0;
      if (next !== '') element.open = found > 0;
      else if (wasSearched) element.open = wasOpen;
      show();
      return found;
    },
  };
}

/** The lines that were found, with those that they are inside of: the nearest ones before that are indented less. */
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

function nodesOf({ kind, text }: Piece, wanted: string): readonly (Node | string)[] {
  const parts = cutAt(text, wanted).map((part, index) => (index % 2 === 1 ? h('mark', {}, part) : part));
  return kind === 'plain' ? parts : [h('span', { class: `json-${kind}` }, ...parts)];
}
