import { BitWriter } from './bit-writer.js';
import { commentTag } from './id3.js';
import { pitchAt, sampleCount, sampleRate, type Utterance } from './tones.js';

const samplesPerFrame = 576;
const framesPerPiece = 32;
/** Header of a frame: MPEG-2 Layer III without CRC, 32 kbit/s, 24 kHz, one channel, original. */
const frameHeader = 0xff_f3_44_c4;
/** 72 times 32000 bit/s by 24000 samples/s. */
const frameBytes = 96;
const sideBits = 72;
/** With it a line of one peaks at a fifth of full scale. */
const gain = 200;
const flagsOfFramesAndBytes = 3;

/** An MP3 (ISO/IEC 13818-3) in pieces of 3 KiB: an ID3v2.4 tag with the text as comment, an Info frame, the tones. */
export function* mp3Pieces(utterance: Utterance, text: string): Generator<Buffer> {
  const frames = Math.ceil(sampleCount(utterance) / samplesPerFrame);
  yield Buffer.concat([commentTag(text), informationFrame(frames)]);
  for (let from = 0; from < frames; from += framesPerPiece) {
    const count = Math.min(framesPerPiece, frames - from);
    const piece = Buffer.alloc(frameBytes * count);
    for (let index = 0; index < count; index++) {
      const middle = samplesPerFrame * (from + index + 0.5);
      frame(pitchAt(utterance, middle), from + index).copy(piece, frameBytes * index);
    }
    yield piece;
  }
}

/** A frame that decoders do not play: how many frames and bytes follow, itself included in the bytes. */
function informationFrame(frames: number): Buffer {
  const whole = Buffer.alloc(frameBytes);
  whole.writeUInt32BE(frameHeader);
  const at = 4 + sideBits / 8;
  whole.write('Info', at, 'latin1');
  whole.writeUInt32BE(flagsOfFramesAndBytes, at + 4);
  whole.writeUInt32BE(frames, at + 8);
  whole.writeUInt32BE(frameBytes * (frames + 1), at + 12);
  return whole;
}

/**
 * A frame of one granule with a single line of the spectrum, or none for silence. The line is a one in the count1
 * region, whose table B has four plain bits for four values and a sign for each one; there are no big values, no scale
 * factors, and no bits left for later frames.
 */
function frame(pitch: number, number: number): Buffer {
  const bits = new BitWriter();
  const line = Math.round(pitch / (sampleRate / 2 / samplesPerFrame) - 0.5);
  const quads = pitch > 0 ? Math.floor(line / 4) + 1 : 0;
  bits.put(frameHeader, 32);
  bits.put(0, 8 + 1);
  bits.put(quads > 0 ? 4 * quads + 1 : 0, 12);
  bits.put(0, 9);
  bits.put(gain, 8);
  bits.put(0, 9 + 1 + 15 + 4 + 3 + 1);
  bits.put(1, 1);
  for (let quad = 0; quad < quads; quad++) {
    bits.put(quad === quads - 1 ? 0b1111 & ~(0b1000 >> (line % 4)) : 0b1111, 4);
  }
  if (quads > 0) {
    bits.put(isNegative(line, number) ? 1 : 0, 1);
  }
  bits.align(0);
  return bits.bytes();
}

/** The signs that a steady tone at a line's middle has from frame to frame, so that its phase goes on. */
function isNegative(line: number, frameNumber: number): boolean {
  return ((((2 * line + 1) * frameNumber) % 4) & 2) === 2;
}
