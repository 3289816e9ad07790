import type { OwnSecrets } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import { encodedKeyError } from '../protocols/error-formats/vendor-account.js';
import { looksLikeText, textWithin } from '../wire/plain-text.js';

const firstBytes = 4096;
/** Room for an answer that is announced as no larger is there from its first bytes on. */
const usualBytes = 256 * 1024;
const nothing: Buffer = Buffer.alloc(0);

/** Collects the pieces of a body up to a limit. */
export class Gather {
  #buffer: Buffer = nothing;
  #length = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * @param bytes that are to be added
   * @param expected as for `add`
   * @returns how much memory it takes up then; -1 when the limit would be passed
   */
  roomFor(bytes: number, expected: number): number {
    const needed = this.#length + bytes;
    if (needed > this.#limit) return -1;
    if (needed <= this.#buffer.length) return this.#buffer.length;
    if (expected >= needed && expected <= usualBytes) return Math.min(this.#limit, expected);
    // It doubles, but never beyond what is expected.
    const most = expected >= needed ? Math.min(this.#limit, expected) : this.#limit;
    return Math.max(needed, Math.min(most, Math.max(firstBytes, 2 * needed)));
  }

  /**
   * @param chunk copied; valid only during the call
   * @param expected length of the whole where it is known, else 0 or less
   * @returns false when the limit would be passed; nothing was taken then
   */
  add(chunk: Buffer, expected: number): boolean {
    const room = this.roomFor(chunk.length, expected);
    if (room === -1) return false;
    if (room > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(room);
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length += chunk.length;
    return true;
  }

  /** Gives out what was collected and begins anew. */
  take(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = nothing;
    this.#length = 0;
    return bytes;
  }
}

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
    return encodedKeyError(chunk, this.#secrets);
  }
}
