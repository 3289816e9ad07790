import type { OwnSecrets } from '../config/types.js';
import type { GatewayError } from '../errors.js';
import { encodedKeyError } from '../protocols/error-formats/vendor-account.js';
import { looksLikeText, textWithin } from '../wire/plain-text.js';

const firstBytes = 4096;
/** An answer that is announced as at most this large gets its whole buffer with the first bytes. */
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
   * @param bytes number of bytes to add
   * @param expected as for `add`
   * @returns the memory that it needs then; -1 if the limit would be exceeded
   */
  roomFor(bytes: number, expected: number): number {
    const needed = this.#length + bytes;
    if (needed > this.#limit) return -1;
    if (needed <= this.#buffer.length) return this.#buffer.length;
    if (expected >= needed && expected <= usualBytes) return Math.min(this.#limit, expected);
    // The buffer doubles, but not beyond the expected size.
    const most = expected >= needed ? Math.min(this.#limit, expected) : this.#limit;
    return Math.max(needed, Math.min(most, Math.max(firstBytes, 2 * needed)));
  }

  /**
   * @param chunk copied; valid only during the call
   * @param expected length of the whole body if known, else 0 or less
   * @returns false if the limit would be exceeded; nothing was added then
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

  /** Returns what was collected, and starts again. */
  take(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = nothing;
    this.#length = 0;
    return bytes;
  }
}

/** Bytes within which content that is not text can be recognised. */
const leastBytes = 32;
/** Bytes of a text that are held back, and searched for API keys, before any of it is passed on. */
export const beginningBytes = 8192;

/**
 * The beginning of an answer that is passed on in pieces. It is held back, however small the pieces, until it is known not to be
 * an error with a successful status.
 */
export class Beginning {
  readonly #secrets: OwnSecrets;
  readonly #searched: number;
  readonly #gathered = new Gather(Number.MAX_SAFE_INTEGER);
  /** What has arrived so far. */
  #isText = true;
  #seen = 0;

  /** @param searched number of bytes that are searched for API keys */
  constructor(secrets: OwnSecrets, searched = beginningBytes) {
    this.#secrets = secrets;
    this.#searched = searched;
  }

  /** @returns everything that has arrived, once it can be judged; else null */
  add(chunk: Buffer): Buffer | null {
    const before = this.#gathered.length;
    if (before < textWithin) this.#isText &&= looksLikeText(chunk);
    const isEnough = before + chunk.length >= (this.#isText ? beginningBytes : leastBytes);
    if (isEnough && before === 0) return chunk;
    this.#gathered.add(chunk, -1);
    return isEnough ? this.#gathered.take() : null;
  }

  /** Returns what has arrived of an answer that has ended. */
  rest(): Buffer {
    return this.#gathered.take();
  }

  /** Returns why the next piece may not be passed on, or null. */
  failureIn(chunk: Buffer): GatewayError | null {
    if (this.#seen >= this.#searched) return null;
    this.#seen += chunk.length;
    return encodedKeyError(chunk, this.#secrets);
  }
}
