import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { printParseErrorCode, visit } from 'jsonc-parser';
import type { TLocalizedValidationError } from 'typebox/error';
import { Settings } from 'typebox/system';
import { compileValidator } from '../schema/validator.js';
import { isObject } from '../wire/json.js';
import { crossProblems } from './check.js';
import { type ConfigFiles, codeText, createConfigFiles, type ReadResult } from './files.js';
import { ConfigError, formatPath, type Problem, propertyOf, suggest } from './problem.js';
import { type ResolvedConfig, resolveConfig } from './resolve.js';
import { type ConfigFile, configSchema } from './schema.js';

interface ConfigSource {
  readonly environment: Environment;
  /** Folder to which the paths in the config are relative. */
  readonly directory: string;
  /** Unix seconds at which the models of this config were first known, unless a running config knows them already. */
  readonly created: number;
}

/**
 * Reads a config file.
 * @param path path of the file
 * @param environment for `${NAME}` references. Paths in `${file:PATH}` references are relative to the file's folder.
 * @returns the config with its defaults filled in
 * @throws ConfigError with every problem of the file
 */
export function loadConfig(path: string, environment: Environment): ResolvedConfig {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new ConfigError([{ path: '', message: `${path} cannot be read (${codeText(error)})` }]);
  }
  // Otherwise names and secrets would silently become other ones.
  if (!isUtf8(bytes)) throw new ConfigError([{ path: '', message: notUtf8(bytes) }]);
  const text = bytes.toString('utf8');
  const created = Math.floor(Date.now() / 1000);
  return parseConfig(text, { environment, directory: dirname(resolve(path)), created });
}

function notUtf8(bytes: Buffer): string {
  const lines = bytes.toString('latin1').split('\n');
  const bad = lines.findIndex((line) => !isUtf8(Buffer.from(line, 'latin1')));
  return `line ${bad + 1}: the file is not in UTF-8: save it in that encoding`;
}

/**
 * Checks the text of a config file: syntax, `${NAME}` and `${file:PATH}` references, shape, and consistency of its
 * parts.
 * @throws ConfigError with every problem, in the order of these four steps. Only broken syntax ends the search.
 */
export function parseConfig(text: string, source: ConfigSource): ResolvedConfig {
  const parsed = parseJson(text);
  if (parsed.value === undefined) throw new ConfigError(parsed.problems);
  const files = createConfigFiles(source.directory);
  const { value, problems: unset, hidden } = interpolate(parsed.value, source.environment, files);
  const problems: Problem[] = [...parsed.problems];
  const shape = shapeProblems(value, hidden);
  // A value with a problem is not reported again by later steps.
  for (const step of [unset, shape.problems, crossProblems(value, { files, hidden })]) {
    const known = new Set(problems.map((problem) => problem.path));
    for (const problem of step) if (problem.path === '' || !known.has(problem.path)) problems.push(problem);
  }
  if (problems.length > 0 || !hasConfigShape(value)) throw new ConfigError(listed(problems, shape.isWhole));
  return resolveConfig(value, files, source.created);
}

/** Most problems listed, enough for any hand-written file. */
const mostListed = 500;

/** @param areAll whether the search for problems went to its end */
function listed(problems: readonly Problem[], areAll: boolean): readonly Problem[] {
  const left = problems.length - mostListed;
  if (left <= 0) return problems;
  const number = areAll ? left : `at least ${left}`;
  return [...problems.slice(0, mostListed), { path: '', message: `and ${number} more problems` }];
}

type Environment = Readonly<Record<string, string | undefined>>;

interface Interpolated {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Paths of the strings that came from the environment or a file. Their text is never shown. */
  readonly hidden: ReadonlySet<string>;
}

