/**
 * Converts offsets in a text between UTF-16 code units and UTF-8 bytes. Only the offsets after characters that are not
 * ASCII are stored. A conversion is a binary search among them.
 */
export class Utf8Offsets {
  /** For each unit of more than one byte, the offset of its end in units and in bytes. */
  readonly #units: number[] = [];
  readonly #bytes: number[] = [];
  #unitLength = 0;
  #byteLength = 0;

  /** Length of the text in bytes. */
  get byteLength(): number {
    return this.#byteLength;
  }

  add(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      this.#unitLength++;
      this.#byteLength += bytesOf(unit);
      if (unit < 0x80) continue;
      this.#units.push(this.#unitLength);
      this.#bytes.push(this.#byteLength);
    }
  }

  /** @returns the offset in bytes for one in units, at most the end of the text */
  toByte(unit: number): number {
    return Math.min(this.#byteLength, converted(this.#units, this.#bytes, Math.max(0, unit)));
  }

  /** @returns the offset in units for one in bytes, at most the end of the text */
  toUnit(byte: number): number {
    return Math.min(this.#unitLength, converted(this.#bytes, this.#units, Math.max(0, byte)));
  }
}

/** Returns the bytes of a unit. Each half of a surrogate pair counts as two of its four bytes. */
function bytesOf(unit: number): number {
  if (unit < 0x80) return 1;
  if (unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff)) return 2;
  return 3;
}

/** Converts an offset. Between two stored offsets the text is ASCII, so distances are equal in both units. */
function converted(from: readonly number[], to: readonly number[], place: number): number {
  let low = 0;
  let high = from.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((from[middle] as number) <= place) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? place : (to[low - 1] as number) + place - (from[low - 1] as number);
}
