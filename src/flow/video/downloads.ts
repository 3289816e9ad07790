import { GatewayError } from '../../errors.js';
import type { Origin } from '../../upstream/origin.js';
import type { AuthenticatedCall, Place } from '../call.js';
import type { Services } from '../services.js';

/** Where downloads come from, which are counted together: a server, or the folder of videos that are kept. */
export type DownloadSource = Pick<Origin, 'identity' | 'maxConnections'>;

/** A download lasts as long as its client likes: those of one key leave the others this many parts less one. */
const connectionParts = 4;

/** The downloads of a worker by who reads them from where. */
export class Downloads {
  readonly #counts = new Map<string, number>();

  /** @returns a place for one more, or null where the key has as many from there as it may */
  take(keyId: string, source: DownloadSource): Place | null {
    const name = JSON.stringify([keyId, source.identity]);
    const count = this.#counts.get(name) ?? 0;
    if (count >= mostDownloads(source)) return null;
    this.#counts.set(name, count + 1);
    let isHeld = true;
    return {
      give: () => {
        if (isHeld) this.#end(name);
        isHeld = false;
      },
    };
  }

  #end(name: string): void {
    const left = (this.#counts.get(name) ?? 0) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}

/** How many a key may have at once from one source, in one worker. */
function mostDownloads({ maxConnections }: DownloadSource): number {
  return Math.max(1, Math.floor(maxConnections / connectionParts));
}

/**
 * Counts a call's download, and no more the one that it had: a redirect leads from one server to another.
 * @returns why it may not begin, or null
 */
export function takeDownload(
  { downloads }: Services,
  call: AuthenticatedCall,
  source: DownloadSource,
): GatewayError | null {
  call.place?.give();
  call.place = downloads.take(call.key.id, source);
  if (call.place !== null) return null;
  return new GatewayError(
    'rate_limit_exceeded',
    `Your key has ${mostDownloads(source)} downloads from this video's server under way, as many as it may: ` +
      'let one end, then try again.',
    { retryAfter: 10, limit: 'downloads' },
  );
}
