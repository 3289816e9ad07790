import type { Test } from 'tap';

/**
 * Makes waits of exactly `ms` milliseconds in this process end at once until the end of the test, such as an SDK's
 * wait before a retry.
 * @returns a function that returns their number
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
