const lossless = 0x2f;
const longestCopy = 4096;
const fromAbove = 0;
const fromLeft = 1;

/** A colour, red in bits 16 to 23, green in 8 to 15, blue in 0 to 7. */
export type PackedColour = number;

/**
 * A lossless WebP (RFC 9649) of a picture up to 4096 pixels wide: row by row, each as runs of one colour, or as a copy
 * of the row above. `rowAt` gives the packed colours of a row, and may use the same memory again.
 */
export function webpImage(width: number, height: number, rowAt: (y: number) => Uint32Array): Buffer {
  const bits = new LowBits();
  bits.put(lossless, 8);
  bits.put(width - 1, 14);
  bits.put(height - 1, 14);
  bits.put(0, 1 + 3);
  bits.put(0, 3);
  writeCodes(bits);
  const above = new Uint32Array(width);
  for (let y = 0; y < height; y++) {
    const row = rowAt(y);
    if (y > 0 && above.every((colour, x) => colour === row[x])) {
      writeCopy(bits, width, fromAbove);
    } else {
      writeRuns(bits, row);
      above.set(row);
    }
  }
  return container(bits.bytes());
}

function writeRuns(bits: LowBits, row: Uint32Array): void {
  for (let from = 0; from < row.length; ) {
    const colour = row[from] ?? 0;
    let to = from + 1;
    while (to < row.length && row[to] === colour) {
      to += 1;
    }
    bits.code(0x100 | ((colour >> 8) & 0xff), 9);
    bits.code((colour >> 16) & 0xff, 8);
    bits.code(colour & 0xff, 8);
    if (to > from + 1) {
      writeCopy(bits, to - from - 1, fromLeft);
    }
    from = to;
  }
}

/** Repeats pixels (5.2.2): the length as a prefix code with its extra bits, then the distance as one of two. */
function writeCopy(bits: LowBits, length: number, distance: number): void {
  const less = Math.min(length, longestCopy) - 1;
  const high = less < 4 ? 0 : 31 - Math.clz32(less);
  const extra = Math.max(0, high - 1);
  const symbol = less < 4 ? less : 2 * high + ((less >> extra) & 1);
  if (symbol < 16) {
    bits.code(16 + symbol, 6);
  } else {
    bits.code(symbol - 16, 5);
  }
  bits.put(less & ((1 << extra) - 1), extra);
  bits.code(distance, 1);
}

/**
 * The five prefix codes (6.2.1). Green: 256 values of 9 bits, 16 lengths of 6 and 8 of 5. Red and blue: 256 values of 8.
 * Alpha: always opaque. Distance: the pixel above, or the one on the left.
 */
function writeCodes(bits: LowBits): void {
  writeCodeLengths(
    bits,
    new Map([
      [5, 2],
      [6, 2],
      [9, 1],
    ]),
  );
  for (let value = 0; value < 256; value++) {
    bits.code(0b0, 1);
  }
  for (let length = 0; length < 24; length++) {
    bits.code(length < 16 ? 0b11 : 0b10, 2);
  }
  writeCodeLengths(bits, new Map([[8, 1]]));
  writeCodeLengths(bits, new Map([[8, 1]]));
  bits.put(0b1_0_1, 3);
  bits.put(255, 8);
  bits.put(0b0_0_1_1, 4);
  bits.put(1, 8);
}

const codeLengthOrder = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/** Begins a normal code whose symbols have these lengths, each written in so many bits; a single one takes none. */
function writeCodeLengths(bits: LowBits, lengths: ReadonlyMap<number, number>): void {
  const count = 1 + codeLengthOrder.findLastIndex((length) => lengths.has(length));
  bits.put(0, 1);
  bits.put(count - 4, 4);
  for (const length of codeLengthOrder.slice(0, count)) {
    bits.put(lengths.get(length) ?? 0, 3);
  }
  bits.put(0, 1);
}

function container(stream: Buffer): Buffer {
  const padded = stream.length + (stream.length % 2);
  const whole = Buffer.alloc(20 + padded);
  whole.write('RIFF', 0, 'latin1');
  whole.writeUInt32LE(12 + padded, 4);
  whole.write('WEBPVP8L', 8, 'latin1');
  whole.writeUInt32LE(stream.length, 16);
  stream.copy(whole, 20);
  return whole;
}

/** Collects bits, the least significant first. */
class LowBits {
  readonly #bytes: number[] = [];
  #held = 0;
  #heldBits = 0;

  /** Appends the low `count` (0 to 24) bits of a value. */
  put(value: number, count: number): void {
    this.#held |= value << this.#heldBits;
    this.#heldBits += count;
    while (this.#heldBits >= 8) {
      this.#bytes.push(this.#held & 0xff);
      this.#held >>>= 8;
      this.#heldBits -= 8;
    }
  }

  /** Appends a prefix code, which goes out from its most significant bit on. */
  code(value: number, count: number): void {
    for (let bit = count - 1; bit >= 0; bit--) {
      this.put((value >> bit) & 1, 1);
    }
  }

  bytes(): Buffer {
    return Buffer.from(this.#heldBits > 0 ? [...this.#bytes, this.#held] : this.#bytes);
  }
}
