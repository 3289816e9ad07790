import type { Difference } from './compare.js';
import type { TimedEnd } from './run.js';

/** Processes that were killed with `kill -9`, together with lines that were not written yet. */
export interface LossyKill {
  /** Time of `performance.now()`. */
  readonly at: number;
  /** Number of the gateway whose processes they were. */
  readonly host: number;
  /** Since when the store was gone for which lines may have waited, by the same clock; absent if it was available. */
  readonly storeGoneAt?: number | undefined;
}

/**
 * What a kill may lose according to the manual, in addition to calls under way: calls that ended shortly before it,
 * and everything that waited for an unavailable store.
 */
const lostMs = 1000;

/**
 * Returns the kill that explains a difference: lines are missing of a call that was under way on the killed host, or
 * had ended there shortly before. No kill explains a charge above the bill.
 */
export function takenBy<Kill extends LossyKill>(
  { requestId, bills, offNanoUsd, offPaidNanoUsd, calls }: Difference,
  kills: readonly Kill[],
  ends: readonly TimedEnd[],
): Kill | undefined {
  const isShort = offNanoUsd <= 0 && offPaidNanoUsd <= 0 && calls <= 1;
  const number = bills[0]?.number;
  if (!isShort || number === undefined) return undefined;
  const own = ends.filter((end) => end.number === number && (end.requestId ?? requestId) === requestId);
  const lastBilled = Math.max(...bills.map(({ at }) => at));
  return kills.find(({ at, host, storeGoneAt = at }) =>
    // The gateway continues to read an answer that its client has left.
    own.some(
      (end) => end.host === host && end.from < at && Math.max(end.until, lastBilled) > storeGoneAt - lostMs,
    ),
  );
}