/** Matches `$${` first, so that an escape is not treated as a reference, then anything that opens a reference. */
const reference = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)|file:([^{}\0]+))\}|\$\{/g;

/**
 * Replaces `${NAME}` in every string of a JSON value with the environment's value, and `${file:PATH}` with the content
 * of the file. `$${` stands for a literal `${`. Property names stay unchanged. So does a string with a problem.
 */
export function interpolate(
  source: unknown,
  environment: Environment,
  files: Pick<ConfigFiles, 'secret'>,
): Interpolated {
  const problems: Problem[] = [];
  const hidden = new Set<string>();
  const path: (string | number)[] = [];

  const look = (name: string | undefined, file: string | undefined): ReadResult => {
    if (file !== undefined) return files.secret(file);
    if (name === undefined) {
      const problem =
        'a reference to the environment or a file is not complete (a plain "${" is written "$${")';
      return { text: null, problem };
    }
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    return value === undefined
      ? { text: null, problem: `the environment variable ${name} is not set` }
      : { text: value, problem: null };
  };

  const inText = (text: string): string => {
    if (!text.includes('${')) return text;
    let broken = false;
    let replaced = false;
    const result = text.replace(reference, (whole: string, name?: string, file?: string) => {
      if (whole === '$${') return '${';
      const { text: found, problem } = look(name, file);
      if (problem === null) {
        replaced = true;
        return found;
      }
      problems.push({ path: formatPath(path), message: problem });
      broken = true;
      return whole;
    });
    if (broken) return text;
    if (replaced) hidden.add(formatPath(path));
    return result;
  };

  const inside = (value: unknown): unknown => {
    if (typeof value === 'string') return inText(value);
    if (Array.isArray(value)) return value.map((item: unknown, index) => at(index, item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, at(name, item)]));
  };
  const at = (segment: string | number, value: unknown): unknown => {
    path.push(segment);
    const result = inside(value);
    path.pop();
    return result;
  };

  return { value: inside(source), problems, hidden };
}

/** Deeper files are refused. No setting is that deep. */
const maxDepth = 100;

/** By the library's error names. */
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

