/** A power of two. */
const buckets = 256;
/** Longer names are left to the full check. */
const longestName = 128;

const BACKSLASH = 0x5c;

/**
 * Caches strings of recurring names, such as those of models. A cached name costs a comparison of its bytes; a new one
 * replaces another, so the table stays bounded whatever clients send.
 */
export class NameTable {
  readonly #names = new Array<string>(buckets).fill('');

  /**
   * Reads the inside of a JSON string.
   * @returns The text, or null if it is long or not plain ASCII, which is left to the full check.
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
    const bucket = (hash ^ (hash >>> 8)) & (buckets - 1);
    const known = this.#names[bucket] as string;
    if (known.length === length && holdsText(body, start, known)) return known;
    const name = body.toString('latin1', start, end);
    this.#names[bucket] = name;
    return name;
  }
}

function holdsText(body: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (body[start + i] !== text.charCodeAt(i)) return false;
  }
  return true;
}
