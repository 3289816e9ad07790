import { OggStreams } from './ogg-streams.js';
import { Tail } from './tail.js';

/*
 * Reads the duration of a recording from its container: WAV (RIFF), FLAC (RFC 9639), MP3 (ISO/IEC 11172-3 with ID3v2
 * and the Info or Xing frame), Ogg (RFC 3533) with Opus, Vorbis, FLAC or Speex, MP4 (ISO/IEC 14496-12), and Matroska or
 * WebM (RFC 9559).
 */

/** Number of bytes read at one place: every header is shorter. */
const placeBytes = 64;
/** Maximum number of places read in one file, whose boxes may be a few bytes each. */
const mostPlaces = 4096;
/** Bytes in which the last page of an Ogg file of very many pages begins: these last a second in a usual encoding. */
const tailBytes = 16_000;
/**
 * Bytes per second of a usual encoding: for recordings without a duration, and for a duration shorter than this gives.
 */
export const usualRate = 16_000;
/** Bytes per second of the most compact encoding of speech in use. */
export const leastRate = 500;
const nanosPerSecond = 1e9;

/** Reads a place of the file. @returns the next place to read, or -1 for none */
type Step = (bytes: Buffer, at: number) => number;

/**
 * Reads a recording as its bytes pass, and keeps little of it. The duration in the container is accepted between two
 * bounds. The lower is the duration of the same bytes in a usual encoding, so that no header makes the recording
 * cheaper; the upper is their duration in the most compact encoding. For a WAV file of plain samples, µ-law and A-law among
 * them, the duration follows from its length and the byte rate in its head, which players use as well.
 */
export class Recording {
  #length = 0;
  #step: Step | null = (bytes, at) => this.#readStart(bytes, at);
  readonly #place = Buffer.alloc(placeBytes);
  #placeAt = 0;
  #filled = 0;
  #places = 0;
  /** Duration in seconds by the container, or 0. */
  #told = 0;
  /** WAV: offset of the samples, and their bytes per second. */
  #samplesAt = -1;
  #byteRate = 0;
  /** Ogg: its reader, and the offset of the next byte for it. */
  #ogg: OggStreams | null = null;
  #oggAt = 0;
  /** The end of an Ogg file with more pages than are read. */
  #tail: Tail | null = null;
  /**
   * MP3 without a frame count, and WAV of an encoding such as ADPCM or GSM: offset of the frames, and bytes per second by
   * the first frame or the head.
   */
  #framesAt = 0;
  #frameRate = 0;
  /** The length that the chunks of a WAV file state for them. */
  #frameBytes = Number.POSITIVE_INFINITY;
  /** Matroska: unit of the duration, in nanoseconds. */
  #unitNanos = 1e6;

