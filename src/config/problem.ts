/** Something wrong in a config file: where, as a reader of the file writes it, and what. Never a secret's value. */
export interface Problem {
  /** `models.gpt-x.targets[0].upstream`; empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
}

/** A way into a JSON value: property names and array indices. */
export type PathSegments = readonly (string | number)[];

const plainName = /^[\w$-]+$/;

/**
 * Writes a path as a reader of the file would: `keys[2].groups[0]`, with names that need it in brackets:
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

/** One line for a person: `path: message`, or the message alone where it is about the whole file. */
export function formatProblem(problem: Problem): string {
  return problem.path === '' ? problem.message : `${problem.path}: ${problem.message}`;
}

/** A config that cannot be used, with every reason that was found. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(formatProblem).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
