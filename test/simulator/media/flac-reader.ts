import { BitReader } from './bit-reader.js';

/** Decodes a FLAC stream of the forms that the simulator writes. Throws where it is not sound to its exact end. */
export function decodeFlac(file: Buffer): { total: number; samples: Int16Array; types: number[] } {
  if (file.toString('latin1', 0, 4) !== 'fLaC') {
    throw new Error('no FLAC');
  }
  const types: number[] = [];
  let at = 4;
  for (let isLast = false; !isLast; ) {
    const type = file.readUInt8(at);
    types.push(type & 0x7f);
    isLast = type >= 0x80;
    at += 4 + file.readUIntBE(at + 1, 3);
  }
  const samples: number[] = [];
  for (let number = 0; at < file.length; number++) {
    at += decodeFrame(file.subarray(at), number, samples);
  }
  return { total: file.readUInt32BE(8 + 14), samples: Int16Array.from(samples), types };
}

/** Decodes a frame; gives the bytes that it takes. */
function decodeFrame(bytes: Buffer, number: number, samples: number[]): number {
  const bits = new BitReader(bytes);
  if (bits.bits(16) !== 0xfff8) {
    throw new Error(`frame ${number} has no sync code`);
  }
  const sizeCode = bits.bits(4);
  if (bits.bits(12) !== 0b0111_0000_100_0) {
    throw new Error(`frame ${number} is not 24 kHz, mono, 16 bits`);
  }
  if (codedNumber(bits) !== number) {
    throw new Error(`frame ${number} has another number`);
  }
  const size = sizeCode === 0b0111 ? bits.bits(16) + 1 : 4096;
  const head = bits.position / 8;
  if (bits.bits(8) !== crc(bytes.subarray(0, head), 0x07, 8)) {
    throw new Error(`checksum of the header of frame ${number}`);
  }
  decodeSubframe(bits, size, samples);
  const end = Math.ceil(bits.position / 8);
  if (bytes.readUInt16BE(end) !== crc(bytes.subarray(0, end), 0x8005, 16)) {
    throw new Error(`checksum of frame ${number}`);
  }
  return end + 2;
}

function decodeSubframe(bits: BitReader, size: number, samples: number[]): void {
  const type = bits.bits(8) >> 1;
  if (type === 0) {
    const value = bits.signedBits(16);
    for (let i = 0; i < size; i++) samples.push(value);
    return;
  }
  const order = type - 8;
  if (order !== 0 && order !== 2) {
    throw new Error(`subframe type ${type}`);
  }
  for (let i = 0; i < order; i++) samples.push(bits.signedBits(16));
  if (bits.bits(6) !== 0) {
    throw new Error('more than one partition');
  }
  const parameter = bits.bits(4);
  for (let i = order; i < size; i++) {
    const folded = bits.unary() * 2 ** parameter + bits.bits(parameter);
    const residual = folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
    const predicted = order === 2 ? 2 * (samples.at(-1) ?? 0) - (samples.at(-2) ?? 0) : 0;
    samples.push(predicted + residual);
  }
}

function codedNumber(bits: BitReader): number {
  const first = bits.bits(8);
  const more = first < 0x80 ? 0 : first < 0xe0 ? 1 : 2;
  let value = more === 0 ? first : first & (more === 1 ? 0x1f : 0x0f);
  for (let i = 0; i < more; i++) value = value * 64 + (bits.bits(8) & 0x3f);
  return value;
}

/** Bit by bit, so that it shares nothing with the writer's table. */
function crc(bytes: Buffer, polynomial: number, width: number): number {
  const reader = new BitReader(bytes);
  let state = 0;
  for (let i = 0; i < 8 * bytes.length; i++) {
    const feedback = (state >> (width - 1)) ^ reader.bits(1);
    state = ((state << 1) & (2 ** width - 1)) ^ (feedback ? polynomial : 0);
  }
  return state;
}
