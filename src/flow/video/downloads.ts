import { GatewayError } from '../../errors.js';
import type { Origin } from '../../upstream/origin.js';
import type { AuthenticatedCall } from '../call.js';

/** A source whose downloads are counted together: a server, or the folder of kept videos. */
export type DownloadSource = Pick<Origin, 'identity' | 'maxConnections'>;

/** One key may use one part in this many of a source's connections, since a client can hold a download open at will. */
const connectionParts = 4;

/** Counts a worker's downloads by key and source. */
export class Downloads {
  readonly #counts = new Map<string, number>();

  /**
   * Gives a call a download slot of a source. Releases the slot that it had: a redirect leads from one server to another.
   * @returns the error when the key has no slot left, or null
   */
  take(call: AuthenticatedCall, source: DownloadSource): GatewayError | null {
    call.slot?.give();
    call.slot = null;
    const most = Math.max(1, Math.floor(source.maxConnections / connectionParts));
    const name = JSON.stringify([call.key.id, source.identity]);
    const count = this.#counts.get(name) ?? 0;
    if (count >= most) return tooMany(most);
    this.#counts.set(name, count + 1);
    let isHeld = true;
    call.slot = {
      give: () => {
        if (isHeld) this.#end(name);
        isHeld = false;
      },
    };
    return null;
  }

  #end(name: string): void {
    const left = (this.#counts.get(name) ?? 0) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}

function tooMany(most: number): GatewayError {
  return new GatewayError(
    'rate_limit_exceeded',
    `Your key has ${most} downloads from this video's server under way, as many as it may: ` +
      'let one end, then try again.',
    { retryAfter: 10, limit: 'downloads' },
  );
}
