const firstCapacity = 1024;
const widestPut = 24;

/** Collects bits, the most significant first, as H.264, JPEG, FLAC and MPEG audio write them. */
export class BitWriter {
  #bytes = Buffer.allocUnsafe(firstCapacity);
  #length = 0;
  #held = 0;
  #heldBits = 0;

  /** Appends the low `count` (0 to 32) bits of a whole number; a negative one is taken in two's complement. */
  put(value: number, count: number): void {
    if (count > widestPut) {
      this.put(value >>> 16, count - 16);
      this.put(value & 0xffff, 16);
      return;
    }
    this.#held = (this.#held << count) | (value & ((1 << count) - 1));
    this.#heldBits += count;
    while (this.#heldBits >= 8) {
      this.#heldBits -= 8;
      this.#append((this.#held >>> this.#heldBits) & 0xff);
    }
    this.#held &= (1 << this.#heldBits) - 1;
  }

  /** Appends so many zeros and then a one. */
  unary(zeros: number): void {
    let rest = zeros;
    for (; rest >= widestPut; rest -= widestPut) {
      this.put(0, widestPut);
    }
    this.put(1, rest + 1);
  }

  /** Fills the last byte up with copies of one bit. */
  align(bit: 0 | 1): void {
    const missing = (8 - this.#heldBits) % 8;
    this.put(bit === 1 ? (1 << missing) - 1 : 0, missing);
  }

  /** The whole bytes written up to now; they are this writer's own memory, to read only. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #append(byte: number): void {
    if (this.#length === this.#bytes.length) {
      const larger = Buffer.allocUnsafe(2 * this.#bytes.length);
      this.#bytes.copy(larger);
      this.#bytes = larger;
    }
    this.#bytes[this.#length] = byte;
    this.#length += 1;
  }
}
