import { sampleCount, sampleRate, samplesOf, type Utterance } from './tones.js';

const samplesPerPiece = 4096;
const bytesPerSample = 2;
const linearPcm = 1;
/** Written by some encoders that do not know the length beforehand. */
const unknownSize = 0xffffffff;

/** Raw samples, 16 bits little-endian, in pieces of 8 KiB. */
export function* pcmPieces(utterance: Utterance): Generator<Buffer> {
  const total = sampleCount(utterance);
  for (let from = 0; from < total; from += samplesPerPiece) {
    const samples = samplesOf(utterance, from, Math.min(samplesPerPiece, total - from));
    const piece = Buffer.allocUnsafe(bytesPerSample * samples.length);
    for (let index = 0; index < samples.length; index++) {
      piece.writeInt16LE(samples[index] ?? 0, bytesPerSample * index);
    }
    yield piece;
  }
}

/** A RIFF WAVE file in pieces: the format, the text as a comment (LIST INFO ICMT, UTF-8), and the samples. */
export function* wavPieces(utterance: Utterance, text: string): Generator<Buffer> {
  const comment = chunk('LIST', Buffer.concat([latin('INFO'), chunk('ICMT', Buffer.from(`${text}\0`))]));
  const dataSize = bytesPerSample * sampleCount(utterance);
  const format = Buffer.alloc(16);
  format.writeUInt16LE(linearPcm, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(sampleRate, 4);
  format.writeUInt32LE(bytesPerSample * sampleRate, 8);
  format.writeUInt16LE(bytesPerSample, 12);
  format.writeUInt16LE(8 * bytesPerSample, 14);
  const formatChunk = chunk('fmt ', format);
  const size = 4 + formatChunk.length + comment.length + 8 + dataSize;
  yield Buffer.concat([
    chunkHead('RIFF', size),
    latin('WAVE'),
    formatChunk,
    comment,
    chunkHead('data', dataSize),
  ]);
  yield* pcmPieces(utterance);
}

/** The length and the ICMT comment of any RIFF WAVE file; null if unknown. */
export function readWav(bytes: Buffer): { seconds: number | null; text: string | null } {
  let bytesPerSecond = 0;
  let seconds: number | null = null;
  let text: string | null = null;
  for (const { type, content, size } of chunks(bytes, 12)) {
    if (type === 'fmt ' && content.length >= 12) {
      bytesPerSecond = content.readUInt32LE(8);
    } else if (type === 'data' && bytesPerSecond > 0) {
      seconds = (size === unknownSize ? content.length : size) / bytesPerSecond;
    } else if (type === 'LIST' && content.toString('latin1', 0, 4) === 'INFO') {
      text = commentOf(content) ?? text;
    }
  }
  return { seconds, text };
}

interface Chunk {
  readonly type: string;
  /** The available part of the content. */
  readonly content: Buffer;
  readonly size: number;
}

function commentOf(list: Buffer): string | null {
  for (const { type, content } of chunks(list, 4)) {
    if (type === 'ICMT') {
      return content.toString().replace(/\0+$/, '');
    }
  }
  return null;
}

function* chunks(bytes: Buffer, from: number): Generator<Chunk> {
  for (let at = from; at + 8 <= bytes.length; ) {
    const size = bytes.readUInt32LE(at + 4);
    yield {
      type: bytes.toString('latin1', at, at + 4),
      content: bytes.subarray(at + 8, at + 8 + size),
      size,
    };
    at += 8 + size + (size % 2);
  }
}

/** A chunk, padded to an even length. */
function chunk(type: string, content: Buffer): Buffer {
  return Buffer.concat([chunkHead(type, content.length), content, Buffer.alloc(content.length % 2)]);
}

function chunkHead(type: string, size: number): Buffer {
  const head = Buffer.allocUnsafe(8);
  head.write(type, 'latin1');
  head.writeUInt32LE(size, 4);
  return head;
}

function latin(value: string): Buffer {
  return Buffer.from(value, 'latin1');
}
