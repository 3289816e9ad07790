import type { UpstreamFailureReason } from '../errors.js';

/** What to do after an attempt failed: the next candidate, or tell the caller. */
export type Verdict = 'next' | 'stop';

export interface Attempt {
  readonly reason: UpstreamFailureReason | 'unusable_answer';
  /** Some byte of the request may have reached the upstream. */
  readonly bytesSent: boolean;
  /** Some byte of an answer has reached the client. */
  readonly headRelayed: boolean;
  /** The whole request is still in memory. */
  readonly replayable: boolean;
}

/**
 * The retry rule, and the only place that knows it. Once something was relayed nothing is tried again. Before the
 * request was sent, the next candidate is free. After it was sent, only what proves that the upstream gave up
 * (a broken connection, an answer that is none) moves on; a deadline stops, since the work may still be going on
 * and the caller has waited long enough, and so does an answer that is too large, since it was given. A reused connection that turned out to be dead never comes here: the
 * client has then sent the request again by itself.
 */
export function verdict(attempt: Attempt): Verdict {
  if (attempt.headRelayed) return 'stop';
  if (!attempt.bytesSent) return attempt.reason === 'total_timeout' ? 'stop' : 'next';
  if (!attempt.replayable) return 'stop';
  switch (attempt.reason) {
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
    case 'answer_too_large':
      return 'stop';
    default:
      return 'next';
  }
}