/** What begins a word that is no JSON although it looks like it. */
function lookalike(character: string): string | null {
  if (/['`\u2018-\u201f]/.test(character)) return 'names and strings stand in plain double quotes (")';
  if (/[\u00a0\u2000-\u200f\u202f\u2060\u3000\ufeff]/.test(character))
    return 'this character looks like a space and is none (write a plain one)';
  return null;
}

const noObject = 'expected "{": this is a file of JSON';
/** Of a file with nothing of JSON before the mistake. */
const atStart: Readonly<Record<string, string>> = { InvalidSymbol: noObject, ValueExpected: noObject };

/** By the library's error names and the character at which it was found, after a comma. */
const afterComma: Readonly<Record<string, string>> = {
  'PropertyNameExpected }': 'no comma may stand before this "}"',
  'ValueExpected ]': 'no comma may stand before this "]"',
};

/** A position in the text. Both numbers start at 0. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * Parses JSON with comments. Problems name the line and column, and never repeat the text, which may contain secrets.
 * @returns the value, or `undefined` with the problems: one for broken syntax, or each repeated name
 */
export function parseJson(source: string): {
  readonly value: unknown;
  readonly problems: readonly Problem[];
} {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source;
  // Also what a reload finds while somebody writes the file anew.
  if (text.trim() === '') return { value: undefined, problems: [{ path: '', message: 'the file is empty' }] };
  const reading = new Reading();
  let separator = '';
  visit(text, {
    onSeparator: (character) => {
      separator = character;
    },
    onObjectBegin: (_offset, _length, line, column) => reading.open({}, { line, column }),
    onObjectProperty: (name, _offset, _length, line, column, path) =>
      reading.name(name, { line, column }, path()),
    onObjectEnd: () => reading.close(),
    onArrayBegin: (_offset, _length, line, column) => reading.open([], { line, column }),
    onArrayEnd: () => reading.close(),
    onLiteralValue: (value) => reading.add(value),
    onError: (error, offset, _length, line, column) => {
      const ending = offset >= text.length ? ', but the file ends here' : '';
      const name = printParseErrorCode(error);
      const closing = separator === ',' ? afterComma[`${name} ${text[offset]}`] : undefined;
      const alike = name === 'InvalidSymbol' ? lookalike(text[offset] ?? '') : null;
      const special = reading.isAtStart ? atStart[name] : (closing ?? alike);
      const mistake = special ?? words[name] ?? 'this is no JSON';
      reading.fail(mistake + ending, { line, column });
    },
  });
  return reading.result();
}

/** Builds a value while its text is read. */
class Reading {
  #value: unknown;
  #failure: Problem | null = null;
  readonly #problems: Problem[] = [];
  /** The open containers, innermost last, with their names so far. */
  readonly #open: { readonly value: unknown[] | Record<string, unknown>; readonly names: Set<string> }[] = [];
  #name = '';

  /** Nothing has been read yet. */
  get isAtStart(): boolean {
    return this.#value === undefined && this.#open.length === 0;
  }

  /** @returns false if the value is nested too deeply to be read */
  open(value: unknown[] | Record<string, unknown>, position: Position): boolean {
    if (this.#open.length >= maxDepth) this.fail(`nested deeper than ${maxDepth} levels`, position);
    this.add(value);
    this.#open.push({ value, names: new Set() });
    return this.#failure === null;
  }

  close(): void {
    this.#open.pop();
  }

  name(name: string, position: Position, holder: readonly (string | number)[]): void {
    const names = this.#open.at(-1)?.names;
    if (names?.has(name)) {
      const message = `this name is given twice (again at ${positionText(position)})`;
      this.#problems.push({ path: formatPath([...holder, name]), message });
    }
    names?.add(name);
    this.#name = name;
  }

  add(value: unknown): void {
    const holder = this.#open.at(-1)?.value;
    if (holder === undefined) this.#value = value;
    else if (Array.isArray(holder)) holder.push(value);
    // Defined as an own member, whatever its name. Assigning to `__proto__` would change the object.
    else
      Object.defineProperty(holder, this.#name, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }

  /** Only the first failure is reported. Later ones are mostly its consequences. */
  fail(message: string, position: Position): void {
    this.#failure ??= { path: '', message: `${positionText(position)}: ${message}` };
  }

  result(): { readonly value: unknown; readonly problems: readonly Problem[] } {
    return this.#failure === null
      ? { value: this.#value, problems: this.#problems }
      : { value: undefined, problems: [this.#failure] };
  }
}

function positionText({ line, column }: Position): string {
  return `line ${line + 1}, column ${column + 1}`;
}

let compiled: ReturnType<typeof compileValidator<typeof configSchema>> | null = null;

function validator(): NonNullable<typeof compiled> {
  compiled ??= compileValidator(configSchema);
  return compiled;
}

/** The search for errors ends at this many, far more than are listed. TypeBox stops at 8 by default. */
const mostErrors = 5000;

/** Checks whether a value has the config file's shape. */
function hasConfigShape(value: unknown): value is ConfigFile {
  return validator().Check(value);
}

/**
 * Finds the places where a value differs from the config file's shape: all if `isWhole`. No message contains a value of
 * the file.
 */
function shapeProblems(
  value: unknown,
  hidden: ReadonlySet<string>,
): { readonly problems: readonly Problem[]; readonly isWhole: boolean } {
  if (validator().Check(value)) return { problems: [], isWhole: true };
  // The limit is a setting of the whole process, shared with request validation, so it is restored.
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: mostErrors });
  try {
    const [, errors] = validator().Errors(value);
    const problems = errors.flatMap((error) => describe(error, value, hidden));
    return { problems, isWhole: errors.length < mostErrors };
  } finally {
    Settings.Set({ maxErrors });
  }
}

/** The message about an unknown property lists the known ones if there are at most this many. */
const mostNamed = 8;

function describe(error: TLocalizedValidationError, value: unknown, hidden: ReadonlySet<string>): Problem[] {
  const segments = segmentsOf(error.instancePath, value);
  const here = (message: string): Problem[] => [{ path: formatPath(segments), message }];
  const isHidden = hidden.has(formatPath(segments));
  const below = (names: readonly string[], message: (name: string) => string): Problem[] =>
    names.map((name) => ({ path: formatPath([...segments, name]), message: message(name) }));
  // The `expected` text of a union says more than what each of its forms lacks.
  const forms = /^(.*)\/anyOf\/\d+$/.exec(error.schemaPath)?.[1];
  const isOfForm = error.keyword !== 'additionalProperties' && forms !== undefined;
  if (isOfForm && schemaAt(forms).expected !== undefined) return [];
  switch (error.keyword) {
    case 'required':
      return below(error.params.requiredProperties, () => 'is required');
    case 'additionalProperties': {
      const known = Object.keys(objectAt(schemaAt(error.schemaPath), 'properties'));
      const remedy = (name: string): string => suggest(name, known, mostNamed);
      return below(error.params.additionalProperties, (name) => `unknown property${remedy(name)}`);
    }
    case 'boolean':
      // The same unknown property, reported by its own `false` schema. It is already reported above.
      return [];
    case 'enum':
      return here(`must be one of ${error.params.allowedValues.join(', ')}`);
    case 'type':
      return here(
        `must be ${withArticle(String(error.params.type))}${isHidden ? ofStrings : quoted(valueAt(value, segments))}`,
      );
    case 'anyOf':
      // Problems inside an object are reported for its members.
      if (takesObjects(error.schemaPath) && isObject(valueAt(value, segments))) return [];
      return here(`must be ${String(schemaAt(error.schemaPath).expected ?? 'of another form')}`);
    case 'pattern':
      if (valueAt(value, segments) === '') return here(isHidden ? emptyReference : 'must not be empty');
      return here(`must be ${String(schemaAt(error.schemaPath).expected ?? 'of another form')}`);
    case 'minLength':
      if (error.params.limit !== 1) return here(error.message);
      return here(isHidden ? emptyReference : 'must not be empty');
    case 'minItems':
      return here('must have at least one entry');
    default:
      return here(error.message);
  }
}

function takesObjects(schemaPath: string): boolean {
  const { anyOf } = schemaAt(schemaPath);
  return Array.isArray(anyOf) && anyOf.some((form: unknown) => propertyOf(form, 'type') === 'object');
}

function valueAt(root: unknown, segments: readonly (string | number)[]): unknown {
  let value = root;
  for (const segment of segments) value = propertyOf(value, String(segment));
  return value;
}

/** Of a string that came from the environment or a file. */
const ofStrings = ', and a reference gives a string';
const emptyReference = 'must not be empty, as the environment variable or the file is that it names';

/** Of a number or a Boolean value that was written as a string. */
function quoted(value: unknown): string {
  return typeof value === 'string' && /^(?:-?\d+(?:\.\d+)?|true|false)$/.test(value)
    ? ', without quotes'
    : '';
}

function withArticle(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function pointerParts(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/**
 * Converts a JSON pointer (RFC 6901) to a path. A pointer does not say which of its parts are array indices, but the
 * value does.
 */
function segmentsOf(pointer: string, root: unknown): (string | number)[] {
  let value = root;
  return pointerParts(pointer).map((part) => {
    const segment = Array.isArray(value) ? Number(part) : part;
    value = typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined;
    return segment;
  });
}

function objectAt(value: unknown, name: string): Record<string, unknown> {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {};
}

function schemaAt(schemaPath: string): Record<string, unknown> {
  const root: Record<string, unknown> = { ...configSchema };
  return pointerParts(schemaPath).reduce(objectAt, root);
}
