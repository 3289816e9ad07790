import { isQuick } from '../seed.js';

/**
 * Returns the versions of a vendor's SDK that this run uses.
 * @param all oldest first
 * @returns only the newest in the quick run; else all
 */
export function sdksOfRun<Sdk>(all: readonly Sdk[]): readonly Sdk[] {
  return isQuick ? all.slice(-1) : all;
}
