import { BitWriter } from './bit-writer.js';
import { signed, unsigned } from './exp-golomb.js';
import { type Macroblocks, writeMacroblock } from './h264-macroblock.js';

/** Level numbers of ITU-T H.264 table A-1 with their most macroblocks a second and in a frame. */
const levels = [
  [10, 1485, 99],
  [11, 3000, 396],
  [12, 6000, 396],
  [20, 11880, 396],
  [21, 19800, 792],
  [30, 40500, 1620],
  [31, 108000, 3600],
  [32, 216000, 5120],
  [40, 245760, 8192],
  [42, 522240, 8704],
  [50, 589824, 22080],
  [51, 983040, 36864],
] as const;

const baselineProfile = 66;
/** constraint_set0_flag and constraint_set1_flag: with profile 66 this is constrained baseline. */
const constraints = 0xc0;
const frameNumberBits = 8;
const bt709 = 1;
const macroblockSize = 16;

/** What a decoder has to know before the pictures. */
export interface ParameterSets {
  /** NAL units without start codes or lengths. */
  readonly sequence: Buffer;
  readonly picture: Buffer;
}

/**
 * SPS and PPS (7.3.2.1, 7.3.2.2) of a stream of one size in pixels, both even. A second has `timeScale / 1000` frames.
 * The quantisers are those at which a DC level is the difference in sample values: 28 for luma, 22 for chroma.
 */
export function parameterSets(width: number, height: number, timeScale: number): ParameterSets {
  return { sequence: sequenceSet(width, height, timeScale), picture: pictureSet() };
}

/** An IDR picture as a NAL unit. The identifier, 0 or 1, must differ from that of the IDR picture before. */
export function idrPicture({ columns, colours }: Macroblocks, identifier: number): Buffer {
  const slice = new BitWriter();
  sliceHeader(slice, 7, 0);
  unsigned(slice, identifier);
  slice.put(0, 2);
  sliceEnd(slice);
  for (let at = 0; at < colours.length; at++) {
    writeMacroblock(slice, { columns, colours }, at, 0);
  }
  return unit(0x65, slice);
}

/**
 * A P picture as a NAL unit. Only the macroblocks at `changed`, ascending positions in `colours`, are new; all others
 * are those of the picture before. `frame` counts from 0 at the last IDR picture.
 */
export function predictedPicture(
  { columns, colours }: Macroblocks,
  changed: readonly number[],
  frame: number,
): Buffer {
  const slice = new BitWriter();
  sliceHeader(slice, 5, frame);
  slice.put(0, 3);
  sliceEnd(slice);
  let next = 0;
  for (const at of changed) {
    unsigned(slice, at - next);
    writeMacroblock(slice, { columns, colours }, at, 5);
    next = at + 1;
  }
  if (next < colours.length) {
    unsigned(slice, colours.length - next);
  }
  return unit(0x41, slice);
}

function sequenceSet(width: number, height: number, timeScale: number): Buffer {
  const columns = Math.ceil(width / macroblockSize);
  const rows = Math.ceil(height / macroblockSize);
  const set = new BitWriter();
  set.put(baselineProfile, 8);
  set.put(constraints, 8);
  set.put(levelOf(columns, rows, timeScale / 1000), 8);
  unsigned(set, 0);
  unsigned(set, frameNumberBits - 4);
  unsigned(set, 2);
  unsigned(set, 1);
  set.put(0, 1);
  unsigned(set, columns - 1);
  unsigned(set, rows - 1);
  set.put(0b11, 2);
  cropping(set, macroblockSize * columns - width, macroblockSize * rows - height);
  usability(set, timeScale);
  return unit(0x67, set);
}

/** frame_cropping_flag and its offsets, which count in pairs of pixels. */
function cropping(set: BitWriter, right: number, bottom: number): void {
  const isCropped = right > 0 || bottom > 0;
  set.put(isCropped ? 1 : 0, 1);
  if (isCropped) {
    for (const offset of [0, right / 2, 0, bottom / 2]) {
      unsigned(set, offset);
    }
  }
}

/** The VUI parameters (E.1.1): square pixels, BT.709 in limited range, the frame rate, and no reordering. */
function usability(set: BitWriter, timeScale: number): void {
  set.put(0b11, 2);
  set.put(1, 8);
  set.put(0, 1);
  set.put(0b1_101_0_1, 6);
  for (let i = 0; i < 3; i++) {
    set.put(bt709, 8);
  }
  set.put(0b01, 2);
  set.put(1000, 32);
  set.put(2 * timeScale, 32);
  set.put(0b1_0_0_0_1_1, 6);
  for (const restriction of [0, 0, 10, 10, 0, 1]) {
    unsigned(set, restriction);
  }
}

function pictureSet(): Buffer {
  const set = new BitWriter();
  unsigned(set, 0);
  unsigned(set, 0);
  set.put(0, 2);
  for (let i = 0; i < 3; i++) {
    unsigned(set, 0);
  }
  set.put(0, 3);
  signed(set, 28 - 26);
  signed(set, 0);
  signed(set, 22 - 28);
  set.put(0b100, 3);
  return unit(0x68, set);
}

/** The lowest level that takes the frame size, the frame rate and the longer side (A.3.1). */
function levelOf(columns: number, rows: number, framesPerSecond: number): number {
  const size = columns * rows;
  const found = levels.find(
    ([, perSecond, perFrame]) =>
      size <= perFrame &&
      size * framesPerSecond <= perSecond &&
      Math.max(columns, rows) <= Math.sqrt(8 * perFrame),
  );
  return found?.[0] ?? 52;
}

function sliceHeader(slice: BitWriter, type: number, frame: number): void {
  unsigned(slice, 0);
  unsigned(slice, type);
  unsigned(slice, 0);
  slice.put(frame, frameNumberBits);
}

/** slice_qp_delta of 0 and no deblocking: with it the flat macroblocks would not stay what they are. */
function sliceEnd(slice: BitWriter): void {
  signed(slice, 0);
  unsigned(slice, 1);
}

/** Ends the payload with its stop bit and makes it a NAL unit: no three bytes in it look like a start code (7.4.1). */
function unit(header: number, payload: BitWriter): Buffer {
  payload.put(1, 1);
  payload.align(0);
  const raw = payload.bytes();
  const whole = Buffer.allocUnsafe(1 + Math.ceil((3 * raw.length) / 2));
  whole[0] = header;
  let length = 1;
  let zeros = 0;
  for (const byte of raw) {
    if (zeros === 2 && byte <= 3) {
      whole[length++] = 3;
      zeros = 0;
    }
    whole[length++] = byte;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return whole.subarray(0, length);
}
