import type { Snapshot } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { RateBound } from '../upstream/least-rate.js';

/** How slow a body may be, and a file that is fetched. */
export function rateBound({ limits, timeouts }: Snapshot): RateBound {
  return { bytesPerSecond: limits.leastBodyRate, graceMs: timeouts.bodyGraceMs };
}

/** The error for a request body that is slower. */
export function tooSlow({ limits, timeouts }: Snapshot): GatewayError {
  return new GatewayError(
    'request_timeout',
    `The request body came too slowly: it has to bring ${limits.leastBodyRate} bytes a second, over ` +
      `${timeouts.bodyGraceMs / 1000} s each time.`,
  );
}
