/** Reads bits, the most significant first; past the end it throws. */
export class BitReader {
  position = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  bits(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++) {
      const byte = this.#bytes[this.position >> 3];
      if (byte === undefined) {
        throw new Error(`no bit at ${this.position}`);
      }
      value = 2 * value + ((byte >> (7 - (this.position & 7))) & 1);
      this.position += 1;
    }
    return value;
  }

  /** Two's complement. */
  signedBits(count: number): number {
    const value = this.bits(count);
    return value >= 2 ** (count - 1) ? value - 2 ** count : value;
  }

  /** Zeros before the next one, which is read too. */
  unary(): number {
    let zeros = 0;
    while (this.bits(1) === 0) {
      zeros += 1;
    }
    return zeros;
  }

  /** ue(v) of H.264. */
  unsigned(): number {
    const zeros = this.unary();
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** se(v) of H.264. */
  signed(): number {
    const code = this.unsigned();
    return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
  }

  /** Whether nothing is left but a one and zeros up to the end. */
  isAtStopBit(): boolean {
    const rest = 8 * this.#bytes.length - this.position;
    return rest >= 1 && rest <= 8 && this.peek(rest) === 2 ** (rest - 1);
  }

  peek(count: number): number {
    const at = this.position;
    const value = this.bits(count);
    this.position = at;
    return value;
  }
}
