import type { AttemptFailure } from '../errors.js';
import { resendableMs } from '../upstream/types.js';

/**
 * What to do after an attempt failed: the next candidate, the same one again after a back-off, or tell the caller.
 */
type Verdict = 'next' | 'same' | 'stop';

/** An attempt that failed, and how far it came. */
export interface FailedAttempt {
  /** Why there was no answer, or none of use; of an error answer, the status by which it is judged. */
  readonly reason: AttemptFailure | number;
  /** Some byte of the request may have reached the upstream. */
  readonly bytesSent: boolean;
  /** The whole request is still in memory. */
  readonly replayable: boolean;
  /** It makes or keeps something at the upstream, which a second time would be made twice. */
  readonly hasEffects: boolean;
  /** Milliseconds for which the upstream has had the whole request; 0 where it has not. */
  readonly sentMs: number;
}

/**
 * The retry rule. It is asked only before anything of an answer was relayed, which `Relay` sees to; keep-alives are the
 * gateway's own, and no part of an answer. Whether another key of the target is asked first is `isOfUpstreamKey`; by which
 * status an error answer is judged, `error-answer.ts`.
 *
 * - Before any of the request was sent: the next candidate, unless the time of the whole call is over.
 * - After that, the next one where the upstream has surely given up: an error of its own, an answer that is none, or a
 *   connection that broke within a second of sending (later, what cuts silent connections may have cut it during the work).
 * - After a deadline: stop, since the work may still go on, and the caller has waited long enough. Only the deadline of the
 *   first token is there to be followed by another target.
 * - After an answer that is too large, finds no room here or met a fault of ours: stop, since the upstream has answered.
 * - What must not be done twice goes on only after an answer which proves that it was not done (`provesUndone`).
 *
 * Where there is no other candidate, the same one is asked again if it or its proxy refused the connection, or it broke it
 * before anything was sent: a server that restarts does that. A reused connection that turned out to be dead comes here
 * only when the fresh one in its place was refused: `upstream/` has sent the request again by itself.
 * @param hasNext there is another candidate
 * @param mayRepeat this one may be asked again
 */
export function verdict(attempt: FailedAttempt, hasNext: boolean, mayRepeat: boolean): Verdict {
  if (!mayGoOn(attempt)) return 'stop';
  if (hasNext) return 'next';
  return mayRepeat && isPassing(attempt) ? 'same' : 'stop';
}

/** Whether it is right to ask any target again. */
function mayGoOn({ reason, bytesSent, replayable, hasEffects, sentMs }: FailedAttempt): boolean {
  // An answer is proof that the request was sent, or as much of it as matters.
  if (typeof reason === 'number')
    return replayable && isUpstreamsOwn(reason) && (!hasEffects || provesUndone(reason, sentMs));
  if (!bytesSent) return reason !== 'total_timeout';
  if (!replayable || hasEffects) return false;
  switch (reason) {
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
    case 'answer_too_large':
    case 'no_room':
    case 'gateway_fault':
      return false;
    // An answer all the same.
    case 'unusable_answer':
    // What is still going on there was cancelled, and the operator wants another to be asked.
    case 'first_token_timeout':
      return true;
    default:
      return sentMs < resendableMs;
  }
}

/**
 * Whether an upstream that answers with this error has surely not done what it was asked for. What stands before an
 * upstream says 500, 502 and 504 of a request that it may have handed on, 503 too when a connection broke under it, but
 * only after a while, and 409 says that the same is under way.
 * @param sentMs milliseconds for which it has had the request
 */
export function provesUndone(status: number, sentMs: number): boolean {
  if (status === 503 || status === 529) return sentMs < resendableMs;
  return status < 500 ? status !== 408 && status !== 409 : status === 501;
}

/** Whether a status speaks of the key that a request came with: another key of the same target may do better. */
export function isOfUpstreamKey(status: number): boolean {
  return status === 401 || status === 402 || status === 403 || status === 429;
}

/** Whether an error lies with the upstream or with our account there, so that another target may do better. */
function isUpstreamsOwn(status: number): boolean {
  switch (status) {
    // Our key, our balance or our rights there, not the caller's.
    case 401:
    case 402:
    case 403:
    // Too slow, or locked by another call.
    case 408:
    case 409:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
    // A proxy in front of the upstream that cannot reach it, as many have one.
    case 520:
    case 521:
    case 522:
    case 523:
    case 524:
    // Overloaded.
    case 529:
      return true;
    default:
      return false;
  }
}

function isPassing({ reason, bytesSent }: FailedAttempt): boolean {
  return reason === 'connect_failed' || reason === 'proxy_failed' || (reason === 'reset' && !bytesSent);
}
