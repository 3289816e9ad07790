import { formatPath, type PathSegments, type Problem } from './problem.js';
import { suggest } from './suggest.js';

/** Where the checks put what they find, and how they name a value without giving a secret away. */
export interface Report {
  add(path: PathSegments, message: string): void;
  /** `no upstream is named "mian"; did you mean "main"?` */
  addUnknown(path: PathSegments, kind: string, given: string, known: Iterable<string>): void;
  readonly problems: readonly Problem[];
}

/** @param hidden paths of strings that came from the environment: their text is not repeated */
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
        add(segments, `no ${kind} has the name that the environment gave`);
      else add(segments, `no ${kind} is named ${JSON.stringify(given)}${suggest(given, known)}`);
    },
  };
}

/** The properties of an object; none for anything else. The checks run on files whose shape may be wrong. */
export function propertiesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}

/** One property of an object, or `undefined` for anything else. */
export function propertyOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** The strings of an array with their places. */
export function textsOf(value: unknown): [number, string][] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index): [number, string][] =>
    typeof item === 'string' ? [[index, item]] : [],
  );
}
