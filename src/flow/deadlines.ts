import type { Deadlines } from '../upstream/client.js';
import type { Call } from './call.js';

/** Milliseconds that are left of a call's total time, at least one. */
export function timeLeft({ running, validatedAt }: Call): number {
  return Math.max(1, running.snapshot.timeouts.totalMs - (performance.now() - validatedAt));
}

/** The deadlines of an attempt that is not the first thing that its call has waited for. */
export function deadlinesLeft(call: Call): Deadlines {
  return { ...call.running.snapshot.timeouts, totalMs: timeLeft(call) };
}
