import { formatPath, type Problem } from './problem.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Interpolated {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Paths of the strings that came from the environment: their text is never shown. */
  readonly hidden: ReadonlySet<string>;
}

/** `$${` first, so that an escape is never taken for a reference; then anything that opens a reference. */
const reference = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{/g;

/**
 * Replaces `${NAME}` in every string of a JSON value by the environment's value; `$${` stands for a literal `${`.
 * Property names stay as they are. A string with a problem is left as it was written.
 */
export function interpolate(source: unknown, environment: Environment): Interpolated {
  const problems: Problem[] = [];
  const hidden = new Set<string>();
  const path: (string | number)[] = [];

  const inText = (text: string): string => {
    if (!text.includes('${')) return text;
    let broken = false;
    let replaced = false;
    const result = text.replace(reference, (whole: string, name: string | undefined) => {
      if (whole === '$${') return '${';
      if (name === undefined) {
        problems.push({
          path: formatPath(path),
          message: 'a reference to the environment is not complete (a plain "${" is written "$${")',
        });
        broken = true;
        return whole;
      }
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (value === undefined) {
        problems.push({ path: formatPath(path), message: `the environment variable ${name} is not set` });
        broken = true;
        return whole;
      }
      replaced = true;
      return value;
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
