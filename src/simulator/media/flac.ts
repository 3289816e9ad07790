import { asset } from './assets.js';
import { sampleCount, sampleRate, type Utterance } from './tones.js';

/** Durations in seconds of the files `assets/speech-*.flac`. */
const lengths = [0.25, 0.5, 1, 2, 4, 8];
const signature = 'fLaC';
const streamInfo = 0;
const vorbisComment = 4;
const lastBlock = 0x80;
const commentField = 'COMMENT=';
const maker = 'simulator';
const pieceBytes = 4 * 1024;

/**
 * A FLAC stream (RFC 9639) in pieces of 4 KiB: the recording with the length nearest to the utterance's, with the text as
 * COMMENT and the voice as ARTIST of its Vorbis comment.
 */
export function* flacPieces(utterance: Utterance, text: string): Generator<Buffer> {
  const seconds = sampleCount(utterance) / sampleRate;
  const nearest = lengths.reduce((best, one) =>
    Math.abs(Math.log(seconds / one)) < Math.abs(Math.log(seconds / best)) ? one : best,
  );
  const recording = asset(`speech-${nearest}.flac`);
  let information: Buffer = Buffer.alloc(0);
  let frames = recording.length;
  for (const { type, content, end, isLast } of metadata(recording)) {
    information = type === streamInfo ? content : information;
    frames = isLast ? end : frames;
  }
  const fields = [`${commentField}${text}`, `ARTIST=${utterance.voice}`];
  yield Buffer.concat([
    Buffer.from(signature),
    block(streamInfo, information),
    block(vorbisComment | lastBlock, comments(fields)),
  ]);
  for (let at = frames; at < recording.length; at += pieceBytes) {
    yield recording.subarray(at, at + pieceBytes);
  }
}

interface MetadataBlock {
  readonly type: number;
  /** The available part of it. */
  readonly content: Buffer;
  readonly end: number;
  readonly isLast: boolean;
}

/** The metadata blocks (section 8) of a stream, including a last truncated one. */
function* metadata(bytes: Buffer): Generator<MetadataBlock> {
  let isLast = false;
  for (let at = signature.length; !isLast && at + 4 <= bytes.length; ) {
    const head = bytes.readUInt8(at);
    const end = at + 4 + bytes.readUIntBE(at + 1, 3);
    isLast = (head & lastBlock) !== 0;
    yield { type: head & ~lastBlock, content: bytes.subarray(at + 4, end), end, isLast };
    at = end;
  }
}

/** The length and the COMMENT of any FLAC stream; null if unknown. */
export function readFlac(bytes: Buffer): { seconds: number | null; text: string | null } {
  let seconds: number | null = null;
  let text: string | null = null;
  for (const { type, content } of metadata(bytes)) {
    if (type === streamInfo && content.length >= 18) {
      const rate = content.readUIntBE(10, 3) >> 4;
      const samples = (content.readUInt8(13) & 0xf) * 2 ** 32 + content.readUInt32BE(14);
      seconds = rate > 0 && samples > 0 ? samples / rate : null;
    } else if (type === vorbisComment) {
      text = commentIn(content) ?? text;
    }
  }
  return { seconds, text };
}

/** Finds the COMMENT among the fields, each of which is preceded by its length. */
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

function comments(fields: readonly string[]): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32LE(fields.length);
  return Buffer.concat([counted(maker), count, ...fields.map(counted)]);
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