  /** @param bytes valid only until this returns */
  add(bytes: Buffer): void {
    while (this.#step !== null) {
      const from = this.#placeAt + this.#filled - this.#length;
      if (from >= bytes.length) break;
      this.#filled += bytes.copy(this.#place, this.#filled, from);
      if (this.#filled < placeBytes) break;
      this.#read();
    }
    if (this.#ogg !== null) this.#readOgg(this.#ogg, bytes);
    this.#length += bytes.length;
  }

  /**
   * Returns the duration of the recording in seconds. Nothing may be added after this.
   * @param sentBytes number of all bytes that were sent, for a recording without a duration
   */
  seconds(sentBytes: number): number {
    // The last place may be incomplete.
    while (this.#step !== null && this.#filled > 0) {
      this.#place.fill(0, this.#filled);
      this.#read();
    }
    if (this.#byteRate > 0 && this.#samplesAt !== -1)
      return Math.max(0, this.#length - this.#samplesAt) / this.#byteRate;
    if (this.#tail !== null) this.#ogg?.readLast(this.#tail.bytes());
    if (this.#ogg !== null) this.#told = this.#ogg.seconds();
    if (this.#frameRate > 0)
      this.#told = Math.min(this.#length - this.#framesAt, this.#frameBytes) / this.#frameRate;
    const told = Number.isFinite(this.#told) ? Math.min(this.#told, this.#length / leastRate) : 0;
    return Math.max(sentBytes / usualRate, told);
  }

  #read(): void {
    const next = ++this.#places > mostPlaces ? -1 : (this.#step?.(this.#place, this.#placeAt) ?? -1);
    const moved = next - this.#placeAt;
    if (next === -1 || moved <= 0) {
      this.#step = null;
      return;
    }
    this.#place.copyWithin(0, moved, this.#filled);
    this.#filled = Math.max(0, this.#filled - moved);
    this.#placeAt = next;
  }

  #readStart(bytes: Buffer, at: number): number {
    const word = bytes.toString('latin1', 0, 4);
    if (word.startsWith('ID3') && at === 0)
      return (
        10 + (((bytes[6] ?? 0) << 21) | ((bytes[7] ?? 0) << 14) | ((bytes[8] ?? 0) << 7) | (bytes[9] ?? 0))
      );
    if (word === 'fLaC') {
      const samples = (bytes.readUInt8(21) & 0xf) * 2 ** 32 + bytes.readUInt32BE(22);
      this.#told = samples / (bytes.readUInt32BE(18) >>> 12);
    } else if ((word === 'RIFF' || word === 'RF64') && bytes.toString('latin1', 8, 12) === 'WAVE') {
      this.#step = (chunk, chunkAt) => this.#readChunk(chunk, chunkAt);
      return at + 12;
    } else if (word === 'OggS') {
      this.#ogg = new OggStreams();
      this.#ogg.add(bytes);
      this.#oggAt = at + placeBytes;
    } else if (bytes.toString('latin1', 4, 8) === 'ftyp') {
      this.#step = (box, boxAt) => this.#readBox(box, boxAt);
      return at + bytes.readUInt32BE(0);
    } else if (bytes.readUInt32BE(0) === elements.head) {
      this.#step = (element, elementAt) => this.#readElement(element, elementAt);
      return this.#readElement(bytes, at);
    } else return this.#readFrame(bytes, at);
    return -1;
  }

  #readChunk(bytes: Buffer, at: number): number {
    const name = bytes.toString('latin1', 0, 4);
    const size = bytes.readUInt32LE(4);
    if (name === 'data') {
      const isFirst = this.#samplesAt === -1;
      if (isFirst) this.#samplesAt = at + 8;
      if (this.#frameRate === 0) return -1;
      if (isFirst) {
        this.#framesAt = at + 8;
        this.#frameBytes = 0;
      }
      this.#frameBytes += isUnknownSize(size) ? Number.POSITIVE_INFINITY : size;
    }
    if (name === 'fmt ' && this.#samplesAt === -1) {
      // With two format chunks, it is unclear which one counts.
      const isSecond = this.#byteRate > 0 || this.#frameRate > 0;
      this.#byteRate = isSecond ? 0 : byteRateOf(bytes);
      this.#frameRate = isSecond || this.#byteRate > 0 ? 0 : encodedRateOf(bytes);
      if (this.#byteRate === 0 && this.#frameRate === 0) return -1;
    }
    return at + 8 + size + (size & 1);
  }

  #readOgg(ogg: OggStreams, bytes: Buffer): void {
    if (!ogg.isOver) ogg.add(bytes.subarray(Math.max(0, this.#oggAt - this.#length)));
    if (!ogg.isOver) return;
    this.#tail ??= new Tail(tailBytes);
    this.#tail.add(bytes);
  }

  #readBox(bytes: Buffer, at: number): number {
    const name = bytes.toString('latin1', 4, 8);
    const size = bytes.readUInt32BE(0);
    if (name === 'moov') return at + (size === 1 ? 16 : 8);
    if (name !== 'mvhd') return at + (size === 1 ? Number(bytes.readBigUInt64BE(8)) : size);
    const isLong = bytes[8] === 1;
    const duration = isLong ? Number(bytes.readBigUInt64BE(32)) : bytes.readUInt32BE(24);
    this.#told = duration / bytes.readUInt32BE(isLong ? 28 : 20);
    return -1;
  }

  #readElement(bytes: Buffer, at: number): number {
    const nameBytes = Math.clz32(bytes.readUInt8(0)) - 23;
    if (nameBytes > 4) return -1;
    const sizeBytes = Math.clz32(bytes.readUInt8(nameBytes)) - 23;
    if (sizeBytes > 8) return -1;
    const name = bytes.readUIntBE(0, nameBytes);
    const content = nameBytes + sizeBytes;
    let size = bytes.readUInt8(nameBytes) & (0xff >> sizeBytes);
    for (let i = nameBytes + 1; i < content; i++) size = 256 * size + bytes.readUInt8(i);
    if (name === elements.segment || name === elements.information) return at + content;
    if (name === elements.cluster) return -1;
    if (name === elements.unit && size >= 1 && size <= 6) this.#unitNanos = bytes.readUIntBE(content, size);
    if (name === elements.duration && (size === 4 || size === 8)) {
      const units = size === 4 ? bytes.readFloatBE(content) : bytes.readDoubleBE(content);
      this.#told = (units * this.#unitNanos) / nanosPerSecond;
      return -1;
    }
    return at + content + size;
  }

  #readFrame(bytes: Buffer, at: number): number {
    const header = bytes.readUInt32BE(0);
    const version = (header >>> 19) & 3;
    const isFirst = version === 3;
    const kilobits = (isFirst ? kilobitsOfFirst : kilobitsOfSecond)[(header >>> 12) & 0xf] ?? 0;
    const rate = (samplingRates[(header >>> 10) & 3] ?? 0) / (isFirst ? 1 : version === 2 ? 2 : 4);
    if (header >>> 21 !== 0x7ff || version === 1 || ((header >>> 17) & 3) !== 1 || kilobits * rate === 0)
      return -1;
    const isMono = ((header >>> 6) & 3) === 3;
    const information = 4 + (isFirst ? (isMono ? 17 : 32) : isMono ? 9 : 17);
    const word = bytes.toString('latin1', information, information + 4);
    if ((word === 'Xing' || word === 'Info') && (bytes.readUInt32BE(information + 4) & 1) === 1)
      this.#told = (bytes.readUInt32BE(information + 8) * (isFirst ? 1152 : 576)) / rate;
    else {
      this.#framesAt = at;
      this.#frameRate = kilobits * 125;
    }
    return -1;
  }
}

const elements = {
  head: 0x1a45dfa3,
  segment: 0x18538067,
  information: 0x1549a966,
  unit: 0x2ad7b1,
  duration: 0x4489,
  cluster: 0x1f43b675,
};

const kilobitsOfFirst = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const kilobitsOfSecond = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const samplingRates = [44_100, 48_000, 32_000];

/** Formats of integer and float samples, and the format that gives the real one in a later field. */
const plainFormats = [1, 3];
/** A-law and µ-law, with a byte for each sample. */
const byteFormats = [6, 7];
/** ADPCM of Microsoft and of the IMA. */
const blockFormats = [0x02, 0x11];
const extensibleFormat = 0xfffe;

/** Sizes of a chunk that was written before its end was known. */
function isUnknownSize(size: number): boolean {
  return size === 0 || size === 0xffff_ffff;
}

function formatOf(bytes: Buffer): number {
  const stated = bytes.readUInt16LE(8);
  return stated === extensibleFormat ? bytes.readUInt16LE(32) : stated;
}

/**
 * Returns the bytes per second by a WAV format chunk; 0 if the samples are not plain or the chunk contradicts itself.
 */
function byteRateOf(bytes: Buffer): number {
  const format = formatOf(bytes);
  const channels = bytes.readUInt16LE(10);
  const rate = bytes.readUInt32LE(12);
  const bits = bytes.readUInt16LE(22);
  const isPlain = byteFormats.includes(format)
    ? bits === 8
    : plainFormats.includes(format) && bits <= 64 && bits % 8 === 0;
  const byteRate = (rate * channels * bits) / 8;
  const isSane = isPlain && rate <= 192_000 && channels <= 8;
  return isSane && byteRate === bytes.readUInt32LE(16) ? byteRate : 0;
}

/**
 * Returns the average bytes per second by a WAV format chunk for samples that are not plain; 0 for plain ones. Some writers of
 * ADPCM state another number than the one by its blocks, which players use.
 */
function encodedRateOf(bytes: Buffer): number {
  const format = formatOf(bytes);
  if (plainFormats.includes(format)) return 0;
  const hasBlocks =
    blockFormats.includes(format) && bytes.readUInt32LE(4) >= 20 && bytes.readUInt16LE(24) >= 2;
  const samplesPerBlock = hasBlocks ? bytes.readUInt16LE(26) : 0;
  if (samplesPerBlock === 0) return bytes.readUInt32LE(16);
  return (bytes.readUInt32LE(12) * bytes.readUInt16LE(20)) / samplesPerBlock;
}
