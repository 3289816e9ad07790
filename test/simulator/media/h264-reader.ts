import { BitReader } from './bit-reader.js';

const grey = [128, 128, 128] as const;

/** Y, Cb and Cr of a macroblock. */
export type Samples = readonly [number, number, number];

export interface SequenceFields {
  readonly profile: number;
  readonly constraints: number;
  readonly level: number;
  readonly columns: number;
  readonly rows: number;
  readonly width: number;
  readonly height: number;
  /** Frames a second by the VUI. */
  readonly rate: number;
}

/** A NAL unit's payload without the bytes that prevent start codes. Throws when there is a start code in it. */
export function payloadOf(unit: Buffer): Buffer {
  for (let at = 0; at + 3 <= unit.length; at++) {
    if (unit[at] === 0 && unit[at + 1] === 0 && (unit[at + 2] ?? 0) < 3) {
      throw new Error(`a start code at ${at}`);
    }
  }
  const bytes: number[] = [];
  for (const [at, byte] of unit.entries()) {
    if (!(at >= 3 && byte === 3 && unit[at - 1] === 0 && unit[at - 2] === 0)) {
      bytes.push(byte);
    }
  }
  return Buffer.from(bytes.slice(1));
}

/** Reads the SPS that the simulator writes. Throws where it is another one or does not end exactly. */
export function readSequence(unit: Buffer): SequenceFields {
  const bits = new BitReader(payloadOf(unit));
  const [profile, constraints, level] = [bits.bits(8), bits.bits(8), bits.bits(8)];
  expect(bits, 'ids, frame number bits, order type, references', [0, 4, 2, 1]);
  bits.bits(1);
  const columns = bits.unsigned() + 1;
  const rows = bits.unsigned() + 1;
  bits.bits(2);
  const [left, right, top, bottom] = bits.bits(1)
    ? [bits.unsigned(), bits.unsigned(), bits.unsigned(), bits.unsigned()]
    : [0, 0, 0, 0];
  bits.bits(1 + 1 + 8 + 1 + 1 + 3 + 1 + 1 + 24 + 1);
  if (bits.bits(1) !== 1) {
    throw new Error('no timing');
  }
  const units = bits.bits(32);
  const rate = bits.bits(32) / (2 * units);
  bits.bits(6);
  expect(bits, 'restrictions', [0, 0, 10, 10, 0, 1]);
  if (!bits.isAtStopBit()) {
    throw new Error('the SPS has no end');
  }
  const width = 16 * columns - 2 * (left + right);
  return {
    profile,
    constraints,
    level,
    columns,
    rows,
    width,
    height: 16 * rows - 2 * (top + bottom),
    rate,
  };
}

/**
 * Decodes a slice of a whole picture into `picture`, macroblock by macroblock; gives whether it is an IDR picture and how
 * many macroblocks were coded. Throws where the slice is not of the forms that the simulator writes, or does not end
 * exactly after its last macroblock.
 */
export function decodeSlice(
  unit: Buffer,
  columns: number,
  picture: Samples[],
): { isIdr: boolean; frame: number; coded: number } {
  const bits = new BitReader(payloadOf(unit));
  const isIdr = unit[0] === 0x65;
  if (!isIdr && unit[0] !== 0x41) {
    throw new Error(`NAL header ${unit[0]}`);
  }
  expect(bits, 'first macroblock, type, PPS', [0, isIdr ? 7 : 5, 0]);
  const frame = bits.bits(8);
  if (isIdr) {
    bits.unsigned();
  }
  bits.bits(isIdr ? 2 : 3);
  expect(bits, 'QP delta, no deblocking', [0, 1]);
  let coded = 0;
  for (let at = 0; at < picture.length; at++) {
    at += isIdr ? 0 : bits.unsigned();
    if (at < picture.length) {
      picture[at] = readMacroblock(bits, isIdr ? 1 : 6, at, columns, picture);
      coded += 1;
    }
    if (bits.isAtStopBit() && at < picture.length - 1) {
      throw new Error(`the slice ends after macroblock ${at}`);
    }
    if (at > picture.length) {
      throw new Error('more macroblocks skipped than there are');
    }
  }
  if (!bits.isAtStopBit()) {
    throw new Error('the slice does not end');
  }
  return { isIdr, frame, coded };
}

function readMacroblock(
  bits: BitReader,
  firstType: number,
  at: number,
  columns: number,
  picture: readonly Samples[],
): Samples {
  const type = bits.unsigned() - firstType;
  const chromaMode = bits.unsigned();
  if (type < 0 || type > 7 || bits.signed() !== 0) {
    throw new Error(`macroblock type ${type}`);
  }
  const above = at >= columns ? picture[at - columns] : undefined;
  const left = at % columns > 0 ? picture[at - 1] : undefined;
  const luma = [above, left, above || left ? undefined : grey][type % 4]?.[0];
  const chroma = [above || left ? undefined : grey, left, above][chromaMode];
  if (luma === undefined || chroma === undefined) {
    throw new Error(`modes ${type % 4} and ${chromaMode} at ${at}`);
  }
  const difference = readLevel(bits, ['1', '01', '000101']);
  const hasChroma = type >= 4;
  const blue = hasChroma ? readLevel(bits, ['01', '1', '000111']) : 0;
  const red = hasChroma ? readLevel(bits, ['01', '1', '000111']) : 0;
  return [luma + difference, chroma[1] + blue, chroma[2] + red];
}

/** A block with no level, a trailing one, or one other level, by their tokens. */
function readLevel(bits: BitReader, tokens: readonly [string, string, string]): number {
  let token = '';
  while (!tokens.includes(token)) {
    token += bits.bits(1);
    if (token.length > 6) {
      throw new Error(`token ${token}`);
    }
  }
  const kind = tokens.indexOf(token);
  if (kind === 0) {
    return 0;
  }
  const level = kind === 1 ? 1 - 2 * bits.bits(1) : readMagnitude(bits);
  if (bits.bits(1) !== 1) {
    throw new Error('zeros before the first level');
  }
  return level;
}

function readMagnitude(bits: BitReader): number {
  const prefix = bits.unary();
  const suffix = prefix < 14 ? 0 : bits.bits(prefix === 14 ? 4 : 12);
  const code = Math.min(15, prefix) + suffix + (prefix === 15 ? 15 : 0) + 2;
  return code % 2 === 0 ? (code + 2) / 2 : (-code - 1) / 2;
}

/** Reads ue(v) values that must be these; a zero is the same as se(v). */
function expect(bits: BitReader, what: string, values: readonly number[]): void {
  for (const value of values) {
    const found = bits.unsigned();
    if (found !== value) {
      throw new Error(`${what}: ${found}, not ${value}`);
    }
  }
}
