import type { UpstreamFailureReason } from '../errors.js';

/**
 * What an attempt says about the health of its target: `failure` and `limited` are the kinds of a `FailedCall`, the
 * others are outcomes themselves.
 */
export type Finding = 'success' | 'uncounted' | 'failure' | 'limited';

/**
 * What an answer's status says. An error that a caller can bring about by himself must not make a target ill for all
 * others, so a mistake of his that is pointed out is a success, and where it cannot be told whose mistake it is,
 * nothing is said.
 */
export function findingOfStatus(status: number): Finding {
  if (status === 429) return 'limited';
  // The key or the balance is ours, and every call would be told the same.
  if (status === 401 || status === 402) return 'failure';
  // Rights may be ours or a matter of what was asked; a lock and a slow request are of one call.
  if (status === 403 || status === 404 || status === 408 || status === 409) return 'uncounted';
  // What is not implemented is not broken.
  if (status === 501 || status === 505) return 'uncounted';
  return status >= 500 ? 'failure' : 'success';
}

/**
 * What it says that there was no answer, or no whole one.
 * @param headSeen the answer had begun: its time may then have run out because its reader was slow
 */
export function findingOfFailure(
  reason: UpstreamFailureReason | 'unusable_answer',
  headSeen: boolean,
): Finding {
  switch (reason) {
    case 'queue_full':
    case 'closed':
    case 'answer_too_large':
      return 'uncounted';
    case 'total_timeout':
      return headSeen ? 'uncounted' : 'failure';
    default:
      return 'failure';
  }
}
