import { createHash } from 'node:crypto';
import { asset } from './assets.js';
import { sampleCount, type Utterance } from './tones.js';

const headerSize = 10;
const utf8 = 3;
const frameType = 'COMM';

/** An ID3v2.4 tag whose only frame is a UTF-8 comment of unknown language, without a description. */
function commentTag(text: string): Buffer {
  const content = Buffer.concat([Buffer.from([utf8]), Buffer.from('und\0'), Buffer.from(text)]);
  const frame = Buffer.concat([Buffer.from(frameType), synchsafe(content.length), Buffer.alloc(2), content]);
  return Buffer.concat([Buffer.from('ID3\x04\0\0'), synchsafe(frame.length), frame]);
}

/** The end of the ID3v2 tag at the start, 0 without one, and its first UTF-8 comment of version 2.4. */
export function readTag(bytes: Buffer): { end: number; text: string | null } {
  if (bytes.length < headerSize || bytes.toString('latin1', 0, 3) !== 'ID3') {
    return { end: 0, text: null };
  }
  const end = headerSize + fromSynchsafe(bytes, 6);
  const tag = bytes.subarray(0, end);
  for (let at = headerSize; tag[3] === 4 && at + headerSize <= tag.length; ) {
    const size = fromSynchsafe(tag, at + 4);
    const content = tag.subarray(at + headerSize, at + headerSize + size);
    if (tag.toString('latin1', at, at + 4) === frameType && content[0] === utf8) {
      const described = content.indexOf(0, 4);
      if (described >= 0) {
        return { end, text: content.toString('utf8', described + 1) };
      }
    }
    at += headerSize + size;
  }
  return { end, text: null };
}

/** Four bytes of seven bits each. */
function synchsafe(size: number): Buffer {
  return Buffer.from([size >> 21, size >> 14, size >> 7, size].map((byte) => byte & 0x7f));
}

function fromSynchsafe(bytes: Buffer, at: number): number {
  let size = 0;
  for (const byte of bytes.subarray(at, at + 4)) {
    size = (size << 7) | (byte & 0x7f);
  }
  return size;
}

/** Layer III bit rates in kbit/s, by index. */
const ratesOfMpeg1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const ratesOfMpeg2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const samplingRates = [44_100, 48_000, 32_000];
const mpeg1 = 3;
const reservedVersion = 1;
const layer3 = 1;
const farthestStart = 64 * 1024;
const flagOfFrames = 1;

interface Frame {
  readonly bytes: number;
  readonly samples: number;
  readonly samplingRate: number;
  readonly bitsPerSecond: number;
  /** Offset of an Info or Xing header from the frame's start. */
  readonly information: number;
}

/**
 * Seconds of MPEG Layer III audio that begins at a position or at most 64 KiB after it: by its Info or Xing header,
 * else by its bytes at the bit rate of its first frame. Null without a frame.
 */
export function layer3Seconds(bytes: Buffer, from: number): number | null {
  for (let at = from; at + 4 <= bytes.length && at <= from + farthestStart; at++) {
    const frame = frameAt(bytes, at);
    if (frame !== null && (at === from || frameAt(bytes, at + frame.bytes) !== null)) {
      const frames = framesToldAt(bytes, at + frame.information);
      return frames === null
        ? (8 * (bytes.length - at)) / frame.bitsPerSecond
        : (frames * frame.samples) / frame.samplingRate;
    }
  }
  return null;
}

/** Whether a Layer III frame begins here. */
export function isLayer3(bytes: Buffer, at: number): boolean {
  return frameAt(bytes, at) !== null;
}

function frameAt(bytes: Buffer, at: number): Frame | null {
  if (at + 4 > bytes.length) {
    return null;
  }
  const header = bytes.readUInt32BE(at);
  const version = (header >>> 19) & 3;
  const layer = (header >>> 17) & 3;
  const rates = version === mpeg1 ? ratesOfMpeg1 : ratesOfMpeg2;
  const kilobits = rates[(header >>> 12) & 0xf] ?? 0;
  const divisor = version === mpeg1 ? 1 : version === 2 ? 2 : 4;
  const samplingRate = (samplingRates[(header >>> 10) & 3] ?? 0) / divisor;
  if (
    header >>> 21 !== 0x7ff ||
    version === reservedVersion ||
    layer !== layer3 ||
    !kilobits ||
    !samplingRate
  ) {
    return null;
  }
  const isMono = ((header >>> 6) & 3) === 3;
  const samples = version === mpeg1 ? 1152 : 576;
  const padding = (header >>> 9) & 1;
  const side = version === mpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17;
  return {
    bytes: Math.floor(((samples / 8) * 1000 * kilobits) / samplingRate) + padding,
    samples,
    samplingRate,
    bitsPerSecond: 1000 * kilobits,
    information: 4 + side,
  };
}

function framesToldAt(bytes: Buffer, at: number): number | null {
  if (at + 12 > bytes.length || !['Info', 'Xing'].includes(bytes.toString('latin1', at, at + 4))) {
    return null;
  }
  return bytes.readUInt32BE(at + 4) & flagOfFrames ? bytes.readUInt32BE(at + 8) : null;
}

/** Frames of `assets/speech.mp3`: MPEG-2 Layer III without CRC, 32 kbit/s, 24 kHz, one channel, no bit reservoir. */
const samplesPerFrame = 576;
const frameBytes = 96;
const sideBytes = 9;
const framesPerPiece = 32;
const flagsOfFramesAndBytes = 3;

/**
 * An MP3 (ISO/IEC 13818-3) in pieces of 3 KiB: an ID3v2.4 tag with the text as comment, an Info frame, and the repeated
 * frames of the recording, starting at one chosen by voice and words. Its length is that of the utterance, to a frame.
 */
export function* mp3Pieces(utterance: Utterance, text: string): Generator<Buffer> {
  const recording = asset('speech.mp3');
  const recorded = Math.floor(recording.length / frameBytes);
  const frames = Math.ceil(sampleCount(utterance) / samplesPerFrame);
  const header = recording.readUInt32BE(0);
  yield Buffer.concat([commentTag(text), informationFrame(header, frames)]);
  const first = createHash('sha256').update(utterance.pitches.join()).digest().readUInt32BE(0) % recorded;
  for (let at = 0; at < frames; ) {
    const from = (first + at) % recorded;
    const count = Math.min(framesPerPiece, frames - at, recorded - from);
    yield recording.subarray(frameBytes * from, frameBytes * (from + count));
    at += count;
  }
}

/** An Info frame, which decoders do not play: the number of frames after it, and of bytes including it. */
function informationFrame(header: number, frames: number): Buffer {
  const whole = Buffer.alloc(frameBytes);
  whole.writeUInt32BE(header);
  const at = 4 + sideBytes;
  whole.write('Info', at, 'latin1');
  whole.writeUInt32BE(flagsOfFramesAndBytes, at + 4);
  whole.writeUInt32BE(frames, at + 8);
  whole.writeUInt32BE(frameBytes * (frames + 1), at + 12);
  return whole;
}
