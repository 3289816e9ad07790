/** Where pieces have come to so many characters they are joined. */
const joinedCharacters = 4096;

/**
 * A text that comes in pieces and is needed whole at its end. V8 keeps the sum of two texts as a tree: a piece of one
 * token takes up some 50 bytes there, and one that was cut out of what an upstream has sent keeps all of that in memory.
 * So what has come is joined now and then.
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

  /** All that has come, in one. */
  toString(): string {
    return this.#joined + this.#pieces;
  }
}

/** The same text without a tree behind it, with halves of characters as they are. */
function copyOf(text: string): string {
  const encoding = Buffer.byteLength(text) === text.length ? 'latin1' : 'utf16le';
  return Buffer.from(text, encoding).toString(encoding);
}
