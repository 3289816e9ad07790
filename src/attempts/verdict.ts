import type { AttemptFailure } from '../errors.js';
import { resendableMs } from '../upstream/types.js';

/**
 * What to do after a failed attempt: try the next candidate, the same one after a back-off, or report the error to the client.
 */
type Verdict = 'next' | 'same' | 'stop';

/** A failed attempt, and how far it got. */
export interface FailedAttempt {
  /** Why there was no usable answer; for an error answer, the status by which it is judged. */
  readonly reason: AttemptFailure | number;
  /** Part of the request may have reached the upstream. */
  readonly bytesSent: boolean;
  /** The whole request is still in memory. */
  readonly replayable: boolean;
  /** The request creates something at the upstream, so a repetition would create it twice. */
  readonly hasEffects: boolean;
  /** Milliseconds since the upstream received the whole request; 0 if it did not. */
  readonly sentMs: number;
}

/**
 * The retry rule. It applies only until the first part of an answer is relayed, which `Relay` ensures. Keep-alives are sent by the
 * gateway and are not part of an answer. `isOfUpstreamKey` decides whether another key of the target is tried first, and
 * `error-answer.ts` by which status an error answer is judged.
 *
 * - Before any of the request was sent: try the next candidate, unless the time for the whole call is over.
 * - After that, try the next one if the upstream has certainly given up: it returned an error of its own or an invalid answer, or
 *   the connection broke within a second of sending. Later, a middlebox may have closed a silent connection while the upstream
 *   still works.
 * - After a timeout: stop, since the upstream may still work, and the client has waited long enough. The exception is the timeout
 *   for the first token, whose purpose is to try another target.
 * - After an answer that is too large, does not fit in memory, or caused an internal error: stop, since the upstream has answered.
 * - A request that must not be executed twice is repeated only after an answer which proves that it was not (`provesNotExecuted`).
 *
 * Without another candidate, the same one is retried if it or its proxy refused the connection, or closed it before anything was
 * sent, as a restarting server does. A dead reused connection gets here only if its replacement was refused, since `upstream/`
 * resends the request on its own.
 * @param hasNext there is another candidate
 * @param mayRepeat the same target may be retried
 */
export function verdict(attempt: FailedAttempt, hasNext: boolean, mayRepeat: boolean): Verdict {
  if (!mayGoOn(attempt)) return 'stop';
  if (hasNext) return 'next';
  return mayRepeat && isPassing(attempt) ? 'same' : 'stop';
}

/** Whether the request may be sent again to any target. */
function mayGoOn({ reason, bytesSent, replayable, hasEffects, sentMs }: FailedAttempt): boolean {
  // An answer proves that enough of the request was sent.
  if (typeof reason === 'number')
    return replayable && isUpstreamsOwn(reason) && (!hasEffects || provesNotExecuted(reason, sentMs));
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
    // The upstream has answered.
    case 'unusable_answer':
    // The request was cancelled, and the operator wants another target to be tried.
    case 'first_token_timeout':
      return true;
    default:
      return sentMs < resendableMs;
  }
}

/**
 * Whether an error status proves that the upstream has not executed the request. A proxy in front of it returns 500, 502 and 504
 * for requests that it may have forwarded, and 503 if a connection broke, though only after some time. 409 means that the same
 * request is in progress.
 * @param sentMs milliseconds since it received the request
 */
export function provesNotExecuted(status: number, sentMs: number): boolean {
  if (status === 503 || status === 529) return sentMs < resendableMs;
  return status < 500 ? status !== 408 && status !== 409 : status === 501;
}

/** Whether a status concerns the upstream's API key, so that another key of the same target may succeed. */
export function isOfUpstreamKey(status: number): boolean {
  return status === 401 || status === 402 || status === 403 || status === 429;
}

/** Whether a status is the fault of the upstream or of the gateway's account there, so that another target may succeed. */
function isUpstreamsOwn(status: number): boolean {
  switch (status) {
    // The gateway's API key, balance or permissions there, not the client's.
    case 401:
    case 402:
    case 403:
    // Too slow, in conflict with another call, or rate limited.
    case 408:
    case 409:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
    // A CDN in front of the upstream that cannot reach it.
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
