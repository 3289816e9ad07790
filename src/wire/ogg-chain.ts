/** Bytes of a page that are read: its header, and the beginning of a stream's first packet. */
const headBytes = 64;
const segmentsAt = 26;
const pattern = Buffer.from('OggS');

/**
 * Reads the duration of an Ogg file (RFC 3533) with Opus or Vorbis as its bytes pass. The streams of a chain follow each
 * other, and each counts its positions anew, so the last positions of all of them are added. Of streams side by side, the
 * first with sound counts.
 */
export class OggChain {
  /** Bytes at the end of what has passed that may begin a page. */
  #rest: Buffer = Buffer.alloc(0);
  /** Seconds of the streams before the current one. */
  #secondsBefore = 0;
  /** Of the current stream: its number, the units of its positions per second, and its last position. */
  #serial = 0;
  #rate = 0;
  #position = 0;
  /** More than the first page of the current stream has come. */
  #isBegun = false;

  /** @param bytes valid only until this returns */
  add(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = all.indexOf(pattern);
    for (; at !== -1 && at + headBytes <= all.length; at = all.indexOf(pattern, at + pattern.length))
      this.#readPage(all.subarray(at, at + headBytes));
    // The pattern itself may be cut.
    const from = at === -1 ? Math.max(0, all.length - pattern.length + 1) : at;
    this.#rest = Buffer.from(all.subarray(from));
  }

  /** Returns the duration in seconds; 0 if it is unknown. Nothing may be added after this. */
  seconds(): number {
    this.add(Buffer.alloc(headBytes));
    return this.#secondsBefore + this.#secondsOfStream;
  }

  get #secondsOfStream(): number {
    return this.#rate > 0 ? this.#position / this.#rate : 0;
  }

  #readPage(page: Buffer): void {
    const serial = page.readUInt32LE(14);
    const rate = this.#rate === 0 || this.#isBegun ? positionRateOf(page) : 0;
    if (rate > 0) {
      this.#secondsBefore += this.#secondsOfStream;
      this.#serial = serial;
      this.#rate = rate;
      this.#position = 0;
      this.#isBegun = false;
    } else if (serial === this.#serial) this.#isBegun = true;
    // A page on which no packet ends has the position -1.
    if (serial === this.#serial)
      this.#position = Math.max(this.#position, page.readInt32LE(10) * 2 ** 32 + page.readUInt32LE(6));
  }
}

/** Returns the units per second of a stream's positions by its first page; 0 for any other page. */
function positionRateOf(page: Buffer): number {
  const packet = segmentsAt + 1 + page.readUInt8(segmentsAt);
  if (packet + 16 > headBytes) return 0;
  if (page.toString('latin1', packet, packet + 8) === 'OpusHead') return 48_000;
  return page.toString('latin1', packet, packet + 7) === '\x01vorbis' ? page.readUInt32LE(packet + 12) : 0;
}
