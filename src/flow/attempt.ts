import type { GatewayError } from '../errors.js';
import type { ResponseHead, UpstreamFailure } from '../upstream/client.js';

/** Who decides what follows an attempt that failed before anything was relayed. */
export interface AttemptOwner {
  /** The upstream answered, and its answer is an error that only the caller's dialect can say. */
  onErrorAnswer(error: GatewayError, head: ResponseHead): void;
  /** @param failure null when the upstream answered, and its answer is of no use */
  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void;
}
