import type { OwnSecrets } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import { encodedKeyFailure } from '../protocols/error-formats/own-secrets.js';
import { looksLikeText, textWithin } from '../wire/text-start.js';
import { Gather } from './gather.js';

/** What is no text shows it within so many bytes. */
const leastBytes = 32;
/** A text is kept back until so much of it is there, and a key within is never passed on. */
export const beginningBytes = 8192;

/**
 * The beginning of an answer that passes piece by piece. It is kept back until it can be told from an error under a good
 * status, however small the pieces are in which it comes.
 */
export class Beginning {
  readonly #secrets: OwnSecrets;
  readonly #searched: number;
  readonly #gathered = new Gather(Number.MAX_SAFE_INTEGER);
  /** As far as has come. */
  #isText = true;
  #seen = 0;

  /** @param searched bytes that are searched for keys */
  constructor(secrets: OwnSecrets, searched = beginningBytes) {
    this.#secrets = secrets;
    this.#searched = searched;
  }

  /** @returns all that has come, once that can be judged; else null */
  add(chunk: Buffer): Buffer | null {
    const before = this.#gathered.length;
    if (before < textWithin) this.#isText &&= looksLikeText(chunk);
    const isEnough = before + chunk.length >= (this.#isText ? beginningBytes : leastBytes);
    if (isEnough && before === 0) return chunk;
    this.#gathered.add(chunk, -1);
    return isEnough ? this.#gathered.take() : null;
  }

  /** What has come of an answer that has ended. */
  rest(): Buffer {
    return this.#gathered.take();
  }

  /** Why the next piece may not be passed on, or null. */
  failureIn(chunk: Buffer): GatewayError | null {
    if (this.#seen >= this.#searched) return null;
    this.#seen += chunk.length;
    return encodedKeyFailure(chunk, this.#secrets);
  }
}
