import { BitWriter } from './bit-writer.js';
import { sampleCount, sampleRate, samplesOf, type Utterance } from './tones.js';

const signature = 'fLaC';
const blockSize = 4096;
const streamInfo = 0;
const vorbisComment = 4;
const lastBlock = 0x80;
const commentField = 'COMMENT=';
const maker = 'simulator';
const sampleBits = 16;
const codeOf24kHz = 0b0111;
const codeOf4096 = 0b1100;
const codeOf16BitSize = 0b0111;
const codeOf16BitSamples = 0b100;
const mostRiceBits = 14;
const headerCrc = crcOf(0x07, 8);
const frameCrc = crcOf(0x8005, 16);

/** A FLAC stream (RFC 9639) in pieces, a frame each: the text is the COMMENT of its Vorbis comment. */
export function* flacPieces(utterance: Utterance, text: string): Generator<Buffer> {
  const total = sampleCount(utterance);
  yield Buffer.concat([
    Buffer.from(signature),
    block(streamInfo, information(total)),
    block(vorbisComment | lastBlock, comments(`${commentField}${text}`)),
  ]);
  for (let from = 0, number = 0; from < total; from += blockSize, number++) {
    yield frame(samplesOf(utterance, from, Math.min(blockSize, total - from)), number);
  }
}

/** The length and the COMMENT of any FLAC stream, null where it does not tell. */
export function readFlac(bytes: Buffer): { seconds: number | null; text: string | null } {
  let seconds: number | null = null;
  let text: string | null = null;
  for (let at = signature.length; at + 4 <= bytes.length; ) {
    const type = bytes.readUInt8(at);
    const size = bytes.readUIntBE(at + 1, 3);
    const content = bytes.subarray(at + 4, at + 4 + size);
    if ((type & ~lastBlock) === streamInfo && content.length >= 18) {
      const rate = content.readUIntBE(10, 3) >> 4;
      const samples = (content.readUInt8(13) & 0xf) * 2 ** 32 + content.readUInt32BE(14);
      seconds = rate > 0 && samples > 0 ? samples / rate : null;
    } else if ((type & ~lastBlock) === vorbisComment) {
      text = commentIn(content) ?? text;
    }
    if (type & lastBlock) {
      break;
    }
    at += 4 + size;
  }
  return { seconds, text };
}

/** Looks for the COMMENT among the fields, each behind its length. */
function commentIn(content: Buffer): string | null {
  const sizeAt = (at: number): number => (at + 4 <= content.length ? content.readUInt32LE(at) : 0);
  let at = 4 + sizeAt(0);
  const count = sizeAt(at);
  at += 4;
  for (let index = 0; index < count && at + 4 <= content.length; index++) {
    const field = content.toString('utf8', at + 4, at + 4 + sizeAt(at));
    if (field.slice(0, commentField.length).toUpperCase() === commentField) {
      return field.slice(commentField.length);
    }
    at += 4 + sizeAt(at);
  }
  return null;
}

/** STREAMINFO (8.2), without the sizes of frames and the checksum, which are not known before the end. */
function information(total: number): Buffer {
  const bits = new BitWriter();
  bits.put(blockSize, 16);
  bits.put(blockSize, 16);
  bits.put(0, 24);
  bits.put(0, 24);
  bits.put(sampleRate, 20);
  bits.put(0, 3);
  bits.put(sampleBits - 1, 5);
  bits.put(0, 4);
  bits.put(total, 32);
  return Buffer.concat([bits.bytes(), Buffer.alloc(16)]);
}

function comments(field: string): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32LE(1);
  return Buffer.concat([counted(maker), count, counted(field)]);
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return Buffer.concat([size, bytes]);
}

function block(type: number, content: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt8(type);
  head.writeUIntBE(content.length, 1, 3);
  return Buffer.concat([head, content]);
}

/** A frame (9): header with CRC-8, one subframe, CRC-16. */
function frame(samples: Int16Array, number: number): Buffer {
  const bits = new BitWriter();
  const isFull = samples.length === blockSize;
  bits.put(0b11111111_11111000, 16);
  bits.put(isFull ? codeOf4096 : codeOf16BitSize, 4);
  bits.put(codeOf24kHz, 4);
  bits.put(0, 4);
  bits.put(codeOf16BitSamples, 3);
  bits.put(0, 1);
  for (const byte of codedNumber(number)) {
    bits.put(byte, 8);
  }
  if (!isFull) {
    bits.put(samples.length - 1, 16);
  }
  bits.put(checksum(bits.bytes(), headerCrc), 8);
  subframe(bits, samples);
  bits.align(0);
  bits.put(checksum(bits.bytes(), frameCrc), 16);
  return bits.bytes();
}

/** Silence as a constant; else the second differences in one Rice partition (9.2.5, 9.2.7), or plain where too short. */
function subframe(bits: BitWriter, samples: Int16Array): void {
  const first = samples[0] ?? 0;
  if (samples.every((sample) => sample === first)) {
    bits.put(0, 8);
    bits.put(first, sampleBits);
    return;
  }
  const order = samples.length > 2 ? 2 : 0;
  bits.put((0b001000 | order) << 1, 8);
  for (const sample of samples.subarray(0, order)) {
    bits.put(sample, sampleBits);
  }
  const folded = foldedResidual(samples, order);
  const mean = folded.reduce((sum, value) => sum + value, 0) / folded.length;
  const parameter = Math.min(mostRiceBits, Math.max(0, Math.floor(Math.log2(mean + 1))));
  bits.put(0, 2 + 4);
  bits.put(parameter, 4);
  for (const value of folded) {
    bits.unary(value >>> parameter);
    bits.put(value, parameter);
  }
}

/** What the predictor leaves over: even numbers for those from 0 up, odd ones for those below. */
function foldedResidual(samples: Int16Array, order: number): Uint32Array {
  const folded = new Uint32Array(samples.length - order);
  for (let index = 0; index < folded.length; index++) {
    const at = index + order;
    const predicted = order === 2 ? 2 * (samples[at - 1] ?? 0) - (samples[at - 2] ?? 0) : 0;
    const residual = (samples[at] ?? 0) - predicted;
    folded[index] = residual < 0 ? -2 * residual - 1 : 2 * residual;
  }
  return folded;
}

/** A frame's number as UTF-8 would write a code point (9.1.5), up to 16 bits. */
function codedNumber(number: number): number[] {
  if (number < 0x80) {
    return [number];
  }
  const last = 0x80 | (number & 0x3f);
  return number < 0x800
    ? [0xc0 | (number >> 6), last]
    : [0xe0 | (number >> 12), 0x80 | ((number >> 6) & 0x3f), last];
}

/** A CRC without reflection or initial value, of 8 or 16 bits. */
interface Crc {
  readonly width: 8 | 16;
  /** What each byte does to a state of zeros. */
  readonly table: Uint16Array;
}

function crcOf(polynomial: number, width: 8 | 16): Crc {
  const top = 1 << (width - 1);
  const table = Uint16Array.from({ length: 256 }, (_, byte) => {
    let state = byte << (width - 8);
    for (let bit = 0; bit < 8; bit++) {
      state = (state << 1) ^ (state & top ? polynomial : 0);
    }
    return state & ((1 << width) - 1);
  });
  return { width, table };
}

function checksum(bytes: Buffer, { width, table }: Crc): number {
  let state = 0;
  for (const byte of bytes) {
    state = ((state << 8) & ((1 << width) - 1)) ^ (table[(state >> (width - 8)) ^ byte] ?? 0);
  }
  return state;
}
