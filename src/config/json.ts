import { printParseErrorCode, visit } from 'jsonc-parser';
import { formatPath, type Problem } from './problem.js';

/** Deeper files are refused: no setting is. */
const maxDepth = 100;

/** By the library's names of mistakes. */
const words: Readonly<Record<string, string>> = {
  InvalidSymbol: 'this word is no value',
  InvalidNumberFormat: 'this number is not written as JSON wants it',
  PropertyNameExpected: 'expected a property name in double quotes',
  ValueExpected: 'expected a value',
  ColonExpected: 'expected ":"',
  CommaExpected: 'expected ","',
  CloseBraceExpected: 'expected "," or "}"',
  CloseBracketExpected: 'expected "," or "]"',
  EndOfFileExpected: 'expected the end of the file',
  InvalidCommentToken: 'a comment begins with "//" or "/*"',
  UnexpectedEndOfComment: 'this comment does not end',
  UnexpectedEndOfString: 'this string does not end in its line',
  UnexpectedEndOfNumber: 'this number is not written as JSON wants it',
  InvalidUnicode: 'this escape is not allowed in a string',
  InvalidEscapeCharacter: 'this escape is not allowed in a string',
  InvalidCharacter: 'a string may not hold a control character',
};

/** A place in the text, both from 0. */
interface Place {
  readonly line: number;
  readonly column: number;
}

/**
 * Reads JSON with comments. Problems are told by line and column, without a word of the text, which may hold secrets.
 * @returns the value, or `undefined` with the problems: one for broken syntax, or each repeated name
 */
export function parseJson(source: string): {
  readonly value: unknown;
  readonly problems: readonly Problem[];
} {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source;
  const reading = new Reading();
  visit(text, {
    onObjectBegin: (_offset, _length, line, column) => reading.open({}, { line, column }),
    onObjectProperty: (name, _offset, _length, line, column, path) =>
      reading.name(name, { line, column }, path()),
    onObjectEnd: () => reading.close(),
    onArrayBegin: (_offset, _length, line, column) => reading.open([], { line, column }),
    onArrayEnd: () => reading.close(),
    onLiteralValue: (value) => reading.add(value),
    onError: (error, offset, _length, line, column) => {
      const ending = offset >= text.length ? ', but the file ends here' : '';
      const mistake = words[printParseErrorCode(error)] ?? 'this is no JSON';
      reading.fail(mistake + ending, { line, column });
    },
  });
  return reading.result();
}

/** A value that is put together as its text is read. */
class Reading {
  #value: unknown;
  #failure: Problem | null = null;
  readonly #problems: Problem[] = [];
  /** What is open, the innermost last, with the names that it has so far. */
  readonly #open: { readonly value: unknown[] | Record<string, unknown>; readonly names: Set<string> }[] = [];
  #name = '';

  /** @returns false for what lies too deep to be looked at */
  open(value: unknown[] | Record<string, unknown>, place: Place): boolean {
    if (this.#open.length >= maxDepth) this.fail(`nested deeper than ${maxDepth} levels`, place);
    this.add(value);
    this.#open.push({ value, names: new Set() });
    return this.#failure === null;
  }

  close(): void {
    this.#open.pop();
  }

  name(name: string, place: Place, holder: readonly (string | number)[]): void {
    const names = this.#open.at(-1)?.names;
    if (names?.has(name)) {
      const message = `this name is given twice (again at ${placeText(place)})`;
      this.#problems.push({ path: formatPath([...holder, name]), message });
    }
    names?.add(name);
    this.#name = name;
  }

  add(value: unknown): void {
    const holder = this.#open.at(-1)?.value;
    if (holder === undefined) this.#value = value;
    else if (Array.isArray(holder)) holder.push(value);
    // As a member of its own, whatever it is called: `__proto__` would else change the object.
    else
      Object.defineProperty(holder, this.#name, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }

  /** Only the first failure is told: those behind it are mostly its echo. */
  fail(message: string, place: Place): void {
    this.#failure ??= { path: '', message: `${placeText(place)}: ${message}` };
  }

  result(): { readonly value: unknown; readonly problems: readonly Problem[] } {
    return this.#failure === null
      ? { value: this.#value, problems: this.#problems }
      : { value: undefined, problems: [this.#failure] };
  }
}

function placeText({ line, column }: Place): string {
  return `line ${line + 1}, column ${column + 1}`;
}
