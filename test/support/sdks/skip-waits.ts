import type { Test } from 'tap';

/**
 * Lets waits of exactly `ms` milliseconds in this process end at once, until the test has ended: those of an SDK that
 * was told when to try again.
 * @returns how many there have been
 */
export function skipWaits(t: Test, ms: number): () => number {
  let count = 0;
  const { setTimeout: real } = globalThis;
  const skipping = (callback: () => void, given?: number, ...rest: []) => {
    if (given === ms) count += 1;
    return real(callback, given === ms ? 0 : given, ...rest);
  };
  globalThis.setTimeout = skipping as typeof real;
  t.teardown(() => {
    globalThis.setTimeout = real;
  });
  return () => count;
}
