import type { AttemptFailure, GatewayError, GivenUpBy } from '../errors.js';

/** Longest time for which an upstream can ask to be left alone, in milliseconds. */
export const longestRetryAfterMs = 600_000;
/** How long a target or key is tried after all others once it has answered a 429 without a time, in milliseconds. */
export const restMs = 1000;

/** An attempt that failed because of its target. */
export interface FailedOutcome {
  /**
   * `rateLimited`: refused for the number of calls (429), which says nothing against the target. `rejected`: the key or its
   * account is not accepted. `doubted`: refused for missing rights, which may be a fault of the key or of the request.
   */
  readonly kind: 'failure' | 'rateLimited' | 'rejected' | 'doubted';
  /** A short description for operators. */
  readonly error: string;
  /** How long the target asks to be left alone, in milliseconds; null if it does not say. */
  readonly retryAfterMs: number | null;
}

/**
 * How an attempt ended. `uncounted` says nothing about the target: the client disconnected, or the gateway itself could not
 * continue.
 */
export type AttemptOutcome = 'success' | 'uncounted' | FailedOutcome;

/** What an attempt shows about the health of its target and of the key: an outcome, or the kind of a `FailedOutcome`. */
export type Finding = 'success' | 'uncounted' | FailedOutcome['kind'];

/**
 * Returns what an answer's status shows. An error that a caller can cause must not open the breaker for all others: an error
 * that names the caller's mistake counts as a success, and one of unknown cause is not counted.
 */
export function findingOfStatus(status: number): Finding {
  if (status === 429) return 'rateLimited';
  // The key or the balance is the gateway's, so every call would get the same error.
  if (status === 401 || status === 402) return 'rejected';
  // The missing rights may be the gateway's, or depend on the request.
  if (status === 403) return 'doubted';
  // A lock and a slow request concern one call.
  if (status === 404 || status === 408 || status === 409) return 'uncounted';
  // A missing feature is no failure.
  if (status === 501 || status === 505) return 'uncounted';
  return status >= 500 ? 'failure' : 'success';
}

/** Returns why an answer is given up for an error. */
export function givenUpBy(error: GatewayError): GivenUpBy {
  return error.answerTooLarge ? 'answer_too_large' : 'unusable_answer';
}

/**
 * Returns what a missing or incomplete answer shows.
 * @param headSeen the answer had begun: it may then have taken too long because its reader was slow
 */
export function findingOfFailure(reason: AttemptFailure, headSeen: boolean): Finding {
  switch (reason) {
    case 'queue_full':
    case 'no_room':
    case 'closed':
    case 'answer_too_large':
    case 'gateway_fault':
      return 'uncounted';
    case 'total_timeout':
      return headSeen ? 'uncounted' : 'failure';
    default:
      return 'failure';
  }
}
