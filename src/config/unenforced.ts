import { formatPath, type PathSegments } from './problem.js';
import type { ConfigFile } from './schema.js';

/**
 * Settings of a config that are understood and do nothing yet: whoever starts the gateway must not believe in a
 * limit that nobody holds.
 * @returns their paths in the file
 */
export function unenforcedSettings(file: ConfigFile): readonly string[] {
  const paths: PathSegments[] = [];
  for (const [name, model] of Object.entries(file.models)) {
    if (model.hedgeMs !== undefined) paths.push(['models', name, 'hedgeMs']);
  }
  return paths.map(formatPath);
}
