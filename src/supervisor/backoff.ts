const firstMs = 100;
const longestMs = 10_000;
/** A process that served this long was well: its end is an accident, not a failure to start. */
const healthyMs = 5000;

/** How many times in a row a process may fail before it ever served, until the start is given up. */
export const mostFirstFailures = 4;

export interface Restart {
  /** Failures in a row, this one included; 0 after an accident. */
  readonly failures: number;
  readonly delayMs: number;
}

/**
 * Decides when a process that ended is started again: at once after an accident, else after a wait that doubles, so
 * that a process that cannot start does not eat a core.
 * @param servedMs how long it had served; 0 when it never did
 * @param failures in a row before this one
 */
export function nextRestart(servedMs: number, failures: number): Restart {
  if (servedMs >= healthyMs) return { failures: 0, delayMs: 0 };
  return { failures: failures + 1, delayMs: Math.min(longestMs, firstMs * 2 ** failures) };
}
