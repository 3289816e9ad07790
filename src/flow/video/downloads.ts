import type { Origin } from '../../upstream/origin.js';
import type { Place } from '../call.js';

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
export function mostDownloads({ maxConnections }: DownloadSource): number {
  return Math.max(1, Math.floor(maxConnections / connectionParts));
}
