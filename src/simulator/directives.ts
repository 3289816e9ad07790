/** One wish about how the simulator shall answer, as the request spells it; `faults.ts` lists them all. */
export interface Directive {
  readonly name: string;
  /** What follows the name's `=`, or an empty string. */
  readonly value: string;
  readonly options: ReadonlyMap<string, string>;
  /** The words as they came: what `times=N` counts by. */
  readonly source: string;
}

/** A directive that the simulator does not know or cannot read. */
export class DirectiveError extends Error {}

/** Reads the header form: `status=429 retry-after=7; latency=20`. */
export function headerDirectives(header: string | undefined): Directive[] {
  return (header ?? '').split(';').flatMap((source) => directive(source));
}

/**
 * Reads the directives that a user text begins with: `[[fault:status=429 retry-after=7]] Hello`.
 * @returns them, and the text without them.
 */
export function textDirectives(text: string): { readonly directives: Directive[]; readonly rest: string } {
  const pattern = /\s*\[\[fault:([^\]]*)\]\]\s*/y;
  const directives: Directive[] = [];
  let end = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    directives.push(...directive(match[1] ?? ''));
    end = pattern.lastIndex;
  }
  return { directives, rest: text.slice(end) };
}

/** The first directive of a name. */
export function findDirective(directives: readonly Directive[], name: string): Directive | undefined {
  return directives.find((directive) => directive.name === name);
}

/**
 * The number that a directive carries as `NAME=number`, or in the option that has a name of its own for it.
 * @throws DirectiveError when it is not a number from zero on.
 */
export function directiveValue(directive: Directive, option: string, fallback: number): number {
  return numberIn(directive, option, directive.value || directive.options.get(option), fallback);
}

/**
 * The number in an option of a directive: `after=2`.
 * @throws DirectiveError when it is not a number from zero on.
 */
export function directiveOption(directive: Directive, option: string, fallback: number): number {
  return numberIn(directive, option, directive.options.get(option), fallback);
}

function numberIn(directive: Directive, option: string, text: string | undefined, fallback: number): number {
  const number = text === undefined || text === '' ? fallback : Number(text);
  if (!Number.isFinite(number) || number < 0) {
    throw new DirectiveError(`The directive "${directive.source}" needs a number for "${option}".`);
  }
  return number;
}

function directive(source: string): Directive[] {
  const [head, ...rest] = source.trim().split(/\s+/);
  if (head === undefined || head === '') {
    return [];
  }
  const [name, value] = halves(head);
  return [{ name, value, options: new Map(rest.map(halves)), source: source.trim() }];
}

function halves(word: string): [string, string] {
  const at = word.indexOf('=');
  return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
}
