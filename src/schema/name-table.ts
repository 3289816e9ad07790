/** A power of two. */
const places = 256;
/** Longer names are left to the full check. */
const longestName = 128;

const BACKSLASH = 0x5c;

/**
 * Strings for names that come again and again, such as those of models. A name that is remembered costs a comparison
 * of its bytes; a new one takes the place of another, so the table stays bounded whatever clients send.
 */
export class NameTable {
  readonly #names = new Array<string>(places).fill('');

  /**
   * Reads the inside of a JSON string.
   * @returns The text, or null when it is not plain ASCII or long, and so not read here.
   */
  read(body: Buffer, start: number, end: number): string | null {
    const length = end - start;
    if (length > longestName) return null;
    let hash = length;
    for (let at = start; at < end; at++) {
      const byte = body[at] as number;
      if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return null;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    const place = (hash ^ (hash >>> 8)) & (places - 1);
    const known = this.#names[place] as string;
    if (known.length === length && holds(body, start, known)) return known;
    const name = body.toString('latin1', start, end);
    this.#names[place] = name;
    return name;
  }
}

function holds(body: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (body[start + i] !== text.charCodeAt(i)) return false;
  }
  return true;
}
