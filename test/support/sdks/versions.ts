/**
 * The versions of a vendor's SDK that this run tries.
 * @param all oldest first
 * @returns the newest where the environment says `TEST_SDKS=newest`, as the quick run does; else all
 */
export function sdksOfRun<Sdk>(all: readonly Sdk[]): readonly Sdk[] {
  return process.env.TEST_SDKS === 'newest' ? all.slice(-1) : all;
}
