import { performance } from 'node:perf_hooks';
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

/**
 * The deadlines of the next attempt of a call that is forwarded.
 * @param isLate time went by before the first attempt
 */
export function attemptDeadlines(call: Call, isLate: boolean): Deadlines {
  const { timeouts, limits } = call.running.snapshot;
  if (call.upload !== null)
    return uploadDeadlines(timeouts, call.exchange.head.contentLength, limits.uploadBytes);
  return call.retries === 0 && !isLate ? timeouts : deadlinesLeft(call);
}

/** Bytes of an upload in a millisecond that a client may be expected to send. */
const slowestUpload = 64;

/** An upload may take as long as its size asks for, since both sides are watched for silence. */
function uploadDeadlines(timeouts: Deadlines, announced: number, most: number): Deadlines {
  const bytes = announced === -1 ? most : announced;
  return { ...timeouts, totalMs: timeouts.totalMs + bytes / slowestUpload };
}
