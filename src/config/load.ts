import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { crossProblems } from './check.js';
import { createConfigFiles, errorCode } from './files.js';
import { type Environment, interpolate } from './interpolate.js';
import { parseJson } from './json.js';
import { ConfigError, type Problem } from './problem.js';
import { type ResolvedConfig, resolveConfig } from './resolve.js';
import { hasConfigShape, shapeProblems } from './shape.js';

export interface ConfigSource {
  readonly environment: Environment;
  /** Folder from which the files that the config names are found. */
  readonly directory: string;
  /** Unix seconds at which models of this config were first known, unless a running config knows better. */
  readonly created: number;
}

/**
 * Reads a config file.
 * @param path of the file
 * @param environment for `${NAME}` references
 * @returns the config with its defaults filled in
 * @throws ConfigError with every problem of the file
 */
export function loadConfig(path: string, environment: Environment): ResolvedConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError([{ path: '', message: `${path} cannot be read (${errorCode(error)})` }]);
  }
  const created = Math.floor(Date.now() / 1000);
  return parseConfig(text, { environment, directory: dirname(resolve(path)), created });
}

/**
 * Checks the text of a config file: syntax, `${NAME}` references, shape, and what its parts say of each other.
 * @throws ConfigError with every problem, in the order of these four steps; only broken syntax ends the search
 */
export function parseConfig(text: string, source: ConfigSource): ResolvedConfig {
  const parsed = parseJson(text);
  if (parsed.value === undefined) throw new ConfigError(parsed.problems);
  const { value, problems: unset, hidden } = interpolate(parsed.value, source.environment);
  const files = createConfigFiles(source.directory);
  const problems: Problem[] = [...parsed.problems];
  // A value that was found wrong once is not named again for what follows from it.
  for (const step of [unset, shapeProblems(value), crossProblems(value, { files, hidden })]) {
    const known = new Set(problems.map((problem) => problem.path));
    problems.push(...step.filter((problem) => problem.path === '' || !known.has(problem.path)));
  }
  if (problems.length > 0 || !hasConfigShape(value)) throw new ConfigError(problems);
  return resolveConfig(value, files, source.created);
}
