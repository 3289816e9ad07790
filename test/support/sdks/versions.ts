/**
 * Returns the versions of a vendor's SDK that this run uses.
 * @param all oldest first
 * @returns only the newest if the environment has `TEST_SDKS=newest`, as in the quick run; else all
 */
export function sdksOfRun<Sdk>(all: readonly Sdk[]): readonly Sdk[] {
  return process.env.TEST_SDKS === 'newest' ? all.slice(-1) : all;
}
