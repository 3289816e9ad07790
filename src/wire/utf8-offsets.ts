/**
 * Places in a text, as units of UTF-16 and as bytes of UTF-8. Kept are only the places behind what is not ASCII, and the
 * search for one takes as many steps as their number has bits.
 */
export class Utf8Offsets {
  /** For each unit that is more than a byte: where it ends, in units and in bytes. */
  readonly #units: number[] = [];
  readonly #bytes: number[] = [];
  #unitLength = 0;
  #byteLength = 0;

  /** Length of the text, in bytes. */
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

  /** @returns the place in bytes of one in units; the end of the text for one behind it */
  toByte(unit: number): number {
    return Math.min(this.#byteLength, converted(this.#units, this.#bytes, Math.max(0, unit)));
  }

  /** @returns the place in units of one in bytes; the end of the text for one behind it */
  toUnit(byte: number): number {
    return Math.min(this.#unitLength, converted(this.#bytes, this.#units, Math.max(0, byte)));
  }
}

/** Each half of a surrogate pair is counted as two of its four bytes. */
function bytesOf(unit: number): number {
  if (unit < 0x80) return 1;
  if (unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff)) return 2;
  return 3;
}

/** What is between two of the places is ASCII, so the distance is the same in both. */
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
