import type { Difference } from './compare.js';
import type { TimedEnd } from './run.js';

/** Processes that were killed with `kill -9`, and with them lines that were not written yet. */
export interface LossyKill {
  /** By `performance.now`. */
  readonly at: number;
  /** Number of the gateway whose processes they were. */
  readonly host: number;
  /** When the store had gone whose return lines may still have waited for, by the same clock; absent where it was there. */
  readonly storeGoneAt?: number | undefined;
}

/**
 * What the manual says that a kill may take, beside calls under way: those that ended within so long before it, and all that
 * waited for a store that did not answer.
 */
const lostMs = 1000;

/**
 * The kill that explains a difference: lines are missing of a call that was under way on the victim's host, or had ended
 * there just before. No kill explains what is charged beyond the bill.
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
    // What a client has left is read on after its end.
    own.some(
      (end) => end.host === host && end.from < at && Math.max(end.until, lastBilled) > storeGoneAt - lostMs,
    ),
  );
}
