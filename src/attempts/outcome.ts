import type { AttemptFailure, GatewayError, GivenUpBy } from '../errors.js';

/** No upstream keeps itself away for longer, whatever it says. */
export const longestRetryAfterMs = 600_000;
/** How long a target or key is asked after all others, once it has answered a 429 that names no time. */
export const restMs = 1000;

/** An attempt that the target has failed. */
export interface FailedOutcome {
  /**
   * `rateLimited`: refused for the number of calls (429), which says nothing against the target. `rejected`: the key or its
   * account is not accepted. `doubted`: refused for missing rights, which may be the key's lack or nobody's to have.
   */
  readonly kind: 'failure' | 'rateLimited' | 'rejected' | 'doubted';
  /** What happened, in a few words for operators. */
  readonly error: string;
  /** How long the target asks to be left alone, in milliseconds; null where it did not say. */
  readonly retryAfterMs: number | null;
}

/**
 * How an attempt ended. `uncounted` is one that says nothing about the target: the client left, or the gateway itself
 * could not go on.
 */
export type AttemptOutcome = 'success' | 'uncounted' | FailedOutcome;

/** What an attempt says about the health of its target and of the key: an outcome, or the kind of a `FailedOutcome`. */
export type Finding = 'success' | 'uncounted' | FailedOutcome['kind'];

/**
 * What an answer's status says. An error that a caller can cause must not open the breaker for all others: an error
 * that names the caller's mistake counts as a success, and one whose cause cannot be told is not counted.
 */
export function findingOfStatus(status: number): Finding {
  if (status === 429) return 'rateLimited';
  // The key or the balance is ours, and every call would be told the same.
  if (status === 401 || status === 402) return 'rejected';
  // Rights may be ours or a matter of what was asked.
  if (status === 403) return 'doubted';
  // A lock and a slow request are of one call.
  if (status === 404 || status === 408 || status === 409) return 'uncounted';
  // What is not implemented is not broken.
  if (status === 501 || status === 505) return 'uncounted';
  return status >= 500 ? 'failure' : 'success';
}

/** Why an answer is given up that fails a call with this error. */
export function givenUpBy(error: GatewayError): GivenUpBy {
  return error.tooLarge ? 'answer_too_large' : 'unusable_answer';
}

/**
 * What it says that there was no answer, or no whole one.
 * @param headSeen the answer had begun: its time may then have run out because its reader was slow
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
