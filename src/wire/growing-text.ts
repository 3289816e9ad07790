/** Number of characters in pieces after which they are joined. */
const joinedCharacters = 4096;

/**
 * A text that arrives in pieces and is needed as a whole at the end. V8 represents concatenated strings as a tree, in
 * which a piece of one token takes about 50 bytes. A piece that is a slice of data from an upstream retains all of that
 * data. Therefore the pieces are joined from time to time.
 */
export class GrowingText {
  #joined = '';
  #pieces = '';

  get length(): number {
    return this.#joined.length + this.#pieces.length;
  }

  add(text: string): void {
    this.#pieces += text;
    if (this.#pieces.length < joinedCharacters) return;
    this.#joined += copyOf(this.#pieces);
    this.#pieces = '';
  }

  /** Returns the whole text. */
  toString(): string {
    return this.#joined + this.#pieces;
  }
}

/** Returns the same text as a flat string. Unpaired surrogates are preserved. */
function copyOf(text: string): string {
  const encoding = Buffer.byteLength(text) === text.length ? 'latin1' : 'utf16le';
  return Buffer.from(text, encoding).toString(encoding);
}
