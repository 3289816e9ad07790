import { isObject } from '../wire/json.js';

/**
 * A problem of a config file: its path, as readers of the file write it, and a message. Never contains a secret's
 * value.
 */
export interface Problem {
  /** Such as `models.gpt-x.targets[0].upstream`. Empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
}

/** Problem of an invalid URL. The most common cause is a password in it. */
export const invalidUrl =
  'is not a valid URL; write what is no letter or digit of a password as "%" and two hex digits';

/** A path in a JSON value: property names and array indices. */
type PathSegments = readonly (string | number)[];

const plainName = /^[\w$-]+$/;

/**
 * Formats a path as a reader of the file would write it: `keys[2].groups[0]`. Names that are not plain are in brackets:
 * `models["gpt-4.1"].targets`.
 */
export function formatPath(segments: PathSegments): string {
  let path = '';
  for (const segment of segments) {
    if (typeof segment === 'number') path += `[${segment}]`;
    else if (!plainName.test(segment)) path += `[${JSON.stringify(segment)}]`;
    else path += path === '' ? segment : `.${segment}`;
  }
  return path;
}

/** Formats a problem as one line: `path: message`, or only the message if it concerns the whole file. */
export function formatProblem(problem: Problem): string {
  return problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`;
}

/** A config that cannot be used, with every problem found. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Collects the problems that checks find. Messages do not reveal secrets. */
export interface Report {
  add(path: PathSegments, message: string): void;
  /** Adds a message such as `no upstream is named "mian"; did you mean "main"?` */
  addUnknown(path: PathSegments, kind: string, given: string, known: Iterable<string>): void;
  readonly problems: readonly Problem[];
}

/** There are as many presets, and a config by hand has as many upstreams. */
const mostNamed = 16;

/** @param hidden paths of strings that came from the environment or a file, whose text is not repeated */
export function createReport(hidden: ReadonlySet<string>): Report {
  const problems: Problem[] = [];
  const add = (segments: PathSegments, message: string): void => {
    problems.push({ path: formatPath(segments), message });
  };
  return {
    problems,
    add,
    addUnknown(segments, kind, given, known) {
      if (hidden.has(formatPath(segments)))
        add(segments, `no ${kind} has the name that the environment or a file gave`);
      else add(segments, `no ${kind} is named ${JSON.stringify(given)}${suggest(given, known, mostNamed)}`);
    },
  };
}

/**
 * Returns the properties of an object, and none for any other value. The checks run on files whose shape may be wrong.
 */
export function propertiesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

/** Returns a property of an object, and `undefined` for any other value. */
export function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** Returns the strings of an array, with their indices. */
export function textsOf(value: unknown): [number, string][] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index): [number, string][] =>
    typeof item === 'string' ? [[index, item]] : [],
  );
}

/**
 * Finds the known name that was probably meant.
 * @param mostNamed number of known names up to which all are listed if none is close
 * @returns `; did you mean "main"?`, `; there are main, other`, or an empty string
 */
export function suggest(given: string, known: Iterable<string>, mostNamed: number): string {
  const limit = Math.min(3, Math.ceil(given.length / 3));
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const name of known) {
    if (Math.abs(name.length - given.length) >= bestDistance) continue;
    const distance = editDistance(given.toLowerCase(), name.toLowerCase());
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  if (best !== null) return `; did you mean ${JSON.stringify(best)}?`;
  const all = [...known];
  if (all.length === 0 || all.length > mostNamed) return '';
  return `; there ${all.length === 1 ? 'is' : 'are'} ${all.join(', ')}`;
}

/** Counts insertions, deletions, replacements and swaps of neighbours between two names (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, (beforePrevious[column - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
